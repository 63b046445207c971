"""Classification with algorithms that predict one score: one learner for two labels, else one against the rest each."""

from collections.abc import Hashable, Sequence
from typing import Self, TypeVar

import numpy as np

from omkl.algorithms.base import AlgorithmSettings
from omkl.arrays import Mask, Matrix, Vector
from omkl.estimators.core import LabelCore, Scale
from omkl.estimators.rounds import rounds_of
from omkl.estimators.rows import Cells
from omkl.online import Online
from omkl.persist import Arrays, Json, demand, plain

F = TypeVar("F", Vector, float)  # predictions for many rows, or for one

LEAST_PROBABILITY = 1e-300  # of a known label; its logarithm is finite


class ClassificationCore(LabelCore):
    """One learner while there are two labels, then one for each against the rest.

    All start from one seed, so that the learner of a label that has not come yet is the same for every such label:
    `unseen`. A new label takes a copy of it, and has thereby learned that all rows so far were something else.
    `n_classes` says how many labels there will ever be, where that is known; `unseen` ends when all have come.
    """

    unknown = -np.inf

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
        self.n_classes = None if classes is None else len(classes)
        self._labels: list[Hashable] = []
        self.each: list[Online] = [self.online]
        self.unseen: Online | None = None

    def fresh_copy(self, rng: np.random.Generator) -> Self:
        other = super().fresh_copy(rng)
        other._labels, other.each = [], [other.online]
        return other

    @property
    def labels(self) -> list[Hashable]:
        return self._labels

    @property
    def learners(self) -> list[Online]:
        return [*self.each, self.unseen] if self.unseen else self.each

    @property
    def predictors(self) -> list[Online]:
        return self.each

    @property
    def most_labels(self) -> int | None:
        return self.n_classes

    def _add_label(self, label: Hashable) -> None:
        known = len(self._labels)
        if known == 1 and self.n_classes != 2:
            self.unseen = self.online.copy()
        elif known == 2 and self.unseen is not None:
            self.each = [mirrored(self.online), self.online, self.unseen.copy()]
        elif known > 2 and self.unseen is not None:
            self.each = [*self.each, self.unseen.copy()]
        self._labels = [*self._labels, label]
        if len(self._labels) == self.n_classes:
            self.unseen = None

    def _signs(self, label: Hashable) -> list[float]:
        """The target of each learner for a row of this label; the first label is the -1 of the first learner."""
        index = self._labels.index(label)
        if len(self._labels) <= 2:
            signs = [1.0 if index == 1 else -1.0]
        else:
            signs = [1.0 if k == index else -1.0 for k in range(len(self._labels))]
        return [*signs, -1.0] if self.unseen else signs

    def _label_scores(self, f: list[F]) -> list[F]:
        """A score for each label, from the predictions of the learners."""
        if len(self._labels) <= 2:
            return [-f[0], f[0]][: len(self._labels)]
        return f[: len(self._labels)]

    def scores(self, X: Matrix) -> Matrix:
        with self._lock:
            Xs = self.scaled(self.with_ids(X))
            columns = self._label_scores([online.predict_rows_unchecked(Xs) for online in self.each])
            return np.stack(columns, axis=1) if columns else np.empty((len(X), 0))

    def to_probabilities(self, scores: Matrix, learned: Vector | float) -> Matrix:
        p = probabilities(scores)
        return p if self.n_classes is None else with_announced(p, np.isfinite(scores), learned)

    def to_decision(self, scores: Matrix) -> Matrix:
        if scores.shape[1] != 2:
            return scores
        return np.where(np.isfinite(scores[:, 1]), scores[:, 1], -scores[:, 0])

    def learn_features(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        if weight is not None and (weight > 1).any():
            rounds = rounds_of(weight)
            rows = np.repeat(np.arange(len(X)), rounds)
            first = np.cumsum(rounds) - rounds
            labels_of_rounds = [y[row] for row in rows.tolist()]
            scores: Matrix = self._learn_whole(X[rows], labels_of_rounds, (weight / rounds)[rows])[first]
            return scores
        return self._learn_whole(X, y, weight)

    def _learn_whole(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None) -> Matrix:
        """Scores before learning, -inf for labels not known yet; one round for each row, all rows or none."""
        with self._lock:
            labels, each, unseen = list(self._labels), list(self.each), self.unseen
            checkpoints = [online.checkpoint() for online in self.learners]
            stats = None if self.inputs is None else self.inputs.stats.copy()
            try:
                return self._learn_rows(X, y, weight)
            except BaseException:  # also too little memory, or Ctrl-C
                self._labels, self.each, self.unseen = labels, each, unseen
                if self.inputs is not None and stats is not None:
                    self.inputs.restore(stats)
                for online, checkpoint in zip(self.learners, checkpoints, strict=True):
                    online.restore(checkpoint)
                raise

    def _learn_rows(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None) -> Matrix:
        Xs = X if self.inputs is None else self.inputs.learn(X)
        parts = []
        for start, stop, new_label in split_at_new_labels(self._labels, y):
            if new_label:
                # the row that brings a label is predicted before the label is known
                before = self._label_scores([o.predict_rows_unchecked(Xs[start : start + 1]) for o in self.each])
                self._add_label(y[start])
            signs = {label: self._signs(label) for label in set(y[start:stop])}
            targets = np.array([signs[label] for label in y[start:stop]]).T
            w = None if weight is None else weight[start:stop]
            f = [online.run_unchecked(Xs[start:stop], np.ascontiguousarray(s), w)
                 for online, s in zip(self.learners, targets, strict=True)]  # fmt: skip
            columns = np.stack(self._label_scores(f), axis=1)
            if new_label:
                columns[0] = -np.inf
                columns[0, : len(before)] = np.ravel(before)
            parts.append(columns)
        return stacked(parts, len(self._labels), -np.inf)

    def probabilities_row(self, x: Cells) -> list[float]:
        with self._lock:
            row = self.row(x, learn=False)
            scores = self._label_scores([online.predict_unchecked(row) for online in self.each])
            p: list[float] = probabilities(np.array([scores]))[0].tolist()
            return p

    def learn_weighted_row(self, x: Cells, y: Hashable, weight: float) -> None:
        with self._lock:
            row = self.row(x, learn=True)
            if weight > 1:
                self.learn_features(self._raw[None].copy(), [y], np.array([float(weight)]))
                self._learn_ids(y, weight)
                return
            if y not in self._labels:
                self._add_label(y)
            for online, sign in zip(self.learners, self._signs(y), strict=True):
                online.learn_unchecked(row, sign, weight)
            if self.inputs is not None:
                self.inputs.commit()
            if self.ids is not None:
                self._learn_ids(y, weight)

    def encode_own(self, arrays: Arrays) -> dict[str, Json]:
        return {
            "labels": [plain(label) for label in self._labels], "closed": self.n_classes,
            "rest": self.unseen is not None, "first": self.each.index(self.online),
        }  # fmt: skip

    def decode_own(self, body: Json, arrays: Arrays, learners: list[Online]) -> None:
        self._labels, self.n_classes = list(body["labels"]), body["closed"]
        known, most = len(self._labels), self.n_classes
        demand(len(set(self._labels)) == known, "a label comes twice")
        demand(most is None or (type(most) is int and known <= most), "more labels than there may be")
        demand(body["rest"] is (known >= 2 and known != most), "labels and learners differ")
        self.unseen = learners.pop() if body["rest"] else None
        self.each = learners
        demand(len(learners) == (known if known > 2 else 1), "labels and learners differ")
        first = body["first"]
        demand(type(first) is int and 0 <= first < len(learners), "there is no such learner")
        self.online = learners[first]


def mirrored(online: Online) -> Online:
    """The learner that has seen the opposite of every sign: losses are even, so only coefficients change their sign."""
    other = online.copy()
    checkpoint = other.checkpoint()
    state, name = checkpoint.state, online.algorithm.coefficients
    other.restore(checkpoint._replace(state=state._replace(**{name: -getattr(state, name)})))
    return other


def split_at_new_labels(known: Sequence[Hashable], y: Sequence[Hashable]) -> list[tuple[int, int, bool]]:
    """Rows cut where a label comes for the first time: (start, stop, whether the first row brings a new label).

    >>> split_at_new_labels(["a"], ["a", "b", "a", "c"])
    [(0, 1, False), (1, 3, True), (3, 4, True)]
    """
    first = {label: k for k, label in reversed(list(enumerate(y))) if label not in known}
    arrivals = set(first.values())
    starts = sorted({0, *arrivals})
    return [(a, b, a in arrivals) for a, b in zip(starts, [*starts[1:], len(y)], strict=True)]


def stacked(parts: Sequence[Matrix], labels: int, unknown: float) -> Matrix:
    """Rows one after the other, with `unknown` for labels that came after them."""
    return np.vstack([np.pad(p, ((0, 0), (0, labels - p.shape[1])), constant_values=unknown) for p in parts])


def probabilities(scores: Matrix) -> Matrix:
    """Logistic scores (rows, labels) as probabilities: one against the rest, each row normalised.

    Labels that are not known, of score -inf, have none. A known label has some, however low its score is.

    >>> probabilities(np.array([[-1.0, 1.0], [0.0, -np.inf]])).round(3)
    array([[0.269, 0.731],
           [1.   , 0.   ]])
    """
    p: Matrix = np.exp(-np.logaddexp(0.0, -scores))
    p = np.where(np.isfinite(scores), np.maximum(p, LEAST_PROBABILITY), 0.0)
    total = p.sum(axis=1, keepdims=True)
    out: Matrix = np.divide(p, total, out=p, where=total > 0)
    return out


def with_announced(p: Matrix, known: Mask, learned: Vector | float) -> Matrix:
    """Probabilities (rows, labels), with those of labels that were announced and have not come in `learned` rows.

    By Laplace's rule of succession each of them has 1 / (learned + labels). The most likely label stays the same: the
    mean probability of those that have come is at least twice as large.

    >>> with_announced(np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[False, False], [False, True]]), np.array([0, 1]))
    array([[0.5       , 0.5       ],
           [0.33333333, 0.66666667]])
    """
    each = 1 / (np.broadcast_to(learned, len(p))[:, None] + p.shape[1])
    out: Matrix = np.where(known, p * (1 - each * (~known).sum(axis=1, keepdims=True)), each)
    return out
