"""GraphMKL's State: what one round changes, made of the state of its parts."""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.blas import one_thread
from omkl.algorithms.graph_mkl import intervals, large, memory, scaling, selection
from omkl.algorithms.graph_mkl.change import Trend, Trial
from omkl.algorithms.graph_mkl.constants import (
    FIRST_ROWS,
    LARGEST_VALUE,
    MAX_COPIED_WEIGHT,
    MAX_REPEAT_EVIDENCE,
    MAX_SLOPE,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    MIN_WEIGHT,
    SPARSE_RIDGE,
    WINDOW,
)
from omkl.algorithms.graph_mkl.experts import (
    Coefficients,
    Judged,
    Noise,
    fresh_coefficients,
    fresh_noise,
    no_judgement,
)
from omkl.algorithms.graph_mkl.intervals import Calibration
from omkl.algorithms.graph_mkl.large import Large
from omkl.algorithms.graph_mkl.least_squares import diagonal_of, is_diagonal, marginalise_features
from omkl.algorithms.graph_mkl.memory import Window
from omkl.algorithms.graph_mkl.mixture import Stack, fresh_stack
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.repeats import Weights
from omkl.algorithms.graph_mkl.scaling import Block, FirstRows, Scaling
from omkl.algorithms.graph_mkl.selection import Selection
from omkl.algorithms.invariants import LARGEST_COUNT, check_finite, demand, is_count, is_growing_count, is_real
from omkl.arrays import Matrix, Vector, leaves
from omkl.validation import LARGEST_WEIGHT


class ExpertSet(NamedTuple):
    """A set of experts, and all that it has learned."""

    coefficients: Coefficients
    noise: Noise
    evidence: Vector  # (E,)  discounted log-likelihood of an expert's predictions, relative to the mixture's
    judged: Judged
    stack: Stack
    selection: Selection
    scaling: Scaling
    first: FirstRows
    window: Window
    block: Block
    age: int  # rows learned; -1: the set is not there


class State(NamedTuple):
    """What one round changes."""

    sets: tuple[ExpertSet, ExpertSet]  # the incumbent and, during a trial, a challenger
    incumbent: int  # which of the two is the incumbent
    trend: Trend
    trial: Trial
    calibration: Calibration  # of the intervals
    repeats: float  # evidence that rows are shown again
    weights: Weights
    large: Large  # of the incumbent
    t: int  # rounds behind us


def init(problem: Problem, uniforms: Vector) -> State:
    sets = (start_set(problem), absent_set(problem))
    return State(sets, 0, Trend(), Trial(), intervals.init(), 0.0, Weights(), large.init(problem), 0)


def start_set(problem: Problem) -> ExpertSet:
    """A set of experts that has learned nothing."""
    scaling_, first = scaling.init(problem)
    return ExpertSet(
        coefficients=fresh_coefficients(problem),
        noise=fresh_noise(problem),
        evidence=np.zeros(problem.experts),
        judged=no_judgement(problem),
        stack=fresh_stack(problem),
        selection=selection.init(problem),
        scaling=scaling_,
        first=first,
        window=memory.init(problem),
        block=scaling.fresh_block(problem.V.shape[1]),
        age=0,
    )


def absent_set(problem: Problem, scaling_: Scaling | None = None) -> ExpertSet:
    """A set that is not there: always the same, so that it need not be stored, but for the scaling of one that was.

    That scaling says what has changed since.
    """
    part = start_set(problem)._replace(age=-1)
    return part if scaling_ is None else part._replace(scaling=scaling_)


def with_set(state: State, which: int, part: ExpertSet) -> State:
    """The state with one of its sets replaced."""
    return state._replace(sets=(part, state.sets[1]) if which == 0 else (state.sets[0], part))


def start_challenger(problem: Problem, state: State) -> State:
    """The state with a new challenger, whose trial begins."""
    return with_set(state, 1 - state.incumbent, start_set(problem))._replace(trial=Trial())


