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

    def refit(self, X, Y):
        """Returns the factor of the noise."""
        for k, column in enumerate(X.T[self.d :]):
            present = column[(column != 0) & ~np.isnan(column)]
            self.sparse[k] = 1 / np.sqrt(np.mean(present**2)) if len(present) else 0.0  # (G53)
        for k, column in enumerate(X.T[: self.d]):
            present = column[~np.isnan(column)]
            self.mean[k] = present.mean() if len(present) else np.nan  # (G2)
            self.scale[k] = 1 / present.std() if len(present) and varies(present.std(), self.mean[k]) else 0.0
            if self.scale[k] == 0 and 2 * len(present) <= len(column) and (present != 0).any():
                self.mean[k], self.scale[k] = 0.0, 1 / np.sqrt(np.sum(present**2) / len(column))
        self.shift = Y.mean(0)
        if self.labels or not varies(Y.std(), self.shift[0]):
            return 1.0
        factor = (self.unit / Y.std()) ** 2 if self.known else 1.0
        self.unit, self.known = Y.std(), True
        return factor

    def notice_first_change(self, x):
        for k, value in enumerate(np.nan_to_num(x[self.d :])):
            if value != 0 and self.sparse[k] == 0:
                self.sparse[k] = 1 / abs(value)  # (G54)
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
        return np.clip(np.nan_to_num(x[self.d :]) * self.sparse, -30, 30)  # (G53)

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

    def learn(self, z, Y, weight, scaling):
        gap = scaling.target(Y) - self.theta @ z
        self.theta = self.theta + min(1, weight * self.step) * np.outer(gap, z)  # (G15)


class LeastSquares:
    """With the covariance P itself, not a factor of it."""

    def __init__(self, K, length, ridge, min_leverage):
        self.theta, self.P = np.zeros((K, length)), np.eye(length) / ridge
        self.min_leverage = min_leverage

    def leverage(self, z):
        return z @ self.P @ z  # (G9)

    def learn(self, z, Y, weight, scaling):
        self.update(z, scaling.target(Y) - self.theta @ z, weight)

    def update(self, z, gap, weight):
        Pz, q, count = self.P @ z, self.leverage(z), weight
        self.theta = self.theta + weight / (1 + weight * q) * np.outer(gap, Pz)  # (G16)
        if self.min_leverage > 0:
            count = min(weight, 1 / self.min_leverage - 1 / max(q, 1e-12))  # (G17)
        if count > 0:
            self.P = self.P - count / (1 + count * q) * np.outer(Pz, Pz)  # (G18)


class Diagonal:
    """Put before LeastSquares or Logistic: only the variance of every coefficient."""

    def __init__(self, K, length, ridge, min_leverage):
        super().__init__(K, 1, ridge, min_leverage)
        self.theta, self.variance = np.zeros((K, length)), np.full(length, 1 / max(ridge, 0.3))  # (G20)

    def leverage(self, z):
        return self.variance @ z**2

    def update(self, z, gap, weight):
        q, count = self.leverage(z), weight
        self.theta = self.theta + weight / (1 + weight * q) * np.outer(gap, self.variance * z)
        if self.min_leverage > 0:
            count = min(weight, 1 / self.min_leverage - 1 / max(q, 1e-12))
        count = max(count, 0)
        self.variance = self.variance * (1 - count * self.variance * z**2 / (1 + count * q))  # (G19)


class WithSparse:
    """Put before LeastSquares or Logistic: the last features are sparse inputs, which have no covariances."""

    def __init__(self, K, length, ridge, min_leverage, sparse):
        super().__init__(K, length + sparse, ridge, min_leverage)
        self.sparse = np.arange(length + sparse) >= length
        self.P[self.sparse, self.sparse] = 1.0  # (G55)

    def update(self, z, gap, weight):
        super().update(z, gap, weight)
        variances = np.diag(np.diag(self.P))
        self.P = np.where(self.sparse[:, None] | self.sparse, variances, self.P)  # (G55)


