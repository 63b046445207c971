"""What each learner lets you choose, the same at both doors.

Both ecosystems read the arguments of a constructor and look for each of them under its own name: what a
dataclass is. An estimator is one of these, a door (which adds its source of randomness) and a docstring.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from omkl.algorithms.descent import Stabiliser
from omkl.algorithms.sfg_mkl import Commit
from omkl.estimators.core import Scale
from omkl.estimators.graph_core import graph_settings
from omkl.features import Draw
from omkl.kernels import Kernel
from omkl.losses import LossName
from omkl.settings import GraphSettings, Settings

Kernels = str | Sequence[Kernel]


class Parameters:
    """What a door asks of the parameters it is given."""

    _learner: ClassVar[str]
    _loss: ClassVar[LossName]
    scale: Scale

    def _settings(self) -> Any:
        given: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(Settings) if hasattr(self, f.name)}
        return Settings(**given, loss=self._loss)


@dataclass(kw_only=True, eq=False, repr=False)
class Raker(Parameters):
    _learner = "raker"

    kernels: Kernels = "paper"
    n_features: int = 50
    ridge: float = 1e-3
    learning_rate: float | None = None
    horizon: int | None = None
    stabiliser: Stabiliser = "aware"
    draw: Draw = "independent"
    scale: Scale = "online"


@dataclass(kw_only=True, eq=False, repr=False)
class RFOMKR(Parameters):
    _learner = "rfomkr"

    kernels: Kernels = "paper"
    n_features: int = 50
    learning_rate: float | None = None
    horizon: int | None = None
    draw: Draw = "independent"
    scale: Scale = "online"


@dataclass(kw_only=True, eq=False, repr=False)
class OMKR(Parameters):
    _learner = "omkr"

    kernels: Kernels = "paper-omkr"
    learning_rate: float | None = None
    horizon: int | None = None
    budget: int | None = None
    scale: Scale = "online"


@dataclass(kw_only=True, eq=False, repr=False)
class OMKLGF(Parameters):
    _learner = "omkl-gf"

    kernels: Kernels = "paper"
    n_features: int = 50
    draws: int = 10
    freeze_after: int | None = None
    weighted: bool = True
    ridge: float = 1e-3
    learning_rate: float | None = None
    exploration: float | None = None
    horizon: int | None = None
    stabiliser: Stabiliser = "aware"
    draw: Draw = "independent"
    scale: Scale = "online"


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKL(Parameters):
    """SFG-MKL and, with `refine`, SFG-MKL-R."""

    kernels: Kernels = "paper"
    n_features: int = 50
    out_degree: int = 5
    delta_dimension: int | None = None
    refine: bool = False
    beta: float | None = None
    ridge: float = 1e-3
    learning_rate: float | None = None
    exploration: float | None = None
    horizon: int | None = None
    commit: Commit = "never"
    commit_after: int = 300
    stabiliser: Stabiliser = "aware"
    draw: Draw = "independent"
    scale: Scale = "online"

    @property
    def _learner(self) -> str:  # type: ignore[override]  # a name elsewhere, here it depends on `refine`
        return "sfg-mkl-r" if self.refine else "sfg-mkl"


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKL(Parameters):
    _learner = "graph-mkl"

    kernels: Kernels = "gaussian"
    n_features: int = 50
    out_degree: int = 3
    orders: tuple[int | None, ...] = (2, 2, None)
    singles: tuple[float, ...] | None = None
    steps: tuple[float, ...] = (1.0, 0.25)
    widths: tuple[float, ...] = (0.03, 0.1, 0.3)
    ridge: float = 3e-3
    evaluate: str | int = "quarter"
    warm_up: int = 512
    discount: float | None = None
    memory: float | None = None
    adapt: bool = True
    sure: float | None = None
    correct: bool = True

    def _settings(self) -> GraphSettings:
        return graph_settings(self, self._loss)