def first_rows(problem: Problem, state: State) -> tuple[Matrix, Vector, Vector] | None:
    """(X, y, weights) of all rows learned so far; None if these are no longer stored."""
    part = state.sets[state.incumbent]
    if part.age > FIRST_ROWS:
        return None
    X, Y, weight, sparse = (a[: part.age] for a in part.first)
    y = Y[:, 0] if problem.task == "regression" else np.argmax(Y, axis=1).astype(np.float64)
    return np.hstack((X, sparse)), y, weight


# More features or labels


def grow(problem: Problem, state: State) -> State:
    """The state for a problem with more features, or more labels, than it was made for.

    New features are nowhere to be found in the past, so that a challenger starts that will know them well. A new label
    has always been absent, so that its coefficients are zero, as they should be.
    """
    old_d = len(state.sets[0].scaling.mean)
    challenger, incumbent = state.sets[1 - state.incumbent], state.sets[state.incumbent]
    first, second = state.sets
    state = state._replace(
        sets=(grown(problem, first), grown(problem, second)), large=large.grown(problem, state.large)
    )
    wanted = problem.V.shape[1] > old_d and problem.trial > 0
    if wanted and challenger.age < 0 and incumbent.age > FIRST_ROWS:
        return start_challenger(problem, state)
    return state


def grown(problem: Problem, part: ExpertSet) -> ExpertSet:
    """One set of experts for a problem with more features or labels."""
    scaling_ = grown_scaling(problem, part.scaling)
    if part.age < 0:
        return absent_set(problem, scaling_)
    d, K = problem.V.shape[1], problem.K
    more_d, more_K = d - len(part.scaling.mean), K - len(part.scaling.shift)
    more_S = problem.sparse - len(part.scaling.sparse)
    X, Y, weight, X_sparse = part.first
    rows, means, squares = part.block
    if len(part.evidence) != problem.experts:
        part = without_large(problem, part)
    return part._replace(
        coefficients=grown_coefficients(problem, part, more_d, more_K),
        scaling=scaling_,
        first=FirstRows(
            np.pad(X, ((0, 0), (0, more_d)), constant_values=np.nan), np.pad(Y, ((0, 0), (0, more_K))), weight,
            np.pad(X_sparse, ((0, 0), (0, more_S))),
        ),
        window=part.window._replace(
            X=np.pad(part.window.X, ((0, more_d), (0, 0))), Y=np.pad(part.window.Y, ((0, more_K), (0, 0)))
        ),
        block=Block(np.pad(rows, (0, more_d)), np.pad(means, (0, more_d)), np.pad(squares, (0, more_d))),
    )  # fmt: skip


def grown_scaling(problem: Problem, before: Scaling) -> Scaling:
    mean, scale, shift, unit, sparse = before
    more_d, more_K = problem.V.shape[1] - len(mean), problem.K - len(shift)
    return Scaling(
        np.pad(mean, (0, more_d), constant_values=np.nan), np.pad(scale, (0, more_d)), np.pad(shift, (0, more_K)), unit,
        np.pad(sparse, (0, problem.sparse - len(sparse))),
    )  # fmt: skip


def without_large(problem: Problem, part: ExpertSet) -> ExpertSet:
    """A set of a problem that has fewer large experts, because there are too many inputs now."""
    E = problem.experts
    if len(part.evidence) < E:
        raise ValueError("a model cannot get large experts when it gets features; make it with the larger budget")
    return part._replace(
        noise=Noise(part.noise.level[:E], part.noise.rounds[:E]),
        evidence=part.evidence[:E],
        judged=no_judgement(problem),
        stack=fresh_stack(problem),
    )


