"""The linear baseline: what a linear model fitted to all rows before would have predicted for each row."""

import numpy as np

from omkl.algorithms.base import Task
from omkl.arrays import Index, Matrix, Vector
from omkl.persist import Arrays, Json, claims, demand, float_array, require_finite
from omkl.stream.predictions import Labels, Targets, as_labels, as_numbers, concatenated_targets
from omkl.stream.targets import MAX_LABELS

MAX_FULL = 128  # features; with more, their covariance is taken as diagonal
RIDGE = 1.0  # rows of noise in every direction of the standardised features
GROWTH = 8  # it is fitted again when the rows have grown by one part in so many, ...
MAX_WAIT, MAX_WAIT_DIAGONAL = 4096, 32  # ... or by so many
MARGIN = 0.5  # predictions may leave the range of the targets by so many times its width
ARRAYS = ("mean", "moments", "products", "target_mean", "centre", "scale", "slope", "intercept", "rows", "targets")


class LinearModel:
    """Ridge regression for numbers, linear discriminant analysis for labels, on features standardised over all rows.

    With more than MAX_FULL features it is a least squares, of the labels' indicators for labels, whose covariance is
    kept diagonal, so that memory and time grow with their number and not with its square. A missing value is the mean.
    Rows are predicted from the last fit and wait for the next one, the time of which depends on their number alone: how
    a stream is cut into pieces changes nothing.

    >>> model = LinearModel("regression")
    >>> model.extend([np.nan])
    >>> X = np.arange(40.0)[:, None]
    >>> bool(np.abs(model.learn(X, 2 * X[:, 0] + 3) - 2 * X[:, 0] - 3)[20:].max() < 2)
    True
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.n = 0  # rows behind the moments
        self.labels: list[str] = []
        self.low, self.high = np.inf, -np.inf  # of the targets
        K = 1 if task == "regression" else 0
        self.mean: Vector = np.zeros(0)  # NaN before the first value
        self.moments: Matrix = np.zeros((0, 0))  # (d, d) centred; diagonal: (1, d) squares, and (1, d) covariance
        self.products: Matrix = np.zeros((0, K))  # (d, K) of features and outputs, centred
        self.target_mean: Vector = np.zeros(K)
        self.centre: Vector = np.zeros(0)
        self.scale: Vector = np.ones(0)
        self.slope: Matrix = np.zeros((0, K))  # of standardised features
        self.intercept: Vector = np.zeros(K)
        self._waiting: list[Matrix] = []  # rows that wait for the next fit
        self._count = 0  # of these rows
        self._targets: list[Vector] = []  # theirs; of labels the places in `labels`

    @property
    def n_features(self) -> int:
        return len(self.mean)

    @property
    def rows(self) -> Matrix:
        """The rows that wait for the next fit."""
        return np.concatenate((np.zeros((0, self.n_features)), *self._waiting))

    @property
    def targets(self) -> Vector:
        """Their targets; of labels the places in `labels`."""
        return np.concatenate((np.zeros(0), *self._targets))

    @property
    def diagonal(self) -> bool:
        return self.n_features > MAX_FULL

    def extend(self, fills: list[float]) -> None:
        """Make features known; a fill is what they were in earlier rows, NaN for missing."""
        if not fills:
            return
        k, was_diagonal = len(fills), self.diagonal
        if self.n_features + k > MAX_FULL and not was_diagonal:
            squares = np.diag(self.moments).copy()
            self.moments = np.vstack((squares, 1 / (RIDGE + np.where(squares > 0, self.n, 0))))
        self.mean = np.append(self.mean, fills)
        self.centre, self.scale = np.append(self.centre, np.nan_to_num(fills)), np.append(self.scale, np.ones(k))
        self.slope, self.products = (np.pad(table, ((0, k), (0, 0))) for table in (self.slope, self.products))
        self._waiting = [np.hstack((part, np.tile(fills, (len(part), 1)))) for part in self._waiting]
        if self.diagonal:
            self.moments = np.hstack((self.moments, np.tile([[0.0], [1 / RIDGE]], k)))
        else:
            self.moments = np.pad(self.moments, ((0, k), (0, k)))

    def predict(self, X: Matrix) -> Targets:
        """Numbers, or labels; before the first row 0, or None."""
        scores = self._scores(X - self.centre)
        if np.isnan(scores).any():  # some rows have gaps
            scores = self._scores(without_gaps(X - self.centre))
        if self.task == "regression":
            margin = MARGIN * (self.high - self.low) if self.n else 0.0
            return np.clip(scores[0], self.low - margin, self.high + margin) if self.n else np.zeros(len(X))
        if not self.n:
            return np.full(len(X), None, dtype=object)
        place: Index = np.argmax(scores, axis=0)
        return np.array([*self.labels, None], dtype=object)[place]

    def _scores(self, centred: Matrix) -> Matrix:
        """(outputs, rows): einsum sums one row after the other, whose sums do not depend on how many there are."""
        slopes = np.ascontiguousarray((self.slope / self.scale[:, None]).T)
        scores: Matrix = self.intercept[:, None] + np.einsum("nd,kd->kn", centred, slopes)
        return scores

    def learn(self, X: Matrix, y: Targets) -> Targets:
        """Predict each row from the rows before it, and learn it."""
        parts: list[Targets] = []
        at = 0
        while at < len(X):
            most = MAX_WAIT_DIAGONAL if self.diagonal else MAX_WAIT
            wait = min(max(self.n // GROWTH, 1), most)
            stop = min(at + max(wait - self._count, 0), len(X))
            parts.append(self.predict(X[at:stop]))
            self._waiting.append(X[at:stop])
            values = as_numbers(y[at:stop]) if self.task == "regression" else self._places(as_labels(y[at:stop]))
            self._targets.append(values)
            self._count += stop - at
            if self._count >= wait:
                self._fit()
            at = stop
        return concatenated_targets(parts) if parts else self.predict(X)

    def _places(self, y: Labels) -> Vector:
        for label in y:
            if label not in self.labels:
                self.labels.append(label)
        place = {label: k for k, label in enumerate(self.labels)}
        return np.array([place[label] for label in y], dtype=np.float64)

    def _fit(self) -> None:
        rows, Y = self.rows, self._outputs(self.targets)
        m, total = len(Y), self.n + len(Y)
        mean = self.mean
        if np.isnan(mean).any():
            first = np.argmax(~np.isnan(rows), axis=0)
            mean = np.where(np.isnan(mean), rows[first, np.arange(self.n_features)], mean)
        Z = rows - mean
        shift, target_shift = Z.mean(axis=0), Y.mean(axis=0) - self.target_mean
        if np.isnan(shift).any():
            shift = without_gaps(Z).mean(axis=0)
        Z -= shift
        both = self.n * m / total
        with np.errstate(over="ignore", invalid="ignore"):
            if self.diagonal:
                self.moments[0] += (Z**2).sum(axis=0) + both * shift**2
            else:
                self.moments += Z.T @ Z + both * np.outer(shift, shift)
            self.products += Z.T @ (Y - Y.mean(axis=0)) + both * np.outer(shift, target_shift)
            self.mean = mean + shift * m / total
            self.target_mean = self.target_mean + target_shift * m / total
            self.n = total
            self._solve(rows, Y)
        self._waiting, self._targets, self._count = [], [], 0

    def _outputs(self, targets: Vector) -> Matrix:
        """(waiting rows, outputs): the numbers, or a one for the label of each."""
        if self.task == "regression":
            self.low, self.high = min(self.low, targets.min()), max(self.high, targets.max())
            return targets[:, None]
        new = len(self.labels) - len(self.target_mean)
        self.target_mean, self.intercept = np.pad(self.target_mean, (0, new)), np.pad(self.intercept, (0, new))
        self.products, self.slope = (np.pad(table, ((0, 0), (0, new))) for table in (self.products, self.slope))
        return np.eye(len(self.labels))[targets.astype(np.intp)]

    def _solve(self, rows: Matrix, Y: Matrix) -> None:
        """The fit that follows from the moments; one that is not finite is not used."""
        squares = self.moments[0] if self.diagonal else np.diag(self.moments)
        scale = np.sqrt(squares / self.n)
        scale = np.where(scale > 0, scale, 1.0)
        intercept = self.target_mean
        if self.diagonal:
            slope = self._diagonal_step(rows, Y, scale)
        else:
            products, within = self.products / scale[:, None], self.moments / np.outer(scale, scale)
            if self.task == "classification":
                counts = self.n * self.target_mean
                means = products / counts
                within = within - (means * counts) @ means.T
                products = self.n * means
            try:
                slope = np.linalg.solve(within + RIDGE * np.eye(len(within)), products)
            except np.linalg.LinAlgError:
                return
            if self.task == "classification":
                intercept = np.log(self.target_mean) - (means * slope).sum(axis=0) / 2
        if np.isfinite(slope).all() and np.isfinite(intercept).all():
            self.centre, self.scale = np.nan_to_num(self.mean, nan=0.0), scale
            self.slope, self.intercept = slope, intercept

    def _diagonal_step(self, rows: Matrix, Y: Matrix, scale: Vector) -> Matrix:
        """The slopes after the waiting rows: least squares whose covariance before and after them is diagonal."""
        slope, covariance = self.slope * (scale / self.scale)[:, None], self.moments[1]
        Z = without_gaps((rows - self.mean) / scale)
        gain = np.linalg.solve((Z * covariance) @ Z.T + np.eye(len(Z)), Z * covariance)
        self.moments[1] = covariance * np.clip(1 - (gain * Z).sum(axis=0), 0.0, 1.0)
        out: Matrix = slope + gain.T @ (Y - self.target_mean - Z @ slope)
        return out

    # Files

    def encode(self, arrays: Arrays) -> Json:
        """The JSON body; arrays are added to `arrays`."""
        arrays |= {f"linear.{name}": getattr(self, name) for name in ARRAYS}
        targets = None if self.low > self.high else [float(self.low), float(self.high)]
        return {"n": self.n, "labels": self.labels, "range": targets}

    @classmethod
    def decode(cls, task: Task, body: Json, arrays: Arrays) -> "LinearModel":
        """The model that `encode` was called on."""
        self = cls(task)
        self.n, self.labels = claims.count(body["n"], "rows"), claims.strings(body["labels"], "the labels")
        demand(len(set(self.labels)) == len(self.labels) <= MAX_LABELS + 1, "the labels of the baseline do not fit")
        if body["range"] is not None:
            self.low, self.high = (claims.number(end, "the range of the targets") for end in body["range"])
        demand(self.low <= self.high or task == "classification" or not self.n, "the range of the targets is not known")
        read = {name: float_array(arrays, f"linear.{name}") for name in ARRAYS}
        for name, array in read.items():
            if name not in ("mean", "rows"):  # where NaN is a missing value
                require_finite(array, f"linear.{name}")
        rows, targets = read.pop("rows"), read.pop("targets")
        for name, array in read.items():
            setattr(self, name, array)
        demand(self.mean.ndim == self.target_mean.ndim == 1, "the linear baseline does not fit")
        d, K = self.n_features, len(self.target_mean)
        demand(K == 1 if task == "regression" else len(self.labels) >= K, "the outputs of the baseline do not fit")
        square = (2, d) if self.diagonal else (d, d)
        shapes = (self.moments.shape, self.products.shape, self.slope.shape, self.intercept.shape, self.centre.shape,
                  self.scale.shape, rows.shape)  # fmt: skip
        fits = shapes == (square, (d, K), (d, K), (K,), (d,), (d,), (len(targets), d))
        demand(fits and targets.ndim == 1 and len(rows) <= MAX_WAIT, "the linear baseline does not fit")
        demand(bool((self.scale > 0).all()), "a scale of the linear baseline is not positive")
        if task == "classification":
            places = np.isin(targets, np.arange(len(self.labels)))
            demand(bool(places.all()) and (K > 0 or not self.n), "a label of the linear baseline is not known")
        self._waiting, self._targets, self._count = [rows], [targets], len(rows)
        return self


def without_gaps(deviations: Matrix) -> Matrix:
    """Deviations from the mean, 0 where a value is missing."""
    gaps = np.isnan(deviations)
    if gaps.any():
        deviations[gaps] = 0.0
    return deviations
