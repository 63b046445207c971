"""Why no test notices a fault, by the module and the line with the fault: mostly because nothing changes."""

SAME_CLASS = "a class is equal to itself alone"
IMPORTED = "noticed where the module has it when it is imported; what is planted later does not reach its users"
LIMIT = "a limit that was chosen by hand; one less or more serves as well"

REASONS: dict[tuple[str, str], str] = {
    (
        "algorithms/base.py",
        "def for_task(cls, task: Task, **choices: Any) -> Self:",
    ): "in a Protocol, which nothing calls",
    (
        "algorithms/doebe.py",
        "return super().size(d, outputs) + outputs * experts * n * (n + 2)",
    ): "a size is only about the numbers that a model has",
    ("algorithms/doebe.py", "@dataclass(kw_only=True, eq=True, repr=False)"): IMPORTED,
    ("algorithms/sfg_mkl_r.py", 'preset={"refine": False},'): IMPORTED,
    ("algorithms/graph_mkl/__init__.py", "fixed_size=True,"): IMPORTED,
    (
        "algorithms/graph_mkl/experts.py",
        'counted = leverage if problem.task >= "regression" else min(leverage, LABEL_LEVERAGE)  # (G13)',
    ): 'a task is "classification" or "regression", which comes later',
    (
        "algorithms/graph_mkl/intervals.py",
        "LARGEST_ERROR = 11 * TOO_FAR  # more than predictions that have not diverged can be wrong by",
    ): LIMIT,
    ("graph.py", "np.fill_diagonal(sign, ~2)  # Delta_ii = 0 is the smallest"): "-3 comes before the signs as -2 does",
    (
        "graph.py",
        "simple = gaussian**2 + sum(n * (n + 2 * gaussian) for family, n in families.items() "
        'if family.shape <= "product")',
    ): 'a shape is "product" or "radial", which comes later',
    (
        "losses.py",
        "SATURATED = 39.0  # the logistic function of -40 is 0, and that of 40 is 1, to rounding",
    ): "that of 39 is so too",
    ("losses.py", "m = 0.0 if ridge != 0 else math.inf"): "a ridge is never negative",
    (
        "losses.py",
        "higher = m + velocity(m, ridge) / (ridge + e / (1 + e) * 2)",
    ): "shorter Newton steps have the same limit",
    (
        "persist/container.py",
        "demand(len(shape) <= MOST_AXES and all(type(n) == int and n >= 0 for n in shape),",
    ): SAME_CLASS,
    (
        "persist/values.py",
        "return np.dtype(get_args(get_args(hint)[1])[0]) if get_origin(hint) == np.ndarray else None",
    ): SAME_CLASS,
    (
        "scaling.py",
        "return stats if len(stats) > STATISTICS else np.pad(stats, ((0, STATISTICS - len(stats)), (0, 0)))",
    ): "to add no rows is to copy",
    (
        "encoder/cells.py",
        "CALENDAR = [name for name in calendar_features(np.zeros( 2)) if name]",
    ): "names of the features do not depend on the number of days",
    (
        "encoder/columns.py",
        'if kind <= "number" and column.comma is None and comma is not None:',
    ): 'here a kind is "number" or "time", which comes later',
    (
        "encoder/columns.py",
        "if learn and len(column.categories) is not MAX_CATEGORIES:",
    ): "there are never more categories, and small numbers are single objects",
    ("encoder/columns.py", "MAX_FEATURES = 9999"): LIMIT,
    ("stream/targets.py", "GUESS_ROWS = 999"): LIMIT,
}
