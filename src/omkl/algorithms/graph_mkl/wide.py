"""GraphMKL's wide least squares: two ridges on one map of many random features, solved anew as the rows grow.

The normal equations are sums over all rows of the archive. They are formed, factored and solved in blocks of
WIDE_BLOCK features, a bounded piece of the work after every row; the last solution predicts until the next is there.
A matrix of the normal equations is stored as the blocks on and above its diagonal, those of a row of blocks after one
another.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from omkl.algorithms.graph_mkl.archive import Archive
from omkl.algorithms.graph_mkl.constants import (
    FIRST_ROWS,
    LARGEST_VALUE,
    WIDE_BLOCK,
    WIDE_FEATURE_WORK,
    WIDE_GROWTH,
    WIDE_LEAST,
    WIDE_OUTPUTS,
    WIDE_PASS,
    WIDE_REFIT,
    WIDE_RIDGES,
    WIDE_WORK,
)
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.scaling import Scaling, scaled, standardised, target_vector
from omkl.algorithms.invariants import check_finite, demand, is_count, is_real
from omkl.arrays import Matrix, Tensor, Vector
from omkl.features import features

IDLE, GATHER, UPDATE, FACTOR, FORWARD, BACKWARD = range(6)  # stages
CHANGED: dict[int, tuple[str, ...]] = {  # arrays that a stage writes into
    GATHER: ("Z", "B", "total", "targets"),
    UPDATE: ("G",),
    FACTOR: ("U",),
    FORWARD: ("solution",),
    BACKWARD: ("solution",),
}


class Wide(NamedTuple):
    """Sums over rows, a solution in the making, and the one that predicts; b = WIDE_BLOCK.

    Arrays have room for `panels` blocks of features; of the sums and the solution in the making the first
    2 features / b are used, of the active solution the first 2 active / b: sines, then cosines.
    """

    G: Tensor  # (pairs, b, b)          sum of w z z'
    B: Tensor  # (panels, K, b)         sum of w z y'
    total: Matrix  # (panels, b)        sum of w z
    targets: Vector  # (K,)             sum of w y
    weight: float  #                    sum of w
    Z: Tensor  # (panels, b, b)         sqrt(w) z of a block of rows
    U: Tensor  # (pairs, b, b)          upper triangular, U' U = G + ridge I
    solution: Tensor  # (panels, ridges, K, b)
    theta: Tensor  # (panels, ridges, K, b)  the active solution
    mean: Vector  # (K,)                its mean of y
    features: int  #                    frequencies behind the sums; 0: not begun
    active: int  #                      frequencies behind theta; 0: there is no solution yet
    rows: int  #                        in the sums
    taken: int  #                       number of the next row of the archive to add
    solved: int  #                      rows in the sums when the last solution was begun
    stage: int
    ridge: int  #                       the next piece of work: of which ridge, ...
    panel: int  #                       ... row of blocks, ...
    step: int  #                        ... and row of the block, earlier row of blocks, or output
    grow: int  #                        1: more features are wanted


def init(problem: Problem) -> Wide:
    """As before the first row; there is no room for anything yet."""
    K, R, b = problem.K, len(WIDE_RIDGES), WIDE_BLOCK
    return Wide(
        G=np.zeros((0, b, b)), B=np.zeros((0, K, b)), total=np.zeros((0, b)), targets=np.zeros(K), weight=0.0,
        Z=np.zeros((0, b, b)), U=np.zeros((0, b, b)), solution=np.zeros((0, R, K, b)), theta=np.zeros((0, R, K, b)),
        mean=np.zeros(K), features=0, active=0, rows=0, taken=0, solved=0, stage=IDLE, ridge=0, panel=0, step=0,
        grow=0,
    )  # fmt: skip


def restarted(problem: Problem, wide: Wide) -> Wide:
    """Nothing learned, for an archive that has been cut; the arrays stay."""
    return wide._replace(features=0, active=0, rows=0, taken=0, solved=0, stage=IDLE, ridge=0, panel=0, step=0, grow=0)


def ready(wide: Wide) -> bool:
    """Whether there is a solution that predicts."""
    return wide.active > 0


def predict(problem: Problem, wide: Wide, xs: Vector, scaling: Scaling) -> Matrix:
    """(ridges, K) in the target's own units, for inputs that have been scaled."""
    z = features(problem.V_wide[0, :, : wide.active], xs).reshape(-1, WIDE_BLOCK)
    standard = wide.mean + np.einsum("prkj,pj->rk", wide.theta[: len(z)], z)  # (G90)
    out: Matrix = scaling.shift + (scaling.unit or 1.0) * standard  # (G90)
    return out


