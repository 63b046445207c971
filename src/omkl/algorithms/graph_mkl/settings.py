"""What a user may choose for GraphMKL, with all its defaults."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, get_args

from omkl.algorithms.base import Kernels, Task
from omkl.algorithms.graph_mkl.constants import (
    ARCHIVE_START,
    DIAGONAL_RIDGE,
    FIRST_ROWS,
    MAX_ARCHIVE,
    MAX_FULL_INPUTS,
    MAX_TREES,
    MAX_WIDE,
    TRIAL_ROUNDS,
    WINDOW,
)
from omkl.features import GENERATOR
from omkl.kernels import Gaussian, Kernel, dictionary
from omkl.validation import is_number, is_whole, require, require_whole

SINGLES = (0.15, 0.8)  # length scales of the kernels on single inputs that go with a named dictionary
# Defaults that differ between the tasks
TASK_DEFAULTS: dict[Task, dict[str, float]] = {
    "regression": {"discount": 0.1, "memory": 0.97, "min_leverage": 0.05},
    "classification": {"discount": 0.01, "memory": 0.98, "min_leverage": 0.01},
}

LOGISTIC_RIDGE = 10.0  # of the logistic expert on the inputs, over their number, ...
MAX_LOGISTIC_RIDGE = 1.0  # ... and at most

# What a budget buys
BUDGETS = {"small": 1.0, "standard": 3.0, "large": 10.0}
ALL_EXPERTS = 1.5  # least budget with which all experts are evaluated for every row
LARGE_EXPERTS = 2.0  # least budget with which there are large experts
TREES_PER_BUDGET = 40
MORE_FOR_LABELS = 2  # times as many trees
WIDE_PER_BUDGET = 342  # most frequencies of the wide least squares, before they are rounded down to a power of two
WIDE_FOR_NUMBERS = 0.25  # of these; labels share the work
MAX_TREE_INPUTS = 2048  # with more inputs there are no large experts: too few rows would fit into the archive
MAX_WIDE_INPUTS = 256  # with more inputs there are no wide least squares: distances say little there
ARCHIVE_PER_BUDGET = 5462  # rows, before they are rounded down to a power of two
ARCHIVE_VALUES = 2**21  # most values of the rows of the archive: 16 MB


def power_of_two(n: float) -> int:
    """The largest that is at most n, for n of at least 1.

    >>> power_of_two(1023), power_of_two(1024)
    (512, 1024)
    """
    return 1 << (int(n).bit_length() - 1)


@dataclass(frozen=True)
class GraphSettings:
    """What a user may choose for GraphMKL. The defaults were chosen once, for all streams.

    Parameters
    ----------
    budget
        How much arithmetic a row may cost: "small", "standard" (about 5 times as much), "large" (about 10 times), or a
        number, a multiple of the small budget. It decides how many experts are evaluated, and whether there are large
        experts, boosted trees and wide least squares, which grow with the rows.
    kernels
        A named dictionary or a list of kernels; inputs are standardised and divided by sqrt(d).
    n_features
        Random features per kernel, D.
    out_degree
        Kernels that count as neighbours of a kernel, itself among them; experts on neighbours of a leading
        kernel are explored only where there are no others.
    delta_dimension
        Dimension in which the similarity (7) is taken: None for that of the data, or 1.
    orders
        How many inputs a random feature depends on, for one kernel after the other and again from the start;
        None for all.
    singles
        Length scales of additional Gaussian kernels whose random features depend on one input each; None for 0.15
        and 0.8 beside a named dictionary, and none of them beside a list of kernels.
    steps
        Step lengths in (0, 1] of the normalised gradient experts on every kernel, beside its least squares.
    widths
        Length scales of the memory experts, which average the last targets.
    ridge
        Of the least squares; divided by the squared length scale where that is above 1.
    evaluate
        Experts evaluated for a row after the warm-up, beside the large ones: "quarter" of them, "all", or a number;
        None for a quarter with a small budget, and all with a larger one.
    warm_up
        Rows for which all experts are evaluated.
    discount
        Share of the evidence forgotten with every row; None for 0.1 for numbers and 0.01 for labels.
    memory
        Share of an expert's noise estimate kept with every row; None for 0.97 for numbers and 0.98 for labels.
    adapt
        Start a second set of experts when the error rises, and keep the better one.
    min_leverage
        Least z' P z (variance of a prediction, in units of the noise) at which a row updates the covariance P of
        a least squares expert. Its effective memory is 1 / min_leverage rows like the next. None for 0.05 for
        numbers and 0.01 for labels; 0 for streams that never change.
    stack
        Correct the mixture of numbers by residual stacking: a least squares on the experts' differences from it.
    task, outputs
        "regression", or "classification" of so many labels.

    >>> GraphSettings(budget="small").active, GraphSettings().active
    (10, 43)
    >>> GraphSettings(budget="small").trees(d=10), GraphSettings().trees(d=10), GraphSettings().wide_features(d=10)
    (0, 120, 256)
    """

    budget: str | float = "standard"
    kernels: Kernels = "gaussian"
    n_features: int = 50
    out_degree: int = 3
    delta_dimension: int | None = 1
    orders: tuple[int | None, ...] = (2, 2, None)
    singles: tuple[float, ...] | None = None
    steps: tuple[float, ...] = (1.0, 0.25)
    widths: tuple[float, ...] = (0.03, 0.1, 0.3)
    ridge: float = 3e-3
    evaluate: str | int | None = None
    warm_up: int = 512
    discount: float | None = None
    memory: float | None = None
    adapt: bool = True
    min_leverage: float | None = None
    stack: bool = True
    task: Task = "regression"
    outputs: int = 1

    def __post_init__(self) -> None:
        for name in ("n_features", "out_degree", "warm_up", "outputs"):
            require_whole(name, getattr(self, name))
        require(self.delta_dimension in (None, 1), "delta_dimension", "None (that of the data) or 1",
                self.delta_dimension)  # fmt: skip
        if self.singles is None:
            object.__setattr__(self, "singles", SINGLES if isinstance(self.kernels, str) else ())
        for name in ("orders", "singles", "steps", "widths"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        valid = all(order is None or (is_whole(order) and order >= 1) for order in self.orders)
        require(valid and len(self.orders) > 0, "orders", "whole numbers of at least 1, or None", self.orders)
        for name in ("singles", "widths"):
            valid = all(is_number(width) and width > 0 for width in getattr(self, name))
            require(valid, name, "positive numbers", getattr(self, name))
        valid = all(is_number(step) and 0 < step <= 1 for step in self.steps)
        require(valid, "steps", "numbers above 0, at most 1", self.steps)
        require(is_number(self.ridge) and self.ridge > 0, "ridge", "a positive finite number", self.ridge)
        for name in TASK_DEFAULTS["regression"]:
            share = getattr(self, name)
            valid = share is None or (is_number(share) and 0 <= share < 1)
            require(valid, name, "a number from 0 to below 1, or None (the default of the task)", share)
        require(self.task in get_args(Task), "task", "regression or classification", self.task)
        object.__setattr__(self, "kernels", tuple(dictionary(self.kernels)))
        valid = self.evaluate in (None, "quarter", "all") or (is_whole(self.evaluate) and int(self.evaluate or 0) >= 2)
        require(valid, "evaluate", "quarter, all, a whole number of at least 2, or None", self.evaluate)
        valid = self.budget in BUDGETS if isinstance(self.budget, str) else is_number(self.budget) and self.budget >= 1
        require(valid, "budget", "small, standard, large, or a number of at least 1", self.budget)

    @classmethod
    def for_task(cls, task: Task, **choices: Any) -> Self:
        """The settings of a task that leave what is not chosen, or None, at its default."""
        return cls(task=task, **choices)

    def with_outputs(self, outputs: int) -> Self:
        """The same settings for another number of labels."""
        return replace(self, outputs=outputs)

    def resolved(self, name: str) -> float:
        """The value of a setting whose default depends on the task."""
        value = getattr(self, name)
        return float(TASK_DEFAULTS[self.task][name] if value is None else value)

    def ridges(self, kernels: Sequence[Kernel], d: int) -> tuple[float, ...]:
        """Ridge of every kernel's least squares, then of the experts on the inputs themselves.

        The distinctions that a wide kernel can make lie in directions of its features that are small by powers of
        its length scale; the same ridge for all would hide them. For labels the coefficients of standardised
        inputs are taken to be of size 0.3, or 1 / sqrt(d) where that is more, and those with squares of size 1.
        """
        ridge = float(self.ridge)
        linear = ridge if self.task == "regression" else min(LOGISTIC_RIDGE / d, MAX_LOGISTIC_RIDGE)
        squares = () if self.task == "regression" else (1 / d,)
        if d > MAX_FULL_INPUTS:
            linear = max(linear, DIAGONAL_RIDGE)  # (G20)
        return (*(ridge / max(1.0, kernel.length_scale**2) for kernel in kernels), *squares, linear)  # (G8)

    @property
    def all_kernels(self) -> tuple[Kernel, ...]:
        """The dictionary, and behind it the kernels on single inputs."""
        return (*dictionary(self.kernels), *(Gaussian(scale) for scale in self.singles or ()))

    @property
    def kernel_orders(self) -> list[int | None]:
        """How many inputs the random features of each of `all_kernels` depend on; None for all."""
        orders = [self.orders[i % len(self.orders)] for i in range(len(tuple(self.kernels)))]
        return [*orders, *(1 for _ in self.singles or ())]

    @property
    def multiple(self) -> float:
        """The budget as a multiple of the small one."""
        return BUDGETS[self.budget] if isinstance(self.budget, str) else float(self.budget)

    def trees(self, d: int) -> int:
        """Boosted trees for d features."""
        if self.multiple < LARGE_EXPERTS or d > MAX_TREE_INPUTS:
            return 0
        more = MORE_FOR_LABELS if self.task == "classification" else 1
        return min(int(TREES_PER_BUDGET * self.multiple * more), MAX_TREES)

    def wide_features(self, d: int) -> int:
        """Most frequencies of the wide least squares for d features."""
        if self.multiple < LARGE_EXPERTS or d > MAX_WIDE_INPUTS:
            return 0
        share = WIDE_FOR_NUMBERS if self.task == "regression" else 1
        return power_of_two(min(WIDE_PER_BUDGET * self.multiple * share, MAX_WIDE))

    def archive_rows(self, d: int) -> int:
        """Most rows that the large experts are fitted to."""
        if not self.trees(d):
            return 0
        return power_of_two(
            max(min(ARCHIVE_PER_BUDGET * self.multiple, MAX_ARCHIVE, ARCHIVE_VALUES / d), ARCHIVE_START)
        )

    @property
    def experts(self) -> int:
        """Experts of one set, without the large ones."""
        on_inputs = 1 if self.task == "regression" else 2
        return len(self.all_kernels) * (1 + len(self.steps)) + on_inputs + len(self.widths)

    def size(self, d: int, outputs: int = 1) -> int:
        """About how many numbers it takes to make a model for d features and so many outputs."""
        N, D, E = len(self.all_kernels), self.n_features, self.experts
        drawn = 16 * N * d * D  # which inputs a random feature depends on is sorted out too
        of_a_set = (N + 1) * ((2 * D) ** 2 + (1 + len(self.steps)) * outputs * 2 * D) + E**2
        stored = (FIRST_ROWS + WINDOW) * (d + outputs) + 4 * WINDOW  # rows, and what is known about those in the memory
        return 2 * GENERATOR * d + drawn + 2 * (of_a_set + stored)

    @property
    def active(self) -> int:
        """Experts of one set that are evaluated for a row after the warm-up."""
        chosen = self.evaluate
        if chosen is None:
            chosen = "all" if self.multiple >= ALL_EXPERTS else "quarter"
        if chosen == "all":
            return self.experts
        return max(2, self.experts // 4) if chosen == "quarter" else min(int(chosen), self.experts)

    @property
    def trial(self) -> int:
        """Rounds of a challenger's trial; 0: there is no challenger."""
        return TRIAL_ROUNDS if self.adapt else 0


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    budget : {"small", "standard", "large"} or float, default="standard"
        How much arithmetic a row may cost; standard is about 5 times small, large about 10 times, and a number is a
        multiple of small. From 2 on there are large experts, boosted trees and wide least squares, which grow with the
        rows.
    kernels : str or list of Kernel, default="gaussian"
        The dictionary: "gaussian" (11 Gaussians), "mixed", "families", "paper", or your own list; inputs are
        standardised and divided by sqrt(number of features).
    n_features : int, default=50
        Random features per kernel.
    out_degree : int, default=3
        Kernels that count as neighbours of a kernel, itself among them, when experts are explored.
    orders : tuple of int or None, default=(2, 2, None)
        How many inputs a random feature depends on, kernel after kernel and again from the start; None for all.
    singles : tuple of float, default=None
        Length scales of additional Gaussian kernels whose random features depend on one input each; None for 0.15 and
        0.8 beside a named dictionary, and none of them beside a list of kernels.
    steps : tuple of float, default=(1.0, 0.25)
        Step lengths of the gradient experts on every kernel, beside its least squares.
    widths : tuple of float, default=(0.03, 0.1, 0.3)
        Length scales of the memory experts, which average the last 1024 targets.
    ridge : float, default=3e-3
        Of the least squares.
    evaluate : {"quarter", "all"} or int, default=None
        Experts evaluated for a row after the warm-up, beside the large ones; None for a quarter with a small budget,
        and all with a larger one.
    warm_up : int, default=512
        Rows for which all experts are evaluated.
    discount, memory : float, default=None
        Share of the evidence forgotten, and of the noise estimate kept, with every row; None for 0.1 and 0.97 for
        numbers, 0.01 and 0.98 for labels.
    adapt : bool, default=True
        Start a second set of experts when the error rises, and keep the better one.
    min_leverage : float, default=None
        Least variance of a prediction, in units of the noise, at which a row updates the covariance of a least
        squares expert; its effective memory is 1 / min_leverage rows. None for 0.05 for numbers and 0.01 for labels; 0
        for streams that never change.
    stack : bool, default=True
        Correct the mixture by residual stacking, a least squares on the experts' differences from it (numbers only).
    """

    budget: str | float = GraphSettings.budget
    kernels: Kernels = GraphSettings.kernels
    n_features: int = GraphSettings.n_features
    out_degree: int = GraphSettings.out_degree
    orders: tuple[int | None, ...] = GraphSettings.orders
    singles: tuple[float, ...] | None = GraphSettings.singles
    steps: tuple[float, ...] = GraphSettings.steps
    widths: tuple[float, ...] = GraphSettings.widths
    ridge: float = GraphSettings.ridge
    evaluate: str | int | None = GraphSettings.evaluate
    warm_up: int = GraphSettings.warm_up
    discount: float | None = GraphSettings.discount
    memory: float | None = GraphSettings.memory
    adapt: bool = GraphSettings.adapt
    min_leverage: float | None = GraphSettings.min_leverage
    stack: bool = GraphSettings.stack

    @property
    def algorithm_name(self) -> str:
        return "graph-mkl"
