"""GraphMKL's boosted trees written from docs/graph_mkl.md alone: nested nodes, and thresholds compared with values."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import softmax

LARGEST = np.finfo(float).max
KAPPA, WORD = 0x9E3779B97F4A7C15, 2**64 - 1


def mix(bits):
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & WORD
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & WORD
    return bits ^ bits >> 31


def draw(tree, place):
    return mix(mix(tree * KAPPA & WORD) + (place * KAPPA & WORD) & WORD)  # (G69)


def thresholds(values):
    v = sorted(x for x in values if not np.isnan(x))
    if not v:
        return []
    cuts, B = ([], 128) if len(v) == len(values) else ([-LARGEST], 127)  # (G68)
    places = {s for s in range(1, len(v)) if v[s] != v[s - 1]}
    if len(places) + 1 > B:
        quantiles = [v[b * len(v) // B] for b in range(1, B)]
        frequent = {q for q in quantiles if quantiles.count(q) > 1 or q == v[0]}  # (G67)
        others, left = [x for x in v if x not in frequent], B - 2 * len(frequent)
        begun = frequent | {others[b * len(others) // left] for b in range(1, left)}  # (G67)
        places = {v.index(x) for x in begun} | {v.index(x) + v.count(x) for x in frequent}
    for s in sorted(places - {0, len(v)}):
        middle = v[s - 1] + 0.5 * (v[s] - v[s - 1])  # (G67)
        cuts.append(middle if middle > v[s - 1] else v[s])
    return cuts


@dataclass
class Node:
    """Without children it is a leaf: this one has sums and values."""

    children: list = field(default_factory=list)
    feature: int = 0
    threshold: float = LARGEST
    total: np.ndarray | None = None
    weight: np.ndarray | None = None
    value: np.ndarray | None = None

    def leaf(self, x):
        return self.children[int(x[self.feature] >= self.threshold)].leaf(x) if self.children else self  # (G75)


class Fit:
    """The last n of the rows, [x, y, weight] each, of which the weight may change."""

    def __init__(self, owner, rows, first_tree):
        self.owner, self.rows, self.number = owner, rows, first_tree
        self.X, self.cuts, self.trees = np.array([x for x, *_ in rows]), [], []

    def units(self):
        for column in self.X.T:
            self.cuts.append(thresholds(column))
            yield
        y, K, labels, n = np.array([row[1] for row in self.rows]), self.owner.K, self.owner.labels, len(self.rows)
        Y = (y[:, None] == np.arange(K)).astype(float) if labels else y[:, None]
        for t in range(self.owner.T):
            w = np.array([row[2] for row in self.rows])
            if t == 0:
                mean = w @ Y / w.sum()
                self.base = np.log(np.maximum(mean, 0.5 / (n + K))) if labels else mean  # (G78)
                F = np.tile(self.base, (n, 1))
            p = softmax(F, axis=1) if labels else F
            g = w[:, None] * (Y - p)  # (G79)
            eta = w[:, None] * p * (1 - p) if labels else w[:, None]
            self.ridge = (0.05 if labels else 1.0) * w.mean()
            self.count(g, w, np.abs(w[:, None] * Y).max())
            self.trees.append(self.grow(np.ones(n, bool), 0))
            leaves = [self.trees[-1].leaf(x) for x in self.X]
            for leaf in {id(leaf): leaf for leaf in leaves}.values():
                mine = np.array([other is leaf for other in leaves])
                leaf.total, leaf.weight = g[mine].sum(0), eta[mine].sum(0)
                leaf.value = self.value(leaf)
                F[mine] += leaf.value  # (G81)
            self.number += 1
            yield

    def value(self, leaf):
        rate = self.owner.rate * ((self.owner.K - 1) / self.owner.K if self.owner.labels else 1)
        return rate * leaf.total / (leaf.weight + self.ridge)  # (G80)

    def count(self, g, w, size):
        """Whole numbers of the rows."""
        r, K = self.number, g.shape[1]
        a = g[:, :1] if K == 2 else g
        if K > 3:
            signs = np.array([[1 if draw(r, 7919 * (s + 1) + k) % 2 else -1 for s in range(3)] for k in range(K)])
            for s in range(3):
                if abs(signs[:, s].sum()) == K:
                    signs[s, s] *= -1
            a = g @ signs  # (G71)
        n, largest = len(w), np.abs(a).max()
        Q = min(4095, 2**26 // n)
        known = largest > max(1e-12 * size, 1e-150)
        self.q = np.floor(Q * a / largest + 0.4999999) if known else np.zeros(a.shape)  # (G72)
        self.h = np.floor(16 * w / w.mean() + 0.4999999)
        usable = [k for k, cuts in enumerate(self.cuts) if cuts]
        U = len(usable)
        least, most = self.owner.inputs
        count = min(U, max(least, min(most, -(-U // 2))))  # (G70)
        if count < U:
            for j in range(count):
                other = j + draw(r, j) % (U - j)
                usable[j], usable[other] = usable[other], usable[j]
        self.searched = sorted(usable[:count])

    def strength(self, rows):
        return (self.q[rows].sum(0) ** 2).sum() / (self.h[rows].sum() + 16)

    def grow(self, rows, level):
        n, best, found = len(rows), 0.0, Node()
        if level < 6:
            least, split = 16 * min(10, max(2, n // 10)), None  # (G74)
            for k in self.searched:
                for c in self.cuts[k]:
                    right = rows & (self.X[:, k] >= c)
                    left = rows & ~right
                    if min(self.h[left].sum(), self.h[right].sum()) >= least:
                        gain = self.strength(left) + self.strength(right) - self.strength(rows)  # (G73)
                        if gain > best:
                            best, split = gain, (k, c, left, right)
            if split:
                k, c, left, right = split
                found.feature, found.threshold = k, c
                found.children = [self.grow(left, level + 1), self.grow(right, level + 1)]
        return found


class BoostedTrees:
    """`C`: most rows of the archive."""

    def __init__(self, d, K, labels, T, C, growth=0.3, rate=0.15, inputs=(16, 48)):
        self.d, self.K, self.labels, self.T, self.C = d, K, labels, T, C
        self.growth, self.rate, self.inputs = growth, rate, inputs
        self.trees_so_far, self.running = 0, None
        self.restart([])

    def restart(self, rows):
        """With the last rows of the archive alone, each [x, y, weight]."""
        if self.running:
            self.trees_so_far = self.running[0].number
        self.rows, self.began, self.running, self.active = list(rows), 0, None, None

    def predict(self, x):
        """None before the first fit."""
        if not self.active:
            return None
        return self.active.base + sum(tree.leaf(x).value for tree in self.active.trees)  # (G75)

    def show(self, fit, x, y, weight):
        f = fit.base
        for tree in fit.trees:
            leaf = tree.leaf(x)
            leaf.total, leaf.weight, f = leaf.total + weight * (y - f), leaf.weight + weight, f + leaf.value  # (G82)
            leaf.value = fit.value(leaf)

    def learn(self, x, y, weight):
        if self.active and not self.labels:
            self.show(self.active, x, y, weight)
        self.rows.append([x, y, weight])
        N = len(self.rows)
        n = min(N, 3 * self.C // 4)
        if not self.running and n >= 64 and N - self.began >= min(self.growth * self.began, 0.5 * self.C):  # (G76)
            self.began, fit = N, Fit(self, self.rows[N - n :], self.trees_so_far)
            self.running = fit, fit.units()
        if self.running:
            fit, units = self.running
            for _ in range(-(-10 * (self.d + self.T) // len(fit.rows))):  # (G77)
                if next(units, "over") == "over":
                    break
            if len(fit.trees) == self.T:
                self.trees_so_far = fit.number
                for row in self.rows[self.began :] if not self.labels else []:
                    self.show(fit, *row)
                self.active, self.running = fit, None