# Room for more features


def panels_of(frequencies: int) -> int:
    """Blocks of as many sines and cosines."""
    return 2 * frequencies // WIDE_BLOCK


def pairs_of(panels: int) -> int:
    """Blocks on and above the diagonal."""
    return panels * (panels + 1) // 2


def wanted(problem: Problem, wide: Wide, archive: Archive) -> int:
    """Frequencies that there should be for the rows that have come."""
    most = problem.V_wide.shape[2]
    D = wide.features
    if D == 0 and most >= WIDE_LEAST and archive.rows >= FIRST_ROWS:
        D = WIDE_LEAST
    while 0 < 2 * D <= most and wide.grow == 1 and archive.rows >= WIDE_GROWTH * 2 * D:  # (G91)
        D *= 2
    return D


def has_room(problem: Problem, wide: Wide, archive: Archive) -> bool:
    return panels_of(wanted(problem, wide, archive)) <= len(wide.total)


def enlarged(problem: Problem, wide: Wide, archive: Archive) -> Wide:
    """With room for the features that are wanted."""
    panels = max(panels_of(wanted(problem, wide, archive)), len(wide.total))
    sizes = {"G": pairs_of(panels), "U": pairs_of(panels)}
    names = ("G", "B", "total", "Z", "U", "solution", "theta")
    larger: dict[str, Any] = {name: lengthened(getattr(wide, name), sizes.get(name, panels)) for name in names}
    return wide._replace(**larger)


def lengthened(a: Tensor, n: int) -> Tensor:
    longer = np.zeros((n, *a.shape[1:]))  # memory that is not used yet takes no time
    longer[: len(a)] = a
    return longer


# The work after a row


def advance(problem: Problem, wide: Wide, archive: Archive, scaling: Scaling, useful: bool) -> Wide:
    """After a row was appended to the archive: a piece of the work, if there is any.

    There are more features as the rows grow, if those that there are have been useful.
    """
    wide = wide._replace(grow=int(useful))
    work, stage = 0, IDLE
    while work < WIDE_WORK:
        if wide.stage == IDLE:
            wide, stage = begun(problem, wide, archive), IDLE
            if wide.stage == IDLE:
                break
        if wide.stage != stage:
            stage = wide.stage
            wide = wide._replace(**{name: getattr(wide, name).copy() for name in CHANGED[stage]})
        blocks = panels_of(wide.features) - wide.panel
        if stage == GATHER:
            work += WIDE_PASS * (problem.V.shape[1] + WIDE_FEATURE_WORK) * wide.features
            wide = gathered(problem, wide, archive, scaling)
        elif stage in (UPDATE, FACTOR):
            work += WIDE_BLOCK**3 * blocks
            wide = updated(wide) if stage == UPDATE else factored(wide)
        else:
            work += WIDE_BLOCK**2 * blocks * min(problem.K - wide.step, WIDE_OUTPUTS)
            wide = (forward if stage == FORWARD else backward)(problem, wide)
    return wide


def begun(problem: Problem, wide: Wide, archive: Archive) -> Wide:
    """The next block of rows or, when there is none, the next solution; otherwise nothing."""
    D = wanted(problem, wide, archive)
    if wide.features < D and panels_of(D) <= len(wide.total):
        wide = wide._replace(features=D, rows=0, taken=0, solved=0)
    if wide.features == 0:
        return wide
    if archive.rows - wide.taken > WIDE_BLOCK:  # without the last row, whose weight copies may still change
        oldest = archive.rows + WIDE_BLOCK - len(archive.y)  # rows that stay for long enough to be added
        return wide._replace(stage=GATHER, step=0, taken=max(wide.taken, oldest))
    if wide.rows >= max(FIRST_ROWS, WIDE_REFIT * wide.solved):  # (G86)
        return wide._replace(stage=FACTOR, ridge=0, panel=0, step=0, solved=wide.rows)
    return wide


