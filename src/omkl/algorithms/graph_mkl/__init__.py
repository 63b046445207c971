"""GraphMKL: a mixture of least squares, gradient and memory experts on a dictionary of kernels.

Not in the paper. It keeps the paper's idea, a dictionary of kernels and a similarity graph that decides what is
evaluated, and makes of it a learner for raw streams. `docs/graph_mkl.md` states every formula; (G1), (G2), ... at
the ends of lines are its numbers. The parts:

    settings, problem     what a user may choose, and what never changes during a run
    scaling               raw units in: standardisation by the first rows
    experts, memory       predictions with variances, and how each expert learns
    mixture               experts weighted by their evidence; residual stacking
    selection             which experts are evaluated; explorers by the similarity graph
    change                a rise of the error starts a challenger, a second set of experts, and the better set stays
    intervals             half widths that hold their coverage
    archive, large        rows kept, and the large experts that are fitted to them:
    trees, wide           boosted trees, and least squares on many random features
    repeats               rows that come again, and the weights of rows compared with each other
    learning, state       one set of experts, and both
    inspection            what there is to see of a state: experts, rows that are kept, the last change
"""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.base import Algorithm
from omkl.algorithms.descent import require_bounded, require_finite
from omkl.algorithms.graph_mkl import archive, change, intervals, large, learning, mixture, repeats, scaling, selection
from omkl.algorithms.graph_mkl.experts import label_probabilities
from omkl.algorithms.graph_mkl.inspection import kernel_weights, other_experts, recent_rows, replaced
from omkl.algorithms.graph_mkl.large import Forecast
from omkl.algorithms.graph_mkl.mixture import Evaluations
from omkl.algorithms.graph_mkl.problem import Problem, build, check_problem, shape, stable, uniforms, widened
from omkl.algorithms.graph_mkl.scaling import bounded
from omkl.algorithms.graph_mkl.settings import GraphSettings, Parameters
from omkl.algorithms.graph_mkl.state import (
    ExpertSet,
    State,
    absent_set,
    check_state,
    first_rows,
    grow,
    init,
    start_challenger,
    with_set,
)
from omkl.algorithms.graph_mkl.upgrade import ADDED, BEFORE, RENAMED, upgrade
from omkl.arrays import Index, Mask, Vector
from omkl.engine.native import Native

__all__ = [
    "ALGORITHM",
    "ExpertSet",
    "GraphSettings",
    "Info",
    "Parameters",
    "Problem",
    "State",
    "build",
    "check_problem",
    "check_state",
    "grow",
    "half_widths",
    "init",
    "kernel_weights",
    "predict",
    "shape",
    "step",
    "uniforms",
]


class Info(NamedTuple):
    """What a step reports about its round."""

    prediction: Vector  # (mean, standard deviation), or (K,) probabilities of the labels
    evaluated: Index  # experts; those of the second set are numbered E, E + 1, ...


class Round(NamedTuple):
    """What both sets of experts predict for one row, and what is made of it."""

    large: Forecast  # of the incumbent's large experts
    evaluations: list[Evaluations]  # of each set
    masks: list[Mask]  # experts of each set that are part of the mixture
    weights: list[Vector]  # (E,) of each set, in the mixture
    mixed: Vector  # the mixture's prediction, as `mixture.mix` gives it
    differences: list[Vector]  # (E,) of each set, from the mixture, for labels (E, K); none without stacking
    prediction: Vector


def evaluate(problem: Problem, state: State, x: Vector) -> Round:
    """Experts, mixture and stacking for one row."""
    sets = [(part, g == state.incumbent) for g, part in enumerate(state.sets)]
    share = selection.row_share(state.weights)
    given = large.predict(problem, state.large, state.sets[state.incumbent].scaling, scaling.split(problem, x)[0])
    awake = [selection.evaluated(problem, part.selection, part.age, mine, share, given.ready) for part, mine in sets]
    masks = [
        selection.counted(problem, part.selection, part.age, mine, share, given.ready, part.noise.rounds)
        for part, mine in sets
    ]
    evaluations = [
        learning.evaluate(problem, part, x, mask, given.mean) for (part, _), mask in zip(sets, awake, strict=True)
    ]
    weights = mixture.mixture_weights([part.evidence for part in state.sets], masks)
    mixed = mixture.mix(problem, evaluations, masks, weights)
    if not problem.stack:
        z = []
    elif problem.task == "classification":
        z = [mixture.label_differences(problem, *part, mixed) for part in zip(evaluations, masks, strict=True)]
    else:
        z = [mixture.differences(problem, *part, mixed) for part in zip(evaluations, masks, strict=True)]
    stack = state.sets[state.incumbent].stack
    if problem.task == "classification":
        p = mixture.stacked_labels(stack, z[state.incumbent], mixed) if z else mixed
        return Round(given, evaluations, masks, weights, mixed, z, p)
    mean = mixture.stacked(stack, z[state.incumbent], mixed) if z else float(mixed[0])
    deviation = intervals.reported(state.calibration, intervals.Deviation(*mixed[1:]))
    return Round(given, evaluations, masks, weights, mixed, z, np.array([mean, deviation]))


