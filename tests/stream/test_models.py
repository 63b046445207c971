"""The models that a run writes: continued, used for predictions, inspected; and one for each key."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from command import invoke, outputs
from tables import table

import omkl
import omkl.river
from omkl import persist
from omkl.encoder import of_row
from omkl.fleet import Fleet
from omkl.stream import codec


def test_learn_continues_as_run_would_have(tmp_path: Path):
    lines = table(1000).splitlines(keepends=True)
    whole, first, second = (tmp_path / name for name in ("whole.csv", "first.csv", "second.csv"))
    whole.write_text("".join(lines))
    first.write_text("".join(lines[:600]))
    second.write_text("".join([lines[0], *lines[600:]]))
    assert invoke("run", whole, "-t", "y", "--model", tmp_path / "a.omkl").exit_code == 0
    assert invoke("run", first, "-t", "y", "--model", tmp_path / "b.omkl").exit_code == 0
    assert invoke("learn", tmp_path / "b.omkl", second).exit_code == 0
    assert (tmp_path / "a.omkl").read_bytes() == (tmp_path / "b.omkl").read_bytes()


def test_learn_leaves_out_what_run_left_out(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text("a,b,c,y\n" + "".join(f"{k},{k % 3},x{k},{k % 5}\n" for k in range(50)))
    assert invoke("run", data, "-t", "y", "--drop", "c", "--model", tmp_path / "m.omkl").exit_code == 0
    assert "is new" not in invoke("learn", tmp_path / "m.omkl", data).stderr
    assert set(json.loads(invoke("inspect", tmp_path / "m.omkl", "--json").stdout)["columns"]) == {"a", "b"}


def test_predict_learns_nothing_and_needs_no_target(tmp_path: Path):
    data, model = tmp_path / "data.csv", tmp_path / "m.omkl"
    data.write_text(table(500))
    assert invoke("run", data, "-t", "y", "--model", model).exit_code == 0
    before = model.read_bytes()
    new = tmp_path / "new.csv"
    new.write_text("colour,c,b,a,extra\nred,0.1,0.2,0.3,9\nviolet,,0.2,0.3,9\n")
    result = invoke("predict", model, new)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 3
    assert "category 'violet' was never learned" in result.stderr
    assert "column 'when' is absent" in result.stderr
    assert model.read_bytes() == before


def test_models_made_in_python_are_shown_and_those_without_columns_cannot_read_files(tmp_path: Path):
    X = np.random.default_rng(0).normal(size=(50, 2))
    river = omkl.river.SFGMKLRegressor(seed=1)
    river.learn_one({"a": 1.0, "b": 2.0}, 3.0)
    online = omkl.Online.make("raker", omkl.Settings(), 2, seed=1)
    online.run(X, X[:, 0])
    estimator = omkl.SFGMKLRegressor(random_state=0).fit(X, X[:, 0])
    for name, model, learner in (("a", estimator, "sfg-mkl"), ("b", river, "sfg-mkl"), ("c", online, "raker")):
        path = tmp_path / f"{name}.omkl"
        persist.save(model, path)
        facts = json.loads(invoke("inspect", path, "--json").stdout)
        assert facts["learner"] == learner
        assert sum(kernel["weight"] for kernel in facts["kernels"]) == pytest.approx(1)
        assert "kernels" in invoke("inspect", path).stdout
    result = invoke("predict", tmp_path / "c.omkl", tmp_path / "data.csv")
    assert result.exit_code == 2
    assert "wanted a model of omkl run or an estimator" in " ".join(result.stderr.split())


def test_inspect_shows_columns_weights_and_graph(tmp_path: Path):
    data, model = tmp_path / "data.csv", tmp_path / "m.omkl"
    data.write_text(table(500))
    assert invoke("run", data, "-t", "y", "--learner", "sfg-mkl", "--model", model).exit_code == 0
    facts = json.loads(invoke("inspect", model, "--json").stdout)
    assert facts["columns"]["when"]["kind"] == "time"
    assert facts["columns"]["b"] == {"kind": "number", "gaps": True}
    assert len(facts["graph"]["out"]) == len(facts["kernels"]) == 11
    assert facts["rows"] == 500 - len(range(13, 500, 97))
    shown = invoke("inspect", model).stdout
    assert all(word in shown for word in ("colour (category: red", "dominating set", "█"))


# A model for each key


def meters(rows: int) -> list[str]:
    rng = np.random.default_rng(3)
    lines = ["meter,hour,temp,load"]
    for k in range(rows):
        meter, temp = int(rng.integers(5)), rng.normal(10, 5)
        load = "" if k % 50 == 3 else f"{10 * meter + k % 24 + temp:.3f}"
        lines.append(f"m{meter},{k % 24},{temp:.2f},{load}")
    return lines


@pytest.mark.parametrize("learner", ["sfg-mkl", "graph-mkl"])
def test_by_gives_each_key_the_model_it_would_have_alone(tmp_path: Path, learner: str):
    data = tmp_path / "data.csv"
    data.write_text("\n".join(meters(900)) + "\n")
    result = invoke("run", data, "-t", "load", "--by", "meter", "--learner", learner, "--every", 100, "--predictions",
                    tmp_path / "p.csv")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    predicted = pyarrow.csv.read_csv(tmp_path / "p.csv").to_pandas()
    rows = pyarrow.csv.read_csv(data).to_pandas()
    fleet = Fleet(learner, seed=0)
    mine = rows[(rows.meter == "m2") & rows.load.notna()]
    alone = fleet.fresh("m2", 2).predict_then_learn(mine[["hour", "temp"]].to_numpy(float), mine.load.to_numpy())
    first, *rest = mine.index
    np.testing.assert_array_equal(predicted.loc[rest, "prediction"], alone[1:])
    assert predicted.loc[first, "prediction"] == pytest.approx(rows.load[:first].mean())
    assert predicted.loc[rows.load.isna(), "prediction"].notna().all()


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_run_by_key_resumes_where_it_stopped(tmp_path: Path, task: str):
    lines = meters(800)
    if task == "classification":
        lines = [lines[0]] + [
            line if line.endswith(",") else line[: line.rindex(",")] + "," + "abc"[k % 3]
            for k, line in enumerate(lines[1:])
        ]
    data = tmp_path / "data.csv"
    for folder, cuts in (("whole", [len(lines)]), ("parts", [301, 500, len(lines)])):
        for stop in cuts:
            data.write_text("\n".join(lines[:stop]) + "\n")
            arguments = [
                "run",
                data,
                "-t",
                "load",
                "--task",
                task,
                "--by",
                "meter",
                "--learner",
                "sfg-mkl",
                "--every",
                100,
            ]
            result = invoke(*arguments, *outputs(tmp_path / folder))
            assert result.exit_code == 0, result.stderr
    for name in ("p.csv", "m.omkl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    facts = json.loads(invoke("inspect", tmp_path / "whole" / "m.omkl", "--json").stdout)
    assert (facts["by"], facts["keys"]) == ("meter", 5)
    assert len(invoke("predict", tmp_path / "whole" / "m.omkl", data).stdout.splitlines()) == 801


@pytest.mark.parametrize(("labels", "every"), [(False, 1), (False, 4), (False, 1000), (True, 10), (True, 1000)])
def test_the_first_row_of_a_key_is_predicted_from_the_targets_of_all_keys_before_it(
    tmp_path: Path, labels: bool, every: int
):
    """An independent count, row by row, in pieces, with a stop between, and from a model that was saved."""
    rng = np.random.default_rng(5)
    keys, targets = [f"m{int(k**1.5)}" for k in rng.uniform(0, 9, 60)], (rng.normal(500, 50, 60)).round(3).tolist()
    targets = ["hot" if y > 510 else "cold" for y in targets] if labels else targets
    expected: dict[int, object] = {}
    for row, key in enumerate(keys):
        if key not in keys[:row]:
            so_far = targets[:row]
            likely = max(("cold", "hot"), key=so_far.count) if so_far else ""
            expected[row] = likely if labels else sum(so_far) / max(row, 1)
    lines = ["meter,a,y", *(f"{key},{row % 7},{y}" for row, (key, y) in enumerate(zip(keys, targets, strict=True)))]
    data = tmp_path / "data.csv"
    for stop in (31, 61):
        data.write_text("\n".join(lines[:stop]) + "\n")
        result = invoke("run", data, "-t", "y", "--by", "meter", "--learner", "sfg-mkl", "--every", every,
                        *outputs(tmp_path / "kept"))  # fmt: skip
        assert result.exit_code == 0, result.stderr
    found = pyarrow.csv.read_csv(tmp_path / "kept" / "p.csv")["prediction"].to_pylist()
    first = [found[row] for row in expected]
    assert first == list(expected.values()) if labels else first == pytest.approx(list(expected.values()))
    data.write_text("meter,a,y\nnobody,1,\nm0,1,\nnobody,2,\n")
    out = tmp_path / "new.csv"
    assert invoke("predict", tmp_path / "kept" / "m.omkl", data, "--predictions", out).exit_code == 0
    new = pyarrow.csv.read_csv(out)["prediction"].to_pylist()
    likely = max(("cold", "hot"), key=targets.count) if labels else pytest.approx(np.mean(targets))
    assert new[0] == new[2] == likely


def test_what_a_file_says_of_the_targets_of_keys_is_checked_and_older_files_have_nothing(tmp_path: Path):
    data, model = tmp_path / "data.csv", tmp_path / "m.omkl"
    data.write_text("meter,a,y\nm1,1,2\nm2,2,4\n")
    assert invoke("run", data, "-t", "y", "--by", "meter", "--learner", "raker", "--model", model).exit_code == 0
    arrays: dict[str, np.ndarray] = {}
    body = codec.encode(omkl.load(model).model, arrays)
    row = of_row({"meter": "m9", "a": 1.0})
    assert codec.decode(body, arrays).predict(row).y_pred.tolist() == [3.0]
    assert codec.decode({k: v for k, v in body.items() if k != "typical"}, arrays).predict(row).y_pred.tolist() == [0.0]
    for wrong in ([2.0], [-1.0, 6.0], [2.0, "6"]):
        with pytest.raises(ValueError):
            codec.decode(body | {"typical": wrong}, arrays)


def test_rows_without_a_key_are_left_out_and_by_needs_its_column(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text("meter,a,y\nm1,1,2\n,2,3\nm2,3,4\n")
    result = invoke("run", data, "-t", "y", "--by", "meter", "--predictions", "-")
    assert "row 2: 'meter' is empty; such rows are left out" in result.stderr
    assert len(result.stdout.splitlines()) == 3
    assert "no column 'sensor'" in invoke("run", data, "-t", "y", "--by", "sensor").stderr
    assert "cannot be combined" in invoke("run", data, "-t", "y", "--by", "meter", "--key", "a").stderr
