"""What both doors stand on: scaling, learners for a target or for labels, one lock.

A core takes checked arrays. One row and a chunk of rows give the same results to the last bit;
a chunk that cannot be learned to its end is refused whole.
"""

import copy
import threading
from collections.abc import Hashable, Sequence
from typing import Any, Literal, Self

import numpy as np

from omkl.algorithms.weights import normalised
from omkl.arrays import Matrix, Vector
from omkl.engine._native import gather
from omkl.errors import DivergenceError
from omkl.online import Online
from omkl.scaling import InputScaler, TargetScaler
from omkl.settings import Settings

Scale = Literal["online", "none"]


class Core:
    """Inputs of named features on their way to one or more learners."""

    def __init__(self, learner: str, settings: Any, seed: int, names: Sequence[Hashable], scale: Scale) -> None:
        if scale not in ("online", "none"):
            raise ValueError(f"scale must be online or none, got {scale!r}")
        self.learner, self.settings, self.seed = learner, settings, seed
        self.names = tuple(names)
        self.inputs = InputScaler(len(names)) if scale == "online" else None
        self.online = Online(learner, self._problem(), seed)
        self._set_up()

    def _set_up(self) -> None:
        self._lock = threading.RLock()
        self._raw, self._row = np.empty(len(self.names)), np.empty(len(self.names))

    def _problem(self) -> Any:
        return self.settings.problem(self.learner, names=[str(name) for name in self.names], seed=self.seed)

    def anew(self, rng: np.random.Generator) -> Self:
        """For a core that has learned nothing: one more such, which shares the problem and draws from `rng`."""
        twin = copy.copy(self)
        twin.online = self.online.anew(rng)
        twin.inputs = None if self.inputs is None else InputScaler(len(self.names))
        return twin

    @property
    def learners(self) -> list[Online]:
        """Everything that learns."""
        return [self.online]

    @property
    def speakers(self) -> list[Online]:
        """Those of them whose predictions are used."""
        return [self.online]

    def weights(self, name: str = "log_w") -> Matrix:
        """(speakers, N): w / sum(w), or u / sum(u) for "log_u"."""
        return np.array([normalised(online.peek(name)) for online in self.speakers])

    @property
    def missing(self) -> float:
        """What stands for a feature that is not there."""
        return 0.0 if self.inputs is None else np.nan

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_raw", "_row")}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._set_up()

    # Inputs

    def row(self, x: dict[Hashable, Any], keep: bool) -> Vector:
        """One river row, ordered and scaled. With `keep` its new features become known.

        A feature that is not there counts as its mean so far, or as 0 where inputs are not scaled.
        """
        if self.inputs is None:
            found, row = gather(x, self.names, self.missing, self._raw), self._raw
        else:
            found, row = self.inputs.transform_dict(x, self.names, self._raw, self._row), self._row
        if found < 0:
            raise not_a_number(x, self.names[-1 - found])
        if keep and found < len(x):
            check_row(x)
            self.meet(x)
            return self.row(x, keep)
        return row

    def meet(self, names: Sequence[Hashable] | dict[Hashable, Any]) -> None:
        """Make features known: a new Problem with a column of frequencies for each, the state as it was."""
        new = in_order(set(names) - set(self.names))
        if not new:
            return
        self.names += tuple(new)
        if self.inputs is not None:
            self.inputs.extend(len(new))
        problem = self._problem()
        for online in self.learners:
            online.move_to(problem)
        self._raw, self._row = np.empty(len(self.names)), np.empty(len(self.names))

    def scaled(self, X: Matrix) -> Matrix:
        return X if self.inputs is None else self.inputs.transform(X)

    def _snapshot(self) -> dict[str, Any]:
        return {
            "checkpoints": [online.checkpoint() for online in self.learners],
            "inputs": None if self.inputs is None else self.inputs.stats.copy(),
        }

    def _roll_back(self, before: dict[str, Any]) -> None:
        if self.inputs is not None:
            self.inputs.restore(before["inputs"])
        for online, checkpoint in zip(self.learners, before["checkpoints"], strict=True):
            online.restore(checkpoint)


