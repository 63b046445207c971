"""What passes over the same rows change: python -m omkl_lab.passes

Cross-validation on iris and wine; small samples of labels and of numbers, judged on other rows; and intervals after
partial_fit of the same rows again and again. Writes results/passes.json, and from it the tables in
docs/tutorial_scikit_learn.md. Takes some minutes.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import cross_val_score

import omkl
from omkl.arrays import Array, Matrix, Vector
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.data.sets import load
from omkl_lab.files import brief, write_json

RESULTS, PAGE = Path("results/passes.json"), Path("docs/tutorial_scikit_learn.md")
COMMAND = "python -m omkl_lab.passes"
Epochs = int | Literal["auto"]
EPOCHS: tuple[Epochs, ...] = (1, "auto", 5)
VALIDATED: dict[str, Callable[..., Any]] = {"iris": load_iris, "wine": load_wine}
LABELS: dict[str, Callable[..., Any]] = VALIDATED | {"breast cancer": load_breast_cancer, "digits": load_digits}
BINARY = ("device", "har", "movement")
NUMBERS = ("airfoil", "concrete", "wine_white", "air_quality", "istanbul")  # and diabetes of scikit-learn
SIZES, TEST = (60, 120, 250, 500), 1000  # rows to learn, and most of the others to judge by
PASSES = (1, 2, 5, 10)
ROWS, FRESH, COVERAGE = 600, 4000, 0.9
FOLD_SEEDS, SAMPLES, STREAM_SEEDS = 20, 8, 30


def accuracies(name: str, epochs: Epochs, seeds: int = FOLD_SEEDS) -> list[float]:
    """Of each random state, the accuracy in cross-validation with five folds."""
    X, y = VALIDATED[name](return_X_y=True)
    models = (omkl.GraphMKLClassifier(random_state=seed, epochs=epochs) for seed in range(seeds))
    return [brief(float(cross_val_score(model, X, y, cv=5).mean())) for model in models]


def samples(X: Matrix, y: Array, rows: int, number: int) -> Iterator[tuple[Matrix, Any, Matrix, Any]]:
    """Random rows to learn, and others."""
    for seed in range(number):
        order = np.random.default_rng(seed).permutation(len(X))
        some, others = order[:rows], order[rows : rows + TEST]
        if y.dtype.kind == "f" or len(np.unique(y[some])) == len(np.unique(y)):
            yield X[some], y[some], X[others], y[others]


def of_labels(X: Matrix, y: Array, rows: int, epochs: int, number: int = SAMPLES) -> list[float]:
    """Share of wrong labels, and log-loss."""
    found = []
    for seed, (X_some, y_some, X_others, y_others) in enumerate(samples(X, y, rows, number)):
        p = omkl.GraphMKLClassifier(random_state=seed, epochs=epochs).fit(X_some, y_some).predict_proba(X_others)
        of_true = p[np.arange(len(p)), y_others]
        found.append((np.mean(p.argmax(axis=1) != y_others), -np.mean(np.log(of_true))))
    return [brief(float(value)) for value in np.mean(found, axis=0)]


def of_numbers(X: Matrix, y: Vector, rows: int, epochs: int, number: int = SAMPLES) -> list[float]:
    """Root mean square of the errors over that of the targets' deviations, and width of the intervals over theirs."""
    found = []
    for seed, (X_some, y_some, X_others, y_others) in enumerate(samples(X, y, rows, number)):
        model = omkl.GraphMKLRegressor(random_state=seed, epochs=epochs).fit(X_some, y_some)
        low, high = model.predict_interval(X_others, coverage=COVERAGE).T
        error, deviation = np.sqrt(np.mean((model.predict(X_others) - y_others) ** 2)), np.std(y_others)
        found.append((error / deviation, np.mean(high - low) / deviation))
    return [brief(float(value)) for value in np.mean(found, axis=0)]


