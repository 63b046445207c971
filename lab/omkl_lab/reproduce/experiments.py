"""The experiments of the paper, read from their declarations."""

import tomllib
from functools import cache
from typing import Any, NamedTuple

from omkl_lab.entrants import EXPERIMENTS


class Printed(NamedTuple):
    """What the paper prints for one algorithm on one data set, in plain units."""

    mse: float
    seconds: float


class PaperTable(NamedTuple):
    number: int
    title: str
    dataset: str
    paper: dict[str, Printed]


class PaperFigure(NamedTuple):
    number: int
    title: str
    dataset: str
    algorithms: list[str]


@cache
def _declared(kind: str) -> list[tuple[int, dict[str, Any]]]:
    files = sorted(EXPERIMENTS.glob(f"{kind}*.toml"))
    return [(int(f.stem.removeprefix(kind)), tomllib.loads(f.read_text(encoding="utf-8"))) for f in files]


def paper_tables() -> list[PaperTable]:
    return [
        PaperTable(
            number, spec["title"], spec["dataset"],
            {name: Printed(round(mse / 1e3, 8), seconds) for name, (mse, seconds) in spec["paper"].items()},
        )
        for number, spec in _declared("table")
    ]  # fmt: skip


def paper_figures() -> list[PaperFigure]:
    return [
        PaperFigure(number, spec["title"], spec["dataset"], spec["algorithms"]) for number, spec in _declared("figure")
    ]


def printed(dataset: str, algorithm: str) -> Printed | None:
    """The paper's numbers for a cell, or None where it prints none.

    >>> printed("naval", "SFG-MKL")
    Printed(mse=0.00435, seconds=8.99)
    """
    return next((table.paper.get(algorithm) for table in paper_tables() if table.dataset == dataset), None)
