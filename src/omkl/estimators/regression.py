"""Regression with algorithms that predict one number: inputs and target are standardised as they come."""

from collections.abc import Hashable, Sequence
from typing import Self

import numpy as np

from omkl.algorithms.base import AlgorithmSettings
from omkl.arrays import Index, Matrix, Vector
from omkl.estimators.core import NumberCore, Scale, only, restored
from omkl.estimators.rounds import rounds_of
from omkl.estimators.rows import Cells
from omkl.online import Online
from omkl.persist import Arrays, Json, float_array
from omkl.scaling import RunningStatistics, TargetScaler


class RegressionCore(NumberCore):
    def __init__(
        self,
        learner: str,
        settings: AlgorithmSettings,
        seed: int,
        names: Sequence[Hashable],
        scale: Scale,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        super().__init__(learner, settings, seed, names, scale)
        self.start_target(scaled=scale == "online")

    def start_target(self, scaled: bool) -> None:
        self.target = TargetScaler() if scaled else None

    def fresh_copy(self, rng: np.random.Generator) -> Self:
        other = super().fresh_copy(rng)
        other.start_target(scaled=self.target is not None)
        return other

    def scalers(self) -> dict[str, RunningStatistics]:
        return super().scalers() if self.target is None else super().scalers() | {"target": self.target}

    def predict(self, X: Matrix) -> Vector:
        with self._lock:
            f = self.online.predict_rows_unchecked(self.scaled(self.with_ids(X)))
            return f if self.target is None else self.target.inverse_transform(f)

    def learn_features(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Vector:
        if weight is not None and (rounds := self.rounds(weight)) is not None:
            rows = np.repeat(np.arange(len(X)), rounds)
            first = np.cumsum(rounds) - rounds
            predictions: Vector = self._learn_whole(X[rows], y[rows], (weight / rounds)[rows])[first]
            return predictions
        return self._learn_whole(X, y, weight)

    def rounds(self, weight: Vector) -> Index | None:
        return rounds_of(weight) if (weight > 1).any() else None

    def _learn_whole(self, X: Matrix, y: Vector, weight: Vector | None) -> Vector:
        """The prediction of each row before it was learned; one round for each row, all rows or none."""
        with self._lock:
            if self.target is None:
                return self.online.run_whole(X, y, weight)
            before, t = {name: scaler.stats.copy() for name, scaler in self.scalers().items()}, self.online.t
            try:
                Xs = X if self.inputs is None else self.inputs.learn(X)
                ys, shift, scale = self.target.learn(y)
                return shift + scale * self.online.run_whole(Xs, ys, weight)
            except BaseException:  # also too little memory, or Ctrl-C
                if self.online.t == t:
                    for name, scaler in self.scalers().items():
                        scaler.restore(before[name])
                raise

    def predict_row(self, x: Cells) -> float:
        with self._lock:
            f = self.online.predict_unchecked(self.row(x, learn=False))
            return f if self.target is None else self.target.inverse_transform_one(f)

    def learn_row(self, x: Cells, y: float, weight: float) -> None:
        with self._lock:
            row = self.row(x, learn=True)
            if weight > 1:
                self.learn_features(self._raw[None].copy(), np.array([float(y)]), np.array([float(weight)]))
            elif self.inputs is None or self.target is None:
                self.online.learn_unchecked(row, y, weight)
            else:
                self.online.learn_unchecked(row, self.target.transform_one(y), weight)
                self.target.commit()
                self.inputs.commit()
            if self.ids is not None:
                self._learn_ids(y, weight)

    def encode_own(self, arrays: Arrays) -> dict[str, Json]:
        if self.target is not None:
            arrays["target"] = self.target.stats
        return {}

    def decode_own(self, body: Json, arrays: Arrays, learners: list[Online]) -> None:
        self.online = only(learners)
        self.target = None if self.inputs is None else restored(TargetScaler(), float_array(arrays, "target"))