def grown_coefficients(problem: Problem, part: ExpertSet, more_d: int, more_K: int) -> Coefficients:
    """A random feature that depends on a new input now, in place of another, starts from nothing.

    Where there is least squares, the other features take over its part of the prediction.
    """
    d = problem.V.shape[1]
    R, theta, R_linear, theta_linear, R_sparse, theta_sparse = part.coefficients
    S = R_sparse.shape[1]
    R, theta = R.copy(), np.pad(theta, ((0, 0), (0, 0), (0, more_K), (0, 0)))
    moved = (problem.V[:, d - more_d :] != 0).any(axis=1) & (problem.V == 0).any(axis=1)
    for i in np.flatnonzero(moved.any(axis=1)):
        new = np.tile(moved[i], 2)
        with one_thread():
            R[i], theta[i, 0] = marginalise_features(R[i], theta[i, 0], new, problem.ridges[i])
        theta[i, 1:] *= ~new
    start = 1 / np.sqrt(problem.ridges[-1])
    if problem.rows_linear == 1:
        diagonal = R_linear if is_diagonal(R_linear) else diagonal_of(R_linear)
        R_linear = np.pad(diagonal, ((0, 0), (0, more_d)), constant_values=start)
    else:
        R_linear = np.pad(R_linear, ((0, more_d), (0, more_d)))
        for k in range(d + 1 - more_d, d + 1):
            R_linear[k, k] = start
    return Coefficients(
        R, theta, R_linear, np.pad(theta_linear, ((0, more_K), (0, more_d))),
        np.pad(R_sparse, ((0, 0), (0, problem.sparse - S)), constant_values=SPARSE_RIDGE**-0.5),  # (G60)
        np.pad(theta_sparse, ((0, more_K), (0, problem.sparse - S))),
    )  # fmt: skip


# What a file may claim


def set_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """The shape of every array of a set of experts; nothing is allocated for it."""
    (_, d, D), K, E, S = problem.V.shape, problem.K, problem.experts, problem.sparse
    n = 2 * D
    return {
        "coefficients.R": (problem.maps, n, n),
        "coefficients.theta": (problem.maps, problem.learners, K, n),
        "coefficients.R_linear": (problem.rows_linear, d + 1),
        "coefficients.theta_linear": (K, d + 1),
        "coefficients.R_sparse": (1, S),
        "coefficients.theta_sparse": (K, S),
        "noise.level": (E,),
        "noise.rounds": (E,),
        "evidence": (E,),
        "judged.gain": (E,),
        "judged.signal": (E,),
        "judged.step": (E + 1,),
        "stack.R": (E, E),
        "stack.theta": (E,),
        "selection.rank": (problem.first_large,),
        "scaling.mean": (d,),
        "scaling.scale": (d,),
        "scaling.shift": (K,),
        "scaling.sparse": (S,),
        "first.X": (FIRST_ROWS, d),
        "first.Y": (FIRST_ROWS, K),
        "first.weight": (FIRST_ROWS,),
        "first.sparse": (FIRST_ROWS, S),
        "window.X": (d, WINDOW),
        "window.Y": (K, WINDOW),
        "window.weight": (WINDOW,),
        "window.key": (WINDOW,),
        "window.met": (WINDOW,),
        "window.returned": (WINDOW,),
        "block.rows": (1 + d,),
        "block.mean": (1 + d,),
        "block.square": (1 + d,),
    }


def check_state(problem: Problem, state: State) -> None:
    found = leaves(state)
    wanted = {f"sets.{g}.{name}": shape for g in (0, 1) for name, shape in set_shapes(problem).items()}
    wanted |= {f"calibration.{name}": shape for name, shape in intervals.shapes().items()}
    for name, shape in wanted.items():
        leaf = found[name]
        if not isinstance(leaf, np.ndarray) or leaf.shape != shape:
            raise ValueError(f"{name} does not fit the problem")
        check_finite(leaf, name, gappy=name.endswith((".scaling.mean", ".first.X")))
        if ".coefficients." in name or ".stack." in name:  # decompositions of larger numbers do not converge
            demand(bool((np.abs(leaf) <= LARGEST_VALUE).all()), f"{name} has a value that is too large")
    demand(is_count(state.t) and is_count(state.trend.rounds), "the number of rounds must be a count")
    numbers = (state.trend.fast, state.trend.slow, *state.trial, *state.weights, state.repeats)
    demand(all(is_real(number) for number in numbers), "means of errors and weights must be numbers")
    demand(state.repeats <= MAX_REPEAT_EVIDENCE, "the evidence for repeated rows is out of range")
    mean, square = state.weights
    demand(mean * mean <= 2 * square and square <= MAX_COPIED_WEIGHT**2, "the means over weights are out of range")
    demand(is_count(state.incumbent) and state.incumbent < 2, "there are two sets of experts")
    intervals.check(state.calibration)
    demand(all(number >= 0 for number in numbers), "means of errors and weights cannot be negative")
    for g, part in enumerate(state.sets):
        check_set(problem, part, g == state.incumbent)
        demand(part.age <= state.t, "a set of experts is older than the stream")
        met = part.window.met
        demand(bool(((met >= 0) & (met <= state.t)).all()), "a row of the memory came in a round that has not been")
        rows, learned = part.block.rows, part.age if part.age >= 0 else state.t
        demand(bool(((rows >= 0) & (rows <= learned)).all()), "a block has more rows than the set has learned")
    demand(state.sets[state.incumbent].age >= 0, "there is no incumbent")
    large.check(problem, state.large)
    challenger = state.sets[1 - state.incumbent]
    demand(challenger.age < max(problem.trial, 0), "the trial of the challenger is over")


