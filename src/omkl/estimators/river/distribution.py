"""Regressors of river's API whose predictions can be distributions and intervals."""

from collections.abc import Hashable
from typing import Literal, overload

import numpy as np
from river import proba
from river.conf.interval import Interval

from omkl.estimators.river.base import Regressor
from omkl.estimators.rows import Cells


class DistributionRegressor(Regressor):
    """A regressor whose predictions can be distributions."""

    @overload
    def predict_one(
        self, x: Cells, key: Hashable = None, with_dist: Literal[False] = False, with_interval: Literal[False] = False
    ) -> float: ...

    @overload
    def predict_one(self, x: Cells, key: Hashable = None, *, with_dist: Literal[True]) -> proba.Gaussian: ...

    @overload
    def predict_one(self, x: Cells, key: Hashable = None, *, with_interval: float) -> Interval: ...

    def predict_one(
        self, x: Cells, key: Hashable = None, with_dist: bool = False, with_interval: float = False
    ) -> float | proba.Gaussian | Interval:
        """The prediction for x; with a key the row is stored until `learn_key`.

        `with_dist` gives a Gaussian whose standard deviation holds 68 % to either side; `with_interval` the interval
        that holds so many of the targets (True stands for 0.9). Both can be passed to a pipeline too.
        """
        if not with_dist and with_interval is False:
            return super().predict_one(x, key)
        if with_dist and with_interval is not False:
            raise ValueError("with_dist and with_interval cannot be combined; predict once with each of them")
        if key is not None:
            self._store(key, x)
        core = self._core
        if with_interval is not False:
            coverage = 0.9 if with_interval is True else with_interval
            lower, upper = (-np.inf, np.inf) if core is None else core.predict_interval_row(x, coverage)
            return Interval(lower=lower, upper=upper)
        mean, deviation = (0.0, 0.0) if core is None else core.predict_std_row(x)
        return gaussian(mean, deviation)


def gaussian(mean: float, deviation: float) -> proba.Gaussian:
    """A distribution as river has it."""
    made: proba.Gaussian = proba.Gaussian._from_state(2, mean, deviation**2, 0)  # type: ignore[no-untyped-call]  # river's
    return made