class Logistic(LeastSquares):
    def learn(self, z, Y, weight, scaling):
        p = softmax(scaling.shift + self.theta @ z)
        kappa = max(p.max() * (1 - p.max()), 0.05)
        self.update(z, (Y - p) / kappa, kappa * weight)  # (G21)


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
        self.learner = start()

    def learn(self, x, Y, weight, scaling):
        self.learner.learn(self.features(x, scaling), Y, weight, scaling)

    def predict(self, x, scaling, memory):
        z = self.features(x, scaling)
        mean = scaling.shift + scaling.unit * (self.learner.theta @ z)  # (G7)
        if self.bounded and memory:
            low, high = min(Y for _, Y in memory), max(Y for _, Y in memory)
            mean = np.clip(mean, low - (high - low) / 2, high + (high - low) / 2)  # (G10)
        return mean, self.learner.leverage(z)


class MemoryExpert(Expert):
    def __init__(self, width, K):
        super().__init__(None, lambda: None)
        self.width, self.K = width, K

    def learn(self, x, Y, weight, scaling):
        """The memory is common to the set."""

    def predict(self, x, scaling, memory):
        if not memory:
            return np.zeros(self.K), 1.0
        rows, targets = map(np.array, zip(*memory, strict=True))
        distances = ((rows - scaling.inputs(x)) ** 2).sum(1)
        k = softmax(-distances / (2 * self.width**2))  # (G11)
        return k @ targets, k @ k  # (G12)


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
            self.experts.append(Expert(linear_features, partial(kind, K, 1 + d, 1 / d, least)))
            self.experts.append(Expert(partial(squared_features, D), partial(Logistic, K, 2 * D, 1 / d, least)))
        self.experts += [MemoryExpert(width, K) for width in settings.widths]
        self.stack = LeastSquares(1, len(self.experts), 100.0, least)
        self.leaders, self.explorer = list(range(problem.active - 1)), 0

    def evaluated_and_counting(self):
        if self.age < self.warm_up or self.problem.active >= len(self.experts):
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

    def learn(self, x, Y, weight, evaluated):
        if self.age + 1 not in REFITS:
            self.scaling.notice_first_target(Y[0])
        for e in evaluated:
            self.experts[e].learn(x, Y, weight, self.scaling)
        self.memory.append((self.scaling.inputs(x), Y))
        self.age += 1
        if self.age <= 256:
            self.stored.append((x, Y, weight))
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
        rows, targets, _ = zip(*self.stored, strict=True)
        ratio = self.scaling.refit(np.array(rows), np.array(targets))
        self.memory = deque(((self.scaling.inputs(x), Y) for x, Y, _ in self.stored), maxlen=1024)
        for expert in self.experts:
            expert.noise *= ratio
            expert.learner = expert.start()
            for x, Y, weight in self.stored:
                expert.learn(x, Y, weight, self.scaling)


class ErrorScale:
    """The scale S of the errors, the half widths, and two cumulative sums that notice another scale."""

    def __init__(self):
        self.h, self.S, self.n = NORMAL.copy(), None, 0
        self.sums = {1.3: [], 1 / 1.3: []}  # of each ratio: the sum so far and the error, since the sum was 0

    def deviation(self, s, b):
        return s if self.S is None else self.S * s / b  # (G40)

    def learn(self, error, s, b):
        if self.S is None:
            self.S, self.n = b, 8
        error = abs(error) * b / s
        if error == 0 and self.S <= 1e-150:
            return
        x = error / self.S
        z = np.interp(x, [0, *self.h], [0, *NORMAL])  # (G41)
        for c, rows in self.sums.items():
            total = (rows[-1][0] if rows else 0) - np.log(c) + z**2 / 2 * (1 - c**-2)  # (G42)
            self.sums[c] = [*rows, (total, error)] if total > 0 else []
        gain = np.clip(2 / self.n, 0.005, 0.05)
        h = self.h * np.exp(gain * ((x > self.h) - (1 - COVERAGES)))  # (G43)
        h = np.clip(h, NORMAL / 4, 4 * NORMAL)
        self.h = np.array([h[: k + 1].max() for k in range(len(h))])  # (G44)
        self.n = min(self.n + 1, 500)
        self.S = self.S + (1.2533 * error - self.S) / self.n  # (G45)
        rows = max(self.sums.values(), key=lambda rows: rows[-1][0] if rows else 0)
        if rows and rows[-1][0] > 5.5:
            self.S, self.n = 1.2533 * np.mean([e for _, e in rows]), min(max(8, len(rows)), 500)  # (G46)
            self.sums = {c: [] for c in self.sums}
        self.S = max(self.S, 1e-150)


