"""One round of GraphMKL: least squares and gradient experts on every kernel, the graph sends explorers.

Not in the paper. It keeps the paper's idea, a dictionary of kernels and a similarity graph that
decides who is evaluated, and gives each kernel learners worth having:

*Experts.* On the features of each kernel one recursive least squares and a few normalised
gradient steps; on the inputs themselves one least squares; and a few that remember: averages of
the last answers, weighed by an exact Gaussian around the new row. Each predicts with a variance; its
evidence is the discounted log-likelihood of its predictions against that of the mixture, and the
mixture weighs experts by their evidence. For labels the target is a row of zeros with a one, and
a Gaussian around each such row gives the chances; the experts on the inputs themselves, one of them
with their squares, are then logistic, by Newton's steps (`newton`).

*Far out.* Inputs are clipped at CLIP deviations, where a function of few random features is anything.
The linear expert goes on to CLIP_LINEAR of them, but says nothing far beyond the answers it has seen (`bounded`).

*Few inputs.* The random features of most kernels look at two inputs each (`features.limit_inputs`), so
that such a kernel is a sum over pairs of inputs; the others look at all.

*Beyond the mixture.* One more least squares learns, from what the experts say beyond the mixture,
what is still missing, and corrects the prediction of a number: a mixture cannot leave the span
between its experts, and errors that they share in parts cancel in a sum.

*Who is evaluated.* All experts for the first rounds (`warm_up`); then the leaders, ranked anew
now and then, and one explorer, sent by the graph where no leader's neighbour is. An explorer
learns and gathers evidence, and does not speak until it leads.

*Scaling.* Raw units in. The first rows are kept, and the experts are made anew from them with
what is known of the scale after 1, 2, ..., 8, 16, 64 and 256 rows.

*Change.* When the error rises to twice what it was, a challenger is born, a second set of experts
that knows only what comes from then on, and has half the warm-up. After `trial` rounds the heavier of
the two stays.

*Never too sure.* A row x for which z' P z is below `sure` moves the coefficients but not P: what was
learned counts as no more than 1 / sure rows like it, and what is new is never lost among the old.

*Definite by construction.* Least squares keep a triangular R with P = R' R (Carlson 1973), so that
no rounding can make a variance negative.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from omkl.algorithms.descent import TOO_FAR, require_bounded
from omkl.algorithms.least_squares import solve, unlearn
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Mask, Matrix, Tensor, Vector, padded
from omkl.features import features
from omkl.graph import Graph

Task = Literal["regression", "classification"]

WINDOW = 1024  # rows remembered
KEPT = 256  # rows kept for making the experts anew
REFITS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 64, KEPT)
CLIP, CLIP_LINEAR = 5.0, 30.0  # standard deviations: of inputs to kernels, and to the linear expert
STRETCH = 0.5  # ranges of the answers remembered by which the linear expert may leave them
SQUARE = 1.5  # about the deviation of the square of a standard normal
LEAST_DOUBT = 0.05  # p (1 - p) of a chance is taken as at least this much
RANK_EVERY = 20
LISTEN = 16  # rounds before a challenger speaks
LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])  # coverages that `reach` is tracked for
GAIN = 0.05  # of the tracking
LARGEST = 1e90  # inputs and targets beyond it are taken as this much: their squares and sums stay finite
TEMPERATURES = (1e-2, 1e2)  # least and most
LEAST_VARIANCE = 1e-12  # in units of the target's variance
MIX_RIDGE = 100.0  # of the least squares on what experts say beyond the mixture
MIX_CLIP = 3.0  # deviations of the mixture: most that an expert, a target or the correction may lie beyond it
FAST, SLOW, RISE = 50, 500, 2.0  # change: mean error over about 50 rounds against that over about 500


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    graph: Graph
    task: Task
    K: int  # outputs: 1, or one for each label
    steps: tuple[float, ...] = (1.0, 0.25)  # of the normalised gradient experts
    widths: tuple[float, ...] = (0.03, 0.1, 0.3)  # length scales of the experts that remember
    ridges: tuple[float, ...] = ()  # of every kernel's least squares, of the squares for labels, of the linear one
    active: int = 9  # experts evaluated after the warm-up, the explorer among them
    warm_up: int = 512
    discount: float = 0.1  # of the evidence, per round
    memory: float = 0.97  # of the noise estimate, per round
    trial: int = 500  # rounds a challenger has; 0: there is none
    sure: float = 0.05  # least z' P z at which a row makes least squares surer; 0: all do
    correct: bool = True  # by what the experts say beyond the mixture


class State(NamedTuple):
    """Fields that start with 2 have a slot for each of the two sets of experts."""

    R: Tensor  # (2, N', n, n)         lower triangular, P = R' R of every kernel's least squares, n = 2D
    theta: Tensor  # (2, N', B, K, n)  B = 1 + steps; N' = N, or N + 1 for labels: the last is that of the squares
    R_lin: Tensor  # (2, d + 1, d + 1)
    theta_lin: Tensor  # (2, K, d + 1)
    R_mix: Tensor  # (2, E, E)         of the least squares on what the experts say beyond the mixture
    theta_mix: Matrix  # (2, E)
    evidence: Matrix  # (2, E)         learner b of kernel i is expert i B + b; then those on inputs, then memories
    noise: Matrix  # (2, E)            variance of its errors, in units
    heard: Index  # (2, E)             rounds it was evaluated
    rank: Index  # (2, E)              experts, the best first
    explorer: Index  # (2,)
    mean: Matrix  # (2, d)             of the inputs
    scale: Matrix  # (2, d)            1 / deviation; 0: constant so far
    shift: Matrix  # (2, K)            mean of the target
    unit: Vector  # (2,)               its deviation; 0: not known yet
    rows: Tensor  # (2, KEPT, d)
    answers: Tensor  # (2, KEPT, K)
    worth: Matrix  # (2, KEPT)         weights of the rows kept
    window: Tensor  # (2, d, WINDOW)   the last rows, scaled, one a column; the row of round t in t mod WINDOW
    recalled: Tensor  # (2, K, WINDOW) their answers
    age: Index  # (2,)                 rounds behind a set; -1: an empty slot
    trust: Vector  # (2,)              discounted weight of the incumbent and of the challenger
    trend: Vector  # (3,)              fast and slow mean of the error, rounds behind them
    reach: Vector  # (7,)              half widths of intervals in predicted deviations
    incumbent: int
    t: int


class Info(NamedTuple):
    prediction: Vector  # (mean, deviation), or (K,) chances
    evaluated: Index


def draws(problem: Problem) -> int:
    return 2


def copied(state: State) -> State:
    parts: list[Any] = [a.copy() if isinstance(a, np.ndarray) else a for a in state]
    return State(*parts)


def on_kernels(problem: Problem) -> int:
    """Experts on random features."""
    return len(problem.V) * (1 + len(problem.steps))


def on_inputs(problem: Problem) -> int:
    """Experts on the inputs themselves: the linear one, and for labels one on their squares too."""
    return 1 if problem.task == "regression" else 2


def experts(problem: Problem) -> int:
    return on_kernels(problem) + on_inputs(problem) + len(problem.widths)


def init(problem: Problem, r: Vector) -> State:
    N, d, D = problem.V.shape
    n, B, K, E = 2 * D, 1 + len(problem.steps), problem.K, experts(problem)
    maps = N + on_inputs(problem) - 1
    state = State(
        R=padded(2, maps, n, n), theta=padded(2, maps, B, K, n),
        R_lin=padded(2, d + 1, d + 1), theta_lin=padded(2, K, d + 1),
        R_mix=padded(2, E, E), theta_mix=padded(2, E),
        evidence=np.zeros((2, E)), noise=np.ones((2, E)), heard=np.zeros((2, E), np.intp),
        rank=np.tile(np.arange(E), (2, 1)), explorer=np.zeros(2, np.intp),
        mean=np.zeros((2, d)), scale=np.zeros((2, d)), shift=np.zeros((2, K)), unit=np.zeros(2),
        rows=np.zeros((2, KEPT, d)), answers=np.zeros((2, KEPT, K)), worth=np.zeros((2, KEPT)),
        window=np.zeros((2, d, WINDOW)), recalled=np.zeros((2, K, WINDOW)), age=np.array([-1, -1]),
        trust=np.zeros(2), trend=np.zeros(3), reach=np.array([0.67, 0.84, 1.04, 1.28, 1.64, 1.96, 2.58]),
        incumbent=0, t=0,
    )  # fmt: skip
    be_born(problem, state, 0)
    return state


def be_born(problem: Problem, s: State, g: int) -> None:
    """Slot g starts from nothing."""
    forget(problem, s, g)
    s.R_mix[g], s.theta_mix[g] = np.eye(len(s.R_mix[g])) / np.sqrt(MIX_RIDGE), 0
    s.evidence[g], s.noise[g], s.heard[g], s.rank[g] = 0, 1, 0, np.arange(s.rank.shape[1])
    s.mean[g], s.scale[g], s.shift[g] = 0, 0, 0
    s.unit[g] = 0 if problem.task == "regression" else 1
    s.age[g] = 0


def widen(problem: Problem, state: State) -> State:
    """The state for a problem with more features, or more labels, than it was made for.

    New features are nowhere to be found in the past; a challenger is born that will know them well.
    A random feature that looks at one of them now, in place of another, starts anew, and the others take
    over what it said. A new label has always been absent, so that its coefficients are zero, as they
    should be.
    """
    d, K = problem.V.shape[1], problem.K
    more_d, more_K = d - state.mean.shape[1], K - state.shift.shape[1]
    s = copied(state)
    s = s._replace(
        theta=np.pad(s.theta, ((0, 0), (0, 0), (0, 0), (0, more_K), (0, 0))),
        R_lin=np.pad(s.R_lin, ((0, 0), (0, more_d), (0, more_d))),
        theta_lin=np.pad(s.theta_lin, ((0, 0), (0, more_K), (0, more_d))),
        mean=np.pad(s.mean, ((0, 0), (0, more_d)), constant_values=np.nan),
        scale=np.pad(s.scale, ((0, 0), (0, more_d))),
        shift=np.pad(s.shift, ((0, 0), (0, more_K))),
        rows=np.pad(s.rows, ((0, 0), (0, 0), (0, more_d)), constant_values=np.nan),
        answers=np.pad(s.answers, ((0, 0), (0, 0), (0, more_K))),
        window=np.pad(s.window, ((0, 0), (0, more_d), (0, 0))),
        recalled=np.pad(s.recalled, ((0, 0), (0, more_K), (0, 0))),
    )
    moved = (problem.V[:, d - more_d :] != 0).any(axis=1) & (problem.V == 0).any(axis=1)
    for i in np.flatnonzero(moved.any(axis=1)):
        for g in np.flatnonzero(s.age >= 0):
            unlearn(s.R[g, i], s.theta[g, i, 0], np.tile(moved[i], 2), problem.ridges[i])
        s.theta[:, i, 1:] *= ~np.tile(moved[i], 2)
    for k in range(d + 1 - more_d, d + 1):
        s.R_lin[:, k, k] = 1 / np.sqrt(problem.ridges[-1])
    other = 1 - s.incumbent
    if more_d and problem.trial and s.age[other] < 0 and s.age[s.incumbent] > KEPT:
        be_born(problem, s, other)
        s.trust[:] = 0
    return s


def forget(problem: Problem, s: State, g: int) -> None:
    """The coefficients of slot g as before the first row."""
    for R, ridge in zip((*s.R[g], s.R_lin[g]), problem.ridges, strict=True):
        R[...] = np.eye(len(R)) / np.sqrt(ridge)
    s.theta[g], s.theta_lin[g] = 0, 0


# What the experts say


def scaled(s: State, g: int, x: Vector, clip: float = CLIP) -> Vector:
    """Standardised, clipped, of length about 1; a value that is missing (NaN) is the mean."""
    out: Vector = np.clip((x - s.mean[g]) * s.scale[g], -clip, clip) / np.sqrt(len(x))
    return np.nan_to_num(out, nan=0.0)


def with_squares(xs: Vector, n: int) -> Vector:
    """(n,): 1, the inputs, and their squares less what these are on average; as many inputs as there is room for."""
    z, room, root = np.zeros(n), (n - 1) // 2, np.sqrt(len(xs))
    some = xs[:room]
    z[0], z[1 : 1 + len(some)] = 1, some
    z[1 + room : 1 + room + len(some)] = (root * some**2 - 1 / root) / SQUARE
    return z


def warm_up(problem: Problem, s: State, g: int) -> int:
    """Rounds for which all experts of slot g are evaluated: a challenger must know its own before its trial is over."""
    return problem.warm_up if g == s.incumbent else problem.warm_up // 2


def awake(problem: Problem, s: State, g: int) -> Mask:
    """Experts of slot g that are evaluated in the next round."""
    E = experts(problem)
    if s.age[g] < warm_up(problem, s, g) or problem.active >= E:
        return np.ones(E, dtype=bool)
    mask = np.zeros(E, dtype=bool)
    mask[s.rank[g, : problem.active - 1]] = True
    mask[s.explorer[g]] = True
    return mask


def speaking(problem: Problem, s: State, g: int) -> Mask:
    """Those of them whose prediction counts."""
    mask = awake(problem, s, g)
    if not mask.all():
        mask[s.explorer[g]] = False
    return mask & bool(g == s.incumbent or s.age[g] >= LISTEN)


class Voice(NamedTuple):
    """What one expert has to say."""

    z: Vector  # its features
    mu: Vector  # (K,) prediction in the target's own units
    q: float  # z' P z, 0 for gradient experts
    phi: Vector  # R z


def listen(problem: Problem, s: State, g: int, x: Vector) -> dict[int, Voice]:
    """The voices of all experts of slot g that are awake."""
    xs = scaled(s, g, x)
    unit = s.unit[g] or 1.0
    voices = {}
    for e in map(int, np.flatnonzero(awake(problem, s, g))):
        if e >= on_kernels(problem) + on_inputs(problem):
            voices[e] = recall(s, g, xs, problem.widths[e - on_kernels(problem) - on_inputs(problem)])
            continue
        R, theta, step = place(problem, s, g, e)
        if e == on_kernels(problem):
            z = np.append(1.0, scaled(s, g, x, CLIP_LINEAR))
        elif e > on_kernels(problem):
            z = with_squares(xs, len(R))
        else:
            z = features(problem.V[e // (1 + len(problem.steps))], xs).ravel()
        phi = R @ z if step is None else np.zeros(0)
        mu = s.shift[g] + unit * (theta @ z)
        if problem.task == "regression" and e == on_kernels(problem):
            mu = bounded(s, g, mu)
        voices[e] = Voice(z, mu, float(phi @ phi), phi)
    return voices


def place(problem: Problem, s: State, g: int, e: int) -> tuple[Matrix, Matrix, float | None]:
    """Where expert e of slot g, which is none that remembers, has its root and its coefficients; its step, if any."""
    if e == on_kernels(problem):
        return s.R_lin[g], s.theta_lin[g], None
    if e > on_kernels(problem):
        return s.R[g, -1], s.theta[g, -1, 0], None
    i, b = divmod(e, 1 + len(problem.steps))
    return s.R[g, i], s.theta[g, i, b], problem.steps[b - 1] if b else None


def bounded(s: State, g: int, mu: Vector) -> Vector:
    """No further from the answers remembered than STRETCH times their range: a line goes on for ever."""
    told = s.recalled[g, 0, : min(int(s.age[g]), WINDOW)]
    if len(told) == 0:
        return mu
    more = STRETCH * (told.max() - told.min())
    return np.clip(mu, told.min() - more, told.max() + more)


def recall(s: State, g: int, xs: Vector, width: float) -> Voice:
    """An average of the answers remembered, weighed by a Gaussian of this width; q is one over their number."""
    n = min(int(s.age[g]), WINDOW)
    if n == 0:
        return Voice(np.zeros(0), np.zeros(s.shift.shape[1]), 1.0, np.zeros(0))
    square = ((s.window[g, :, :n] - xs[:, None]) ** 2).sum(axis=0)
    w = normalised(-square / (2 * width**2))
    return Voice(np.zeros(0), s.recalled[g, :, :n] @ w, float(w @ w), np.zeros(0))


def remember(s: State, g: int, xs: Vector, Y: Vector, place: int) -> None:
    s.window[g, :, place % WINDOW], s.recalled[g, :, place % WINDOW] = xs, Y


def variance(s: State, g: int, e: int, q: float) -> float:
    """Of an expert's prediction, in the target's own units."""
    return float((s.noise[g, e] * (1 + q) + LEAST_VARIANCE) * (s.unit[g] or 1.0) ** 2)


def chances(mu: Vector, v: float) -> Vector:
    """Of labels, from a Gaussian of variance v around each row of zeros with a one."""
    return normalised(mu / v)


def mixture(problem: Problem, s: State, voices: list[dict[int, Voice]]) -> tuple[Vector, list[Vector]]:
    """What the learner says, and the weight of every expert of both slots."""
    masks = [speaking(problem, s, g) if voices[g] else np.zeros(experts(problem), bool) for g in (0, 1)]
    flat = normalised(np.concatenate([s.evidence[g][masks[g]] for g in (0, 1)]))
    weights = [np.zeros(experts(problem)), np.zeros(experts(problem))]
    weights[0][masks[0]], weights[1][masks[1]] = flat[: masks[0].sum()], flat[masks[0].sum() :]
    spoken = [(weights[g][e], v, variance(s, g, e, v.q)) for g in (0, 1) for e, v in voices[g].items() if masks[g][e]]
    if problem.task == "classification":
        return np.sum([w * chances(v.mu, var) for w, v, var in spoken], axis=0), weights
    f = sum(w * v.mu[0] for w, v, _ in spoken)
    spread = sum(w * (var + (v.mu[0] - f) ** 2) for w, v, var in spoken)
    return np.array([f, np.sqrt(spread)]), weights


def hear(problem: Problem, s: State, x: Vector) -> list[dict[int, Voice]]:
    return [listen(problem, s, g, x) if s.age[g] >= 0 else {} for g in (0, 1)]


def beyond(problem: Problem, s: State, g: int, voices: dict[int, Voice], mixed: Vector) -> Vector:
    """(E,): what the experts of slot g that speak say beyond the mixture, in its deviations."""
    z = np.zeros(experts(problem))
    for e in np.flatnonzero(speaking(problem, s, g)) if voices else ():
        z[e] = (voices[int(e)].mu[0] - mixed[0]) / (mixed[1] or np.inf)
    return np.clip(z, -MIX_CLIP, MIX_CLIP)


def corrected(problem: Problem, s: State, voices: list[dict[int, Voice]], mixed: Vector) -> Vector:
    """The mixture, moved by what its incumbent experts say beyond it."""
    if problem.task == "classification" or not problem.correct:
        return mixed
    g = s.incumbent
    more = s.theta_mix[g] @ beyond(problem, s, g, voices[g], mixed)
    return np.array([mixed[0] + mixed[1] * np.clip(more, -MIX_CLIP, MIX_CLIP), mixed[1]])


def predict(problem: Problem, state: State, x: Vector) -> Vector:
    """(mean, deviation), or the chances of the labels."""
    voices = hear(problem, state, np.clip(x, -LARGEST, LARGEST))
    return corrected(problem, state, voices, mixture(problem, state, voices)[0])


# What they learn


def answer(problem: Problem, y: float) -> Vector:
    """The target as (K,): the number itself, or zeros with a one."""
    return np.array([y]) if problem.task == "regression" else np.eye(problem.K)[int(y)]


def log_likelihood(problem: Problem, mu: Vector, v: float, y: float) -> float:
    """Of y under one expert: a Student t with 4 degrees of freedom, or the chance of the label."""
    if problem.task == "classification":
        return float(np.log(np.maximum(chances(mu, v)[int(y)], 1e-12)))
    return float(-0.5 * np.log(v) - 2.5 * np.log1p(min((y - mu[0]) ** 2 / (4 * v), TOO_FAR**2)))


def improve(problem: Problem, s: State, g: int, e: int, voice: Voice, target: Vector, weight: float) -> None:
    """One expert's coefficients after one answer; a weight counts the row so many times."""
    z = voice.z
    if len(z) == 0:
        return  # what remembers has no coefficients
    R, theta, step = place(problem, s, g, e)
    if step is not None:
        theta += min(1.0, weight * step) * np.outer(target - theta @ z, z)
    elif problem.task == "classification" and e >= on_kernels(problem):
        newton(R, theta, voice, s.shift[g], target + s.shift[g], weight, problem.sure)
    else:
        solve(R, theta, voice.phi, target - theta @ z, weight, problem.sure)


