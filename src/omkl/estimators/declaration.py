"""One declaration of an estimator: its algorithm, its task and its parameters.

A bare core, which needs no scikit-learn, and a scikit-learn estimator are both built from it, so that a single model
and a fleet with a model per key start from the same declaration.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from omkl.estimators import parameters
from omkl.estimators.core import Core, LabelCore, TargetCore
from omkl.estimators.graph_core import GraphLabelCore, GraphTargetCore
from omkl.estimators.parameters import Parameters
from omkl.losses import LossName

Task = Literal["regression", "classification"]
LOSS: dict[Task, LossName] = {"regression": "squared", "classification": "logistic"}


class Family(NamedTuple):
    """What the estimators of one algorithm have in common, whatever their task."""

    kind: type[Parameters]
    new_core: Callable[[Task, Any, int, Sequence[Hashable]], Core]  # (task, parameters, seed, feature names)
    fixed: Mapping[str, Any] = MappingProxyType(
        {}
    )  # that tell this algorithm from another of its class
    tasks: tuple[Task, ...] = ("regression", "classification")


def _gradient_core(task: Task, given: Any, seed: int, names: Sequence[Hashable]) -> Core:
    kind = TargetCore if task == "regression" else LabelCore
    return kind(given._learner, given._settings(), seed, names, given.scale)


def _graph_core(task: Task, given: Any, seed: int, names: Sequence[Hashable]) -> Core:
    kind = GraphTargetCore if task == "regression" else GraphLabelCore
    return kind(given._settings(), seed, names)


FAMILIES = {
    "graph-mkl": Family(parameters.GraphMKL, _graph_core),
    "sfg-mkl": Family(parameters.SFGMKL, _gradient_core),
    "sfg-mkl-r": Family(parameters.SFGMKL, _gradient_core, {"refine": True}),
    "raker": Family(parameters.Raker, _gradient_core),
    "omkl-gf": Family(parameters.OMKLGF, _gradient_core),
    "omkr": Family(parameters.OMKR, _gradient_core, tasks=("regression",)),
    "rfomkr": Family(parameters.RFOMKR, _gradient_core, tasks=("regression",)),
}


def supports(algorithm: str, task: Task) -> bool:
    """Whether an algorithm has an estimator for a task.

    >>> supports("raker", "classification"), supports("omkr", "classification")
    (True, False)
    """
    return task in FAMILIES[algorithm].tasks


@dataclass(frozen=True)
class Declaration:
    """Which estimator, for which task, with which parameters other than its defaults.

    >>> Declaration("sfg-mkl-r", "regression").estimator()
    SFGMKLRegressor(refine=True)
    >>> Declaration("raker", "classification", {"n_features": 20}).core(0, ["a", "b"]).settings.loss
    'logistic'
    """

    algorithm: str
    task: Task
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not supports(self.algorithm, self.task):
            raise ValueError(f"{self.algorithm} predicts numbers only, not labels; choose another learner")

    def core(self, seed: int, names: Sequence[Hashable]) -> Core:
        """A core that has learned nothing; new labels and features may still come."""
        family = FAMILIES[self.algorithm]
        kind: Any = type(family.kind.__name__, (family.kind,), {"_loss": LOSS[self.task]})
        return family.new_core(self.task, kind(**family.fixed, **self.parameters), seed, names)

    def estimator(self) -> Any:
        """The estimator of the scikit-learn API, unfitted."""
        from omkl.estimators import sklearn  # which takes a second to load, and a core does without

        family = FAMILIES[self.algorithm]
        suffix = "Regressor" if self.task == "regression" else "Classifier"
        return getattr(sklearn, family.kind.__name__ + suffix)(**family.fixed, **self.parameters)
