"""Options that contradict the data, the learner or each other, and options that do not exist: exit code 2, and why."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import invoke
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.main import get_command

from omkl.cli import app

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]  # it is a group
OPTIONS = sorted(
    (name, option)
    for name, command in COMMANDS.items()
    for parameter in command.params
    for option in (*parameter.opts, *parameter.secondary_opts)
    if option.startswith("--")
)


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.csv" for name in ("numbers", "labels")}
    targets = {"numbers": [k % 7 + 0.5 for k in range(40)], "labels": ["no" if k % 7 else "yes" for k in range(40)]}
    for name, values in targets.items():
        rows = "".join(f"k{k % 2},{k % 7},{k % 3},{y}\n" for k, y in enumerate(values))
        paths[name].write_text(f"id,a,b,y\n{rows}")
    return paths


CONTRADICTIONS = [
    ("labels", ["--task", "regression"], "target 'y' holds no numbers but text such as 'yes'"),
    ("labels", ["--learner", "omkr"], "omkr predicts numbers only, not labels; choose graph-mkl, "),
    ("numbers", ["--learner", "omkr", "--task", "classification"], "omkr predicts numbers only, not labels"),
    ("numbers", ["--threshold", "0.5"], "--threshold is for labels, and 'y' holds numbers"),
    ("numbers", ["--probabilities", "--task", "regression"], "--probabilities is for labels, and 'y' holds numbers"),
    ("labels", ["--probabilities", "--by", "id"], "--probabilities needs probabilities, which models by key"),
    ("labels", ["--coverage", "0.8"], "--coverage is for numbers, and 'y' holds labels"),
    ("numbers", ["--drop", "y"], "'y' is both --target and --drop"),
    ("numbers", ["--drop", "id", "--by", "id"], "'id' is both --by and --drop"),
    ("numbers", ["--drop", "id", "--key", "id"], "'id' is both --key and --drop"),
    ("numbers", ["--categorical", "y"], "'y' is both --target and --categorical"),
    ("numbers", ["--pending", "5"], "--pending is for --key"),
    ("numbers", ["--features", "a", "--drop", "a"], "'a' is in both; use one of them"),
    ("numbers", ["--features", "a", "--drop", "b"], "--features names all columns to learn from, so --drop leaves"),
    ("numbers", ["--categorical", "b", "--drop", "b"], "'b' is in --categorical and in --drop"),
    ("numbers", ["--categorical", "b", "--features", "a"], "'b' is in --categorical and not in --features"),
    ("numbers", ["--categorical", "id", "--by", "id"], "'id' is both --by and --categorical"),
    ("numbers", ["--categorical", "id", "--key", "id"], "'id' is both --key and --categorical"),
    ("numbers", ["--features", "a,y"], "'y' is both --target and --features"),
    ("numbers", ["--features", "a,id", "--by", "id"], "'id' is both --by and --features"),
    ("numbers", ["--features", "a,id", "--key", "id"], "'id' is both --key and --features"),
    ("numbers", ["--lags", "1", "--lag-columns", "id", "--by", "id"], "'id' is both --by and --lag-columns"),
    ("numbers", ["--lags", "1", "--lag-columns", "id", "--key", "id"], "'id' is both --key and --lag-columns"),
    ("numbers", ["--set", "n_features=3", "--set", "n_features=4"], "--set: n_features comes twice"),
    ("numbers", ["--format", "tsv", "--delimiter", ","], "the delimiter of TSV is the tab, not ','"),
]


@pytest.mark.parametrize(("which", "options", "message"), CONTRADICTIONS)
def test_a_contradiction_is_refused_and_nothing_is_written(
    tmp_path: Path, data: dict[str, Path], which: str, options: list[str], message: str
):
    out, model = tmp_path / "p.jsonl", tmp_path / "m.omkl"
    result = invoke("run", data[which], "-t", "y", *options, "--predictions", out, "--model", model)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not out.exists()
    assert not model.exists()


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_options_for_text_are_refused_for_other_files(tmp_path: Path, data: dict[str, Path], kind: str):
    frame, path = pd.read_csv(data["numbers"]), tmp_path / f"d.{kind}"
    _ = frame.to_parquet(path) if kind == "parquet" else frame.to_json(path, orient="records", lines=True)
    model = tmp_path / "m.omkl"
    assert invoke("run", path, "-t", "y", "--model", model).exit_code == 0
    commands = [
        ["run", path, "-t", "y"],
        ["learn", model, path],
        ["predict", model, path],
        ["compare", path, "-t", "y"],
    ]
    for command in commands:
        for options in (["--delimiter", ";"], ["--no-header"], ["--encoding", "latin-1"]):
            if (kind, options[0]) == ("jsonl", "--encoding"):
                continue  # which is text
            result = invoke(*command, *options)
            assert result.exit_code == 2
            assert f"{options[0]} is for " in result.stderr


def test_options_about_predictions_are_refused_where_none_are_written(tmp_path: Path, data: dict[str, Path]):
    model = tmp_path / "m.omkl"
    assert invoke("run", data["labels"], "-t", "y", "--model", model).exit_code == 0
    for command in (["run", data["labels"], "-t", "y"], ["learn", model, data["labels"]]):
        for options in (["--keep", "a"], ["--probabilities"]):
            result = invoke(*command, *options)
            assert result.exit_code == 2
            assert options[0] in result.stderr
            assert "predictions" in result.stderr


def test_a_threshold_of_a_label_that_never_came_is_noticed(data: dict[str, Path]):
    result = invoke("run", data["labels"], "-t", "y", "--threshold", "yess=0.3")
    assert "there was no label 'yess' (--threshold), did you mean 'yes'?" in result.stderr


SAMPLES = {
    "--learner": ["sfg-mkl"], "--set": ["n_features=3"], "--features": ["a,b"], "--drop": ["b"], "--categorical": ["b"],
    "--date-format": ["%d/%m/%Y"], "--keep": ["a"], "--probabilities": [], "--threshold": ["yes=0.01"],
    "--coverage": ["0.5"], "--key": ["row"], "--pending": ["2"], "--by": ["id"], "--pooled": [], "--lags": ["1,2"],
    "--lag-columns": ["a=1,2"], "--horizon": ["2"], "--seed": ["5"], "--no-header": [],
}  # fmt: skip
# what does not decide results, what the data decides where it is left out, and other outputs
WITHOUT_EFFECT = {"--every", "--task", "--format", "--delimiter", "--encoding", "--target", "--predictions", "--model",
                  "--checkpoint", "--report", "--quiet", "--json"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "context", [None, "--features", "--drop", "--categorical", "--key", "--by", "--lags", "labels"]
)
def test_an_option_changes_a_result_or_is_refused_whatever_it_is_combined_with(tmp_path: Path, context: str | None):
    assert {option for name, option in OPTIONS if name == "run"} == {*SAMPLES, *WITHOUT_EFFECT}
    k = np.arange(60)
    frame = pd.DataFrame({"id": np.where(k % 2, "u", "v"), "row": [f"r{n}" for n in k], "a": np.sin(k), "b": k % 3,
                          "when": [f"{1 + n % 28:02d}/03/2024" for n in k]})  # fmt: skip
    y: Any = np.where(np.sin(k) > 0.5, "yes", "no") if context == "labels" else np.sin(k) + k % 3
    frame["y"] = np.where(k % 5 == 1, None, y)  # those of some rows come later, or never
    frame.to_csv(tmp_path / "d.csv", index=False)
    first = [] if context in (None, "labels") else [context, *SAMPLES[context]]
    out = {name: tmp_path / name for name in ("p.jsonl", "m.omkl")}

    def results(*options: str) -> tuple[int, list[bytes]]:
        found = invoke("run", tmp_path / "d.csv", "-t", "y", "--learner", "raker", *first, *options,
                       "--predictions", out["p.jsonl"], "--model", out["m.omkl"])  # fmt: skip
        return found.exit_code, [path.read_bytes() for path in out.values() if found.exit_code == 0]

    code, before = results()
    assert code == 0
    ignored = []
    for option, values in SAMPLES.items():
        if option != context:
            code, after = results(option, *values)
            if code == 0 and after == before:
                ignored.append(option)
    assert ignored == []


def test_row_by_row_the_second_text_is_one_too_many(data: dict[str, Path]):
    result = invoke("run", data["labels"], "-t", "y", "--task", "regression", "--every", "1")
    assert result.exit_code == 2
    assert "holds no numbers but text such as" in result.stderr


@pytest.mark.parametrize("task", [[], ["--task", "classification"]])
def test_learners_that_cannot_do_the_task_are_not_compared_alone(data: dict[str, Path], task: list[str]):
    result = invoke("compare", data["labels"], "-t", "y", "--learners", "omkr", *task)
    assert result.exit_code == 2
    assert "numbers only" in result.stderr
    assert invoke("compare", data["labels"], "-t", "y", "--learners", "omkr,raker").exit_code == 0


def test_a_model_has_its_task_and_takes_no_other(tmp_path: Path, data: dict[str, Path]):
    model = tmp_path / "m.omkl"
    assert invoke("run", data["numbers"], "-t", "y", "--model", model).exit_code == 0
    for command in ("learn", "predict"):
        result = invoke(command, model, data["numbers"], "--task", "classification")
        assert result.exit_code == 2
        assert "No such option: --task" in result.stderr


def test_some_targets_that_are_no_numbers_are_left_out(tmp_path: Path):
    path = tmp_path / "d.csv"
    path.write_text("a,y\n1,broken\n2,4\n3,6\n4,broken\n5,broken\n")
    result = invoke("run", path, "-t", "y", "--task", "regression", "--every", "1", "--json")
    assert result.exit_code == 0
    assert '"learned": 2' in result.stdout


def test_there_are_options_to_misspell():
    assert {name for name, _ in OPTIONS} == {"run", "learn", "predict", "inspect", "compare", "demo", "serve"}
    assert ("predict", "--coverage") in OPTIONS
    assert ("compare", "--by") in OPTIONS


@settings(max_examples=150)
@given(st.sampled_from(OPTIONS), st.data())
def test_a_misspelt_option_is_refused_and_the_nearest_is_named(which: tuple[str, str], chosen: st.DataObject):
    command, option = which
    place = chosen.draw(st.integers(3, len(option) - 1))
    kind = chosen.draw(st.sampled_from(["double", "swap", "omit"] if len(option) > 5 else ["double"]))
    if kind == "double":
        wrong = option[:place] + option[place] + option[place:]
    elif kind == "omit":
        wrong = option[:place] + option[place + 1 :]
    else:
        wrong = option[: place - 1] + option[place] + option[place - 1] + option[place + 1 :]
    if wrong in {known for name, known in OPTIONS if name == command}:
        return
    result = invoke(command, "x", wrong, "1")
    assert result.exit_code == 2
    assert f"No such option: {wrong}" in result.stderr
    assert option in result.stderr.partition("No such option")[2]
