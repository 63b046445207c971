"""Plots of explanations, as scikit-learn's displays; matplotlib (extra `plot`) is imported when one is drawn.

They take any model that explains itself, of either API or loaded from a file.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from omkl.arrays import Vector
from omkl.explain.contributions import Explanation
from omkl.explain.effects import Effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOR, AGAINST = "#0072b2", "#d55e00"  # colours of what raises the prediction and of what lowers it
MOST = 12  # columns that are drawn


def new_axes(ax: "Axes | None" = None, height: float = 3.5) -> "Axes":
    """The Axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'omkl[plot]'") from None
    return plt.subplots(figsize=(8, height), layout="constrained")[1]


class Display:
    """What all displays have once they are drawn."""

    ax_: "Axes"
    figure_: "Figure"

    def _drawn(self, ax: "Axes") -> Self:
        self.ax_, self.figure_ = ax, ax.figure  # type: ignore[assignment]  # a figure, or a part of one
        return self


class ImportanceDisplay(Display):
    """The importance of columns, as bars.

    Parameters
    ----------
    importance : dict
        By column, as `importance_` has it.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import GraphMKLRegressor, ImportanceDisplay
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    >>> model = GraphMKLRegressor(random_state=0).fit(X, X[:, 1])
    >>> ImportanceDisplay.from_estimator(model).ax_.get_yticklabels()[0].get_text()
    '1'
    """

    def __init__(self, importance: Mapping[Hashable, float]) -> None:
        self.importance = importance

    @classmethod
    def from_estimator(cls, estimator: Any, background: Any = None, target: Hashable = None, ax: "Axes | None" = None
                       ) -> Self:  # fmt: skip
        """Draw the importance of a model's columns; `target` is one of several."""
        found = estimator.importance(background)
        if found and isinstance(next(iter(found.values())), Mapping):
            found = found[next(iter(found)) if target is None else target]
        return cls(found).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the bars, the largest on top."""
        shown = dict(sorted(self.importance.items(), key=lambda pair: -pair[1])[:MOST])
        ax = new_axes(ax, 1 + 0.3 * len(shown))
        ax.barh([str(name) for name in shown], list(shown.values()), color=FOR)
        ax.invert_yaxis()
        ax.set(xlabel="importance (standard deviation of the prediction)")
        return self._drawn(ax)


class EffectDisplay(Display):
    """The effect of one column: mean predictions, and where those for single rows are.

    Parameters
    ----------
    effect : Effect
        As `model.effect(column)` returns it.
    output : default=None
        The label, or the target of several, whose predictions are drawn; the last if none is given.
    """

    def __init__(self, effect: Effect, output: Hashable = None) -> None:
        self.effect, self.output = effect, output

    @classmethod
    def from_estimator(
        cls, estimator: Any, column: Hashable, coverage: float = 0.8, background: Any = None, output: Hashable = None,
        ax: "Axes | None" = None,
    ) -> Self:  # fmt: skip
        """Draw the effect of a column on the predictions of a model."""
        return cls(estimator.effect(column, coverage, background), output).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw a line with a band, or points with bars where the values are text."""
        effect, ax = self.effect, new_axes(ax)
        mean, lower, upper = (self._of_output(part) for part in (effect.mean, effect.lower, effect.upper))
        if all(isinstance(value, float) for value in effect.values):
            ax.fill_between(
                effect.values, lower, upper, color=FOR, alpha=0.2, label=f"{effect.coverage:.0%} of the rows"
            )
            ax.plot(effect.values, mean, color=FOR, label="mean")
        else:
            names = [str(value) for value in effect.values]
            ax.errorbar(
                names,
                mean,
                yerr=[mean - lower, upper - mean],
                fmt="o",
                color=FOR,
                capsize=3,
                label=f"mean, and {effect.coverage:.0%} of the rows",
            )
            ax.tick_params("x", rotation=30 if max(map(len, names), default=0) > 6 else 0)
        ax.legend()
        what = "prediction" if not effect.outputs else f"of {self._output()}"
        ax.set(xlabel=str(effect.column), ylabel=what)
        return self._drawn(ax)

    def _output(self) -> Hashable:
        return self.effect.outputs[-1] if self.output is None else self.output

    def _of_output(self, values: Vector) -> Vector:
        outputs: Sequence[Hashable] = self.effect.outputs
        if outputs and self._output() not in outputs:
            raise ValueError(f"output must be one of {list(outputs)}, got {self.output!r}")
        return values[:, outputs.index(self._output())] if outputs else values


class ContributionsDisplay(Display):
    """The contributions to one prediction, from the base value to the prediction.

    Parameters
    ----------
    explanation : Explanation
        As `model.explain(X)` returns it.
    row : int, default=0
        Which of its rows is drawn.
    output : default=None
        The label, or the target of several, that is explained; the most likely label if none is given.
    """

    def __init__(self, explanation: Explanation, row: int = 0, output: Hashable = None) -> None:
        self.explanation, self.row, self.output = explanation, row, output

    @classmethod
    def from_estimator(cls, estimator: Any, x: Any, background: Any = None, output: Hashable = None,
                       ax: "Axes | None" = None) -> Self:  # fmt: skip
        """Draw the contributions to the prediction for one row: a dictionary, or the first row of a frame or array."""
        return cls(estimator.explain(x, background), 0, output).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw a bar for each column, each beginning where the one above it ends."""
        e, row = self.explanation, self.row
        parts, base, prediction = e.contributions[row], e.base[row], e.predictions[row]
        name = "prediction"
        if e.outputs:
            place = e.place(row, self.output)
            parts, base, prediction = parts[:, place], base[place], prediction[place]
            name = f"of {e.outputs[place]}"
        order = np.argsort(-np.abs(parts), kind="stable")
        shown, rest = order[:MOST], order[MOST:]
        names = [f"{e.columns[k]} = {brief(e.values[row][k])}" for k in shown]
        steps = parts[shown]
        if len(rest):
            names, steps = [*names, f"{len(rest)} other columns"], np.append(steps, parts[rest].sum())
        ends = float(base) + np.cumsum(steps)
        ax = new_axes(ax, 1.2 + 0.3 * len(names))
        ax.barh(names, steps, left=ends - steps, color=[FOR if step >= 0 else AGAINST for step in steps])
        for value, label in ((float(base), "base value"), (float(prediction), name)):
            ax.axvline(value, color="0.5", linewidth=1, linestyle="--" if label == "base value" else "-")
        ax.invert_yaxis()
        ax.set(xlabel=f"{name}: from {brief(float(base))} (base value) to {brief(float(prediction))}")
        return self._drawn(ax)


def brief(value: float | str) -> str:
    """A cell, short.

    >>> brief(1234.5678), brief("a very long text that goes on and on")
    ('1235', 'a very long text that g…')
    """
    if isinstance(value, str):
        return value if len(value) <= 24 else value[:23] + "…"
    return f"{value:.4g}"
