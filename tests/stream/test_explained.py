"""Models that `omkl run` saved explain themselves, and so does the report of a run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import invoke
from pages import charts_of

import omkl
from omkl.encoder import of_frame
from omkl.stream import run_report
from omkl.stream.details import Details
from omkl.stream.explaining import explain_rows
from omkl.stream.options import Options
from omkl.stream.run import Outcome, Run


def table(rows: int = 900, labels: bool = False) -> pd.DataFrame:
    """An hourly demand with a change of its level after two thirds, for three meters."""
    rng = np.random.default_rng(0)
    out = pd.DataFrame({
        "at": pd.date_range("2024-03-01", periods=rows, freq="h"), "heat": rng.uniform(0, 10, rows).round(3),
        "day": rng.choice(["workday", "weekend"], rows), "meter": [f"m{k % 3}" for k in range(rows)],
    })  # fmt: skip
    y = 3 * out["heat"] + 10 * (out["day"] == "workday") + 5 * (out["meter"] == "m2") + rng.normal(size=rows)
    y[2 * rows // 3 :] += 40
    return out.assign(y=np.where(y > 35, "high", "low") if labels else y.round(3))


def outcome(folder: Path, frame: pd.DataFrame, **options: Any) -> Outcome:
    path = folder / "rows.csv"
    frame.to_csv(path, index=False)
    return Run(Options(data=(str(path),), **{"target": "y", **options}), lambda text: None).run()


@pytest.fixture(scope="module")
def hourly(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("hourly")
    return outcome(folder, table(2400), report=str(folder / "page.html"))


# Models


@pytest.mark.parametrize(
    "options",
    [{}, {"lags": "1,24"}, {"by": "meter"}, {"by": "meter", "learner": "raker"}, {"by": "meter", "pooled": True}],
    ids=["one model", "lags", "a model per key", "another learner", "a pool"],
)
def test_saved_models_explain_their_predictions(options: dict[str, Any], tmp_path: Path):
    frame = table(600)
    ended = outcome(tmp_path, frame, model=str(tmp_path / "y.omkl"), **options)
    loaded: Any = omkl.load(tmp_path / "y.omkl")
    some = frame.drop(columns="y")[-4:]
    found = loaded.explain(some)
    np.testing.assert_allclose(found.base + found.contributions.sum(axis=1), loaded.predict(some), atol=1e-9)
    assert {"at", "heat", "day"} <= set(found.columns)
    assert ("target lag 24" in found.columns) == ("lags" in options)
    assert {"heat", "day"} <= set(loaded.importance_)
    effect = loaded.effect("day") if "by" not in options else loaded.effect("day", key="m2")
    assert effect.values == ["weekend", "workday"]
    assert effect.mean[1] > effect.mean[0]
    same = explain_rows(ended.model, of_frame(some))
    np.testing.assert_array_equal(same.contributions, found.contributions)


def test_a_key_that_never_came_is_refused_by_its_name(tmp_path: Path):
    frame = table(300)
    outcome(tmp_path, frame, model=str(tmp_path / "y.omkl"), by="meter", learner="raker")
    loaded: Any = omkl.load(tmp_path / "y.omkl")
    with pytest.raises(ValueError, match="no row of key 'm9' has been learned"):
        loaded.explain(frame.assign(meter="m9")[:1])


def test_inspect_says_what_has_been_learned(tmp_path: Path):
    outcome(tmp_path, table(1800), model=str(tmp_path / "y.omkl"))
    found = json.loads(invoke("inspect", tmp_path / "y.omkl", "--json").stdout)
    assert {line["column"] for line in found["importance"]} == {"at", "heat", "day", "meter"}
    in_python = omkl.load(tmp_path / "y.omkl").importance_
    assert {line["column"]: line["importance"] for line in found["importance"]} == pytest.approx(in_python, rel=1e-3)
    assert sum(line["weight"] for line in found["experts"]) == pytest.approx(1)
    (change,) = found["changes"]
    assert 1200 <= change["row"] <= 1300
    assert "target" in change["what"]
    shown = invoke("inspect", tmp_path / "y.omkl").stdout
    assert "importance" in shown
    assert "last change" in shown


# Reports


def test_charts_of_a_stream_with_times_have_a_time_axis(hourly: Outcome):
    charts = charts_of(run_report.page(hourly))
    for name in ("error", "predictions", "weights", "coverage"):
        made = charts[name][0]["chart"]
        assert made["layout"]["xaxis"]["title"]["text"] == "at"
        assert made["data"][0]["x"][0].startswith("2024-05-27" if name == "predictions" else "2024-03-0")
        assert made["data"][0]["x"][-1].startswith("2024-06-08")  # 2,400 hours later
    residuals = {choice["name"].split(" (")[0]: choice["chart"] for choice in charts["residuals"]}
    assert residuals["against the prediction"]["layout"]["xaxis"]["title"]["text"] == "prediction"


def test_times_that_go_back_are_no_axis():
    rows = np.arange(1, 101)
    details = Details()
    details.note_times(rows, np.random.default_rng(0).uniform(0, 100, 100))
    assert details.time_axis() is None
    ordered = Details()
    for part in np.array_split(np.arange(1, 5001), 37):
        ordered.note_times(part, 19_000 + part / 24)
    whole = Details()
    whole.note_times(np.arange(1, 5001), 19_000 + np.arange(1, 5001) / 24)
    assert ordered.times == whole.times
    axis = whole.time_axis()
    assert axis is not None
    assert (axis[0][0], axis[0][-1]) == (1, 5000)
    assert np.interp(4321, *axis) == pytest.approx(19_000 + 4321 / 24)


def test_importance_is_shown_now_and_over_time(hourly: Outcome):
    over_time, now = charts_of(run_report.page(hourly))["importance"]
    assert (over_time["name"], now["name"]) == ("over time", "now")
    assert set(now["chart"]["data"][0]["y"]) == {"at", "heat", "day", "meter"}
    lines = {trace["name"]: trace for trace in over_time["chart"]["data"]}
    assert {"heat", "day"} <= set(lines)
    assert len(lines["heat"]["x"]) > 4


def test_the_change_is_explained(hourly: Outcome):
    page = run_report.page(hourly)
    assert hourly.history is not None
    (text,) = hourly.history.details.changes()
    assert text in page
    assert "the target" in text


def test_the_worst_rows_are_those_with_the_largest_errors(tmp_path: Path):
    ended = outcome(tmp_path, table(500), predictions=str(tmp_path / "p.csv"), every=64)
    predictions = pd.read_csv(tmp_path / "p.csv")
    error = (predictions["prediction"] - table(500)["y"]).abs()
    assert ended.history is not None
    found = [row.row for row in ended.history.details.worst]
    assert found == (error.sort_values(ascending=False, kind="stable").index[:10] + 1).tolist()
    page = run_report.page(ended)
    assert "Worst predictions" in page


def test_errors_by_key_are_those_of_the_predictions(tmp_path: Path):
    ended = outcome(tmp_path, table(600), predictions=str(tmp_path / "p.csv"), by="meter", learner="raker", every=100)
    squares = (pd.read_csv(tmp_path / "p.csv")["prediction"] - table(600)["y"]) ** 2
    expected = squares.groupby(table(600)["meter"]).mean() ** 0.5
    assert ended.history is not None
    found = {row[0]: float(row[2]) for row in run_report.key_rows(ended.history)}
    assert found == {key: pytest.approx(value, rel=1e-3) for key, value in expected.items()}
    assert "Errors by meter" in run_report.page(ended)


def test_roc_curves_have_the_area_of_the_summary(tmp_path: Path):
    ended = outcome(tmp_path, table(600, labels=True))
    (curve,) = charts_of(run_report.page(ended))["roc"]
    (trace, chance) = curve["chart"]["data"]
    assert chance["name"] == "by chance"
    assert trace["name"] == "high"  # the rarer label
    area = np.trapezoid(trace["y"], trace["x"])
    assert area == pytest.approx(ended.summary["per_label"]["high"]["auc"], abs=2e-3)


def test_details_survive_their_file(hourly: Outcome):
    assert hourly.history is not None
    body = json.loads(json.dumps(hourly.history.details.encode()))
    assert json.loads(json.dumps(Details.decode(body).encode())) == body
    assert Details.decode(None).encode() == Details().encode()
    with pytest.raises(ValueError, match="too long"):
        Details.decode({**body, "worst": [[1.0, 1, 2.0, 3.0]] * 11})
    with pytest.raises(ValueError, match="must be numbers"):
        Details.decode({**body, "times": [[1, "yesterday"]]})


def test_a_page_is_small_without_the_plotting_library(hourly: Outcome):
    from plotly.offline import get_plotlyjs

    assert len(run_report.page(hourly)) - len(get_plotlyjs()) < 500_000
