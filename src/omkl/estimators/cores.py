"""Which core an algorithm needs for a task, and how estimators' parameters become its settings."""

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any, Protocol

from omkl import algorithms
from omkl.algorithms.base import Task
from omkl.estimators.classification import ClassificationCore
from omkl.estimators.core import Core, Scale
from omkl.estimators.distribution import DistributionClassificationCore, DistributionRegressionCore
from omkl.estimators.regression import RegressionCore

CORES: dict[tuple[Task, bool], type[Core]] = {
    ("regression", False): RegressionCore,
    ("classification", False): ClassificationCore,
    ("regression", True): DistributionRegressionCore,
    ("classification", True): DistributionClassificationCore,
}


class Parameters(Protocol):
    """The parameters of an estimator: a dataclass declared in the module of its algorithm."""

    @property
    def algorithm_name(self) -> str: ...


def core_class(learner: str, task: Task) -> type[Core]:
    return CORES[task, algorithms.get(learner).distribution]


def new_core(
    learner: str,
    task: Task,
    settings: Any,
    seed: int,
    names: Sequence[Hashable],
    scale: Scale = "online",
    classes: Sequence[Hashable] | None = None,
) -> Any:
    """A core that has learned nothing."""
    return core_class(learner, task)(learner, settings, seed, names, scale, classes)


def core_of(estimator: Any) -> Core | None:
    """The core of an estimator of either API; None if it has learned nothing."""
    core = getattr(estimator, "core_", None) or getattr(estimator, "_core", None)
    return core if isinstance(core, Core) else None


def settings_of(parameters: Parameters, task: Task) -> Any:
    """The settings that an estimator's parameters stand for, checked."""
    kind = algorithms.get(parameters.algorithm_name).settings
    chosen = {f.name for f in fields(parameters)} & {f.name for f in fields(kind)}  # type: ignore[arg-type]
    return kind.for_task(task, **{name: getattr(parameters, name) for name in sorted(chosen)})
