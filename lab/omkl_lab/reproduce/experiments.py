"""The paper's tables and figures, read from the TOML files in experiments/."""

import tomllib
from functools import cache
from typing import Any, NamedTuple

from omkl_lab.configurations import EXPERIMENTS


class Printed(NamedTuple):
    """The published numbers of one algorithm on one data set; the MSE is not scaled by 1e3."""

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
    """The published numbers of an algorithm on a data set, or None.

    >>> printed("naval", "SFG-MKL")
    Printed(mse=0.00435, seconds=8.99)
    """
    return next((table.paper.get(algorithm) for table in paper_tables() if table.dataset == dataset), None)
