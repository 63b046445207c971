"""Labels on the command line: AUC, precision and recall as scikit-learn has them, thresholds, all probabilities."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from command import invoke
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from omkl import persist
from omkl.stream import ranking


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three labels, one of them late and rare."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 3))
    label = np.where(x[:, 0] + 0.5 * rng.normal(size=900) > 0.8, "yes", "no").astype(object)
    label[300:][x[300:, 1] > 1.5] = "maybe"
    path = tmp_path / "d.csv"
    rows = (f"{a:.4f},{b:.4f},{c:.4f},{y}\n" for (a, b, c), y in zip(x, label, strict=True))
    path.write_text("a,b,c,y\n" + "".join(rows))
    return path


@pytest.fixture
def two(data: Path) -> Path:
    path = data.with_name("two.csv")
    path.write_text(data.read_text().replace("maybe", "no"))
    return path


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_errors_of_labels_are_those_of_scikit_learn(data: Path, tmp_path: Path):
    out = tmp_path / "p.jsonl"
    result = invoke("run", data, "-t", "y", "--predictions", out, "--probabilities", "--json")
    summary, rows = json.loads(result.stdout), records(out)
    areas = []
    for label, errors in summary["per_label"].items():
        first = next(k for k, row in enumerate(rows) if row["target"] == label)
        known = rows[first:]  # a label counts from the row that brings it on
        truth = [row["target"] == label for row in known]
        areas.append(roc_auc_score(truth, [row["probabilities"].get(label, 0.0) for row in known]))
        assert errors["auc"] == pytest.approx(areas[-1], abs=2e-3)
        predicted = [row for row in rows if row["prediction"] is not None]
        truth, guess = ([row[name] == label for row in predicted] for name in ("target", "prediction"))
        assert errors["precision"] == pytest.approx(precision_score(truth, guess))
        assert errors["recall"] == pytest.approx(recall_score(truth, guess))
    assert summary["auc"] == pytest.approx(np.mean(areas), abs=2e-3)
    assert set(summary["per_label"]) == {"yes", "no", "maybe"}


@pytest.mark.parametrize("every", [1, 7, 250])
def test_errors_and_probabilities_do_not_depend_on_pieces(data: Path, tmp_path: Path, every: int):
    found = []
    for n in (10_000, every):
        out = tmp_path / f"{n}.jsonl"
        command = ["run", data, "-t", "y", "--task", "classification", "--every", n, "--json", "--predictions", out]
        summary = json.loads(invoke(*command, "--probabilities").stdout)
        found.append((summary["per_label"], summary["auc"], out.read_bytes()))
    assert found[0] == found[1]


def test_a_probability_of_any_size_is_ranked():
    rng = np.random.default_rng(1)
    log_odds = rng.normal(-9, 2, size=20_000)  # a very rare label
    truth = rng.random(20_000) < 1 / (1 + np.exp(-log_odds - 3))
    p = 1 / (1 + np.exp(-log_odds))
    counts = np.zeros((2, ranking.BINS), dtype=np.int64)
    for part in np.array_split(np.arange(20_000), 7):
        ranking.count(counts, p[part], truth[part])
    assert ranking.auc(counts) == pytest.approx(roc_auc_score(truth, p), abs=2e-3)
    assert ranking.auc(np.zeros((2, ranking.BINS), dtype=np.int64)) is None


def test_a_threshold_decides_where_a_label_is_predicted(two: Path, tmp_path: Path):
    out, model = tmp_path / "p.jsonl", tmp_path / "m.omkl"
    assert invoke("run", two, "-t", "y", "--model", model).exit_code == 0
    for given in ("0.2", "yes=0.2"):
        assert (
            invoke("predict", model, two, "--threshold", given, "--probabilities", "--predictions", out).exit_code == 0
        )
        for row in records(out):
            assert row["prediction"] == ("yes" if row["probabilities"].get("yes", 0.0) >= 0.2 else "no")
            assert row["probability"] == row["probabilities"][row["prediction"]]
    plain, lower = (
        json.loads(invoke("run", two, "-t", "y", "--json", *more).stdout) for more in ((), ("--threshold", "0.2"))
    )
    assert lower["per_label"]["yes"]["recall"] > plain["per_label"]["yes"]["recall"]
    assert lower["per_label"]["yes"]["auc"] == plain["per_label"]["yes"]["auc"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threshold", "1.5"], "--threshold must be a number from 0 to 1, or LABEL=NUMBER, got '1.5'"),
        (["--threshold", "yes"], "--threshold must be a number from 0 to 1, or LABEL=NUMBER, got 'yes'"),
        (["--threshold", "0.5"], "is for two labels, and there are 3; write LABEL=0.5"),
        (["--threshold", "0.5", "--by", "c"], "models by key do not predict"),
        (["--probabilities", "--predictions", "out.csv"], "wants predictions in a .jsonl file"),
        (["--probabilities"], "wants predictions in a .jsonl file"),
    ],
)
def test_what_labels_cannot_have_is_refused(data: Path, arguments: list[str], message: str):
    result = invoke("run", data, "-t", "y", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_threshold_for_numbers_or_for_an_unknown_label_is_refused(data: Path, tmp_path: Path):
    result = invoke("run", data, "-t", "a", "--threshold", "0.5")
    assert (result.exit_code, "holds numbers" in result.stderr) == (2, True)
    model = tmp_path / "m.omkl"
    assert invoke("run", data, "-t", "y", "--model", model).exit_code == 0
    result = invoke("predict", model, data, "--threshold", "mayb=0.5")
    assert (result.exit_code, "did you mean 'maybe'?" in result.stderr) == (2, True)


def test_predict_writes_a_column_for_each_label(data: Path, tmp_path: Path):
    model, out = tmp_path / "m.omkl", tmp_path / "p.csv"
    assert invoke("run", data, "-t", "y", "--model", model).exit_code == 0
    assert invoke("predict", model, data, "--probabilities", "--predictions", out).exit_code == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    labels = persist.read(model).learner.labels
    table = np.array([[float(row[f"probability of {label}"]) for label in labels] for row in rows])
    assert np.allclose(table.sum(axis=1), 1)
    assert [row["prediction"] for row in rows] == [labels[k] for k in table.argmax(axis=1)]


@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t")])
def test_labels_and_columns_whose_names_need_quotes_have_them_in_the_header(ending: str, mark: str, tmp_path: Path):
    """They are names of the data, and may have a delimiter, a quote or the end of a line."""
    data, model, out = tmp_path / "d.csv", tmp_path / "m.omkl", tmp_path / f"p.{ending}"
    labels, kept = ["a,b", 'say "a"\nor\tb'], 'k\t"'
    with data.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", kept, "y"])
        writer.writerows([k % 7, k, labels[k % 2]] for k in range(40))
    assert invoke("run", data, "-t", "y", "--model", model).exit_code == 0
    done = invoke("predict", model, data, "--probabilities", "--predictions", out, "--keep", kept)
    assert done.exit_code == 0, done.output
    with out.open(newline="") as file:
        first, *rows = csv.reader(file, delimiter=mark)
    assert {kept, *(f"probability of {label}" for label in labels)} <= set(first)
    assert len(rows) == 40
    assert {len(row) for row in rows} == {len(first)}