def newton(R: Matrix, theta: Matrix, voice: Voice, shift: Vector, label: Vector, weight: float, sure: float) -> None:
    """One step of logistic regression: least squares in which a row counts by the doubt that was left about it."""
    p = chances(shift + theta @ voice.z, 1.0)
    doubt = max(float(p.max() * (1 - p.max())), LEAST_DOUBT)
    solve(R, theta, voice.phi, (label - p) / doubt, doubt * weight, sure)


def correct(problem: Problem, s: State, voices: list[dict[int, Voice]], mixed: Vector, y: float, weight: float) -> None:
    """Learn what was missing from the mixture."""
    gap = np.clip((y - mixed[0]) / (mixed[1] or np.inf), -MIX_CLIP, MIX_CLIP)
    for g in (0, 1):
        if voices[g]:
            z, theta = beyond(problem, s, g, voices[g], mixed), s.theta_mix[g][None]
            solve(s.R_mix[g], theta, s.R_mix[g] @ z, gap - theta @ z, weight, problem.sure)


def refit(problem: Problem, s: State, g: int) -> None:
    """Make slot g's experts anew from the rows kept, scaled by all of them."""
    n = int(s.age[g])
    X, Y = s.rows[g, :n], s.answers[g, :n]
    there = ~np.isnan(X)
    counts = np.maximum(there.sum(axis=0), 1)
    s.mean[g] = np.where(there.any(axis=0), np.nansum(X, axis=0) / counts, np.nan)
    s.scale[g] = inverse(np.sqrt(np.nansum((X - s.mean[g]) ** 2, axis=0) / counts), s.mean[g])
    s.shift[g] = Y.mean(axis=0)
    if problem.task == "regression":
        unit = float(np.sqrt(np.mean((Y - s.shift[g]) ** 2)))
        if unit > 0:
            s.noise[g] *= (s.unit[g] / unit) ** 2 if s.unit[g] else 1.0
            s.unit[g] = unit
    forget(problem, s, g)
    everyone = s._replace(age=np.where(np.arange(2) == g, 0, -1))  # all are awake
    for k, (x, y, weight) in enumerate(zip(X, Y, s.worth[g, :n], strict=True)):
        remember(s, g, scaled(s, g, x), y, k)
        target = (y - s.shift[g]) / (s.unit[g] or 1.0)
        for e, voice in listen(problem, everyone, g, x).items():
            improve(problem, s, g, e, voice, target, weight)


