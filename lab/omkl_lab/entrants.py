"""Who runs: every algorithm in every form that the paper leaves open, and with the library's own defaults.

The forms stand in experiments/forms.toml.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from omkl.settings import LearnerName, Settings

EXPERIMENTS = Path(__file__).parent / "experiments"
DEFAULTS = "safe defaults"


class Matching(NamedTuple):
    """The form that gives an algorithm's published column."""

    form: str
    within: float
    unit: str = ""  # "1e-3": `within` is in that unit; else it is a share of the published number

    def agrees(self, ours: float, published: float) -> bool:
        """Both in plain units."""
        room = self.within * (1e-3 if self.unit else published)
        return abs(ours - published) <= room


class Entrant(NamedTuple):
    """A learner in one form."""

    learner: LearnerName
    variant: str
    changes: dict[str, Any] | None  # to the paper's protocol; None for the library's defaults instead

    @property
    def algorithm(self) -> str:
        return NAMES[self.learner]

    def settings(self, rows: int) -> Settings:
        return Settings() if self.changes is None else Settings.paper(rows, **self.changes)


@cache
def read_forms() -> dict[str, dict[str, Any]]:
    text = (EXPERIMENTS / "forms.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


NAMES: dict[LearnerName, str] = {part["learner"]: name for name, part in read_forms().items()}
MATCHING = {name: Matching(**part["matching"]) for name, part in read_forms().items() if "matching" in part}


def is_matching(line: Mapping[str, Any]) -> bool:
    """Whether a line of results is in the form that gives its algorithm's published column."""
    match = MATCHING.get(line["algorithm"])
    return match is not None and match.form == line["variant"]


def paper_entrants() -> list[Entrant]:
    """The paper's protocol in all its forms."""
    return [
        Entrant(part["learner"], form, changes)
        for part in read_forms().values()
        for form, changes in part["forms"].items()
    ]


def default_entrants() -> list[Entrant]:
    """The library's defaults: unknown horizon, stabiliser="aware"."""
    return [Entrant(learner, DEFAULTS, None) for learner in ("raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r")]


def algorithms_named(names: list[str]) -> list[str]:
    """These algorithms as the tables write them, whatever the case; all of them where none is named.

    >>> algorithms_named(["sfg-mkl-r", "omkr"])
    ['OMKR', 'SFG-MKL-R']
    """
    known = {name.lower(): name for name in NAMES.values()}
    for name in names:
        if name.lower() not in known:
            raise ValueError(f"no algorithm is called {name!r}; there are {', '.join(known.values())}")
    wanted = {name.lower() for name in names}
    return [name for low, name in known.items() if not wanted or low in wanted]
