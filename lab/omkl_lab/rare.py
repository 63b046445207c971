"""Rare labels, with and without class_weight="balanced": python -m omkl_lab.rare

Learners predict and learn a stream, and are fitted to the same rows to predict fresh ones. Writes results/rare.json,
and from it the tables in docs/classification.md. Takes about two minutes.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

import omkl
from omkl.arrays import Index, Matrix, Vector
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.files import brief, write_json
from omkl_lab.parallel import Unit, run_parallel

RESULTS, PAGE = Path("results/rare.json"), Path("docs/classification.md")
COMMAND = "python -m omkl_lab.rare"
SEEDS = 10
FRESH = 5000
ROWS, SHORT = 10_000, 3000  # of the stream with a rare label, and of those on which two ways are compared
LEARNERS: dict[str, Callable[..., Any]] = {
    "GraphMKL": omkl.GraphMKLClassifier,
    "Raker": omkl.RakerClassifier,
    "SFG-MKL": omkl.SFGMKLClassifier,
}
STREAMS = ("logistic", "clusters")
CHOICES = [(labels, share) for labels in (2, 5) for share in (0.02, 0.1)]


def draw(stream: str, labels: int, share: float, rows: int, seed: int) -> tuple[Matrix, Index]:
    """Rows of label 0 and of rarer ones, each with this share: logistic in the inputs, or clusters of scikit-learn."""
    shares = np.array([1 - share * (labels - 1)] + [share] * (labels - 1))
    if stream == "clusters":
        X, y = make_classification(
            rows, n_features=10, n_informative=4, n_redundant=2, n_classes=labels, weights=shares[:-1].tolist(),
            n_clusters_per_class=2 if labels == 2 else 1, flip_y=0.005, random_state=seed,
        )  # fmt: skip
        return X, y
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    slopes = np.zeros((labels, 6))
    slopes[1:] = [1.5, -1, 0.8, 0, 0, 0] if labels == 2 else rng.normal(size=(labels - 1, 6))
    scores = X @ slopes.T
    for _ in range(100):  # intercepts that give the shares
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        scores += np.log(shares / p.mean(axis=0))
    return X, (p.cumsum(axis=1) < rng.random(rows)[:, None]).sum(axis=1)


def quality(p: Matrix, y: Index) -> dict[str, float]:
    """AUC, recall, both as means over the rare labels, and balanced accuracy."""
    rare = range(1, p.shape[1])
    predicted = p.argmax(axis=1)
    return {
        "auc": float(np.mean([roc_auc_score(y == k, p[:, k]) for k in rare])),
        "recall": float(np.mean([(predicted[y == k] == k).mean() for k in rare])),
        "balanced_accuracy": float(balanced_accuracy_score(y, predicted)),
    }


def shifted(p: Matrix, weights: Vector) -> Matrix:
    """Probabilities as they are if labels have these weights: odds are multiplied by them."""
    q = p * weights
    out: Matrix = q / q.sum(axis=1, keepdims=True)
    return out


def rare(stream: str, seed: int) -> list[dict[str, Any]]:
    """A label that two per cent of the rows have: without and with weights, on the stream and on fresh rows."""
    X, y = draw(stream, 2, 0.02, ROWS + FRESH, seed)
    out: dict[str, Any] = {}
    for name, kind in LEARNERS.items():
        for weight in (None, "balanced"):
            on_stream = kind(random_state=seed, class_weight=weight).predict_proba_then_learn(
                X[:ROWS], y[:ROWS], [0, 1]
            )
            fitted = kind(random_state=seed, class_weight=weight).fit(X[:ROWS], y[:ROWS])
            out[f"{name}, {weight or 'none'}"] = {
                "stream": quality(on_stream, y[:ROWS]),
                "fresh": quality(fitted.predict_proba(X[ROWS:]), y[ROWS:]),
            }
    for weight in (None, "balanced"):
        batch = make_pipeline(StandardScaler(), LogisticRegression(class_weight=weight)).fit(X[:ROWS], y[:ROWS])
        out[f"logistic regression, {weight or 'none'}"] = {"fresh": quality(batch.predict_proba(X[ROWS:]), y[ROWS:])}
    return [out]


def choice(stream: str, labels: int, share: float, seed: int) -> list[dict[str, Any]]:
    """Fresh rows after `fit` without weights, with weighted rows, and with odds shifted by the same weights."""
    X, y = draw(stream, labels, share, SHORT + FRESH, seed)
    weights = compute_class_weight("balanced", classes=np.arange(labels), y=y[:SHORT])
    out = {}
    for name in ("GraphMKL", "Raker"):
        kind = LEARNERS[name]
        p = kind(random_state=seed).fit(X[:SHORT], y[:SHORT]).predict_proba(X[SHORT:])
        rows = kind(random_state=seed, class_weight="balanced").fit(X[:SHORT], y[:SHORT]).predict_proba(X[SHORT:])
        out[f"{name}, none"] = quality(p, y[SHORT:])
        out[f"{name}, rows"] = quality(rows, y[SHORT:])
        out[f"{name}, odds"] = quality(shifted(p, weights), y[SHORT:])
    return [out]


def units() -> list[Unit]:
    return [
        *(Unit((f"rare | {s} | {n}",), rare, {"stream": s, "seed": n}) for s in STREAMS for n in range(SEEDS)),
        *(Unit((f"choice | {s}, {k} labels, {share} | {n}",), choice,
               {"stream": s, "labels": k, "share": share, "seed": n})
          for k, share in CHOICES for s in STREAMS for n in range(SEEDS)),
    ]  # fmt: skip


def summary(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """What the page says, from the records of all runs by "kind | name | seed"."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {"rare": {}, "choice": {}}
    for key, record in found.items():
        kind, name, _ = key.split(" | ")
        groups[kind].setdefault(name, []).append(record)

    def mean(runs: list[dict[str, Any]], *path: str) -> float:
        return brief(float(np.mean([at(run, *path) for run in runs])))

    rare_labels: dict[str, Any] = {}
    for stream, runs in groups["rare"].items():
        for name in runs[0]:
            line = {where: {q: mean(runs, name, where, q) for q in ("auc", "recall")} for where in runs[0][name]}
            if name.endswith("balanced"):
                plain = name.replace("balanced", "none")
                for where in line:
                    both = [(at(run, name, where, "auc"), at(run, plain, where, "auc")) for run in runs]
                    line[where]["seeds"] = sum(ours >= before for ours, before in both)
            rare_labels.setdefault(stream, {})[name] = line
    choices = {
        name: {way: {q: mean(runs, way, q) for q in runs[0][way]} for way in runs[0]}
        for name, runs in groups["choice"].items()
    }
    return {"rare": rare_labels, "choice": choices}