def inverse(deviation: Vector, mean: Vector) -> Vector:
    """1 / deviation, 0 where it is no more than rounding."""
    real = (deviation > 1e-12 * np.abs(np.nan_to_num(mean))) & (deviation > 1e-150)
    return np.where(real, 1 / np.where(real, deviation, 1.0), 0.0)


def notice_columns(s: State, g: int, x: Vector) -> None:
    """A column that was constant so far and moves now gets the first move as its unit: the past was its mean."""
    s.mean[g] = np.where(np.isnan(s.mean[g]), x, s.mean[g])
    gap = np.abs(x - s.mean[g])
    s.scale[g] = np.where((s.scale[g] == 0) & ~np.isnan(gap), inverse(gap, s.mean[g]), s.scale[g])


def take_in(
    problem: Problem, s: State, g: int, x: Vector, y: float, weight: float, voices: dict[int, Voice], r: float
) -> None:
    """All that slot g learns from one round, and who will be evaluated in its next."""
    Y = answer(problem, y)
    for e, voice in voices.items():
        if s.unit[g]:
            s.heard[g, e] += 1
            a = max(1 - problem.memory, 1 / (s.heard[g, e] + 1))
            s.noise[g, e] = noise_after(problem, s, g, e, voice, y, a)
        improve(problem, s, g, e, voice, (Y - s.shift[g]) / (s.unit[g] or 1.0), weight)
    if s.age[g] < KEPT:
        s.rows[g, s.age[g]], s.answers[g, s.age[g]], s.worth[g, s.age[g]] = x, Y, weight
    remember(s, g, scaled(s, g, x), Y, int(s.age[g]))
    s.age[g] += 1
    if s.age[g] in REFITS:
        refit(problem, s, g)
    else:
        notice_columns(s, g, x)
    warm = warm_up(problem, s, g)
    if s.age[g] >= warm and problem.active < experts(problem):
        if (s.age[g] - warm) % RANK_EVERY == 0:
            s.rank[g] = np.argsort(-s.evidence[g], kind="stable")
        s.explorer[g] = explore(problem, s.rank[g], r)


