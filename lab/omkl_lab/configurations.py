"""Configurations of the paper's algorithms: every variant that the paper leaves open, and the library's defaults.

The variants ("forms") are declared in experiments/forms.toml.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from omkl.algorithms.settings import Settings

EXPERIMENTS = Path(__file__).parent / "experiments"
DEFAULTS = "safe defaults"


class Matching(NamedTuple):
    """The form that reproduces an algorithm's published column, with the tolerance of the comparison."""

    form: str
    within: float
    unit: str = ""  # "1e-3": `within` is absolute, in that unit; otherwise relative to the published number

    def agrees(self, ours: float, published: float) -> bool:
        """Whether our MSE is within the tolerance of the published one; neither is scaled by 1e3."""
        tolerance = self.within * (1e-3 if self.unit else published)
        return abs(ours - published) <= tolerance


class Configuration(NamedTuple):
    """An algorithm with its settings."""

    learner: str
    variant: str
    changes: dict[str, Any] | None  # to the paper's protocol; None for the library's defaults

    @property
    def algorithm(self) -> str:
        return NAMES[self.learner]

    def settings(self, rows: int) -> Settings:
        return Settings() if self.changes is None else Settings.paper(rows, **self.changes)


@cache
def read_forms() -> dict[str, dict[str, Any]]:
    text = (EXPERIMENTS / "forms.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


NAMES: dict[str, str] = {part["learner"]: name for name, part in read_forms().items()}
MATCHING = {name: Matching(**part["matching"]) for name, part in read_forms().items() if "matching" in part}


def is_matching(line: Mapping[str, Any]) -> bool:
    """Whether a result is of the form that reproduces the algorithm's published column."""
    match = MATCHING.get(line["algorithm"])
    return match is not None and match.form == line["variant"]


def paper_configurations() -> list[Configuration]:
    """The paper's protocol in all forms."""
    return [
        Configuration(part["learner"], form, changes)
        for part in read_forms().values()
        for form, changes in part["forms"].items()
    ]


def default_configurations() -> list[Configuration]:
    """The library's defaults: unknown horizon, stabiliser="aware"."""
    return [Configuration(learner, DEFAULTS, None) for learner in ("raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r")]


def algorithms_named(names: list[str]) -> list[str]:
    """The names as spelled in the tables, matched without regard to case; all if none are given.

    >>> algorithms_named(["sfg-mkl-r", "omkr"])
    ['OMKR', 'SFG-MKL-R']
    """
    known = {name.lower(): name for name in NAMES.values()}
    for name in names:
        if name.lower() not in known:
            raise ValueError(f"unknown algorithm {name!r}; choose from {', '.join(known.values())}")
    wanted = {name.lower() for name in names}
    return [name for low, name in known.items() if not wanted or low in wanted]
