"""One declaration of an estimator: its algorithm, its task and its parameters.

A bare core, which needs no scikit-learn, and a scikit-learn estimator are both built from it, so that a single model
and a fleet with a model per key start from the same declaration.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from omkl import algorithms
from omkl.algorithms.base import AlgorithmSettings, Task
from omkl.estimators.class_weights import checked_class_weight
from omkl.estimators.cores import AnyCore, new_core, settings_of

if TYPE_CHECKING:
    from omkl.estimators.sklearn.base import Estimator


def supports(algorithm: str, task: Task) -> bool:
    """Whether an algorithm has an estimator for a task.

    >>> supports("raker", "classification"), supports("omkr", "classification")
    (True, False)
    """
    return task in algorithms.get(algorithm).tasks


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
            able = [name for name in algorithms.names() if supports(name, self.task)]
            raise ValueError(f"{self.algorithm} predicts numbers only, not labels; choose {', '.join(able)}")
        if checked_class_weight(self.class_weight) is not None and self.task == "regression":
            raise ValueError("class_weight is for labels, and the target holds numbers; leave it out, or learn the "
                             "numbers as labels (--task classification)")  # fmt: skip

    @property
    def _arguments(self) -> dict[str, Any]:
        return {**algorithms.get(self.algorithm).preset, **self.parameters}

    @property
    def class_weight(self) -> Any:
        """Weights of the labels."""
        return self.parameters.get("class_weight")

    def settings(self) -> AlgorithmSettings:
        """The settings that the parameters stand for, checked."""
        arguments = {name: value for name, value in self._arguments.items() if name != "class_weight"}
        return settings_of(algorithms.get(self.algorithm).parameters(**arguments), self.task)

    def core(self, seed: int, names: Sequence[Hashable]) -> AnyCore:
        """A core that has learned nothing; new labels and features may still come."""
        return new_core(self.algorithm, self.task, self.settings(), seed, names, class_weight=self.class_weight)

    def estimator(self) -> "Estimator":
        """The estimator of the scikit-learn API, unfitted."""
        from omkl.estimators.sklearn import estimator_class  # takes a second to load, and a core does without

        return estimator_class(algorithms.get(self.algorithm).parameters, self.task)(**self._arguments)


def for_keys(algorithm: str, task: Task, parameters: Mapping[str, Any] = MappingProxyType({})) -> Declaration:
    """An estimator with the parameters that suit models of thousands of keys, unless they are chosen.

    >>> for_keys("graph-mkl", "regression", {"n_features": 20}).estimator().n_features
    20
    """
    return Declaration(algorithm, task, {**algorithms.get(algorithm).for_keys, **parameters})
