"""Which core an algorithm needs for a task, and how estimators' parameters become its settings."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import get_args

from omkl import algorithms
from omkl.algorithms.base import AlgorithmSettings, EstimatorParameters, Task
from omkl.estimators.class_weights import ClassWeight, ClassWeights, check_labels, checked_class_weight
from omkl.estimators.classification import ClassificationCore
from omkl.estimators.core import LabelCore, NumberCore, Scale
from omkl.estimators.distribution import DistributionClassificationCore
from omkl.estimators.outputs import NUMBER_CORES, OutputsCore
from omkl.validation import require

AnyCore = NumberCore | LabelCore
AnyNumberCore = NumberCore | OutputsCore

# For algorithms that predict one score, and for those that predict distributions
LABEL_CORES: dict[bool, type[LabelCore]] = {False: ClassificationCore, True: DistributionClassificationCore}


@dataclass(kw_only=True, eq=False, repr=False)
class Scaling:
    """Whether inputs and target are standardised.

    scale : {"online", "none"}, default="online"
        Standardise inputs and target as they come, or leave the data as they are.
    """

    scale: Scale = "online"


@dataclass(kw_only=True, eq=False, repr=False)
class ClassWeighting:
    """How much rows of each label count.

    class_weight : dict, "balanced" or None, default=None
        Rows count as often as the weight of their label says, times their own weight: a weight for each label, 1 for
        those that are not named, or "balanced", n / (k n_label) with n the rows, k the labels and n_label the rows of
        the label. These are numbers of all rows in `fit`, and elsewhere of the rows so far, this one included.
    """

    class_weight: ClassWeight = None


def core_class(learner: str, task: Task) -> type[NumberCore] | type[LabelCore]:
    distribution = algorithms.get(learner).distribution
    return NUMBER_CORES[distribution] if task == "regression" else LABEL_CORES[distribution]


def new_core(
    learner: str,
    task: Task,
    settings: AlgorithmSettings,
    seed: int,
    names: Sequence[Hashable],
    scale: Scale = "online",
    class_weight: ClassWeight = None,
) -> AnyCore:
    """A core that has learned nothing; any label may come."""
    if task == "regression":
        return new_number_core(learner, settings, seed, names, scale)
    return new_label_core(learner, settings, seed, names, scale, None, class_weight)


def new_number_core(
    learner: str, settings: AlgorithmSettings, seed: int, names: Sequence[Hashable], scale: Scale = "online"
) -> NumberCore:
    """A core for regression that has learned nothing."""
    return NUMBER_CORES[algorithms.get(learner).distribution](learner, settings, seed, names, scale)


def new_label_core(
    learner: str,
    settings: AlgorithmSettings,
    seed: int,
    names: Sequence[Hashable],
    scale: Scale = "online",
    classes: Sequence[Hashable] | None = None,
    class_weight: ClassWeight = None,
) -> LabelCore:
    """A core for classification that has learned nothing."""
    core = LABEL_CORES[algorithms.get(learner).distribution](learner, settings, seed, names, scale, classes)
    weights = checked_class_weight(class_weight)
    if classes is not None:
        check_labels(weights, classes)
    core.class_weights = ClassWeights(weights)
    return core


def core_of(estimator: object) -> AnyCore | OutputsCore | None:
    """The core of an estimator of either API; None if it has learned nothing."""
    core = getattr(estimator, "core_", None) or getattr(estimator, "_core", None)
    return core if isinstance(core, AnyCore | OutputsCore) else None


def settings_of(parameters: EstimatorParameters, task: Task) -> AlgorithmSettings:
    """The settings that an estimator's parameters stand for, checked."""
    if isinstance(parameters, Scaling):
        require(parameters.scale in get_args(Scale), "scale", "online or none", parameters.scale)
    if isinstance(parameters, ClassWeighting):
        checked_class_weight(parameters.class_weight)
    kind = algorithms.get(parameters.algorithm_name).settings
    chosen = {f.name for f in fields(parameters)} & {f.name for f in fields(kind)}
    return kind.for_task(task, **{name: getattr(parameters, name) for name in sorted(chosen)})
