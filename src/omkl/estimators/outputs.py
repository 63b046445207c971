"""Regression with several numbers as targets: a learner for each, on features that all share."""

import copy
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from omkl import algorithms
from omkl.algorithms.base import AlgorithmSettings
from omkl.arrays import Matrix, Tensor, Vector
from omkl.estimators.columns import Columns
from omkl.estimators.core import Core, NumberCore, Scale, restored
from omkl.estimators.distribution import DistributionRegressionCore, intervals
from omkl.estimators.regression import RegressionCore
from omkl.estimators.rows import Cells
from omkl.online import Online
from omkl.persist import Arrays, Json, demand, float_array, plain
from omkl.scaling import RunningStatistics
from omkl.together import run_together
from omkl.validation import finite_number

# For algorithms that predict one number, and for those that predict distributions
NUMBER_CORES: dict[bool, type[NumberCore]] = {False: RegressionCore, True: DistributionRegressionCore}


class OutputsCore(Core):
    """A core for each output, all on one problem: random features, columns, encoder and scaling of inputs are shared.

    What is learned is not: each output has the predictions that it would have alone. The cores of the outputs are given
    rows that are scaled already.

    Parameters
    ----------
    outputs
        The names of the targets; the other parameters are those of all cores.
    """

    task = "regression"
    codes = 0  # statistics of a column of many categories would be those of one target

    def __init__(
        self,
        learner: str,
        settings: AlgorithmSettings,
        seed: int,
        names: Sequence[Hashable],
        scale: Scale,
        outputs: Sequence[Hashable],
    ) -> None:
        distribution = algorithms.get(learner).distribution  # these scale their inputs themselves
        super().__init__(learner, settings, seed, names, "none" if distribution else scale)
        self.outputs = tuple(outputs)
        learners = [self.online, *(self.online.fresh_copy(seed) for _ in self.outputs[1:])]
        self.each = [self._core_of(online) for online in learners]

    def _core_of(self, online: Online) -> NumberCore:
        """The core of an output with this learner."""
        core = object.__new__(NUMBER_CORES[online.algorithm.distribution])
        core.learner, core.settings, core.seed = self.learner, self.settings, self.seed
        core.columns, core.inputs, core.online = Columns((), self.columns.limits), None, online
        core.start_target(scaled=self.inputs is not None)
        core._set_up()
        return core

    @property
    def intervals(self) -> bool:  # type: ignore[override]  # it depends on the algorithm
        return self.each[0].intervals

    @property
    def learners(self) -> list[Online]:
        return [core.online for core in self.each]

    @property
    def predictors(self) -> list[Online]:
        return self.learners

    def scalers(self) -> dict[str, RunningStatistics]:
        targets = {f"target {k}": scaler for k, core in enumerate(self.each) for scaler in core.scalers().values()}
        return super().scalers() | targets

    # (rows, outputs), or with a further axis where a core of one number returns a matrix

    def predict(self, X: Matrix) -> Matrix:
        with self._lock:
            Xs = self.scaled(X)
            return np.stack([core.predict(Xs) for core in self.each], axis=1)

    def predict_std(self, X: Matrix) -> Tensor:
        """(rows, outputs, 2): mean, and half width of the interval that holds 68 % of the targets."""
        with self._lock:
            return np.stack([core.predict_std(X) for core in self.each], axis=1)

    def predict_interval(self, X: Matrix, coverage: float) -> Tensor:
        """(rows, outputs, 2): lower and upper end."""
        with self._lock:
            return np.stack([core.predict_interval(X, coverage) for core in self.each], axis=1)

    def learn_rows(self, X: Matrix, Y: Matrix, weight: Vector | None = None) -> Matrix:
        """Learn rows in their order, all or none; returns the predictions of each, made before it was learned."""
        rounds = None if weight is None else self.each[0].rounds(weight)
        if rounds is None or weight is None:
            return self._learn_whole(X, Y, weight)
        rows, first = np.repeat(np.arange(len(X)), rounds), np.cumsum(rounds) - rounds
        predictions: Matrix = self._learn_whole(X[rows], Y[rows], (weight / rounds)[rows])[first]
        return predictions

    learn_features = learn_rows

    def _codes(self, y: Matrix) -> Matrix:
        return np.empty((len(y), 0))

    def learn_rows_interval(self, X: Matrix, Y: Matrix, coverage: float) -> Tensor:
        """(rows, outputs, 3): prediction, lower and upper end of each row, before it was learned."""
        with self._lock:
            self.predict_interval(X[:0], coverage)  # refuses before anything is learned
            half_widths = np.empty((len(self.each), len(X), self.online.shape.extras))
            out = self._learn_each(X, Y, None, half_widths)
            each = [intervals(out[:, k], half_widths[k], (coverage,)) for k in range(len(self.each))]
            return np.stack([np.column_stack((one.y_pred, one.lower, one.upper)) for one in each], axis=1)

    def predict_row(self, x: Cells) -> Vector:
        """(outputs,)"""
        with self._lock:
            row = self.row(x, learn=False)[None]
            return np.concatenate([core.predict(row) for core in self.each])

    def predict_named(self, x: Cells) -> dict[Hashable, float]:
        """The prediction for one row, by the names of the outputs."""
        return dict(zip(self.outputs, self.predict_row(x).tolist(), strict=True))

    def targets(self, y: object) -> Vector:
        """(outputs,): the values of a dictionary that has one for each output and no other."""
        return targets_of(y, self.outputs)

    def predict_interval_row(self, x: Cells, coverage: float) -> Matrix:
        """(outputs, 2)"""
        with self._lock:
            intervals: Matrix = self.predict_interval(self.row(x, learn=False)[None], coverage)[0]
            return intervals

    def learn_row(self, x: Cells, y: Vector, weight: float) -> None:
        with self._lock:
            self.row(x, learn=True)
            self.learn_rows(self._raw[None].copy(), y[None], None if weight == 1 else np.array([float(weight)]))

    def _learn_whole(self, X: Matrix, Y: Matrix, weight: Vector | None) -> Matrix:
        """Rows, one round for each."""
        with self._lock:
            t, stats = self.online.t, None if self.inputs is None else self.inputs.stats.copy()
            try:
                Xs = X if self.inputs is None else self.inputs.learn(X)
                out = self._learn_each(Xs, Y, weight)
                return out[..., 0].copy() if out.ndim == 3 else out
            except BaseException:  # also too little memory, or Ctrl-C
                if self.inputs is not None and stats is not None and self.online.t == t:
                    self.inputs.restore(stats)
                raise

    def _learn_each(self, X: Matrix, Y: Matrix, weight: Vector | None, extra: Tensor | None = None) -> Tensor:
        """(rows, outputs), or (rows, outputs, values) where predictions are distributions.

        All outputs learn the rows, or none does. `extra` is for the learners' further values about each row.
        """
        start = self.online.t
        safe = self.inputs is None and self.online.cannot_diverge(X, Y)
        before = None if safe else copy.deepcopy(self.each)
        columns = np.ascontiguousarray(Y.T)
        try:
            if self.online.algorithm.distribution:
                return run_together(self.learners, X, columns, weight, extra).swapaxes(0, 1)
            return np.stack([core.learn_rows(X, y, weight) for core, y in zip(self.each, columns, strict=True)], axis=1)
        except BaseException:
            if before is not None:
                self.each, self.online = before, before[0].online
            elif any(core.online.t > start for core in self.each):  # Ctrl-C came when some rows had been learned
                for core, y in zip(self.each, columns, strict=True):
                    left = slice(core.online.t - start, None)
                    core.learn_rows(X[left], y[left], None if weight is None else weight[left])
            raise

    # Model files

    def encode_own(self, arrays: Arrays) -> dict[str, Json]:
        for k, core in enumerate(self.each):
            own: Arrays = {}
            core.encode_own(own)
            arrays.update({f"{name} {k}": array for name, array in own.items()})
        return {"outputs": [plain(name) for name in self.outputs]}

    def decode_own(self, body: Json, arrays: Arrays, learners: list[Online]) -> None:
        demand(isinstance(body["outputs"], list) and len(body["outputs"]) > 0, "outputs must be a list of names")
        self.outputs = tuple(plain(name) for name in body["outputs"])
        demand(len(set(self.outputs)) == len(self.outputs) == len(learners), "outputs and learners differ")
        demand(len({online.t for online in learners}) == 1, "the outputs have not learned the same rows")
        self.each, self.online = [self._core_of(online) for online in learners], learners[0]
        for k, core in enumerate(self.each):
            for name, scaler in core.scalers().items():
                restored(scaler, float_array(arrays, f"{name} {k}"))


def targets_of(y: object, outputs: Sequence[Hashable]) -> Vector:
    """The values of a dictionary in the order of these names, all of which it must have, and no other."""
    if not isinstance(y, Mapping):
        raise ValueError(f"y must be a dictionary with a number for each of the targets {list(outputs)}, got {y!r}")
    if set(y) != set(outputs):
        raise ValueError(
            f"y must have a number for each of the targets {list(outputs)}, which the first row had, got {dict(y)!r}; "
            "wait until all are known"
        )
    return np.array([finite_number(y[name], f"target {name!r}") for name in outputs])
