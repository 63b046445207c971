"""The methods of river for the scikit-learn estimators: one row at a time, as a dictionary of cells."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np

from omkl import validation
from omkl.arrays import Array
from omkl.estimators.class_weights import ClassWeight
from omkl.estimators.core import Core, LabelCore
from omkl.estimators.cores import AnyNumberCore
from omkl.estimators.outputs import OutputsCore
from omkl.estimators.rows import Cells
from omkl.features import column_names
from omkl.lock import Locked, locked

C = TypeVar("C", bound=Core)


class SingleRows(Locked, Generic[C]):
    """An estimator whose core also takes single rows."""

    core_: C
    n_features_in_: int
    feature_names_in_: Array
    target_name_: str  # where the target came with a name

    def take_core(self, core: C) -> None:
        """Continue from a core, and have the attributes that its features and labels give."""
        self.core_ = core
        self._update_columns()

    def _update_columns(self) -> None:
        names = self.core_.names if self.core_.encoder is None else tuple(self.core_.encoder.columns)
        self.n_features_in_ = len(names)
        if names != tuple(column_names(len(names))) and len(names) != len(getattr(self, "feature_names_in_", ())):
            self.feature_names_in_ = np.array(names, dtype=object)

    if TYPE_CHECKING:

        def _fitted(self) -> Self: ...  # of the estimator


class SingleNumbers(SingleRows[AnyNumberCore]):
    @locked
    def predict_one(self, x: Cells) -> float | dict[Hashable, float]:
        """The prediction for one row; with several targets a dictionary of them."""
        self._fitted()
        core = self.core_
        return core.predict_named(x) if isinstance(core, OutputsCore) else float(core.predict_row(x))

    @locked
    def learn_one(self, x: Cells, y: float | Mapping[Hashable, float], w: float = 1.0) -> None:
        """Learn one row; it counts w times."""
        self._fitted()
        validation.one_weight(w, "w")
        core = self.core_
        if isinstance(core, OutputsCore):
            core.learn_row(x, core.targets(y), w)
        else:
            core.learn_row(x, validation.finite_number(y, "y"), w)  # type: ignore[arg-type]  # which it refuses
        self._update_columns()


class SingleLabels(SingleRows[LabelCore]):
    classes_: Array
    class_weight: ClassWeight

    def take_core(self, core: LabelCore) -> None:
        super().take_core(core)
        self._update_labels()

    def _update_labels(self) -> None:
        if len(self.core_.labels) > len(getattr(self, "classes_", ())):
            self.classes_ = np.unique(np.array(self.core_.labels))

    @locked
    def predict_proba_one(self, x: Cells) -> dict[Hashable, float]:
        """Probabilities of the labels that have come."""
        self._fitted()
        return dict(zip(self.core_.labels, self.core_.probabilities_row(x), strict=True))

    @locked
    def predict_one(self, x: Cells) -> Hashable:
        """The most likely label of one row."""
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=probabilities.__getitem__) if probabilities else None

    @locked
    def learn_one(self, x: Cells, y: Hashable, w: float = 1.0) -> None:
        """Learn one row; it counts w times. A label that was never seen becomes known, unless all were announced."""
        self._fitted()
        label = validation.label(y)
        validation.one_weight(w, "w")
        most = self.core_.most_labels
        if most is not None and label not in self.classes_.tolist():
            raise ValueError(f"y must be a label out of {self.classes_}, got {y!r}; name all of them in the first call")
        self.core_.use_class_weight(self.class_weight)
        self.core_.learn_row(x, label, w)
        self.core_.follow_order(label, stacklevel=4)
        self._update_columns()
        self._update_labels()
