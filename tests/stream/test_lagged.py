"""Lags on the command line: causal, however rows are cut, saved and continued; the same as in Python."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import invoke, outputs

import omkl
import omkl.river

LAGS = ["--lags", "1,2,6", "--lag-columns", "temp=0,1", "--learner", "graph-mkl"]
KINDS = [["--key", "id"], ["--by", "who", "--learner", "raker"], ["--by", "who", "--learner", "raker", "--pooled"], []]
HORIZONS = pytest.mark.parametrize("horizon", [1, 4])


def series(n: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    temp = 10 + np.cumsum(rng.normal(size=n)) * 0.3
    y = 50 + 10 * np.sin(2 * np.pi * t / 6) + temp + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"temp": temp.round(4), "y": y.round(4)})


def late_series(n: int = 120, seed: int = 1) -> tuple[pd.DataFrame, list[int]]:
    """Rows with keys: some targets come in a later row. Also the number of rows that have come before each."""
    rng = np.random.default_rng(seed)
    plain = series(n, seed)
    rows, due, counts = [], [], []
    for k in range(n):
        late = rng.random() < 0.3
        counts.append(k)
        rows.append((f"r{k}", plain.temp[k], None if late else plain.y[k]))
        if late and rng.random() < 0.8:
            due.append((k + int(rng.integers(0, 9)), k))
        for when, row in [pair for pair in due if pair[0] == k]:
            due.remove((when, row))
            counts.append(k)
            rows.append((f"r{row}", None, plain.y[row]))
    return pd.DataFrame(rows, columns=["id", "temp", "y"]), counts


def by_key() -> pd.DataFrame:
    """Three series, with rows whose target is not known."""
    frame = series().assign(who=[f"k{(k * k) % 3}" for k in range(120)])
    frame.loc[[30, 31, 37, 80], "y"] = np.nan
    return frame


def run(data: Path, *options: object, command: str = "run") -> list[dict[str, str]]:
    out = data.with_suffix(".out.csv")
    out.unlink(missing_ok=True)
    target = ["-t", "y"] if command == "run" else []
    result = invoke(command, *([] if command == "run" else [options[0]]), data, *target, "--predictions", out, "-q",
                    *(options if command == "run" else options[1:]))  # fmt: skip
    assert result.exit_code == 0, result.output
    with out.open() as file:
        return list(csv.DictReader(file))


def write(path: Path, frame: pd.DataFrame) -> Path:
    frame.to_csv(path, index=False)
    return path


@HORIZONS
@pytest.mark.parametrize("keyed", [False, True])
def test_a_prediction_does_not_depend_on_a_target_that_has_not_come_so_far_ahead(tmp_path, horizon, keyed):
    frame, counts = late_series(70) if keyed else (series(70), list(range(70)))
    options = [*LAGS, "--horizon", horizon, *(["--key", "id"] if keyed else [])]
    before = run(write(tmp_path / "a.csv", frame), *options)
    for place in range(20, 60, 9):
        place = next(k for k in range(place, len(frame)) if not np.isnan(frame.y[k]))
        other = frame.copy()
        other.loc[place, "y"] += 7
        after = run(write(tmp_path / "b.csv", other), *options)
        # predictions are numbered by the rows of the file; counts has their place in the series
        same = [a["prediction"] == b["prediction"] for a, b in zip(before, after, strict=True)]
        positions = [counts[int(row["row"]) - 1] for row in before]
        first = counts[place] + horizon  # the row that may know it
        assert all(equal for equal, position in zip(same, positions, strict=True) if position < first)
        assert not same[positions.index(first)]


@HORIZONS
@pytest.mark.parametrize("options", KINDS)
def test_predictions_do_not_depend_on_pieces(tmp_path, horizon, options):
    data = write(tmp_path / "d.csv", late_series()[0] if "--key" in options else by_key())
    found = [run(data, *LAGS, "--horizon", horizon, *options, "--every", n) for n in (10_000, 1, 17)]
    assert found[0] == found[1] == found[2]


@HORIZONS
@pytest.mark.parametrize("options", KINDS)
def test_a_model_continues_from_its_past(tmp_path, horizon, options):
    frame = late_series()[0] if "--key" in options else by_key()
    arguments = [*LAGS, "--horizon", horizon, *options]
    whole = run(write(tmp_path / "whole.csv", frame), *arguments)
    half = len(frame) // 2
    first = run(write(tmp_path / "1.csv", frame[:half]), *arguments, "--model", tmp_path / "m.omkl")
    second = run(write(tmp_path / "2.csv", frame[half:]), tmp_path / "m.omkl", command="learn")
    assert [row["prediction"] for row in whole] == [row["prediction"] for row in [*first, *second]]


@HORIZONS
def test_a_key_without_a_model_is_predicted_by_the_mean_of_what_was_learned(tmp_path, horizon):
    frame, past, learned = by_key(), {}, []
    found = run(write(tmp_path / "d.csv", frame), *LAGS, "--horizon", horizon, "--by", "who", "--learner", "raker")
    checked = 0
    for who, y, row in zip(frame.who, frame.y, found, strict=True):
        own = past.setdefault(who, [])
        if len(own) < horizon:  # nothing of this key has been learned
            assert float(row["prediction"]) == pytest.approx(np.mean(learned) if learned else 0, abs=1e-3)
            checked += bool(learned)
        own.append(y)
        if len(own) >= horizon and not np.isnan(own[-horizon]):
            learned.append(own[-horizon])
    assert checked


def test_a_checkpoint_continues_from_its_past(tmp_path):
    frame, data = late_series()[0], tmp_path / "d.csv"
    arguments = ["run", data, "-t", "y", *LAGS, "--horizon", "4", "--key", "id", "-q"]
    write(data, frame)
    assert invoke(*arguments, *outputs(tmp_path / "whole")).exit_code == 0
    write(data, frame[:50])
    assert invoke(*arguments, *outputs(tmp_path / "parts")).exit_code == 0
    write(data, frame)
    assert invoke(*arguments, *outputs(tmp_path / "parts")).exit_code == 0
    for name in ("p.csv", "m.omkl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


@HORIZONS
@pytest.mark.parametrize("every", [10_000, 3])
def test_predict_forecasts_the_rows_that_come_next_as_a_run_with_empty_targets_does(tmp_path, horizon, every):
    frame = series()
    future = frame[100:].assign(y=np.nan)
    whole = run(write(tmp_path / "whole.csv", pd.concat((frame[:100], future))), *LAGS, "--horizon", horizon)
    run(write(tmp_path / "1.csv", frame[:100]), *LAGS, "--horizon", horizon, "--model", tmp_path / "m.omkl")
    content = (tmp_path / "m.omkl").read_bytes()
    data = write(tmp_path / "2.csv", future.drop(columns="y"))
    forecast = run(data, tmp_path / "m.omkl", "--every", every, command="predict")
    for name in ("prediction", "lower", "upper"):
        assert [row[name] for row in whole[100:]] == [row[name] for row in forecast]
    assert (tmp_path / "m.omkl").read_bytes() == content
    result = invoke("predict", tmp_path / "m.omkl", data, "--predictions", tmp_path / "p.csv")
    assert f"row {horizon + 1}: lag 1 is missing" in result.stderr


def test_predict_takes_targets_that_are_there_as_past_values(tmp_path):
    frame = series()
    run(write(tmp_path / "1.csv", frame[:100]), *LAGS, "--horizon", "2", "--model", tmp_path / "m.omkl")
    other = frame.copy()
    other.loc[103, "y"] += 5
    found = [
        run(write(tmp_path / "2.csv", each[100:]), tmp_path / "m.omkl", command="predict") for each in (frame, other)
    ]
    same = [a["prediction"] == b["prediction"] for a, b in zip(*found, strict=True)]
    # lags 1, 2 and 6, two rows ahead, of the fourth row
    assert [k for k, equal in enumerate(same) if not equal] == [5, 6, 10]


@HORIZONS
def test_the_three_interfaces_are_the_same_to_the_last_bit(tmp_path, horizon):
    frame = series(150)
    frame.loc[40:43, "y"] = np.nan
    future = frame[140:].drop(columns="y")
    data = write(tmp_path / "d.csv", frame[:140])
    shown = run(data, *LAGS, "--horizon", horizon, "--model", tmp_path / "m.omkl")
    shown += run(write(tmp_path / "f.csv", future), tmp_path / "m.omkl", command="predict")
    table = np.array([[float(row[name]) for name in ("prediction", "lower", "upper")] for row in shown])
    arguments = {"lags": [1, 2, 6], "columns": {"temp": [0, 1]}, "horizon": horizon}
    sklearn = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), **arguments)
    found = [sklearn.predict_interval_then_learn(frame[k : k + 70][["temp"]], frame.y[k : k + 70]) for k in (0, 70)]
    np.testing.assert_array_equal(np.vstack(found), table[:140])
    np.testing.assert_array_equal(sklearn.predict(future), table[140:, 0])
    np.testing.assert_array_equal(sklearn.predict_interval(future), table[140:, 1:])
    river = omkl.river.Lags(omkl.river.GraphMKLRegressor(seed=0), **arguments)
    y_pred = []
    for x, y in zip(frame[:140][["temp"]].to_dict("records"), frame.y, strict=False):
        y_pred.append(river.predict_one(x))
        river.learn_one(x, y)
    assert y_pred == table[:140, 0].tolist()
    assert river.forecast(horizon, future[:horizon].to_dict("records")) == table[140 : 140 + horizon, 0].tolist()


def test_compare_gives_all_learners_the_same_lags(tmp_path):
    data = write(tmp_path / "d.csv", series(200))
    result = invoke("compare", data, "-t", "y", "--lags", "1,6", "--horizon", "6", "--learners", "graph-mkl", "--json")
    ranking = {entry["name"]: entry for entry in json.loads(result.stdout)["ranking"]}
    rows = run(data, "--lags", "1,6", "--horizon", "6")
    errors = [float(row["prediction"]) - float(row["target"]) for row in rows]
    assert ranking["graph-mkl"]["mae"] == pytest.approx(np.abs(errors).mean())
    y = series(200).y.to_numpy()
    last = np.concatenate((np.zeros(6), y[:-6]))  # the last value that is known six rows ahead
    assert ranking["value 6 rows before"]["mae"] == pytest.approx(np.abs(last - y).mean())
    before = np.concatenate((last[:11], y[:-11]))
    assert ranking["value 11 rows before"]["mae"] == pytest.approx(np.abs(before - y).mean())
    assert set(ranking) == {"graph-mkl", "value 6 rows before", "value 11 rows before"}


def test_a_series_without_inputs_is_predicted_from_its_past(tmp_path):
    rows = run(write(tmp_path / "d.csv", series()[["y"]]), "--lags", "1-6")
    errors = [float(row["prediction"]) - float(row["target"]) for row in rows[60:]]
    assert np.abs(errors).mean() < 1.5


def test_the_value_of_a_lagged_column_in_the_row_itself_is_not_used(tmp_path):
    frame = series()
    other = frame.copy()
    other.loc[100, "temp"] = 99.0
    found = [run(write(tmp_path / "d.csv", each), "--lags", "1", "--lag-columns", "temp") for each in (frame, other)]
    same = [a["prediction"] == b["prediction"] for a, b in zip(*found, strict=True)]
    assert all(same[:101])
    assert not same[101]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lags", "0"], "--lags must be whole numbers from 1 to 10000, such as 1,2,24 or 1-24, got '0'"),
        (["--lags", "-1"], "got '-1'"),
        (["--lags", "1.5"], "got '1.5'"),
        (["--lags", "3-1"], "got '3-1'"),
        (["--lags", ""], "--lags must be whole numbers"),
        (["--lags", "99999999999999999999"], "from 1 to 10000"),
        (["--lags", "1-2000"], "at most 1000 features"),
        (["--lags", "1", "--horizon", "0"], "--horizon"),
        (["--lags", "1", "--horizon", "20000"], "horizon must be a whole number from 1 to 10000"),
        (["--horizon", "3"], "--horizon is for --lags"),
        (["--lags", "1", "--lag-columns", "tmp"], "no column 'tmp' (--lag-columns), did you mean 'temp'?"),
        (["--lag-columns", "temp"], "--lag-columns temp needs lags"),
        (["--lags", "1", "--lag-columns", "temp=x"], "--lag-columns temp must be whole numbers from 0"),
        (["--lags", "1", "--lag-columns", "y"], "'y', the target; --lags are its lags"),
        (["--lags", "1", "--lag-columns", "temp", "--drop", "temp"], "both --lag-columns and --drop"),
        (["--lags", "1", "--lag-columns", "city"], "columns of numbers; 'city' holds text"),
        (["--lags", "1", "--lag-columns", "day"], "columns of numbers; 'day' holds timestamps"),
        (["--lags", "1", "--task", "classification"], "the target holds labels"),
        (["--lags", "2"], "the column 'target lag 2' has the name of a lag"),
    ],
)
def test_lags_that_make_no_sense_are_refused(tmp_path, options, message):
    frame = series(30).assign(city="a", day="2024-01-01")
    if options == ["--lags", "2"]:
        frame["target lag 2"] = 1.0
    result = invoke("run", write(tmp_path / "d.csv", frame), "-t", "y", *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_columns_that_are_not_lagged_are_said_to_be_known_ahead(tmp_path):
    data = write(tmp_path / "d.csv", series(30).assign(day="2024-01-01", wind=1.0))
    result = invoke("run", data, "-t", "y", "--lags", "1", "--horizon", "3", "--lag-columns", "wind")
    assert "'temp': the value of the row itself is used, as if it were known 3 rows ahead" in result.stderr


def test_intervals_a_day_ahead_hold_their_coverage(tmp_path):
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=3000))  # what happens within the horizon cannot be known
    rows = run(write(tmp_path / "d.csv", pd.DataFrame({"y": y})), "--lags", "1,2", "--horizon", "24")
    inside = [float(row["lower"]) <= float(row["target"]) <= float(row["upper"]) for row in rows[1000:]]
    assert 0.85 < np.mean(inside) < 0.95


def test_inspect_shows_lags_and_horizon(tmp_path):
    run(write(tmp_path / "d.csv", series(30)), *LAGS, "--horizon", "4", "--model", tmp_path / "m.omkl")
    facts = json.loads(invoke("inspect", tmp_path / "m.omkl", "--json").stdout)
    assert facts["lags"] == [1, 2, 6]
    assert facts["lag_columns"] == {"temp": [0, 1]}
    assert facts["horizon"] == 4
    assert facts["features"] == ["target lag 1", "target lag 2", "target lag 6", "temp", "temp lag 1"]
    assert "y 1, 2, 6; temp 0, 1" in invoke("inspect", tmp_path / "m.omkl").stdout
