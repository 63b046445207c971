"""A column that an option names and the data lacks is refused before anything is learned, with the nearest name."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from command import invoke

from omkl import persist

ROWS = [{"temp_c": k % 7, "wind": -k, "id": k, "y": 2 * k} for k in range(30)]
TABLE = pa.Table.from_pylist(ROWS)
WRITE = {
    "csv": lambda path: pa.csv.write_csv(TABLE, path),
    "parquet": lambda path: pa.parquet.write_table(TABLE, path),
    "arrow": lambda path: pa.feather.write_feather(TABLE, str(path)),
    "jsonl": lambda path: path.write_text("".join(json.dumps(row) + "\n" for row in ROWS)),
}


@pytest.fixture(params=WRITE)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"data.{request.param}"
    WRITE[request.param](path)
    return path


@pytest.mark.parametrize("option", ["--features", "--drop", "--categorical", "--key", "--by"])
def test_a_column_that_is_not_there_is_refused_with_the_nearest_name(data: Path, option: str):
    for command in ["run"] if option in ("--key", "--by") else ["run", "compare"]:
        result = invoke(command, data, "-t", "y", option, "tempc")
        assert result.exit_code == 2
        assert f"'tempc' ({option}), did you mean 'temp_c'?" in result.stderr
    assert invoke("run", data, "-t", "Y").stderr.count("did you mean 'y'?") == 1
    assert invoke("run", data, "-t", "y", option, "temp_c").exit_code == 0


def test_who_names_no_target_is_told_the_columns(data: Path, tmp_path: Path):
    for command in ("run", "compare"):
        result = invoke(command, data)
        assert result.exit_code == 2
        assert "name the column to predict: --target COLUMN; the columns of" in result.stderr
        assert "'temp_c', 'wind', 'id', 'y'" in result.stderr
    for nothing in ("-", tmp_path / "none.csv"):
        assert invoke("run", nothing, input="y\n1\n").stderr == "omkl: name the column to predict: --target COLUMN\n"


def test_an_address_and_fields_that_are_separated_by_spaces_come_with_advice(tmp_path: Path):
    result = invoke("run", "https://example.org/data.csv", "-t", "y")
    assert result.exit_code == 2
    assert "curl -sSL https://example.org/data.csv | omkl run - --target COLUMN" in result.stderr
    path = tmp_path / "spaces.csv"
    path.write_text("a y\n" + "".join(f"{k} {k % 3}\n" for k in range(20)))
    assert "--delimiter says what separates them" in invoke("run", path, "-t", "y").stderr
    assert invoke("run", path, "-t", "y", "--delimiter", " ").exit_code == 0


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("Report of May\n\na,y\n1,2\n", "its first line must be the header, with no line before it"),
        ("a^y\n1^2\n", "--delimiter says what separates them"),
        ("7,Bonn,3\n8,Bonn,4\n", "if the first line is data, pass --no-header"),
        ("<!DOCTYPE html>\n<html></html>\n", "a web page; wanted CSV"),
    ],
)
def test_a_file_without_a_header_comes_with_advice(tmp_path: Path, text: str, advice: str):
    path = tmp_path / "data.csv"
    path.write_text(text)
    result = invoke("run", path, "-t", "y")
    assert result.exit_code == 2
    assert advice in result.stderr


def test_a_name_with_spaces_that_lacks_its_quotes_is_noticed(tmp_path: Path):
    path = tmp_path / "data.csv"
    path.write_text("a,total sale price\n" + "1,2\n" * 20)
    result = invoke("run", path, "-t", "total", "sale", "price")
    assert result.exit_code == 2
    assert "a name with spaces needs quotes: --target 'total sale price'" in result.stderr
    assert "none.csv: No such file or directory" in invoke("run", path, "-t", "a", "none.csv").stderr


@pytest.mark.parametrize("option", ["--key", "--by"])
def test_the_target_cannot_be_the_key_too(data: Path, option: str):
    result = invoke("run", data, "-t", "y", option, "y")
    assert result.exit_code == 2
    assert f"there is no column 'y' ({option}) beside the target" in result.stderr


def test_one_misspelt_name_among_several_is_refused(data: Path):
    result = invoke("run", data, "-t", "y", "--features", "temp_c,windd")
    assert result.exit_code == 2
    assert "there is no column 'windd' (--features), did you mean 'wind'?" in result.stderr


def test_data_without_a_column_of_the_model_is_refused(data: Path, tmp_path: Path):
    model = tmp_path / "m.omkl"
    assert invoke("run", data, "-t", "y", "--model", model).exit_code == 0
    before = model.read_bytes()
    other = tmp_path / "other.csv"
    other.write_text("load,hour,y\n1,2,3\n4,5,6\n")
    for command in ("predict", "learn"):
        result = invoke(command, model, other)
        assert result.exit_code == 2
        assert "no column in common with the model, which has learned from 'temp_c', 'wind', 'id'" in result.stderr
    assert model.read_bytes() == before
    some = tmp_path / "some.csv"
    some.write_text("wind,y\n1,2\n")
    assert invoke("predict", model, some).exit_code == 0
    assert invoke("learn", model, some).exit_code == 0


def test_records_that_get_a_field_later_may_be_told_to_drop_it(tmp_path: Path):
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + '{"temp_c": 1, "late": 2, "y": 3}\n')
    result = invoke("run", data, "-t", "y", "--drop", "late", "--every", 10)
    assert result.exit_code == 0
    assert "so far no record has 'late' (--drop)" in result.stderr


def test_a_second_file_may_lack_what_an_option_names_but_not_the_target(tmp_path: Path):
    first, second, third = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "3.csv"
    first.write_text("a,b,y\n" + "1,2,3\n" * 9)
    second.write_text("a,y\n" + "1,3\n" * 9)
    third.write_text("a,b\n" + "1,3\n" * 9)
    assert invoke("run", first, second, "-t", "y", "--drop", "b").exit_code == 0
    result = invoke("run", first, third, "-t", "y")
    assert result.exit_code == 2
    assert "3.csv: there is no column 'y' (--target)" in result.stderr


def test_values_of_options_suggest_the_nearest_one():
    for option, given, nearest in [("--learner", "graphmkl", "graph-mkl"), ("--task", "regresion", "regression"),
                                   ("--format", "json", "jsonl")]:  # fmt: skip
        result = invoke("run", "data.csv", "-t", "y", option, given)
        assert result.exit_code == 2
        assert f"did you mean '{nearest}'?" in result.stderr


def test_parameters_of_the_learner_can_be_set_and_are_part_of_the_model(data: Path, tmp_path: Path):
    model = tmp_path / "m.omkl"
    given = ["--set", "n_features=7", "--set", "steps=[0.5]", "--set", "evaluate=all", "--set", "adapt=False"]
    assert invoke("run", data, "-t", "y", *given, "--model", model).exit_code == 0
    core = persist.read(model).learner.core
    assert (core.settings.n_features, core.settings.steps, core.settings.evaluate) == (7, (0.5,), "all")
    assert not core.settings.adapt
    assert invoke("learn", model, data).exit_code == 0
    assert persist.read(model).learner.core.settings == core.settings
    assert json.loads(invoke("inspect", model, "--json").stdout)["parameters"]["n_features"] == 7


def test_parameters_of_the_learner_are_refused_before_anything_is_read(tmp_path: Path):
    for text, message in [
        ("n_feature=7", "graph-mkl has no parameter 'n_feature', did you mean 'n_features'?"),
        ("n_features=none", "n_features must be a whole number of at least 1, got 'none'"),
        ("n_features", "--set must be NAME=VALUE"),
        ("ridge=-1", "ridge must be a positive"),
    ]:
        (tmp_path / "d.csv").write_text("not a table")
        result = invoke("run", tmp_path / "d.csv", "-t", "y", "--set", text)
        assert result.exit_code == 2
        assert message in result.stderr


def test_a_checkpoint_is_one_of_its_parameters(tmp_path: Path):
    data = tmp_path / "d.csv"
    data.write_text("a,y\n" + "1,2\n3,4\n" * 9)
    command = ["run", data, "-t", "y", "--checkpoint", tmp_path / "c"]
    assert invoke(*command, "--set", "n_features=7").exit_code == 0
    assert invoke(*command, "--set", "n_features=7").exit_code == 0
    result = invoke(*command)
    assert result.exit_code == 2
    assert "the checkpoint of another run, with parameters={'n_features': 7} instead of {}" in result.stderr


def test_predictions_carry_columns_along_as_they_are_written(tmp_path: Path):
    data, model, out = tmp_path / "d.csv", tmp_path / "m.omkl", tmp_path / "p.csv"
    rows = [(f"00{k}", f'"a, {k}"', k, 2 * k) for k in range(40)]
    data.write_text("id,note,a,y\n" + "".join(f"{i},{note},{a},{y}\n" for i, note, a, y in rows))
    command = ["run", data, "-t", "y", "--drop", "note", "--every", 10, "--model", model, "--predictions", out]
    assert invoke(*command, "--keep", "note,id").exit_code == 0
    written = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["id"] for row in written] == [row[0] for row in rows]
    assert [row["note"] for row in written] == [row[1].strip('"') for row in rows]
    assert list(written[0]) == ["row", "prediction", "lower", "upper", "target", "note", "id"]
    assert "note" not in persist.read(model).encoder.columns
    plain = invoke("predict", model, data).stdout
    with_id = invoke("predict", model, data, "--keep", "id").stdout
    assert [line.rpartition(",")[0] for line in with_id.splitlines()] == plain.splitlines()
    assert [row["id"] for row in csv.DictReader(with_id.splitlines())] == [row[0] for row in rows]
    lines = tmp_path / "p.jsonl"
    assert invoke("predict", model, data, "--keep", "note", "--predictions", lines).exit_code == 0
    assert json.loads(lines.read_text().splitlines()[3])["note"] == "a, 3"


def test_columns_to_carry_along_must_be_there_and_have_a_name_of_their_own(data: Path, tmp_path: Path):
    model = tmp_path / "m.omkl"
    assert invoke("run", data, "-t", "y", "--model", model).exit_code == 0
    for command in (["run", data, "-t", "y"], ["predict", model, data], ["learn", model, data]):
        result = invoke(*command, "--predictions", "-", "--keep", "windy")
        assert result.exit_code == 2
        assert "'windy' (--keep), did you mean 'wind'?" in result.stderr
    other = tmp_path / "other.csv"
    other.write_text("wind,row\n1,2\n")
    result = invoke("predict", model, other, "--keep", "row")
    assert result.exit_code == 2
    assert "predictions have a column 'row' of their own" in result.stderr


def test_learners_have_the_names_of_the_journal_version_too(data: Path, tmp_path: Path):
    files = [tmp_path / f"{name}.omkl" for name in ("omkl-sfg", "sfg-mkl")]
    for file in files:
        assert invoke("run", data, "-t", "y", "--learner", file.stem, "--model", file).exit_code == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert invoke("compare", data, "-t", "y", "--learners", "omkl-sfg-r").exit_code == 0
