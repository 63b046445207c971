"""Tables with categories as they are, against one-hot columns made by hand: python -m omkl_lab.one_hot

GraphMKL predicts, then learns, each row of the sets in the folder of real data (OMKL_DATA) that have categories. Writes
results/one_hot.json, and from it the table in docs/tables.md.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from omkl import GraphMKLClassifier, GraphMKLRegressor
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.data.sets import data_folders
from omkl_lab.files import write_json

RESULTS, PAGE = Path("results/one_hot.json"), Path("docs/tables.md")
COMMAND = "python -m omkl_lab.one_hot"
SETS = ("ames", "cps1988", "credit", "deliveries", "diamonds", "hpc", "loans", "weather_nyc")
LABELS = ("credit", "hpc")
SEEDS = range(5)


def read(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """One-hot columns, called column=value, and the target."""
    for folder in data_folders():
        if (path := folder / "real" / f"{name}.csv").exists():
            frame = pd.read_csv(path)
            return frame, frame.pop("target")
    raise SystemExit(f"there is no real/{name}.csv; set OMKL_DATA to the folder that holds the data")


def with_categories(one_hot: pd.DataFrame) -> pd.DataFrame:
    """The table before its categories became columns; a row without any has the category that had no column.

    >>> with_categories(pd.DataFrame({"a": [1, 2], "b=x": [0, 1], "b=y": [0, 0]}))["b"].tolist()
    ['other', 'x']
    """
    columns: dict[str, dict[str, Any]] = {}
    for name in one_hot:
        column, equals, value = name.partition("=")
        if equals:
            columns.setdefault(column, {})[value] = one_hot[name]
    plain = one_hot[[name for name in one_hot if "=" not in name]]
    texts = {
        column: np.select([flag == 1 for flag in flags.values()], list(flags), "other")
        for column, flags in columns.items()
    }
    return plain.assign(**texts)


def error(X: Any, y: pd.Series, labels: bool, seed: int) -> float:
    """The mean squared error of targets scaled to [0, 1], times 1000, or the share of wrong labels in percent."""
    if labels:
        model = GraphMKLClassifier(random_state=seed)
        wrong = model.predict_then_learn(X, y, classes=sorted(y.unique())) != y
        return 100 * float(wrong[1:].mean())
    errors = (GraphMKLRegressor(random_state=seed).predict_then_learn(X, y) - y) / (y.max() - y.min())
    return 1000 * float((errors[1:] ** 2).mean())


def quoted(results: dict[str, dict[str, list[float]]]) -> dict[str, str]:
    """The generated part of docs/tables.md."""

    def cell(errors: Iterable[float]) -> str:
        low, middle, high = np.percentile(list(errors), (0, 50, 100))
        return f"{middle:.4g} ({low:.4g} to {high:.4g})"

    rows = [
        (markdown.escaped(name), *(cell(each) for each in errors.values()),
         f"{np.median(errors['categories']) / np.median(errors['one-hot']):.3f}")
        for name, errors in results.items()
    ]  # fmt: skip
    rows.sort(key=lambda row: -float(row[-1]))
    return {"one-hot": "\n" + markdown.table(("set", "one-hot columns", "categories", "ratio"), rows)}


def main() -> None:
    results: dict[str, dict[str, list[float]]] = {}
    for name in SETS:
        one_hot, y = read(name)
        forms = {"one-hot": one_hot, "categories": with_categories(one_hot)}
        results[name] = {form: [error(X, y, name in LABELS, seed) for seed in SEEDS] for form, X in forms.items()}
        print(name, {form: float(np.median(errors)) for form, errors in results[name].items()}, flush=True)
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)


if __name__ == "__main__":
    run_without_arguments("omkl_lab.one_hot", __doc__, main)
