"""GraphMKL written from docs/graph_mkl.md alone, slowly and simply: the oracle of the two fast implementations.

Nothing here is taken from src/omkl but data: frequencies, graph, settings and random numbers. Covariances are full
matrices, experts are objects. Growth, (G49), and the interpolation of half widths, (G47), are left out.
"""

from collections import deque
from functools import partial

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

REFITS = {1, 2, 3, 4, 5, 6, 7, 8, 16, 64, 256}
COVERAGES = np.array([0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
NORMAL = np.array([0.13, 0.39, 0.67, 0.84, 1.04, 1.28, 1.64, 1.96, 2.58])


def varies(deviation, mean):
    """Whether an input or a target has not been constant."""
    return deviation > 1e-12 * np.abs(mean) and deviation > 1e-150


class Scaling:
    def __init__(self, d, K, sparse):
        self.d, self.sparse = d, np.zeros(sparse)
        self.mean, self.scale, self.shift, self.unit = np.zeros(d), np.zeros(d), np.zeros(K), 1.0
        self.labels = self.known = K > 1

    def refit(self, X, Y, weights):
        """Returns the factor of the noise."""
        for k, column in enumerate(X.T[self.d :]):
            present = column[(column != 0) & ~np.isnan(column)]
            self.sparse[k] = 1 / np.sqrt(np.mean(present**2)) if len(present) else 0.0  # (G58)
        for k, column in enumerate(X.T[: self.d]):
            present = column[~np.isnan(column)]
            self.mean[k] = present.mean() if len(present) else np.nan  # (G2)
            self.scale[k] = 1 / present.std() if len(present) and varies(present.std(), self.mean[k]) else 0.0
            if self.scale[k] == 0 and 2 * len(present) <= len(column) and (present != 0).any():
                self.mean[k], self.scale[k] = 0.0, 1 / np.sqrt(np.sum(present**2) / len(column))
        self.shift = weights @ Y / weights.sum() if self.labels else Y.mean(0)  # (G3)
        if self.labels or not varies(Y.std(), self.shift[0]):
            return 1.0
        factor = (self.unit / Y.std()) ** 2 if self.known else 1.0
        self.unit, self.known = Y.std(), True
        return factor

    def notice_first_change(self, x):
        for k, value in enumerate(np.nan_to_num(x[self.d :])):
            if value != 0 and self.sparse[k] == 0:
                self.sparse[k] = 1 / abs(value)  # (G59)
        x = x[: self.d]
        for k in np.flatnonzero((self.scale == 0) & ~np.isnan(x)):
            if np.isnan(self.mean[k]):
                self.mean[k] = x[k]
            elif varies(abs(x[k] - self.mean[k]), self.mean[k]):
                self.scale[k] = 1 / abs(x[k] - self.mean[k])  # (G4)

    def notice_first_target(self, y):
        if not self.known and varies(abs(y - self.shift[0]), self.shift[0]):
            self.unit, self.known = abs(y - self.shift[0]), True  # (G50)

    def misfits(self, block, stored):
        """Whether a block of rows, each a target and the inputs, contradicts the scaling."""
        centers = np.append(0.0 if self.labels else self.shift[0], self.mean)
        scales = np.append(0.0 if self.labels or not self.known else 1 / self.unit, self.scale)
        for k, (column, m, s) in enumerate(zip(np.array(block).T, centers, scales, strict=True)):
            values = column[~np.isnan(column)]
            if s == 0 or len(values) < 64:
                continue
            mean, sigma = values.mean(), values.std()
            past = np.array([x[k - 1] for x, _, _ in stored]) if k > 0 else None
            rare = k > 0 and 2 * np.sum(~np.isnan(past)) <= len(past) and np.nan_to_num(past).any()
            past = past[~np.isnan(past)] if k > 0 else None
            constant = k > 0 and not rare and (len(past) == 0 or not varies(past.std(), past.mean()))
            if varies(sigma, mean) and not 1 / 20 <= sigma * s <= (2 if constant else 20):  # (G52)
                return True
            if k == 0 and abs(mean - m) * s > 20:
                return True
        return False

    def clipped_row(self, x, y):
        """The target, 0 for a label, and the inputs, as they enter a block."""
        out = [0.0 if self.labels else y, *x[: self.d]]
        centers = np.append(0.0 if self.labels else self.shift[0], self.mean)
        scales = np.append(0.0 if self.labels or not self.known else 1 / self.unit, self.scale)
        for k, (m, s) in enumerate(zip(centers, scales, strict=True)):
            if s > 0 and not np.isnan(out[k]):
                out[k] = np.clip(out[k], m - 40 / s, m + 40 / s)  # (G51)
        return out

    def inputs(self, x, limit=5.0):
        standardised = np.nan_to_num((x[: self.d] - self.mean) * self.scale)  # missing: the mean
        return np.clip(standardised, -limit, limit) / np.sqrt(self.d)  # (G1)

    def sparse_inputs(self, x):
        return np.clip(np.nan_to_num(x[self.d :]) * self.sparse, -30, 30)  # (G58)

    def target(self, Y):
        return (Y - self.shift) / self.unit  # (G3)


def kernel_features(V, x, scaling):
    phase = scaling.inputs(x) @ V
    return np.concatenate([np.sin(phase), np.cos(phase)]) / np.sqrt(len(phase))  # (z)


def linear_features(x, scaling):
    return np.concatenate([[1.0], scaling.inputs(x, 30.0), scaling.sparse_inputs(x)])  # (G5)


def squared_features(D, x, scaling):
    root, x = np.sqrt(scaling.d), scaling.inputs(x)[: D - 1]
    filled = np.concatenate([[1.0], x, (root * x**2 - 1 / root) / 1.5])  # (G6)
    return np.append(filled, np.zeros(2 * D - len(filled)))


class Gradient:
    def __init__(self, K, length, step):
        self.theta, self.step = np.zeros((K, length)), step

    def leverage(self, z):
        return 0.0

    def learn(self, z, Y, row, scaling):
        gap, w = scaling.target(Y) - self.theta @ z, row["weight"]
        part = w * self.step if w <= 1 else 1 - (1 - self.step) ** w
        self.theta = self.theta + part * np.outer(gap, z)  # (G15)


class LeastSquares:
    """With the covariance P itself, not a factor of it."""

    def __init__(self, K, length, ridge, min_leverage):
        self.theta, self.P = np.zeros((K, length)), np.eye(length) / ridge
        self.min_leverage = min_leverage

    def leverage(self, z):
        return z @ self.P @ z  # (G9)

    def learn(self, z, Y, row, scaling):
        self.update(z, scaling.target(Y) - self.theta @ z, **row)

    def count(self, q, weight, again):
        """How often a row counts for the covariance."""
        if again:
            return 0.0
        return max(0.0, min(weight, 1 / self.min_leverage - 1 / max(q, 1e-12))) if self.min_leverage > 0 else weight

    def update(self, z, gap, weight, copied=0.0, again=False):
        Pz, q = self.P @ z, self.leverage(z)
        c = self.count(q, weight, again)  # (G17)
        all_of_it = weight + copied * (1 - c / weight)
        self.theta = self.theta + weight / (1 + all_of_it * q) * np.outer(gap, Pz)  # (G16)
        self.P = self.P - c / (1 + c * q) * np.outer(Pz, Pz)  # (G18)


class Diagonal:
    """Put before LeastSquares or Logistic: only the variance of every coefficient."""

    def __init__(self, K, length, ridge, min_leverage):
        super().__init__(K, 1, ridge, min_leverage)
        self.theta, self.variance = np.zeros((K, length)), np.full(length, 1 / max(ridge, 0.3))  # (G20)

    def leverage(self, z):
        return self.variance @ z**2

    def update(self, z, gap, weight, copied=0.0, again=False):
        q = self.leverage(z)
        c = self.count(q, weight, again)
        all_of_it = weight + copied * (1 - c / weight)
        self.theta = self.theta + weight / (1 + all_of_it * q) * np.outer(gap, self.variance * z)
        self.variance = self.variance * (1 - c * self.variance * z**2 / (1 + c * q))  # (G19)


class WithSparse:
    """Put before LeastSquares or Logistic: the last features are sparse inputs, which have no covariances."""

    def __init__(self, K, length, ridge, min_leverage, sparse):
        super().__init__(K, length + sparse, ridge, min_leverage)
        self.sparse = np.arange(length + sparse) >= length
        self.P[self.sparse, self.sparse] = 1.0  # (G60)

    def learn(self, z, Y, row, scaling):
        super().learn(z, Y, row, scaling)
        variances = np.diag(np.diag(self.P))
        self.P = np.where(self.sparse[:, None] | self.sparse, variances, self.P)  # (G60)


class Logistic(LeastSquares):
    def learn(self, z, Y, row, scaling):
        weight, again = row["weight"], row.get("again", False)
        steps = int(min(np.ceil(weight), 64)) if weight > 1 else 1
        for _ in range(steps):
            p = softmax(scaling.shift + self.theta @ z)
            kappa = max(p.max() * (1 - p.max()), 0.05)
            self.update(z, (Y - p) / kappa, kappa * weight / steps, again=again)  # (G21)


class DiagonalLeastSquares(Diagonal, LeastSquares):
    pass


class DiagonalLogistic(Diagonal, Logistic):
    pass


class SparseLeastSquares(WithSparse, LeastSquares):
    pass


class SparseLogistic(WithSparse, Logistic):
    pass


class Expert:
    """Features of the inputs, and what learns on them: `start()` makes it as it is before the first row."""

    def __init__(self, features, start, bounded=False):
        self.features, self.start, self.bounded = features, start, bounded
        self.noise, self.evidence, self.rounds = 1.0, 0.0, 0
        self.gain, self.signal = 0.0, None  # by the last row that was no copy
        self.learner = start()

    def learn(self, x, Y, row, scaling):
        self.learner.learn(self.features(x, scaling), Y, row, scaling)

    def predict(self, x, scaling, memory):
        z = self.features(x, scaling)
        mean = scaling.shift + scaling.unit * (self.learner.theta @ z)  # (G7)
        if self.bounded and memory:
            low, high = min(Y for _, Y, _ in memory), max(Y for _, Y, _ in memory)
            mean = np.clip(mean, low - (high - low) / 2, high + (high - low) / 2)  # (G10)
        return mean, self.learner.leverage(z)


class MemoryExpert(Expert):
    def __init__(self, width, K):
        super().__init__(None, lambda: None)
        self.width, self.K = width, K

    def learn(self, x, Y, row, scaling):
        """The memory is common to the set."""

    def predict(self, x, scaling, memory):
        if not memory:
            return np.zeros(self.K), 1.0
        rows, targets, labels = zip(*memory, strict=True)
        weights = np.maximum([label.weight for label in labels], 1e-6)
        distances = ((np.array(rows) - scaling.inputs(x)) ** 2).sum(1)
        k = softmax(-distances / (2 * self.width**2) + np.log(weights))  # (G11)
        return k @ np.array(targets), k @ (k / weights)  # (G12)


class Label:
    """What is known about a row in the memory."""

    def __init__(self, raw, weight, t):
        self.raw, self.weight, self.met, self.returned = raw, weight, t, 0


class ExpertSet:
    def __init__(self, problem, settings, warm_up, place):
        (_, d, D), K, least = problem.V.shape, problem.K, problem.min_leverage
        self.problem, self.warm_up, self.place, self.age = problem, warm_up, place, 0
        self.scaling, self.memory, self.stored, self.block = Scaling(d, K, problem.sparse), deque(maxlen=1024), [], []
        self.experts = []
        length_scales = [kernel.length_scale for kernel in settings.kernels] + list(settings.singles)
        for V, length_scale in zip(problem.V, length_scales, strict=True):
            ridge = settings.ridge / max(1, length_scale**2)  # (G8)
            starts = [partial(LeastSquares, K, 2 * D, ridge, least)]
            starts += [partial(Gradient, K, 2 * D, step) for step in settings.steps]
            self.experts += [Expert(partial(kernel_features, V), start) for start in starts]
        if K == 1:
            kind = LeastSquares if d <= 1024 else DiagonalLeastSquares
            kind = partial(SparseLeastSquares, sparse=problem.sparse) if problem.sparse else kind
            self.experts += [Expert(linear_features, partial(kind, 1, 1 + d, settings.ridge, least), True)]
        else:
            kind = Logistic if d <= 1024 else DiagonalLogistic
            kind = partial(SparseLogistic, sparse=problem.sparse) if problem.sparse else kind
            self.experts.append(Expert(linear_features, partial(kind, K, 1 + d, min(1, 10 / d), least)))
            self.experts.append(Expert(partial(squared_features, D), partial(Logistic, K, 2 * D, 1 / d, least)))
        self.experts += [MemoryExpert(width, K) for width in settings.widths]
        self.stack = LeastSquares(1, len(self.experts), 100.0, least)
        self.leaders, self.explorer = list(range(problem.active - 1)), 0

    def evaluated_and_counting(self, share):
        if self.age * share < self.warm_up or self.problem.active >= len(self.experts):
            return range(len(self.experts)), range(len(self.experts))
        return sorted({*self.leaders, self.explorer}), self.leaders  # (G32)

    def rank(self, r):
        everyone, lead = range(len(self.experts)), self.problem.active - 1
        N, B = len(self.problem.V), 1 + len(self.problem.steps)
        if self.age >= self.warm_up and (self.age - self.warm_up) % 20 == 0:
            first = N * B if self.problem.sparse else None
            self.leaders = sorted(everyone, key=lambda e: (e != first, -self.experts[e].evidence))[:lead]  # (G33)
        kernels = [divmod(e, B) for e in self.leaders if e < N * B]
        near = {i * B + b for j, b in kernels for i in np.flatnonzero(self.problem.graph.A[j])}
        rest = [e for e in everyone if e not in self.leaders]
        far = [e for e in rest if e not in near] or rest
        self.explorer = far[int(r * len(far))]  # (G34)

    def find(self, raw):
        """What is known about a row in the memory, the one that came last; None if it is not there."""
        found = [label for _, _, label in self.memory if label.raw == raw]
        return max(found, key=lambda label: label.met) if found else None

    def learn(self, x, Y, weight, evaluated, raw, t):
        if self.age + 1 not in REFITS:
            self.scaling.notice_first_target(Y[0])
        for e in evaluated:
            self.experts[e].learn(x, Y, {"weight": weight}, self.scaling)
        earlier, label = self.find(raw), Label(raw, weight, t)
        if earlier is not None and t - earlier.met > 1:
            earlier.returned = label.returned = 1
        self.memory.append((self.scaling.inputs(x), Y, label))
        self.age += 1
        if self.age <= 256:
            self.stored.append((x, Y, label))
        self.scaling.notice_first_change(x)
        if self.age in REFITS:
            self.refit()
        if self.age > 256:
            self.block.append(self.scaling.clipped_row(x, Y[0]))

    def judged_wrong(self):
        """Whether a block is over, and shows that the scaling does not fit."""
        if len(self.block) < max(128, self.age // 4):
            return False
        block, self.block = self.block, []
        return self.scaling.misfits(block, self.stored)

    def refit(self):
        rows, targets, labels = zip(*self.stored, strict=True)
        ratio = self.scaling.refit(np.array(rows), np.array(targets), np.array([label.weight for label in labels]))
        self.memory = deque(((self.scaling.inputs(x), Y, label) for x, Y, label in self.stored), maxlen=1024)
        for expert in self.experts:
            expert.noise *= ratio
            if expert.signal is not None and not self.scaling.labels:
                expert.signal *= ratio
            expert.learner = expert.start()
            for x, Y, label in self.stored:
                expert.learn(x, Y, {"weight": label.weight}, self.scaling)


class ErrorScale:
    """The scale S of the errors, the half widths, and two cumulative sums that notice another scale."""

    def __init__(self):
        self.h, self.S, self.n = NORMAL.copy(), None, 0
        self.sums = {1.4: [], 1 / 1.4: []}  # of each ratio: the sum so far and the error, since the sum was 0

    def current(self):
        towards = []  # of each ratio with evidence: its weight and its scale
        for (_, rows), odds in zip(self.sums.items(), (25, 200), strict=True):
            if rows:
                likelihood_ratio = np.exp(rows[-1][0])
                weight = (likelihood_ratio - 1) / (likelihood_ratio - 1 + odds)
                scale = (1.2533 * sum(e for _, e in rows) + 4 * self.S) / (len(rows) + 4)
                towards.append((weight, scale))
        weight, scale = max(towards, default=(0, self.S), key=lambda each: each[0])
        return self.S ** (1 - weight) * scale**weight  # (G43)

    def deviation(self, s, b):
        return s if self.S is None else self.current() * s / b  # (G40)

    def learn(self, error, s, b):
        if self.S is None:
            self.S, self.n = b, 16
        error = abs(error) * b / s
        if error == 0 and self.S <= 1e-150:
            return
        x = error / self.current()
        z = np.interp(error / self.S, [0, *self.h], [0, *NORMAL])  # (G41)
        for c, rows in self.sums.items():
            total = (rows[-1][0] if rows else 0) - np.log(c) + z**2 / 2 * (1 - c**-2)  # (G42)
            self.sums[c] = [*rows, (total, error)] if total > 0 else []
        gain = np.clip(2 / self.n, 0.002, 0.05)
        h = self.h * np.exp(gain * ((x > self.h) - (1 - COVERAGES)))
        h = np.clip(h, NORMAL / 4, 4 * NORMAL)
        self.h = np.array([h[: k + 1].max() for k in range(len(h))])  # (G44)
        self.n = min(self.n + 1, 2000)
        self.S = self.S + 2 / self.n * (1.2533 * error - self.S)  # (G45)
        rows = max(self.sums.values(), key=lambda rows: rows[-1][0] if rows else 0)
        if rows and rows[-1][0] > np.log(1.5 * self.n):
            self.S, self.n = 1.2533 * np.mean([e for _, e in rows]), min(max(16, len(rows)), 2000)  # (G46)
            self.sums = {c: [] for c in self.sums}
        self.S = max(self.S, 1e-150)


class GraphMKL:
    def __init__(self, problem, settings):
        self.problem, self.settings, self.labels = problem, settings, problem.K > 1
        self.sets = [ExpertSet(problem, settings, problem.warm_up, 0)]
        self.errors = ErrorScale()
        self.counted, self.fast, self.slow, self.shares = 0, 0.0, 0.0, np.zeros(2)
        self.t, self.repeats, self.first_moment, self.second_moment = 0, 0.0, 0.0, 0.0

    def row_share(self):
        return max(self.first_moment**2 / self.second_moment, 1 / 16) if self.t and self.second_moment else 1.0  # (G32)

    def round(self, x, y, weight, uniforms):
        """The prediction of x, made before y is learned."""
        x = np.clip(x, -1e90, 1e90)
        outlooks = []  # of every expert that is evaluated: set, number, counts, mean, leverage, variance
        for g, members in enumerate(self.sets):
            evaluated, counts = members.evaluated_and_counting(self.row_share())
            for e in evaluated:
                mean, q = members.experts[e].predict(x, members.scaling, members.memory)
                most = 8 if self.labels else np.inf
                v = (members.experts[e].noise * (1 + min(q, most)) + 1e-12) * members.scaling.unit**2  # (G13)
                outlooks.append((g, e, e in counts and (g == 0 or members.age >= 16), mean, q, v))
        mixed = [o for o in outlooks if o[2]]
        w = softmax([self.sets[g].experts[e].evidence for g, e, *_ in mixed])  # (G25)
        mu, v = np.array([o[3] for o in mixed]), np.array([o[5] for o in mixed])
        if self.labels:
            p = w @ softmax(mu / v[:, None], axis=1)  # (G14), (G26)
            logs = np.log(np.maximum(p, 1e-12))
            label_differences = np.zeros((len(self.sets), len(self.sets[0].experts), len(p)))
            for g, e, _, mean, _, own in mixed:
                log = np.log(np.maximum(softmax(mean / own), 1e-12))
                label_differences[g, e] = np.clip(log - logs, -6, 6)  # (G61)
            out = softmax(logs + self.sets[0].stack.theta[0] @ label_differences[0])  # (G62)
        else:
            m = w @ mu[:, 0]
            s = np.sqrt(w @ (v + (mu[:, 0] - m) ** 2))  # (G26)
            differences = np.zeros((len(self.sets), len(self.sets[0].experts)))
            for g, e, _, mean, *_ in mixed:
                differences[g, e] = clipped_ratio(mean[0] - m, s)  # (G29)
            stacked = self.sets[0].stack.theta[0] @ differences[0] if self.problem.stack else 0.0
            b = np.sqrt(w @ (v / (1 + np.array([o[4] for o in mixed]))))  # (G40)
            out = np.array([m + s * np.clip(stacked, -3, 3), self.errors.deviation(s, b)])  # (G30)
        if weight == 0:
            self.t += 1
            return out

        Y = np.eye(self.problem.K)[int(y)] if self.labels else np.array([np.clip(y, -1e90, 1e90)])
        there = ~np.isnan(x) & ((np.arange(len(x)) < self.problem.V.shape[1]) | (x != 0))
        raw = tuple((int(k), float(x[k])) for k in np.flatnonzero(there)), float(np.clip(y, -1e90, 1e90))
        kind, copied = self.kind(raw)
        if kind != "again":
            self.weigh(weight, copied)
        relative = max(weight, 1e-6) * self.first_moment / self.second_moment  # (G57)
        if kind != "new":
            self.learn_again(x, Y, weight, relative, kind, raw, outlooks)
            self.t += 1
            return out

        known = self.sets[0].scaling.known  # before this row is learned
        error = (1 - out[int(y)]) ** 2 if self.labels else (Y[0] - out[0]) ** 2
        if self.labels:
            for members, Z in zip(self.sets, label_differences, strict=True):
                own = softmax(logs + members.stack.theta[0] @ Z)  # (G62)
                members.step = Z @ (Y - own)  # (G63)
                members.aim = members.stack.theta @ members.step + 1
                members.stack.update(members.step, np.ones(1), relative)
        else:
            if known:
                self.errors.learn(Y[0] - out[0], s, b)
            for members, z in zip(self.sets, differences, strict=True):
                gap = clipped_ratio(Y[0] - m, s) - members.stack.theta @ z  # (G31)
                members.stack.update(z, gap, min(weight, 1))
        for members in self.sets:
            for expert in members.experts:
                expert.gain, expert.signal = None, None
        if known:
            self.update_evidence(outlooks, w, Y, relative)
        for g, e, _, mean, q, v in outlooks:
            if self.sets[g].scaling.known:
                self.update_noise(self.sets[g].experts[e], mean, q, v, Y, self.sets[g].scaling.unit, relative)
        for g, members in enumerate(self.sets):
            members.learn(x, Y, weight, [o[1] for o in outlooks if o[0] == g], raw, self.t)
            members.rank(uniforms[members.place])
        self.watch(error, [sum(w[[o[0] == g for o in mixed]]) for g in range(2)])
        self.t += 1
        return out

    def kind(self, raw):
        """Whether a row is new, a copy of the last one, or shown again; and the weight of what it is a copy of."""
        earlier = self.sets[0].find(raw)
        if earlier is None:
            self.repeats = max(0.0, 0.98 * self.repeats - np.log(2))  # (G55)
            return "new", 0.0
        labels = [label for *_, label in self.sets[0].memory]
        chance = (sum(label.returned for label in labels) + 1) / (len(labels) + 2)  # (G54)
        lag = self.t - earlier.met
        if lag == 1:
            return ("copy", earlier.weight) if chance < 0.5 else ("new", 0.0)  # (G56)
        self.repeats = min(8.0, max(0.0, 0.98 * self.repeats + np.log((1 + chance) / (2 * chance))))  # (G55)
        return ("again" if lag > 8 and self.repeats > 4 else "new"), 0.0  # (G56)

    def weigh(self, weight, copied):
        weight, a = max(weight, 1e-6), max(1 / 1000, 1 / (self.t + 1))
        copied = max(copied, 1e-6) if copied else 0.0
        if copied:
            self.first_moment += a * weight
            self.second_moment += a * ((copied + weight) ** 2 - copied**2)
        else:
            self.first_moment += a * (weight - self.first_moment)  # (G57)
            self.second_moment += a * (weight**2 - self.second_moment)

    def learn_again(self, x, Y, weight, relative, kind, raw, outlooks):
        for g, members in enumerate(self.sets):
            label = members.find(raw)
            if label is None:
                continue
            row = {"weight": weight, "copied": label.weight} if kind == "copy" else {"weight": weight, "again": True}
            for e in [o[1] for o in outlooks if o[0] == g]:
                members.experts[e].learn(x, Y, row, members.scaling)
            if kind == "copy":
                if self.labels:
                    members.stack.update(members.step, members.aim - members.stack.theta @ members.step, relative)
                for expert in members.experts:
                    if expert.gain:
                        self.move_evidence(expert, relative)
                    if expert.signal is not None:
                        self.move_noise(expert, relative)
                label.weight = min(label.weight + weight, 1e30)
            label.met = self.t

    def update_evidence(self, outlooks, w, Y, relative):
        means, v = np.array([o[3] for o in outlooks]), np.array([o[5] for o in outlooks])
        if self.labels:
            logs = np.maximum(log_softmax(means / v[:, None], axis=1) @ Y, np.log(1e-12))  # (G27)
        else:
            logs = -np.log(v) / 2 - 2.5 * np.log(1 + (Y[0] - means[:, 0]) ** 2 / (4 * v))  # (G27)
        mixture = logsumexp(logs[[o[2] for o in outlooks]], b=w)
        for log, (g, e, *_) in zip(logs, outlooks, strict=True):
            self.sets[g].experts[e].gain = log - mixture
            self.move_evidence(self.sets[g].experts[e], relative)

    def move_evidence(self, expert, relative):
        gamma = self.problem.discount
        kept = (1 - gamma) ** relative
        expert.evidence = kept * expert.evidence + (1 - gamma) * (1 - kept) / gamma * expert.gain  # (G28)

    def update_noise(self, expert, mean, q, v, Y, unit, relative):
        expert.rounds += 1
        if len(Y) > 1:
            expert.signal = np.clip((Y @ mean - softmax(mean / v) @ mean) / v, -2, 2)
        else:
            expert.signal = np.clip((Y[0] - mean[0]) / unit, -1e100, 1e100) ** 2 / (1 + q)
        self.move_noise(expert, relative)

    def move_noise(self, expert, relative):
        r = 4 if self.labels else 1
        a = max(1 - self.problem.memory, r / (expert.rounds + r))
        a = 1 - (1 - a) ** relative  # (G22)
        if self.labels:
            expert.noise = np.clip(expert.noise * np.exp(-a * expert.signal), 1e-2, 1e2)  # (G24)
            expert.signal *= 1 - a
        else:
            expert.noise = (1 - a) * expert.noise + a * expert.signal  # (G23)

    def watch(self, error, shares):
        misfit, scaling = self.sets[0].judged_wrong(), self.sets[0].scaling
        least = 1e-12 * scaling.unit**2
        if self.sets[0].age >= 33:
            error = min(error, 20 * max(self.slow, least)) if self.counted > 32 else error  # (G35)
            self.counted += 1
            self.fast += max(1 / 50, 1 / self.counted) * (error - self.fast)  # (G36)
            self.slow += max(1 / 500, 1 / self.counted) * (error - self.slow)
        if len(self.sets) == 2:
            self.shares = 0.98 * self.shares + shares  # (G38)
            if self.sets[1].age == self.problem.trial:
                self.sets = [self.sets[int(self.shares[1] > self.shares[0])]]  # (G39)
                self.sets[0].warm_up = self.problem.warm_up
                self.counted, self.fast, self.slow = 0, 0.0, 0.0
        elif self.settings.adapt and (
            misfit or (scaling.known and self.counted > 200 and self.fast > 2 * max(self.slow, least))  # (G37)
        ):
            self.sets.append(
                ExpertSet(self.problem, self.settings, max(1, self.problem.warm_up // 2), 1 - self.sets[0].place)
            )
            self.shares = np.zeros(2)


def clipped_ratio(a, s):
    return np.clip(a / s, -3, 3) if s > 0 else 0.0