def predict(problem: Problem, state: State, x: Vector) -> Vector:
    """(mean, standard deviation), or the probabilities of the labels."""
    return evaluate(problem, state, bounded(x)).prediction


def step(
    problem: Problem, state: State, x: Vector, y: float, uniforms: Vector, weight: float = 1.0
) -> tuple[State, Info]:
    x, y = bounded(x), float(bounded(np.array(y)))
    now = evaluate(problem, state, x)
    require_bounded(np.concatenate([e.mean for part in now.evaluations for e in part.values()]))
    require_finite(y, np.array([e.leverage for part in now.evaluations for e in part.values()]))
    numbers = np.array([g * problem.experts + e for g, part in enumerate(now.evaluations) for e in part])
    info = Info(now.prediction, numbers)
    if weight == 0:
        return state._replace(t=state.t + 1), info
    state = enlarged(problem, state)

    incumbent = state.sets[state.incumbent]
    dense, sparse = scaling.split(problem, x)
    inputs = np.append(dense, np.where(sparse == 0, np.nan, sparse))  # a sparse input that is missing is 0
    seen = repeats.recognise(incumbent.window, incumbent.age, state.repeats, state.t, inputs, y)
    means = state.weights
    if seen.kind != "again":
        means = repeats.means_after(means, state.t, weight, seen.weight)
    relative = repeats.relative_weight(means, weight)
    row = repeats.Row(x, y, weight, relative, state.t, seen.key, seen.kind)
    if seen.kind != "new":
        if seen.kind == "copy" and repeats.is_last(incumbent.window, incumbent.age, seen.key):
            state = state._replace(large=state.large._replace(archive=archive.heavier(state.large.archive, weight)))
        for g, part in enumerate(state.sets):
            if part.age >= 0:
                state = with_set(state, g, learning.learn_again(problem, part, now.evaluations[g], row))
        return state._replace(repeats=seen.evidence, weights=means, t=state.t + 1), info

    known = incumbent.scaling.unit > 0
    gain, evidence = [np.zeros(problem.experts) for _ in state.sets], [part.evidence for part in state.sets]
    if known:
        gain = mixture.gains(problem, now.evaluations, now.weights, y)
        for g, evaluations in enumerate(now.evaluations):
            mask = np.isin(np.arange(problem.experts), list(evaluations))
            evidence[g] = mixture.moved_evidence(problem, evidence[g], gain[g], relative, mask)
        require_finite(*evidence)
    state = state._replace(repeats=seen.evidence, weights=means)
    for g, part in enumerate(state.sets):
        if part.age >= 0:
            part = part._replace(evidence=evidence[g])
            step = np.zeros(problem.experts + 1)
            if now.differences and problem.task == "regression":
                stack = mixture.update_stack(problem, part.stack, now.differences[g], now.mixed, y, weight)
                part = part._replace(stack=stack)
            elif now.differences:
                p = mixture.stacked_labels(part.stack, now.differences[g], now.mixed)
                step = mixture.label_step(part.stack, now.differences[g], p, int(y))
                part = part._replace(stack=mixture.move_label_stack(problem, part.stack, step, relative))
            mine = g == state.incumbent
            part = learning.learn(problem, part, now.evaluations[g], row, gain[g], step, mine, float(uniforms[g]))
            state = with_set(state, g, part)

    part = state.sets[state.incumbent]
    losses = large_losses(problem, now, state.incumbent, y)
    state = state._replace(large=large.learn(problem, state.large, part.scaling, dense, y, weight, losses))
    if problem.task == "regression":
        error = (y - now.prediction[0]) ** 2
        if known:
            deviation = intervals.Deviation(*now.mixed[1:])
            calibration = intervals.update(state.calibration, deviation, float(y - now.prediction[0]))
            state = state._replace(calibration=calibration)
    else:
        error = (1 - now.prediction[int(y)]) ** 2
    return follow_change(problem, state, float(error), now.weights)._replace(t=state.t + 1), info