def at(record: Any, *path: str) -> float:
    for name in path:
        record = record[name]
    return float(record)


# The page


def quoted(results: Mapping[str, Any]) -> dict[str, str]:
    """The generated parts of docs/classification.md."""
    return {"rare": rare_table(results["rare"]), "weights or odds": choice_table(results["choice"])}


def rare_table(results: Mapping[str, Any]) -> str:
    rows = []
    for stream, lines in results.items():
        for name, line in lines.items():
            if not name.endswith("balanced"):
                continue
            plain = lines[name.replace("balanced", "none")]
            cells = [pair(plain, line, where, q) for where in ("stream", "fresh") for q in ("auc", "recall")]
            cells[1:1] = [str(line["stream"]["seeds"]) if "stream" in line else ""]
            cells[4:4] = [str(line["fresh"]["seeds"])]
            rows.append([stream, name.partition(",")[0], *cells])
    head = ["stream", "learner", "AUC, stream", "seeds", "recall, stream", "AUC, fresh", "seeds", "recall, fresh"]
    return markdown.table(head, rows, left=2)


def pair(plain: Mapping[str, Any], balanced: Mapping[str, Any], where: str, q: str) -> str:
    return f"{plain[where][q]:.3f} / {balanced[where][q]:.3f}" if where in plain else ""


def choice_table(results: Mapping[str, Any]) -> str:
    rows = []
    for name, ways in results.items():
        stream, labels, share = name.split(", ")
        for learner in ("GraphMKL", "Raker"):
            three = [ways[f"{learner}, {way}"] for way in ("none", "rows", "odds")]
            cells = [" / ".join(f"{way[q]:.3f}" for way in three) for q in ("auc", "recall", "balanced_accuracy")]
            rows.append([stream, labels.split()[0], f"{100 * float(share):.0f} %", learner, *cells])
    head = ["stream", "labels", "rare ones each", "learner", "AUC", "recall", "balanced accuracy"]
    return markdown.table(head, rows, left=4)


def main() -> None:
    planned = units()
    found = {keys[0]: records[0] for keys, records in run_parallel(planned, 2)}
    results = summary({unit.keys[0]: found[unit.keys[0]] for unit in planned})
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print(rare_table(results["rare"]), choice_table(results["choice"]), sep="\n")


if __name__ == "__main__":
    run_without_arguments("omkl_lab.rare", __doc__, main)