def check_set(problem: Problem, part: ExpertSet, incumbent: bool) -> None:
    rank, explorer = part.selection
    ordered = np.arange(problem.first_large)
    demand(bool((np.sort(rank) == ordered).all()), "the rank of the experts is not a permutation")
    demand(is_count(explorer) and explorer < problem.first_large, "there is no such explorer")
    absent = type(part.age) is int and part.age == -1
    demand(is_growing_count(part.age) or absent, "the age of a set must be a count, or -1")
    chooses = problem.active < problem.first_large and part.age >= selection.warm_up(problem, incumbent)
    demand(not chooses or explorer not in rank[: problem.active - 1], "the explorer is a leader")
    rounds, level = part.noise.rounds, part.noise.level
    demand(bool(((rounds >= 0) & (rounds < LARGEST_COUNT)).all()), "the number of rounds must be a count")
    least, most = (0.0, np.inf) if problem.task == "regression" else (MIN_TEMPERATURE, MAX_TEMPERATURE)
    demand(bool(((level >= least) & (level <= most)).all()), "a noise is out of range")
    demand(is_real(part.scaling.unit) and part.scaling.unit >= 0, "the unit of the target is negative")
    known = part.age < 0 or problem.task == "regression" or part.scaling.unit == 1
    demand(known, "the unit of labels is 1")
    for moments in (part.scaling.mean, part.scaling.shift, part.scaling.unit):
        demand(not bool((np.abs(moments) > 2 * LARGEST_VALUE).any()), "a mean or a deviation is too large")
    demand(bool((part.scaling.scale >= 0).all()), "the scale of an input is negative")
    demand(bool((part.scaling.sparse >= 0).all()), "the scale of a sparse input is negative")
    demand(bool((part.block.square >= 0).all()), "a sum of squares is negative")
    stored, returned = part.window.weight, part.window.returned
    demand(bool(((stored >= 0) & (stored <= MAX_COPIED_WEIGHT)).all()), "the weight of a row is out of range")
    demand(bool((stored[: max(part.age, 0)] >= MIN_WEIGHT).all()), "the weight of a row is out of range")
    demand(bool((part.window.key >= 0).all()), "the key of a row is negative")
    demand(not part.window.key[max(part.age, 0) :].any(), "a row that has not come has a key")
    demand(bool(((returned == 0) | (returned == 1)).all()), "a row has come again or not")
    steep = problem.task == "classification" and bool((np.abs(part.judged.signal) > MAX_SLOPE).any())
    demand(not steep, "a slope is out of range")
    weight = part.first.weight
    demand(bool(((weight >= 0) & (weight <= LARGEST_WEIGHT)).all()), "the weight of a row is out of range")
    for values in (part.first.X, part.first.Y, part.first.sparse, part.window.Y, part.block.mean):
        demand(not bool((np.abs(values) > LARGEST_VALUE).any()), "a row has a value that is too large")