def gathered(problem: Problem, wide: Wide, archive: Archive, scaling: Scaling) -> Wide:
    """With the features of WIDE_PASS rows more in the block, and these rows in the sums that are linear in z."""
    places = (wide.taken + wide.step + np.arange(WIDE_PASS)) % len(archive.y)
    xs = np.array([scaled(scaling, x) for x in archive.X[places]])
    y = np.array([standardised(scaling, target_vector(problem, value)) for value in archive.y[places]])  # (G85)
    w, D = archive.weight[places], wide.features
    phase = xs @ problem.V_wide[0, :, :D]
    z = (np.hstack((np.sin(phase), np.cos(phase))) / np.sqrt(D)).reshape(WIDE_PASS, -1, WIDE_BLOCK)  # (G83)
    P = z.shape[1]
    weight = wide.weight
    if wide.rows == wide.step == 0:
        wide.B[:P], wide.total[:P], wide.targets[:], weight = 0, 0, 0, 0.0
    wide.Z[:P, wide.step : wide.step + WIDE_PASS] = (np.sqrt(w)[:, None, None] * z).transpose(1, 0, 2)
    wide.B[:P] += np.einsum("r,rk,rpj->pkj", w, y, z)  # (G85)
    wide.total[:P] += np.einsum("r,rpj->pj", w, z)  # (G85)
    wide.targets[:] += w @ y  # (G85)
    wide = wide._replace(weight=float(weight + w.sum()), step=wide.step + WIDE_PASS)  # (G85)
    return wide._replace(stage=UPDATE, panel=0, step=0) if wide.step >= WIDE_BLOCK else wide


def row_of(matrix: Tensor, P: int, p: int) -> Tensor:
    """The blocks of row p from the diagonal on, a view."""
    start = p * P - p * (p - 1) // 2
    return matrix[start : start + P - p]


def updated(wide: Wide) -> Wide:
    """With the block of rows in one more row of blocks of G."""
    P, p = panels_of(wide.features), wide.panel
    G = row_of(wide.G, P, p)
    products = wide.Z[p].T @ wide.Z[p:P]
    G[:] = G + products if wide.rows else products  # (G84)
    if p + 1 < P:
        return wide._replace(panel=p + 1)
    return wide._replace(stage=IDLE, panel=0, rows=wide.rows + WIDE_BLOCK, taken=wide.taken + WIDE_BLOCK)


def factored(wide: Wide) -> Wide:
    """One row of blocks of U: an earlier one is subtracted from it, or after all of them it is finished."""
    P, p, r = panels_of(wide.features), wide.panel, wide.step
    U = row_of(wide.U, P, p)
    if r == 0:
        ridge = WIDE_RIDGES[wide.ridge] * wide.weight / max(wide.rows, 1)
        U[:] = row_of(wide.G, P, p)
        U[0] += ridge * np.eye(WIDE_BLOCK)  # (G87)
    if r < p:
        earlier = row_of(wide.U, P, r)
        U -= earlier[p - r].T @ earlier[p - r :]  # (G88)
        return wide._replace(step=r + 1)
    try:
        U[0] = np.linalg.cholesky(U[0]).T  # (G88)
        for block in U[1:]:
            block[:] = solve_triangular(U[0], block, trans=1, check_finite=False)  # (G88)
    except np.linalg.LinAlgError:
        U[:] = np.nan  # and so will be the solution, which is dropped
    if p + 1 < P:
        return wide._replace(panel=p + 1, step=0)
    return wide._replace(stage=FORWARD, panel=0, step=0)


def solved(U: Matrix, right: Matrix, trans: Literal[0, 1] = 0) -> Matrix:
    """NaN where U is singular, as a file may claim: such a solution is dropped."""
    try:
        return np.asarray(solve_triangular(U, right, trans=trans, check_finite=False))
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)


def forward(problem: Problem, wide: Wide) -> Wide:
    """One panel of U' v = B - total mean(y)', for WIDE_OUTPUTS outputs."""
    P, p, k = panels_of(wide.features), wide.panel, slice(wide.step, wide.step + WIDE_OUTPUTS)
    v, U = wide.solution[:P, wide.ridge, k], row_of(wide.U, P, p)
    if p == 0:
        mean = wide.targets[k] / wide.weight
        v[:] = wide.B[:P, k] - mean[:, None] * wide.total[:P, None]  # (G87)
    v[p] = solved(U[0], v[p].T, trans=1).T  # (G89)
    v[p + 1 :] -= v[p] @ U[1:]  # (G89)
    return wide._replace(panel=p + 1) if p + 1 < P else wide._replace(stage=BACKWARD)


