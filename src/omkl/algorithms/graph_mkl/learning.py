"""What one set of GraphMKL's experts does in a round: evaluate, learn and, early on, fit everything again."""

import numpy as np

from omkl.algorithms.graph_mkl import experts, mixture, repeats, scaling, selection
from omkl.algorithms.graph_mkl.constants import FIRST_ROWS, REFIT_AGES
from omkl.algorithms.graph_mkl.experts import Evaluation, Judged
from omkl.algorithms.graph_mkl.least_squares import Counting
from omkl.algorithms.graph_mkl.memory import append_memory
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.repeats import Row
from omkl.algorithms.graph_mkl.state import ExpertSet
from omkl.arrays import Mask, Matrix, Vector


def evaluate(problem: Problem, part: ExpertSet, x: Vector, mask: Mask, large: Matrix) -> dict[int, Evaluation]:
    """The evaluations of the experts in `mask`; `large`: what the large ones predict."""
    return experts.evaluate(
        problem, part.coefficients, part.noise, part.scaling, part.window, part.age, x, mask, large
    )  # fmt: skip


def learn(
    problem: Problem,
    part: ExpertSet,
    evaluations: dict[int, Evaluation],
    row: Row,
    gain: Vector,
    step: Vector,
    incumbent: bool,
    uniform: float,
) -> ExpertSet:
    """The set after one row, with its selection for the next round.

    `gain`: of its experts, at this row; `step`: that its stacking of labels took.
    """
    x, y, weight = row.x, row.y, row.weight
    Y = scaling.target_vector(problem, y)
    x, sparse = scaling.split(problem, x)
    noise, signal = experts.update_noise(problem, part.noise, part.scaling, evaluations, y, row.relative)
    if part.age + 1 not in REFIT_AGES:
        part = part._replace(scaling=scaling.with_unit(part.scaling, y))
    found = repeats.column_of(part.window, row.key)
    window = append_memory(part.window, part.age, scaling.scaled(part.scaling, x), Y, weight)
    part = part._replace(
        noise=noise,
        judged=Judged(gain, signal, step),
        coefficients=experts.update(problem, part.coefficients, part.scaling, evaluations, Y, Counting(weight)),
        first=scaling.append_first(part.first, part.age, x, sparse, Y, weight),
        window=repeats.marked(window, part.age, row.key, row.t, found),
        age=part.age + 1,
    )
    if part.age in REFIT_AGES:
        part = refitted(problem, part)
    else:
        now = scaling.update_sparse(scaling.update_scaling(part.scaling, x), sparse)
        part = part._replace(scaling=now)
    if part.age > FIRST_ROWS:
        part = part._replace(block=scaling.update_block(part.block, problem.task, part.scaling, x, y))
    chosen = selection.update(problem, part.selection, part.evidence, part.age, incumbent, uniform)
    return part._replace(selection=chosen)


def learn_again(problem: Problem, part: ExpertSet, evaluations: dict[int, Evaluation], row: Row) -> ExpertSet:
    """The set after a row that is a copy of the last one or shown again; nothing where it is not in the memory.

    A copy adds to the weight of the row, and is judged by the predictions made before the row was learned. A row that
    is shown again corrects coefficients, and is no evidence.
    """
    found = repeats.column_of(part.window, row.key)
    if found < 0:
        return part
    copy = row.kind == "copy"
    counting = Counting(row.weight, float(part.window.weight[found]) if copy else 0.0, again=not copy)
    Y = scaling.target_vector(problem, row.y)
    coefficients = experts.update(problem, part.coefficients, part.scaling, evaluations, Y, counting)
    part = part._replace(coefficients=coefficients)
    if copy:
        gain = part.judged.gain
        noise, signal = experts.moved_noise(problem, part.noise, part.judged.signal, row.relative)
        part = part._replace(
            noise=noise,
            evidence=mixture.moved_evidence(problem, part.evidence, gain, row.relative, gain != 0),
            stack=mixture.move_label_stack(problem, part.stack, part.judged.step, row.relative),
            judged=part.judged._replace(signal=signal),
            first=repeats.heavier_first(part.first, part.age, found, row.weight),
            window=repeats.heavier(part.window, found, row.weight),
        )
    return part._replace(window=repeats.met_again(part.window, found, row.t))


def refitted(problem: Problem, part: ExpertSet) -> ExpertSet:
    """The set as if its first rows, all that it has learned, had been scaled by all of them from the start."""
    n = part.age
    X, Y, weight, sparse = (a[:n] for a in part.first)
    now = scaling.estimated_sparse(scaling.estimated(problem.task, part.scaling, X, Y, weight), sparse)
    noise, judged = experts.rescaled_noise(part.noise, part.judged, part.scaling, now)
    coefficients, window = experts.fresh_coefficients(problem), part.window
    everyone = np.arange(problem.experts) < problem.first_large
    for row in range(n):
        counting = Counting(float(weight[row]))
        window = append_memory(window, row, scaling.scaled(now, X[row]), Y[row], counting.weight)
        evaluations = experts.evaluate(
            problem, coefficients, noise, now, window, 0, np.append(X[row], sparse[row]), everyone, np.zeros((0, 0))
        )
        coefficients = experts.update(problem, coefficients, now, evaluations, Y[row], counting)
    return part._replace(coefficients=coefficients, noise=noise, judged=judged, scaling=now, window=window)