class TargetCore(Core):
    """A learner for a number."""

    def __init__(self, learner: str, settings: Settings, seed: int, names: Sequence[Hashable], scale: Scale) -> None:
        super().__init__(learner, settings, seed, names, scale)
        self.target = TargetScaler() if scale == "online" else None

    def anew(self, rng: np.random.Generator) -> Self:
        twin = super().anew(rng)
        twin.target = None if self.target is None else TargetScaler()
        return twin

    def predict(self, X: Matrix) -> Vector:
        with self._lock:
            f = self.online.ask_rows(self.scaled(X))
            return f if self.target is None else self.target.inverse_transform(f)

    def run(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Vector:
        """Prequential predictions; all rows are learned, or none."""
        with self._lock:
            if self.inputs is None or self.target is None:
                return self._tell(X, y, weight)
            before = self.inputs.stats.copy(), self.target.stats.copy()
            Xs = self.inputs.learn(X)
            ys, shift, scale = self.target.learn(y)
            try:
                return shift + scale * self._tell(Xs, ys, weight)
            except DivergenceError:
                self.inputs.restore(before[0])
                self.target.restore(before[1])
                raise

    def _tell(self, X: Matrix, y: Vector, weight: Vector | None) -> Vector:
        before = self.online.checkpoint() if len(X) > 1 else None
        try:
            return self.online.tell_rows(X, y, weight)
        except DivergenceError:
            if before is not None:
                self.online.restore(before)
            raise

    def predict_row(self, x: dict[Hashable, Any]) -> float:
        with self._lock:
            f = self.online.ask(self.row(x, keep=False))
            return f if self.target is None else self.target.inverse_transform_one(f)

    def learn_row(self, x: dict[Hashable, Any], y: float, weight: float) -> None:
        with self._lock:
            row = self.row(x, keep=True)
            if self.inputs is None or self.target is None:
                self.online.tell(row, y, weight)
                return
            self.online.tell(row, self.target.transform_one(y), weight)
            self.target.commit()
            self.inputs.commit()


class LabelCore(Core):
    """Learners for labels: one while there are two labels, then one for each against the rest.

    All start from one seed, so that the learner of a label nobody has seen yet is the same for
    every such label: `rest`. A new label takes a copy of it, and has thereby learned that all rows
    so far were something else. `closed` says how many labels there will ever be, where that is
    known; then `rest` ends when they have all come.
    """

    def __init__(
        self,
        learner: str,
        settings: Settings,
        seed: int,
        names: Sequence[Hashable],
        scale: Scale,
        closed: int | None = None,
    ) -> None:
        super().__init__(learner, settings, seed, names, scale)
        self.closed = closed
        self.labels: list[Hashable] = []
        self.each: list[Online] = [self.online]
        self.rest: Online | None = None

    def anew(self, rng: np.random.Generator) -> Self:
        twin = super().anew(rng)
        twin.labels, twin.each = [], [twin.online]
        return twin

    @property
    def learners(self) -> list[Online]:
        return [*self.each, self.rest] if self.rest else self.each

    @property
    def speakers(self) -> list[Online]:
        return self.each

    def _welcome(self, label: Hashable) -> None:
        known = len(self.labels)
        if known == 1 and self.closed != 2:
            self.rest = self.online.copy()
        elif known == 2 and self.rest is not None:
            self.each = [mirrored(self.online), self.online, self.rest.copy()]
        elif known > 2 and self.rest is not None:
            self.each.append(self.rest.copy())
        self.labels.append(label)
        if len(self.labels) == self.closed:
            self.rest = None

    def _signs(self, label: Hashable) -> list[float]:
        """What each learner is told about a row of this label; the first label is the -1 of the first learner."""
        place = self.labels.index(label)
        if len(self.labels) <= 2:
            signs = [1.0 if place == 1 else -1.0]
        else:
            signs = [1.0 if k == place else -1.0 for k in range(len(self.labels))]
        return [*signs, -1.0] if self.rest else signs

    def _scores(self, f: list[Vector] | list[float]) -> list[Any]:
        """A score for each label, from the outputs of the learners."""
        if len(self.labels) <= 2:
            return [-f[0], f[0]][: len(self.labels)]
        return f[: len(self.labels)]

    def scores(self, X: Matrix) -> Matrix:
        """(rows, labels)"""
        with self._lock:
            Xs = self.scaled(X)
            columns = self._scores([online.ask_rows(Xs) for online in self.each])
            return np.stack(columns, axis=1) if columns else np.empty((len(X), 0))

    def chances(self, X: Matrix) -> Matrix:
        """(rows, labels)"""
        return probabilities(self.scores(X))

    def run_chances(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        """Prequential chances, (rows, labels known in the end)."""
        return probabilities(self.run(X, y, weight))

    def run(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        """Prequential scores, (rows, labels known in the end), -inf for labels not known yet; all rows or none."""
        with self._lock:
            before = self._snapshot() | {"labels": list(self.labels), "each": list(self.each), "rest": self.rest}
            try:
                return self._run(X, y, weight)
            except DivergenceError:
                self.labels, self.each, self.rest = before["labels"], before["each"], before["rest"]
                self._roll_back(before)
                raise

    def _run(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None) -> Matrix:
        Xs = X if self.inputs is None else self.inputs.learn(X)
        parts = []
        for start, stop, arrives in stretches(self.labels, y):
            if arrives:
                # the row that brings a label is predicted before the label is known
                unseen = self._scores([online.ask_rows(Xs[start : start + 1]) for online in self.each])
                self._welcome(y[start])
            signs = {label: self._signs(label) for label in set(y[start:stop])}
            told = np.array([signs[label] for label in y[start:stop]]).T
            w = None if weight is None else weight[start:stop]
            heard = [online.tell_rows(Xs[start:stop], np.ascontiguousarray(s), w)
                     for online, s in zip(self.learners, told, strict=True)]  # fmt: skip
            columns = np.stack(self._scores(heard), axis=1)
            if arrives:
                columns[0] = -np.inf
                columns[0, : len(unseen)] = np.ravel(unseen)
            parts.append(columns)
        return stacked(parts, len(self.labels), -np.inf)

    def chances_row(self, x: dict[Hashable, Any]) -> list[float]:
        with self._lock:
            row = self.row(x, keep=False)
            scores = self._scores([online.ask(row) for online in self.each])
            return [float(p) for p in probabilities(np.array([scores]))[0]]

    def learn_row(self, x: dict[Hashable, Any], label: Hashable, weight: float) -> None:
        with self._lock:
            row = self.row(x, keep=True)
            if label not in self.labels:
                self._welcome(label)
            for online, sign in zip(self.learners, self._signs(label), strict=True):
                online.tell(row, sign, weight)
            if self.inputs is not None:
                self.inputs.commit()


def stretches(known: Sequence[Hashable], y: Sequence[Hashable]) -> list[tuple[int, int, bool]]:
    """The rows cut where a label comes for the first time: (start, stop, whether the first row brings one).

    >>> stretches(["a"], ["a", "b", "a", "c"])
    [(0, 1, False), (1, 3, True), (3, 4, True)]
    """
    first = {label: k for k, label in reversed(list(enumerate(y))) if label not in known}
    arrivals = set(first.values())
    starts = sorted({0, *arrivals})
    return [(a, b, a in arrivals) for a, b in zip(starts, [*starts[1:], len(y)], strict=True)]


def stacked(parts: Sequence[Matrix], labels: int, unknown: float) -> Matrix:
    """Rows one after the other, with `unknown` for labels that came after them."""
    return np.vstack([np.pad(p, ((0, 0), (0, labels - p.shape[1])), constant_values=unknown) for p in parts])


def check_row(x: dict[Hashable, Any]) -> None:
    """Refuse a row before any of its features becomes known."""
    names = tuple(x)
    if (found := gather(x, names, 0.0, np.empty(len(names)))) < 0:
        raise not_a_number(x, names[-1 - found])


def not_a_number(x: dict[Hashable, Any], name: Hashable) -> ValueError:
    return ValueError(
        f"feature {name!r} must be a finite number, got {x[name]!r}; "
        "encode categories (river.preprocessing.OneHotEncoder) and impute what is missing"
    )


def mirrored(online: Online) -> Online:
    """The learner that was told the opposite of every label: the losses are even, so only theta changes sign."""
    twin = online.copy()
    checkpoint = twin.checkpoint()
    twin.restore(checkpoint._replace(state=checkpoint.state._replace(theta=-checkpoint.state.theta)))
    return twin


def in_order(names: set[Hashable]) -> list[Hashable]:
    """New features enter in this order, whatever order they came in: numbers by value, then the rest by name.

    >>> in_order({"b", "10", "9", "a"})
    ['9', '10', 'a', 'b']
    """
    return sorted(names, key=_rank)


def _rank(name: Hashable) -> tuple[bool, int, str]:
    text = str(name)
    return (False, int(text), "") if text.isdecimal() else (True, 0, text)


def probabilities(scores: Matrix) -> Matrix:
    """Logistic scores (rows, labels) to chances: one against the rest, each row normalised.

    >>> probabilities(np.array([[-1.0, 1.0], [0.0, -np.inf]])).round(3)
    array([[0.269, 0.731],
           [1.   , 0.   ]])
    """
    p: Matrix = np.exp(-np.logaddexp(0.0, -scores))
    total = p.sum(axis=1, keepdims=True)
    known = np.isfinite(scores)
    even: Matrix = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
    np.divide(p, total, out=even, where=total > 0)
    return even


def make_seed(seed: int | None) -> int:
    """`seed`, or one from the system's entropy, small enough for every file format."""
    return int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