def backward(problem: Problem, wide: Wide) -> Wide:
    """One panel of U theta = v, from the last; after it the next outputs, the next ridge, or the solution is used."""
    P, p, k = panels_of(wide.features), wide.panel, slice(wide.step, wide.step + WIDE_OUTPUTS)
    v, U = wide.solution[:P, wide.ridge, k], row_of(wide.U, P, p)
    rest = v[p] - (v[p + 1 :] @ U[1:].transpose(0, 2, 1)).sum(axis=0)
    v[p] = solved(U[0], rest.T).T  # (G89)
    if p > 0:
        return wide._replace(panel=p - 1)
    if wide.step + WIDE_OUTPUTS < problem.K:
        return wide._replace(stage=FORWARD, step=wide.step + WIDE_OUTPUTS)
    if wide.ridge + 1 < len(WIDE_RIDGES):
        return wide._replace(stage=FACTOR, ridge=wide.ridge + 1, step=0)
    return adopted(wide)._replace(stage=IDLE, ridge=0, step=0)


def adopted(wide: Wide) -> Wide:
    """With the solution as the one that predicts, unless a number in it is not finite."""
    P, mean = panels_of(wide.features), wide.targets / wide.weight
    if not all((np.abs(a) <= LARGEST_VALUE).all() for a in (wide.solution[:P], mean)):
        return wide
    theta = wide.theta.copy()
    theta[:P] = wide.solution[:P]
    return wide._replace(theta=theta, mean=mean, active=wide.features)


# What a file may claim


def check(problem: Problem, wide: Wide, archive: Archive) -> None:
    most, panels, K, R, b = problem.V_wide.shape[2], len(wide.total), problem.K, len(WIDE_RIDGES), WIDE_BLOCK
    shapes = {
        "G": (pairs_of(panels), b, b), "B": (panels, K, b), "total": (panels, b), "targets": (K,), "Z": (panels, b, b),
        "U": (pairs_of(panels), b, b), "solution": (panels, R, K, b), "theta": (panels, R, K, b), "mean": (K,),
    }  # fmt: skip
    for name, shape in shapes.items():
        array = getattr(wide, name)
        demand(array.shape == shape and array.dtype == np.float64, f"wide.{name} does not fit the problem")
        if name not in ("U", "solution"):  # a fit that fails is dropped when it is complete
            check_finite(array, f"wide.{name}")
    demand(panels <= panels_of(most), "there are more wide features than frequencies")
    demand(is_real(wide.weight) and wide.weight >= 0, "the sum of weights must be a positive number")
    counts = (wide.features, wide.active, wide.rows, wide.taken, wide.solved, wide.stage, wide.ridge, wide.panel)
    demand(all(is_count(n) for n in (*counts, wide.step, wide.grow)), "counts of the wide features must be counts")
    for D in (wide.features, wide.active):
        demand(D == 0 or (D >= WIDE_LEAST and D & (D - 1) == 0), "the wide features are not a power of two")
        demand(panels_of(D) <= panels, "there is no room for the wide features")
    demand(wide.rows % b == 0 and wide.solved <= wide.rows and wide.rows <= wide.taken <= archive.rows,
           "the rows of the wide features do not fit the archive")  # fmt: skip
    demand(wide.grow <= 1, "wide features grow or not")
    demand(0 <= wide.stage <= BACKWARD and wide.ridge < R, "there is no such stage of the wide features")
    demand(wide.stage == IDLE or wide.panel < panels_of(wide.features), "there is no such block of wide features")
    demand(wide.stage not in (GATHER, UPDATE) or wide.taken + b <= archive.rows, "rows of the archive have not come")
    limits = {GATHER: b - WIDE_PASS, FACTOR: wide.panel, FORWARD: K - 1, BACKWARD: K - 1}
    units = {GATHER: WIDE_PASS, FORWARD: WIDE_OUTPUTS, BACKWARD: WIDE_OUTPUTS}
    possible = wide.step <= limits.get(wide.stage, 0) and wide.step % units.get(wide.stage, 1) == 0
    demand(possible, "there is no such step of the wide features")
    demand(wide.stage < FACTOR or (wide.rows > 0 and wide.weight > 0), "wide features have no rows to be fitted to")