class GraphMKL:
    def __init__(self, problem, settings):
        self.problem, self.settings, self.labels = problem, settings, problem.K > 1
        self.sets = [ExpertSet(problem, settings, problem.warm_up, 0)]
        self.errors = ErrorScale()
        self.counted, self.fast, self.slow, self.shares = 0, 0.0, 0.0, np.zeros(2)

    def round(self, x, y, weight, uniforms):
        """The prediction of x, made before y is learned."""
        x = np.clip(x, -1e90, 1e90)
        outlooks = []  # of every expert that is evaluated: set, number, counts, mean, leverage, variance
        for g, members in enumerate(self.sets):
            evaluated, counts = members.evaluated_and_counting()
            for e in evaluated:
                mean, q = members.experts[e].predict(x, members.scaling, members.memory)
                v = (members.experts[e].noise * (1 + q) + 1e-12) * members.scaling.unit**2  # (G13)
                outlooks.append((g, e, e in counts and (g == 0 or members.age >= 16), mean, q, v))
        mixed = [o for o in outlooks if o[2]]
        w = softmax([self.sets[g].experts[e].evidence for g, e, *_ in mixed])  # (G25)
        mu, v = np.array([o[3] for o in mixed]), np.array([o[5] for o in mixed])
        if self.labels:
            out = w @ softmax(mu / v[:, None], axis=1)  # (G14), (G26)
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
            return out

        known = self.sets[0].scaling.known  # before this row is learned
        Y = np.eye(self.problem.K)[int(y)] if self.labels else np.array([np.clip(y, -1e90, 1e90)])
        error = (1 - out[int(y)]) ** 2 if self.labels else (Y[0] - out[0]) ** 2
        if not self.labels:
            if known:
                self.errors.learn(Y[0] - out[0], s, b)
            for members, z in zip(self.sets, differences, strict=True):
                members.stack.update(z, clipped_ratio(Y[0] - m, s) - members.stack.theta @ z, weight)  # (G31)
        if known:
            self.update_evidence(outlooks, w, Y)
        for g, e, _, mean, q, v in outlooks:
            if self.sets[g].scaling.known:
                self.update_noise(self.sets[g].experts[e], mean, q, v, Y, self.sets[g].scaling.unit)
        for g, members in enumerate(self.sets):
            members.learn(x, Y, weight, [o[1] for o in outlooks if o[0] == g])
            members.rank(uniforms[members.place])
        self.watch(error, [sum(w[[o[0] == g for o in mixed]]) for g in range(2)])
        return out

    def update_evidence(self, outlooks, w, Y):
        means, v = np.array([o[3] for o in outlooks]), np.array([o[5] for o in outlooks])
        if self.labels:
            logs = np.maximum(log_softmax(means / v[:, None], axis=1) @ Y, np.log(1e-12))  # (G27)
        else:
            logs = -np.log(v) / 2 - 2.5 * np.log(1 + (Y[0] - means[:, 0]) ** 2 / (4 * v))  # (G27)
        mixture = logsumexp(logs[[o[2] for o in outlooks]], b=w)
        for log, (g, e, *_) in zip(logs, outlooks, strict=True):
            expert = self.sets[g].experts[e]
            expert.evidence = (1 - self.problem.discount) * (expert.evidence + log - mixture)  # (G28)

    def update_noise(self, expert, mean, q, v, Y, unit):
        expert.rounds += 1
        a = max(1 - self.problem.memory, 1 / (expert.rounds + 1))  # (G22)
        if len(Y) > 1:
            slope = (Y @ mean - softmax(mean / v) @ mean) / v
            expert.noise = np.clip(expert.noise * np.exp(-a * np.clip(slope, -2, 2)), 1e-2, 1e2)  # (G24)
        else:
            gap = np.clip((Y[0] - mean[0]) / unit, -1e100, 1e100)
            expert.noise = (1 - a) * expert.noise + a / (1 + q) * gap**2  # (G23)

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
