"""The records of results.jsonl and details.jsonl, from which tables, figures and the report are made."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple, TypedDict

import numpy as np

from omkl._version import __version__
from omkl_lab.configurations import Configuration
from omkl_lab.files import brief
from omkl_lab.prequential import Run, grid, running_mean_mse, runs_of
from omkl_lab.reproduce.experiments import printed
from omkl_lab.streams import Stream


class Result(TypedDict):
    """One case: a line of results.jsonl. The MSE is not scaled by 1e3, and None if a run diverged."""

    dataset: str
    algorithm: str
    variant: str
    runs: int
    mse: float | None
    mse_std: float | None  # between feature sets; None for a single run
    seconds: float  # per run
    diverged: bool
    paper_mse: float | None
    paper_seconds: float | None


class Detail(TypedDict):
    """What the figures need in addition: a line of details.jsonl."""

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
    curve: list[float]  # MSE_t at t, mean over the runs; empty if one diverged
    weights: list[float]  # at the end, mean over the runs
    history: list[list[float]]  # of the first run


CaseId = tuple[str, str, str]  # data set, algorithm, variant


def case_id(line: Result | Detail) -> CaseId:
    return line["dataset"], line["algorithm"], line["variant"]


class Case(NamedTuple):
    """A configuration on a stream, with the seeds of its runs."""

    stream: Stream
    configuration: Configuration
    seeds: tuple[int, ...]

    @property
    def id(self) -> CaseId:
        return self.stream.name, self.configuration.algorithm, self.configuration.variant


def cases(streams: Iterable[Stream], configurations: list[Configuration], runs: int, seed: int) -> list[Case]:
    return [
        Case(stream, configuration, tuple(range(seed, seed + runs_of(configuration, runs))))
        for stream in streams
        for configuration in configurations
    ]


def fingerprint(stream: Stream) -> str:
    """A hash of the data, so that another file with the same name counts as another stream."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(np.ascontiguousarray(stream.X).tobytes())
    digest.update(np.ascontiguousarray(stream.y).tobytes())
    return digest.hexdigest()


def keys_of(case: Case, stream_hash: str) -> tuple[str, ...]:
    """The keys of a case's runs in the journal, one per seed; they contain all that determines the result."""
    settings = repr(case.configuration.settings(len(case.stream.y)))
    chosen = hashlib.blake2b(f"{__version__} {stream_hash} {settings}".encode(), digest_size=8).hexdigest()
    return tuple(" / ".join((*case.id, chosen, str(seed))) for seed in case.seeds)


def result(case: Case, runs: list[Run]) -> Result:
    dataset, algorithm, variant = case.id
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


def detail(case: Case, runs: list[Run]) -> Detail:
    dataset, algorithm, variant = case.id
    diverged = sum(run["diverged"] for run in runs)
    X, y = case.stream.X, case.stream.y
    return {
        "dataset": dataset,
        "algorithm": algorithm,
        "variant": variant,
        "rows": len(y),
        "features": X.shape[1],
        "columns": list(case.stream.columns),
        "mean_mse": running_mean_mse(y),
        "truth": list(case.stream.truth),
        "diverged_runs": diverged,
        "kernels": float(np.mean([run["kernels"] for run in runs])),
        "t": grid(len(y)).tolist(),
        "curve": [] if diverged else [brief(x) for x in np.mean([run["curve"] for run in runs], axis=0)],
        "weights": [brief(x) for x in np.mean([run["weights"] for run in runs], axis=0)],
        "history": runs[0]["history"],
    }