def noise_after(problem: Problem, s: State, g: int, e: int, voice: Voice, y: float, a: float) -> float:
    """The noise of an expert after one more answer, which moves it by a share a.

    For numbers the mean squared error. For labels the temperature of the chances: a step up the
    gradient of their log-likelihood, since squared errors would make them far too sure.
    """
    before = float(s.noise[g, e])
    if problem.task == "regression":
        gap = float(np.clip((y - voice.mu[0]) / s.unit[g], -TOO_FAR, TOO_FAR))
        return (1 - a) * before + a * gap**2 / (1 + voice.q)
    v = variance(s, g, e, voice.q)
    slope = (voice.mu[int(y)] - chances(voice.mu, v) @ voice.mu) / v
    return float(np.clip(before * np.exp(-a * np.clip(slope, -2, 2)), *TEMPERATURES))


def explore(problem: Problem, rank: Index, r: float) -> int:
    """A sleeping expert, where there is one far from all leaders: a neighbour of one has little new to tell."""
    B, N = 1 + len(problem.steps), len(problem.V)
    leaders, asleep = rank[: problem.active - 1], np.sort(rank[problem.active - 1 :])
    near = {int(j) * B + int(e) % B for e in leaders if e < N * B for j in np.flatnonzero(problem.graph.A[int(e) // B])}
    among = [e for e in asleep if int(e) not in near] or list(asleep)
    return int(among[min(int(r * len(among)), len(among) - 1)])


def watch(problem: Problem, s: State, error: float, weights: list[Vector]) -> int:
    """Look for change; returns the incumbent of the next round."""
    fast, slow, n = s.trend
    if s.age[s.incumbent] > 2 * LISTEN:
        bounded = min(error, 20 * slow) if n > 2 * LISTEN else error
        n += 1
        slow += max(1 / SLOW, 1 / n) * (bounded - slow)
        fast += max(1 / FAST, 1 / n) * (bounded - fast)
    s.trend[:] = fast, slow, n
    other = 1 - s.incumbent
    if s.age[other] < 0:
        if problem.trial and n > 4 * FAST and fast > RISE * slow:
            be_born(problem, s, other)
            s.trust[:] = 0
        return s.incumbent
    s.trust[:] = 0.98 * s.trust + [weights[s.incumbent].sum(), weights[other].sum()]
    if s.age[other] < problem.trial:
        return s.incumbent
    winner = other if s.trust[1] > s.trust[0] else s.incumbent
    s.age[1 - winner] = -1
    s.trend[:] = 0
    return winner


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    s = copied(state)
    x, y = np.clip(x, -LARGEST, LARGEST), float(np.clip(y, -LARGEST, LARGEST))
    voices = hear(problem, s, x)
    require_bounded(np.concatenate([v.mu for part in voices for v in part.values()]))
    mixed, weights = mixture(problem, s, voices)
    said = corrected(problem, s, voices, mixed)
    heard = np.array([g * experts(problem) + e for g in (0, 1) for e in voices[g]])
    if weight == 0:
        return s._replace(t=s.t + 1), Info(said, heard)

    if s.unit[s.incumbent]:
        told = [{e: log_likelihood(problem, v.mu, variance(s, g, e, v.q), y) for e, v in voices[g].items()}
                for g in (0, 1)]  # fmt: skip
        spoken = np.array([told[g][e] for g in (0, 1) for e in voices[g] if weights[g][e] > 0])
        share = np.array([weights[g][e] for g in (0, 1) for e in voices[g] if weights[g][e] > 0])
        joint = spoken.max() + np.log(share @ np.exp(spoken - spoken.max()))
        for g in (0, 1):
            for e, ll in told[g].items():
                s.evidence[g, e] = (1 - problem.discount) * (s.evidence[g, e] + ll - joint)
    if problem.task == "regression" and problem.correct:
        correct(problem, s, voices, mixed, y, weight)
    for g in (0, 1):
        if voices[g]:
            take_in(problem, s, g, x, y, weight, voices[g], float(r[g]))
    if problem.task == "regression":
        error = (y - said[0]) ** 2
        missed = abs(y - said[0]) > s.reach * said[1]
        if state.unit[state.incumbent]:
            s.reach[:] = s.reach * np.exp(GAIN * (missed - (1 - LEVELS)))
    else:
        error = (1 - said[int(y)]) ** 2
    incumbent = watch(problem, s, float(error), weights)
    return s._replace(incumbent=incumbent, t=s.t + 1), Info(said, heard)


# TEMPORARY
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import get_args

from omkl.algorithms.base import Algorithm, Shape
from omkl.engine.native import Native
from omkl.features import few_inputs, frequencies
from omkl.graph import similarity_graph
from omkl.kernels import Gaussian, Kernel, dictionary
from omkl.validation import is_number, is_whole, require

SINGLES = (0.15, 0.8)


@dataclass(frozen=True)
class GraphSettings:
    """What a user may choose for GraphMKL. The defaults were chosen once, for all streams.

    Parameters
    ----------
    kernels
        A named dictionary or a list of kernels; inputs are standardised and divided by sqrt(d).
    n_features
        Random features per kernel, D.
    out_degree
        Kernels so near to a leading one that no explorer is sent there, itself among them.
    delta_dimension
        Dimension in which the similarity (7) is taken: None for that of the data, or 1.
    orders
        How many inputs a random feature looks at, for one kernel after the other and again from the start;
        None for all.
    singles
        Length scales of more Gaussian kernels, whose random features look at one input each; None for 0.15 and
        0.8 beside a named dictionary, and none of them beside a list of kernels.
    steps
        Normalised gradient experts on every kernel, beside its least squares: their step lengths in (0, 1].
    widths
        Length scales of the experts that average the last answers.
    ridge
        Of the least squares; divided by the squared length scale where that is above 1.
    evaluate
        Experts evaluated for a row after the warm-up: "quarter" of them, "all", or a number.
    warm_up
        Rows for which all experts are evaluated.
    discount
        Share of the evidence forgotten with every row.
    memory
        Share of an expert's noise estimate kept with every row.
    adapt
        Start a second set of experts when the error rises, and keep the better one.
    sure
        Variance of a prediction, in units of the noise, below which a row makes least squares no surer: they
        go on learning as if no more than 1 / sure such rows had been seen. 0 for streams that never change.
    correct
        Correct the mixture by a least squares on what its experts say beyond it.
    task, outputs
        "regression", or "classification" of so many labels.

    >>> GraphSettings().experts, GraphSettings().active
    (43, 10)
    """

    kernels: str | Iterable[Kernel] = "gaussian"
    n_features: int = 50
    out_degree: int = 3
    delta_dimension: int | None = 1
    orders: tuple[int | None, ...] = (2, 2, None)
    singles: tuple[float, ...] | None = None
    steps: tuple[float, ...] = (1.0, 0.25)
    widths: tuple[float, ...] = (0.03, 0.1, 0.3)
    ridge: float = 3e-3
    evaluate: str | int = "quarter"
    warm_up: int = 512
    discount: float = 0.1
    memory: float = 0.97
    adapt: bool = True
    sure: float = 0.05
    correct: bool = True
    task: Task = "regression"
    outputs: int = 1

    def __post_init__(self) -> None:
        for name in ("n_features", "out_degree", "warm_up", "outputs"):
            number = getattr(self, name)
            require(is_whole(number) and number >= 1, name, "a whole number of at least 1", number)
        require(self.delta_dimension in (None, 1), "delta_dimension", "None (that of the data) or 1",
                self.delta_dimension)  # fmt: skip
        if self.singles is None:
            object.__setattr__(self, "singles", SINGLES if isinstance(self.kernels, str) else ())
        for name in ("orders", "singles", "steps", "widths"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        right = all(order is None or (is_whole(order) and order >= 1) for order in self.orders)
        require(right and len(self.orders) > 0, "orders", "whole numbers of at least 1, or None", self.orders)
        for name in ("singles", "widths"):
            right = all(is_number(width) and width > 0 for width in getattr(self, name))
            require(right, name, "positive numbers", getattr(self, name))
        right = all(is_number(step) and 0 < step <= 1 for step in self.steps)
        require(right, "steps", "numbers above 0, at most 1", self.steps)
        require(is_number(self.ridge) and self.ridge > 0, "ridge", "a positive finite number", self.ridge)
        for name in ("discount", "memory", "sure"):
            share = getattr(self, name)
            require(is_number(share) and 0 <= share < 1, name, "a number from 0 to below 1", share)
        require(self.task in get_args(Task), "task", "regression or classification", self.task)
        object.__setattr__(self, "kernels", tuple(dictionary(self.kernels)))
        right = self.evaluate in ("quarter", "all") or (is_whole(self.evaluate) and int(self.evaluate) >= 2)
        require(right, "evaluate", "quarter, all, or a whole number of at least 2", self.evaluate)

    def ridges(self, kernels: Sequence[Kernel], d: int) -> tuple[float, ...]:
        """Of every kernel's least squares, and of the experts on the inputs themselves.

        What a wide kernel can tell apart lies in directions of its features that are small by powers of its
        length scale; the same ridge for all would hide them. For labels the coefficients of standardised
        inputs are taken to be of size 1.
        """
        on_inputs = (self.ridge,) if self.task == "regression" else (1 / d, 1 / d)
        return (*(self.ridge / max(1.0, kernel.length_scale**2) for kernel in kernels), *on_inputs)

    @property
    def all_kernels(self) -> tuple[Kernel, ...]:
        """The dictionary, and behind it the kernels on single inputs."""
        return (*dictionary(self.kernels), *(Gaussian(scale) for scale in self.singles or ()))

    @property
    def experts(self) -> int:
        on_inputs = 1 if self.task == "regression" else 2
        return len(self.all_kernels) * (1 + len(self.steps)) + on_inputs + len(self.widths)

    @property
    def active(self) -> int:
        if self.evaluate == "all":
            return self.experts
        return max(2, self.experts // 4) if self.evaluate == "quarter" else min(int(self.evaluate), self.experts)

    @classmethod
    def for_task(cls, task, **choices):
        usual = {
            "regression": {"discount": 0.1, "memory": 0.97, "sure": 0.05},
            "classification": {"discount": 0.01, "memory": 0.98, "sure": 0.01},
        }[task]
        return cls(task=task, **(choices | {n: v for n, v in usual.items() if choices.get(n) is None}))

    def with_outputs(self, outputs):
        return replace(self, outputs=outputs)


def build(self, names, seed):
    kernels = self.all_kernels
    V = frequencies(kernels, names, self.n_features, seed)
    orders = [self.orders[i % len(self.orders)] for i in range(len(tuple(self.kernels)))]
    few_inputs(V, names, [*orders, *(1 for _ in self.singles or ())], seed)
    graph = similarity_graph(kernels, self.delta_dimension or len(names), min(self.out_degree, len(kernels)))
    return Problem(
        V,
        graph,
        self.task,
        self.outputs,
        tuple(float(step) for step in self.steps),
        tuple(float(width) for width in self.widths),
        self.ridges(kernels, len(names)),
        self.active,
        self.warm_up,
        float(self.discount),
        float(self.memory),
        500 if self.adapt else 0,
        float(self.sure),
        bool(self.correct),
    )


def shape(problem):
    c = problem.task == "classification"
    return Shape(problem.V.shape[1], problem.K if c else 2, "label" if c else "number", True)


def _view(problem):
    from omkl.arrays import is_padded, padded_copy

    seen = problem if is_padded(problem.V) else problem._replace(V=padded_copy(problem.V))
    lists = {"step_array": problem.steps, "width_array": problem.widths, "ridge_array": problem.ridges}
    return SimpleNamespace(**seen._asdict(), **{name: np.array(a, float) for name, a in lists.items()})


def kernel_weights(problem, state):
    speaks = speaking(problem, state, state.incumbent)
    weight = np.zeros(len(speaks))
    weight[speaks] = normalised(state.evidence[state.incumbent][speaks])
    return weight[: on_kernels(problem)].reshape(len(problem.V), -1).sum(axis=1)


ALGORITHM = Algorithm(
    name="graph-mkl",
    settings=GraphSettings,
    Problem=Problem,
    State=State,
    build=build,
    init=init,
    predict=predict,
    step=step,
    uniforms=draws,
    shape=shape,
    check_problem=lambda p: None,
    check_state=lambda p, s: None,
    grow=widen,
    fixed_size=False,
    distribution=True,
    kernel_weights=kernel_weights,
    native=Native(view=_view, padded=("theta", "R", "R_lin", "theta_lin", "R_mix", "theta_mix")),
)


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    kernels : str or list of Kernel, default="gaussian"
        x
    """

    kernels: str | Sequence[Kernel] = "gaussian"
    n_features: int = 50
    out_degree: int = 3
    orders: tuple[int | None, ...] = (2, 2, None)
    singles: tuple[float, ...] | None = None
    steps: tuple[float, ...] = (1.0, 0.25)
    widths: tuple[float, ...] = (0.03, 0.1, 0.3)
    ridge: float = 3e-3
    evaluate: str | int = "quarter"
    warm_up: int = 512
    discount: float | None = None
    memory: float | None = None
    adapt: bool = True
    sure: float | None = None
    correct: bool = True

    @property
    def algorithm_name(self) -> str:
        return "graph-mkl"
