"""Several targets for river users."""

import copy
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame
from river import base
from river.conf.interval import Interval

from omkl import persist, validation
from omkl.algorithms.base import AlgorithmSettings, EstimatorParameters
from omkl.arrays import Matrix
from omkl.estimators import files
from omkl.estimators.core import Scale
from omkl.estimators.outputs import OutputsCore, targets_of
from omkl.estimators.river.base import Estimator, Regressor
from omkl.estimators.river.files import decode_waiting, encode_waiting
from omkl.estimators.river.frames import Frame, as_frame, as_series, features
from omkl.estimators.rows import Cells
from omkl.lock import ModelLock, locked

Targets = Mapping[Hashable, float]


class MultiTargetRegressor(Estimator[OutputsCore, Targets], base.MultiTargetRegressor):
    """Several numbers as targets: a regressor for each, all on the same features.

    The random features, what is known about the columns and the scaling of inputs are shared. Each target is learned as
    if it were alone, and has the same predictions. The targets of the first row are those of all rows.

    Parameters
    ----------
    regressor : Regressor
        The regressor of omkl whose parameters are used, such as `omkl.river.GraphMKLRegressor()`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import GraphMKLRegressor, MultiTargetRegressor
    >>> model = MultiTargetRegressor(GraphMKLRegressor(seed=1))
    >>> for x, y in datasets.TrumpApproval().take(200):
    ...     model.learn_one(x, {"approval": y, "disapproval": 100 - y})
    >>> {name: round(value) for name, value in model.predict_one(x).items()}
    {'approval': 39, 'disapproval': 61}
    """

    task = "regression"
    codes = OutputsCore.codes

    def __init__(self, regressor: Regressor) -> None:
        if not issubclass(type(regressor), Regressor):  # a pipeline claims to be of the class of its last step
            raise TypeError(
                f"regressor must be a regressor of omkl.river, such as GraphMKLRegressor(), got {regressor!r}"
            )
        self.regressor = regressor
        self.max_waiting, self.seed = regressor.max_waiting, regressor.seed
        self._lock = ModelLock()
        self._core: OutputsCore | None = None
        self._targets: tuple[Hashable, ...] = ()  # until there is a core
        self._waiting: dict[Hashable, dict[Hashable, object]] = {}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from omkl.estimators.river.estimators import GraphMKLRegressor

        yield {"regressor": GraphMKLRegressor(n_features=5, seed=1)}

    @property
    def algorithm_name(self) -> str:
        return self.regressor.algorithm_name

    @property
    def _parameters(self) -> EstimatorParameters:
        return self.regressor

    def _new_core(self, settings: AlgorithmSettings, seed: int, names: Sequence[Hashable], scale: Scale) -> OutputsCore:
        return OutputsCore(self.algorithm_name, settings, seed, names, scale, self._targets)

    def predict_one(self, x: Cells, key: Hashable = None, with_interval: float = False) -> dict[Hashable, Any]:
        """The prediction for each target, none before the first row; with a key the row is stored until `learn_key`.

        `with_interval` gives intervals that hold so many of the targets (True stands for 0.9).
        """
        if key is not None:
            self._store(key, x)
        core = self._core
        if core is None:
            return {}
        if with_interval is False:
            return core.predict_named(x)
        ends = core.predict_interval_row(x, 0.9 if with_interval is True else with_interval).tolist()
        return {name: Interval(lower, upper) for name, (lower, upper) in zip(core.outputs, ends, strict=True)}

    @locked
    def learn_one(self, x: Cells, y: Targets, w: float = 1.0) -> None:  # type: ignore[override]  # options are named
        """Learn one row, which has a number for each target; it counts w times."""
        names = self._names(list(y) if isinstance(y, Mapping) else [])
        values = targets_of(y, names)
        validation.one_weight(w, "w")
        self._targets = names
        core = self._start_row(x)
        if core is not None:
            core.learn_row(x, values, w)

    def _names(self, given: Sequence[Hashable]) -> tuple[Hashable, ...]:
        """The targets; those that are given if these are the first ones."""
        names = self._targets if self._core is None else self._core.outputs
        if not names and not given:
            raise ValueError("y must be a dictionary with a number for each target, such as {'a': 1.0, 'b': 2.0}")
        return names or tuple(given)

    def predict_many(self, X: IntoDataFrame) -> IntoDataFrame:
        """Predictions for the rows of a frame, as a frame of its kind with a column for each target."""
        frame, core = as_frame(X), self._core
        if core is None:
            return self._as_frame(np.empty((len(frame), 0)), (), frame)
        with core.lock:
            return self._as_frame(core.predict(features(frame, core)), core.outputs, frame)

    @locked
    def learn_many(self, X: IntoDataFrame, y: IntoDataFrame) -> None:
        """Learn the rows of a frame in their order, with a frame of targets: the same as `learn_one` on each."""
        self._learn_frame(as_frame(X), y)

    @locked
    def predict_then_learn(self, X: IntoDataFrame, y: IntoDataFrame) -> IntoDataFrame:
        """The predictions of each row of a frame, made before that row is learned."""
        frame = as_frame(X)
        predictions = self._learn_frame(frame, y)
        return self._as_frame(predictions, self._targets, frame)

    def _learn_frame(self, frame: Frame, y: IntoDataFrame) -> Matrix:
        given = as_frame(y)
        names = self._names(given.columns)
        if set(given.columns) != set(names):
            raise ValueError(f"y must have the columns {list(names)}, got {given.columns}")
        validation.require(len(given) == len(frame), "y", f"a row for each of the {len(frame)} rows", len(given))
        values = np.column_stack([given[str(name)].to_numpy() for name in names]).astype(np.float64)
        targets = validation.finite_columns(np.ascontiguousarray(values), names)
        self._targets = names
        start, parts = self._learn_rows(
            frame, lambda core, X: core.predict(X), lambda core, X, at: core.learn_rows(X, targets[at])
        )
        return np.concatenate((np.zeros((start, len(names))), *parts))

    def _as_frame(self, values: Matrix, names: Sequence[Hashable], like: Frame) -> IntoDataFrame:
        native = nw.get_native_namespace(like)
        columns = {str(name): as_series(str(name), values[:, k], like) for k, name in enumerate(names)}
        made: IntoDataFrame = native.DataFrame(columns) if columns else native.DataFrame()
        return made


def _encode(model: MultiTargetRegressor, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    model = copy.deepcopy(model)  # one moment, whatever other threads learn meanwhile
    arrays: persist.Arrays = {}
    body = {
        "regressor": persist.encode_part(model.regressor, arrays, "regressor.", compact),
        "core": files.encode_core(model._core, arrays, compact),
        "targets": [persist.plain(name) for name in model._targets],
        "waiting": encode_waiting(model),
    }
    return body, arrays


def _decode(body: persist.Json, arrays: persist.Arrays) -> MultiTargetRegressor:
    regressor = persist.decode_part(body["regressor"], arrays, "regressor.")
    persist.demand(isinstance(regressor, Regressor), "the regressor of several targets is none of omkl's")
    model = MultiTargetRegressor(regressor)
    core = files.decode_core(body["core"], arrays)
    if core is not None:
        persist.demand(isinstance(core, OutputsCore), "several targets have a learner each")
        assert isinstance(core, OutputsCore)
        files.require_class(type(regressor), core)
    model._core, model._targets = core, tuple(persist.plain(name) for name in body["targets"])
    persist.demand(core is None or core.outputs == model._targets, "the targets and their learners differ")
    decode_waiting(model, body["waiting"])
    return model


persist.register("river-targets", persist.Codec((MultiTargetRegressor,), _encode, _decode))
