"""results.jsonl and details.jsonl: what all tables, figures and the report are made of."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple, TypedDict

import numpy as np

from omkl._version import __version__
from omkl_lab.entrants import Entrant
from omkl_lab.files import brief
from omkl_lab.prequential import Run, grid, running_mean_mse, runs_of
from omkl_lab.reproduce.experiments import printed
from omkl_lab.streams import Stream


class Result(TypedDict):
    """One cell: a line of results.jsonl. Errors in plain units; a diverged cell has no MSE."""

    dataset: str
    algorithm: str
    variant: str
    runs: int
    mse: float | None
    mse_std: float | None  # between feature sets; None where one run says nothing of it
    seconds: float  # per run
    diverged: bool
    paper_mse: float | None
    paper_seconds: float | None


class Detail(TypedDict):
    """What the pictures need beside it: a line of details.jsonl."""

    dataset: str
    algorithm: str
    variant: str
    rows: int
    features: int
    columns: list[str]
    mean_mse: float  # of the running mean
    truth: list[int]
    diverged_runs: int
    kernels: float  # evaluated per sample
    t: list[int]
    curve: list[float]  # MSE_t at t, mean over the runs; empty where one diverged
    weights: list[float]  # at the end, mean over the runs
    history: list[list[float]]  # of the first run


Place = tuple[str, str, str]  # data set, algorithm, variant


def place(line: Result | Detail) -> Place:
    return line["dataset"], line["algorithm"], line["variant"]


class Cell(NamedTuple):
    """An entrant on a stream, and the seeds it runs with."""

    stream: Stream
    entrant: Entrant
    seeds: tuple[int, ...]

    @property
    def place(self) -> Place:
        return self.stream.name, self.entrant.algorithm, self.entrant.variant


def cells(streams: Iterable[Stream], entrants: list[Entrant], runs: int, seed: int) -> list[Cell]:
    return [
        Cell(stream, entrant, tuple(range(seed, seed + runs_of(entrant, runs))))
        for stream in streams
        for entrant in entrants
    ]


def fingerprint(stream: Stream) -> str:
    """Another file under the same name is another stream."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(np.ascontiguousarray(stream.X).tobytes())
    digest.update(np.ascontiguousarray(stream.y).tobytes())
    return digest.hexdigest()


def keys_of(cell: Cell, print_of_stream: str) -> tuple[str, ...]:
    """The names of a cell's runs in the journal, one per seed: all that decides their outcome."""
    settings = repr(cell.entrant.settings(len(cell.stream.y)))
    chosen = hashlib.blake2b(f"{__version__} {print_of_stream} {settings}".encode(), digest_size=8).hexdigest()
    return tuple(" / ".join((*cell.place, chosen, str(seed))) for seed in cell.seeds)


def result(cell: Cell, runs: list[Run]) -> Result:
    dataset, algorithm, variant = cell.place
    diverged = any(run["diverged"] for run in runs)
    errors = [run["mse"] for run in runs if run["mse"] is not None]
    spread = None
    if not diverged:
        spread = float(np.std(errors, ddof=1)) if len(runs) > 1 else 0.0 if algorithm == "OMKR" else None
    paper = printed(dataset, algorithm)
    return {
        "dataset": dataset,
        "algorithm": algorithm,
        "variant": variant,
        "runs": len(runs),
        "mse": None if diverged else float(np.mean(errors)),
        "mse_std": spread,
        "seconds": float(np.mean([run["seconds"] for run in runs])),
        "diverged": diverged,
        "paper_mse": paper and paper.mse,
        "paper_seconds": paper and paper.seconds,
    }


def detail(cell: Cell, runs: list[Run]) -> Detail:
    dataset, algorithm, variant = cell.place
    diverged = sum(run["diverged"] for run in runs)
    X, y = cell.stream.X, cell.stream.y
    return {
        "dataset": dataset,
        "algorithm": algorithm,
        "variant": variant,
        "rows": len(y),
        "features": X.shape[1],
        "columns": list(cell.stream.columns),
        "mean_mse": running_mean_mse(y),
        "truth": list(cell.stream.truth),
        "diverged_runs": diverged,
        "kernels": float(np.mean([run["kernels"] for run in runs])),
        "t": grid(len(y)).tolist(),
        "curve": [] if diverged else [brief(x) for x in np.mean([run["curve"] for run in runs], axis=0)],
        "weights": [brief(x) for x in np.mean([run["weights"] for run in runs], axis=0)],
        "history": runs[0]["history"],
    }