def small_sets() -> dict[str, dict[str, dict[str, dict[str, list[float]]]]]:
    """By task, set, rows and number of passes."""
    labels = {name: make(return_X_y=True) for name, make in LABELS.items()}
    for name in BINARY:
        _, X, y, *_ = load(name)
        labels[name] = X, (y > 0).astype(int)
    numbers = {"diabetes": load_diabetes(return_X_y=True)} | {name: load(name)[1:3] for name in NUMBERS}
    return {
        task: {
            name: {str(n): {str(epochs): judge(X, y, n, epochs) for epochs in (1, 2)}
                   for n in SIZES if len(X) >= n + 30}
            for name, (X, y) in sets.items()
        }
        for task, sets, judge in (("labels", labels, of_labels), ("numbers", numbers, of_numbers))
    }  # fmt: skip


def stream(rng: np.random.Generator, rows: int) -> tuple[Matrix, Vector]:
    X = rng.uniform(size=(rows, 4))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=rows)


def again_and_again(seed: int, rows: int = ROWS) -> dict[str, list[float]]:
    """Coverage of intervals and R2 on other rows, after so many times `partial_fit` of the same rows."""
    rng = np.random.default_rng(seed)
    (X, y), (X_fresh, y_fresh) = stream(rng, rows), stream(rng, FRESH)
    model, found = omkl.GraphMKLRegressor(random_state=seed), {}
    for done in range(1, max(PASSES) + 1):
        model.partial_fit(X, y)
        if done in PASSES:
            low, high = model.predict_interval(X_fresh, coverage=COVERAGE).T
            inside = float(np.mean((low <= y_fresh) & (y_fresh <= high)))
            found[str(done)] = [brief(inside), brief(float(model.score(X_fresh, y_fresh)))]
    return found


# The page


def quoted(results: Mapping[str, Any]) -> dict[str, str]:
    """The generated parts of docs/tutorial_scikit_learn.md."""
    validation = [
        (name, epochs, f"{np.mean(each):.3f}", f"{min(each):.3f}", str(sum(a < 0.95 for a in each)))
        for name, by_epochs in results["validation"].items() for epochs, each in by_epochs.items()
    ]  # fmt: skip
    head = ("5 folds", "`epochs`", "accuracy", "least of 20 random states", "below .95")
    small = [(task, rows, *cells) for task, sets in results["small"].items() for rows, cells in ratios(sets).items()]
    columns = ("two passes over one", "rows", "error", "largest ratio", "log-loss, or width of intervals", "largest")
    return {
        "folds": markdown.table(head, validation, left=2),
        "small samples": markdown.table(columns, small, left=1),
        "again and again": markdown.table(
            ("passes", "coverage", "least", "greatest", "R²"), coverages(results["again"]), left=0
        ),
    }


def ratios(sets: Mapping[str, Any]) -> dict[str, list[str]]:
    """By rows, for each of two measures the geometric mean of the ratios of all sets, and the largest."""
    out = {}
    for rows in map(str, SIZES):
        if pairs := [each[rows] for each in sets.values() if rows in each]:
            ratio = np.array([np.divide(pair["2"], pair["1"]) for pair in pairs])
            both = np.exp(np.log(ratio).mean(axis=0)), ratio.max(axis=0)
            out[rows] = [f"{x:.3f}" for x in np.ravel(both, order="F")]
    return out


def coverages(runs: list[Mapping[str, list[float]]]) -> list[list[str]]:
    rows = []
    for done in map(str, PASSES):
        coverage, score = np.array([run[done] for run in runs]).T
        rows.append([done, *(f"{x:.3f}" for x in (coverage.mean(), coverage.min(), coverage.max(), score.mean()))])
    return rows


def main() -> None:
    results: dict[str, Any] = {
        "validation": {name: {str(n): accuracies(name, n) for n in EPOCHS} for name in VALIDATED},
        "small": small_sets(),
        "again": [again_and_again(seed) for seed in range(STREAM_SEEDS)],
    }
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print(*quoted(results).values(), sep="\n")


if __name__ == "__main__":
    run_without_arguments("omkl_lab.passes", __doc__, main)
