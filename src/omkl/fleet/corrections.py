"""What a pooled fleet has beside its learners: linear corrections of keys, and how far a key is trusted by its rows."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from omkl.algorithms.invariants import demand, is_count, is_growing_count
from omkl.arrays import Index, Matrix, Tensor, Vector
from omkl.fleet.groups import Groups
from omkl.scaling import InputScaler

PRIOR = 3.0  # variance of the noise over that of a coefficient of a key, inputs standardised
MEMORY = 1 - 1 / 2000  # weight of a key's row from one row of the key to the next
AGES = 24  # octaves of the number of rows of a key
SHARES_EVERY = 32  # rows, from one fit of the shares to the next, once there are so many
SHARES_MEMORY = 1 - 1 / 1600  # weight of the rows of one fit in the next
BORROWED = 20.0  # rows that the share of the age before counts as
LARGEST_SUM, LARGEST_SHARE_SUM = 1e120, 1e250  # of a key, of the shares: from the largest targets and clipped inputs
KEYS_AT_ONCE = 1024  # whose models are solved for or updated together: each takes copies of its matrix


class Corrections:
    """Linear models of the keys' residuals, by slot."""

    def __init__(self, d: int, count: int = 0) -> None:
        self.inputs = InputScaler(d)
        self.squares, self.products = np.zeros((count, d + 1, d + 1)), np.zeros((count, d + 1))
        self.rows = np.zeros(count, dtype=np.int64)

    def reserve(self, count: int) -> None:
        """Make room for so many slots."""
        if count > len(self.rows):
            more = max(count, 2 * len(self.rows)) - len(self.rows)
            self.squares = np.pad(self.squares, ((0, more), (0, 0), (0, 0)))
            self.products = np.pad(self.products, ((0, more), (0, 0)))
            self.rows = np.pad(self.rows, (0, more))

    def design(self, X: Matrix, learn: bool) -> Matrix:
        """(rows, d + 1): 1, and the inputs standardised by the statistics of all keys."""
        scaled = (self.inputs.learn if learn else self.inputs.transform)(np.ascontiguousarray(X))
        scaled = np.nan_to_num(scaled, nan=0.0) * np.sqrt(X.shape[1])
        return np.hstack((np.ones((len(X), 1)), scaled))

    def predict(self, slots: Index, Z: Matrix) -> Vector:
        """(rows,); 0 for a slot of -1, a key that has not come yet."""
        known, of = np.unique(slots, return_inverse=True)
        w, prior = np.empty((len(known), Z.shape[1])), PRIOR * np.eye(Z.shape[1])
        for start in range(0, len(known), KEYS_AT_ONCE):
            some = known[start : start + KEYS_AT_ONCE]
            w[start : start + len(some)] = np.linalg.solve(self.squares[some] + prior, self.products[some][..., None])[
                ..., 0
            ]
        out: Vector = np.where(slots >= 0, (w[of] * Z).sum(axis=1), 0.0)
        return out

    def learn(self, slots: Index, Z: Matrix, residuals: Vector) -> tuple[Vector, Index]:
        """(rows,) predictions of each row before it is learned, and how many rows its key had then.

        Rows that are the first of their key in the batch go together, then those that are the second, ...
        """
        out, seen = np.empty(len(Z)), np.empty(len(Z), dtype=np.intp)
        for rows in by_rank(slots):
            here, z = slots[rows], Z[rows]
            out[rows], seen[rows] = self.predict(here, z), self.rows[here]
            self.squares[here] = MEMORY * self.squares[here] + z[:, :, None] * z[:, None, :]
            self.products[here] = MEMORY * self.products[here] + z * residuals[rows, None]
            self.rows[here] += 1
        return out, seen

    def remove(self, slot: int, last: int) -> None:
        """Forget a slot; what is in the last one moves to its place."""
        for values in (self.squares, self.products, self.rows):
            values[slot] = values[last]
            values[last] = 0


def by_rank(slots: Index) -> Iterator[Index]:
    """Rows that are the first of their slot, the second, and so on, at most so many at a time.

    >>> [rows.tolist() for rows in by_rank(np.array([7, 3, 7, 7, 3]))]
    [[0, 1], [2, 4], [3]]
    """
    groups = Groups.by(slots)
    ranks = np.empty(len(slots), dtype=np.intp)
    ranks[groups.order] = np.arange(len(slots)) - np.repeat(groups.starts[:-1], np.diff(groups.starts))
    by = Groups.by(ranks)
    for a, b in zip(by.starts, by.starts[1:], strict=False):
        for start in range(a, b, KEYS_AT_ONCE):
            yield by.order[start : min(start + KEYS_AT_ONCE, b)]


