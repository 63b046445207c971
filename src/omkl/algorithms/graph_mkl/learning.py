"""What one set of GraphMKL's experts does in a round: evaluate, learn and, early on, fit everything again."""

import numpy as np

from omkl.algorithms.graph_mkl import experts, scaling, selection
from omkl.algorithms.graph_mkl.constants import FIRST_ROWS, REFIT_AGES
from omkl.algorithms.graph_mkl.experts import Evaluation
from omkl.algorithms.graph_mkl.memory import append_memory
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.state import ExpertSet
from omkl.arrays import Mask, Vector


def evaluate(problem: Problem, part: ExpertSet, x: Vector, mask: Mask) -> dict[int, Evaluation]:
    """The evaluations of the experts in `mask`."""
    return experts.evaluate(
        problem, part.coefficients, part.noise, part.scaling, part.window, part.age, x, mask
    )  # fmt: skip


def learn(
    problem: Problem,
    part: ExpertSet,
    evaluations: dict[int, Evaluation],
    x: Vector,
    y: float,
    weight: float,
    incumbent: bool,
    uniform: float,
) -> ExpertSet:
    """The set after one row, with its selection for the next round."""
    Y = scaling.target_vector(problem, y)
    x, sparse = scaling.split(problem, x)
    noise = experts.update_noise(problem, part.noise, part.scaling, evaluations, y)
    if part.age + 1 not in REFIT_AGES:
        part = part._replace(scaling=scaling.with_unit(part.scaling, y))
    part = part._replace(
        noise=noise,
        coefficients=experts.update(problem, part.coefficients, part.scaling, evaluations, Y, weight),
        first=scaling.append_first(part.first, part.age, x, sparse, Y, weight),
        window=append_memory(part.window, part.age, scaling.scaled(part.scaling, x), Y),
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


def refitted(problem: Problem, part: ExpertSet) -> ExpertSet:
    """The set as if its first rows, all that it has learned, had been scaled by all of them from the start."""
    n = part.age
    X, Y, weight, sparse = (a[:n] for a in part.first)
    now = scaling.estimated_sparse(scaling.estimated(problem.task, part.scaling, X, Y), sparse)
    noise = experts.rescaled_noise(part.noise, part.scaling, now)
    coefficients, window = experts.fresh_coefficients(problem), part.window
    everyone = np.ones(problem.experts, dtype=bool)
    for row in range(n):
        window = append_memory(window, row, scaling.scaled(now, X[row]), Y[row])
        evaluations = experts.evaluate(
            problem, coefficients, noise, now, window, 0, np.append(X[row], sparse[row]), everyone
        )
        coefficients = experts.update(problem, coefficients, now, evaluations, Y[row], float(weight[row]))
    return part._replace(coefficients=coefficients, noise=noise, scaling=now, window=window)