def enlarged(problem: Problem, state: State) -> State:
    """The state with room for one more row."""
    if large.has_room(problem, state.large):
        return state
    return state._replace(large=large.enlarged(problem, state.large))


def large_losses(problem: Problem, now: Round, incumbent: int, y: float) -> Vector:
    """(large + 1,): squared errors of the large experts, NaN for those that are not there, and of the prediction."""
    losses = np.full(problem.large + 1, np.nan)
    for e in range(problem.large):
        if now.large.ready[e]:
            evaluation = now.evaluations[incumbent][problem.first_large + e]
            losses[e] = loss_of(problem, evaluation.mean, evaluation.variance, y)
    prediction = now.prediction
    losses[-1] = (y - prediction[0]) ** 2 if problem.task == "regression" else (1 - prediction[int(y)]) ** 2  # (G65)
    return losses


def loss_of(problem: Problem, mean: Vector, variance: float, y: float) -> float:
    if problem.task == "regression":
        return float(y - mean[0]) ** 2  # (G65)
    return float(1 - label_probabilities(mean, variance)[int(y)]) ** 2  # (G65)


def follow_change(problem: Problem, state: State, error: float, weights: list[Vector]) -> State:
    """The state after the error of a round: a challenger may start, or its trial end."""
    g, other = state.incumbent, 1 - state.incumbent
    incumbent, challenger_age = state.sets[g], state.sets[other].age
    unit = incumbent.scaling.unit
    trend = change.update_trend(state.trend, error, incumbent.age, unit or 1.0)
    misfit = False
    if scaling.is_over(incumbent.block, incumbent.age):
        misfit = not scaling.fits(incumbent.block, problem.task, incumbent.scaling, incumbent.first)
        state = with_set(state, g, incumbent._replace(block=scaling.fresh_block(problem.V.shape[1])))
    trial = state.trial
    if challenger_age >= 0:
        trial = change.update_trial(trial, float(weights[g].sum()), float(weights[other].sum()))
    state = state._replace(trend=trend, trial=trial)
    match change.verdict(problem, trend, trial, challenger_age, unit, misfit):
        case "start":
            return start_challenger(problem, state)
        case "keep":
            return end_trial(problem, state, g)
        case "replace":
            age = state.sets[other].age
            return end_trial(problem, state, other)._replace(large=large.restarted(problem, state.large, age))
    return state


def end_trial(problem: Problem, state: State, winner: int) -> State:
    loser = absent_set(problem, state.sets[1 - winner].scaling)
    return with_set(state, 1 - winner, loser)._replace(incumbent=winner, trend=change.Trend())


def started(problem: Problem, state: State) -> int:
    """The round in which the incumbent began to learn."""
    return state.t - state.sets[state.incumbent].age


def half_widths(problem: Problem, state: State) -> Vector:
    """(levels,): of the intervals of the next prediction, in its standard deviations; (0,) for labels."""
    return state.calibration.half_widths if problem.task == "regression" else np.zeros(0)


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="graph-mkl",
    settings=GraphSettings,
    parameters=Parameters,
    Problem=Problem,
    State=State,
    build=build,
    init=init,
    predict=predict,
    step=step,
    uniforms=uniforms,
    shape=shape,
    check_problem=check_problem,
    check_state=check_state,
    grow=grow,
    widened=widened,
    first_rows=first_rows,
    kernel_weights=kernel_weights,
    other_experts=other_experts,
    recent_rows=recent_rows,
    started=started,
    replaced=replaced,
    extra=half_widths,
    stable=stable,
    distribution=True,
    fixed_size=False,
    for_keys={"budget": "small", "kernels": "few", "n_features": 32, "evaluate": "all"},
    of_inputs=("ridges", "trees", "archive", "sparse"),
    renamed=RENAMED,
    added=ADDED,
    before=BEFORE,
    upgrade=upgrade,
    native=Native(padded=("R", "theta", "R_linear", "theta_linear"), enlarged=enlarged),
)
