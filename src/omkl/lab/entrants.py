"""Who runs: every algorithm in every form the paper leaves open, and with the library's own defaults."""

from typing import Any, NamedTuple

from omkl.settings import LearnerName, Settings

NAMES: dict[LearnerName, str] = {
    "omkr": "OMKR",
    "rfomkr": "RFOMKR",
    "raker": "Raker",
    "omkl-gf": "OMKL-GF",
    "sfg-mkl": "SFG-MKL",
    "sfg-mkl-r": "SFG-MKL-R",
}


class Entrant(NamedTuple):
    """A learner in one form."""

    learner: LearnerName
    variant: str
    changes: dict[str, Any] | None  # to the paper's protocol; None for the library's defaults instead

    def settings(self, rows: int) -> Settings:
        return Settings() if self.changes is None else Settings.paper(rows, **self.changes)


def entrants() -> list[Entrant]:
    """The paper's protocol in all its forms, then the defaults (unknown horizon, stabiliser="aware")."""
    everyone = [
        Entrant("omkr", "exact kernels", {"kernels": "paper-omkr"}),
        Entrant("rfomkr", "random features", {}),
        Entrant("raker", "every kernel", {}),
        Entrant("omkl-gf", "frozen, plain step", {"freeze_after": 300, "weighted": False}),
        Entrant("omkl-gf", "frozen, step / q", {"freeze_after": 300}),
        Entrant("omkl-gf", "drawn on, plain step", {"weighted": False}),
        Entrant("omkl-gf", "drawn on, step / q", {}),
    ]
    for learner in ("sfg-mkl", "sfg-mkl-r"):
        everyone += [Entrant(learner, f"commit {rule}", {"commit": rule}) for rule in ("never", "argmax", "first")]
    everyone += [Entrant(learner, "safe defaults", None) for learner in ("raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r")]
    return everyone