class Shares:
    """How much of a correction is believed, by the age of a key: least squares over the rows of all keys.

    While corrected predictions have had more error than the pool's, as where keys do not differ, nothing is believed.
    Both change after rows 1, 2, 4, ..., 32, 64, 96, ... of the stream, whatever batches it comes in.
    """

    def __init__(self) -> None:
        self.t = 0
        self.squares, self.products = np.zeros((AGES, 2, 2)), np.zeros((AGES, 2))
        self.counts, self.shares = np.zeros(AGES), np.zeros((AGES, 2))
        self.errors = np.zeros((AGES, 2))  # squared, of the pool and of q
        self.trusted = True  # whether q predicts, and not the pool alone

    def combine(self, seen: Index, pool: Vector, linear: Vector, own: Vector) -> Vector:
        """Predictions, with the shares as they are."""
        return self._corrected(seen, pool, linear, own) if self.trusted else pool.copy()

    def _corrected(self, seen: Index, pool: Vector, linear: Vector, own: Vector) -> Vector:
        """q, with the shares as they are."""
        a, b = self.shares[ages(seen)].T
        out: Vector = pool + np.where(seen > 0, a * linear + b * (own - pool - linear), 0.0)
        return out

    def learn(self, seen: Index, pool: Vector, linear: Vector, own: Vector, y: Vector) -> Vector:
        """The prediction of each row, before it is learned."""
        out = np.empty(len(y))
        start = 0
        while start < len(y):
            fit_at = next_fit(self.t)
            stop = min(len(y), start + fit_at - self.t)
            here = slice(start, stop)
            q = self._corrected(seen[here], pool[here], linear[here], own[here])
            out[here] = q if self.trusted else pool[here]
            known = np.flatnonzero(seen[here] > 0) + start
            E = np.column_stack((linear[known], own[known] - pool[known] - linear[known]))
            at = ages(seen[known])
            np.add.at(self.squares, at, E[:, :, None] * E[:, None, :])
            np.add.at(self.products, at, E * (y[known] - pool[known])[:, None])
            np.add.at(self.counts, at, 1.0)
            np.add.at(self.errors, at, np.column_stack((y[known] - pool[known], y[known] - q[known - start])) ** 2)
            self.t += stop - start
            if self.t == fit_at:
                self._fit()
            start = stop
        return out

    def _fit(self) -> None:
        of_pool, of_corrected = self.errors.sum(axis=0)
        self.trusted = bool(of_corrected < of_pool)
        before: Vector = np.zeros(2)
        for age in range(AGES):
            if self.counts[age] > 0:
                S, count = self.squares[age], max(self.counts[age], 1.0)
                ridge = BORROWED * np.diag(np.diag(S)) / count + 1e-12 * (np.trace(S) + 1e-300) * np.eye(2)
                with suppress(np.linalg.LinAlgError):  # else as those of the age before
                    fitted = np.linalg.solve(S + ridge, self.products[age] + ridge @ before)
                    before = np.clip(fitted, 0.0, 1.0) if np.isfinite(fitted).all() else before
            self.shares[age] = before
        for sums in (self.squares, self.products, self.counts, self.errors):
            sums *= SHARES_MEMORY


def check(corrections: Corrections, shares: Shares) -> None:
    """What a file may claim of corrections and shares, whose shapes fit each other: ValueError otherwise."""
    demand(all(is_growing_count(n) for n in corrections.rows.tolist()), "no counts of rows")
    demand(is_count(shares.t), "the number of rows is none")
    sums = (corrections.squares, corrections.products), (shares.squares, shares.products, shares.counts, shares.errors)
    for each, largest in zip(sums, (LARGEST_SUM, LARGEST_SHARE_SUM), strict=True):
        for values in each:
            demand(bool((np.abs(values) <= largest).all()), "a sum is too large, or no number")
    fitting = bool(
        (shares.counts >= 0).all()
        and (shares.errors >= 0).all()
        and (shares.shares >= 0).all()
        and (shares.shares <= 1).all()
    )
    demand(fitting, "a count or a share cannot be")
    semidefinite = is_semidefinite(corrections.squares, PRIOR / 2) and is_semidefinite(shares.squares, np.inf)
    demand(semidefinite, "sums of squares cannot be")


def is_semidefinite(squares: Tensor, most: float) -> bool:
    """Whether all matrices are symmetric, with eigenvalues that are negative by rounding alone, and by `most`."""
    if not len(squares) or not np.array_equal(squares, squares.transpose(0, 2, 1)):
        return not len(squares)
    rounding = np.minimum(1e-9 * (1 + np.trace(squares, axis1=1, axis2=2)), most)
    return bool((np.linalg.eigvalsh(squares)[:, 0] >= -rounding).all())


def next_fit(t: int) -> int:
    """The row after which the shares change next.

    >>> [next_fit(t) for t in (0, 1, 2, 5, 31, 32, 70)]
    [1, 2, 4, 8, 32, 64, 96]
    """
    return 1 << t.bit_length() if t < SHARES_EVERY else (t // SHARES_EVERY + 1) * SHARES_EVERY


def ages(seen: Index) -> Index:
    """Octaves of numbers of rows.

    >>> ages(np.array([0, 1, 2, 3, 4, 7, 8])).tolist()
    [0, 1, 2, 2, 3, 3, 4]
    """
    return np.minimum(np.frexp(seen.astype(np.float64))[1], AGES - 1)
