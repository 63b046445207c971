"""Forecasts of hourly series, one hour and one day ahead: python -m omkl_lab.forecasts

GraphMKL with lags against naive forecasts, a linear model with the same lags, and Holt-Winters of river. All methods
predict h hours ahead from what was known h hours before. Writes results/forecasts.json, and from it the tables in
docs/time_series.md. A series that is not found is left out.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from river import datasets, time_series

from omkl import GraphMKLRegressor, Lags
from omkl.arrays import Mask, Matrix, Vector
from omkl.estimators.core import NumberCore
from omkl.estimators.declaration import Declaration
from omkl.lags import LagSettings, Past
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.data.sets import data_folders
from omkl_lab.files import brief, write_json
from omkl_lab.parallel import Unit, run_parallel

RESULTS, PAGE = Path("results/forecasts.json"), Path("docs/time_series.md")
COMMAND = "python -m omkl_lab.forecasts"
DAY, WEEK = 24, 168
HORIZONS = (1, DAY)
# rows back from the row that is predicted; those nearer than the horizon are not known
BACK = (1, 2, 3, 24, 25, 48, 168)
SCORED_FROM = WEEK + DAY  # the first rows have no value a week before
SEEDS = 3
TOO_EARLY = "learned too early"
FORGETTING = 1 - 1 / 2000


class Series(NamedTuple):
    """An hourly series."""

    title: str
    y: Vector
    ahead: pd.DataFrame  # inputs known ahead: the calendar
    past: list[str]  # columns of `ahead` of which only past values are known


def water_flow() -> Series:
    rows = list(datasets.WaterFlow())  # type: ignore[no-untyped-call]  # river's
    when = [x["Time"] for x, _ in rows]
    ahead = pd.DataFrame({"hour": [t.hour for t in when], "weekday": [t.weekday() for t in when]}, dtype=float)
    return Series("water flow of a pipeline (river)", np.array([y for _, y in rows]), ahead, [])


def from_table(
    title: str, name: str, calendar: list[str], past: list[str], where: str = ""
) -> Callable[[], Series | None]:
    """A series of a table of the data folder; `where` is a column that is 1 in its rows."""

    def load() -> Series | None:
        for folder in data_folders():
            for path in (folder / f"{name}.csv", folder / "real" / f"{name}.csv"):
                if path.is_file():
                    table = pd.read_csv(path)
                    table = table[table[where] == 1].reset_index(drop=True) if where else table
                    return Series(title, table.target.to_numpy(float), table[calendar + past].astype(float), past)
        return None

    return load


SERIES: dict[str, Callable[[], Series | None]] = {
    "water_flow": water_flow,
    "air_quality": from_table("carbon monoxide in a street (air quality)", "air_quality", [],
                              ["PT08_S1_CO", "NOx_GT", "NO2_GT", "T", "RH"]),
    "key_west_water": from_table("water temperature at Key West", "key_west_water", ["hour", "month"], []),
    "weather_nyc": from_table("air temperature at Newark", "weather_nyc", ["hour", "month"],
                              ["dewp", "wind_speed", "pressure"], "origin=EWR"),
}  # fmt: skip


def lags_of(horizon: int) -> list[int]:
    """The lags of these rows, counted from the last one that is known."""
    return sorted({max(back - horizon + 1, 1) for back in BACK if back >= horizon})


def lagged(series: Series, horizon: int) -> Matrix:
    """The lags of all rows."""
    settings = LagSettings.make(lags_of(horizon), {name: [1] for name in series.past}, horizon)
    return Past(settings).follow(np.column_stack((series.y, series.ahead[series.past])))[1]


def features(series: Series, horizon: int) -> Matrix:
    """The same features as GraphMKL has, for a linear model: NaN where a lag is not known."""
    ahead = series.ahead.drop(columns=series.past)
    hours = [pd.get_dummies(ahead[name], dtype=float) for name in ahead]  # a linear model needs a level for each
    return np.hstack((lagged(series, horizon), *hours))


# Methods: a prediction for each row, and perhaps the ends of an interval


def naive(back: int) -> Callable[[Series, int, int], Matrix]:
    def predict(series: Series, horizon: int, seed: int) -> Matrix:
        n = max(back, horizon)
        return np.concatenate((np.full(n, np.nan), series.y[:-n]))[:, None]

    return predict


def graph_mkl(series: Series, horizon: int, seed: int) -> Matrix:
    columns = {name: [1] for name in series.past}
    model = Lags(GraphMKLRegressor(random_state=seed), lags_of(horizon), columns, horizon)
    X = None if series.ahead.empty else series.ahead
    return model.predict_interval_then_learn(X, series.y, 0.9)


def linear(series: Series, horizon: int, seed: int) -> Matrix:
    """Recursive least squares that learns row t - h just before it predicts row t; it forgets over 2,000 rows."""
    X = features(series, horizon)
    known: Mask = np.array(~np.isnan(X).any(axis=1))
    first = X[known][0]
    scale = np.abs(X[known][:DAY]).mean(axis=0)  # of the first day: the ridge asks for a scale
    Z = np.hstack(((X - first) / np.where(scale > 0, scale, 1.0), np.ones((len(X), 1))))
    P, w, out = 100 * np.eye(Z.shape[1]), np.zeros(Z.shape[1]), np.full((len(X), 1), np.nan)
    for t, z in enumerate(Z):
        s = t - horizon
        if s >= 0 and known[s]:
            gain = P @ Z[s] / (FORGETTING + Z[s] @ P @ Z[s])
            w += gain * (series.y[s] - w @ Z[s])
            P = (P - np.outer(gain, Z[s] @ P)) / FORGETTING
            P = (P + P.T) / 2
        out[t] = w @ z
    return out


def holt_winters(series: Series, horizon: int, seed: int) -> Matrix:
    model = time_series.HoltWinters(alpha=0.3, beta=0.01, gamma=0.3, seasonality=DAY)  # type: ignore[no-untyped-call]  # river's
    out = np.full((len(series.y), 1), np.nan)
    for t, y in enumerate(series.y.tolist()):
        model.learn_one(y)  # type: ignore[no-untyped-call]  # river's
        if t >= WEEK and t + horizon < len(out):
            out[t + horizon] = model.forecast(horizon)[-1]  # type: ignore[no-untyped-call]  # river's
    return out


def too_early(series: Series, horizon: int, seed: int) -> Matrix:
    """GraphMKL that learns each target at once, before it can be known `horizon` hours ahead."""
    X = np.hstack((series.ahead.drop(columns=series.past), lagged(series, horizon)))
    names, model = [str(k) for k in range(X.shape[1])], Declaration("graph-mkl", "regression")
    core = model.core(seed, names)
    assert isinstance(core, NumberCore)
    return core.learn_rows(X, series.y)[:, None]


METHODS: dict[str, Callable[[Series, int, int], Matrix]] = {
    "GraphMKL with lags": graph_mkl,
    "last value": naive(1),
    "value of the day before": naive(DAY),
    "value of the week before": naive(WEEK),
    "linear, the same lags": linear,
    "Holt-Winters (river)": holt_winters,
}


def measure(name: str, method: str, horizon: int, seed: int) -> list[dict[str, Any]]:
    series = SERIES[name]()
    assert series is not None
    out = (METHODS | {TOO_EARLY: too_early})[method](series, horizon, seed)[SCORED_FROM:]
    y = series.y[SCORED_FROM:]
    record: dict[str, Any] = {"mae": brief(float(np.abs(out[:, 0] - y).mean())), "rows": len(y)}
    if out.shape[1] == 3:
        record["coverage"] = brief(float(((out[:, 1] <= y) & (y <= out[:, 2])).mean()))
    return [record]


# The page


def summary(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Medians over the seeds, by series and horizon."""
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for key, record in found.items():
        name, method, horizon, _ = key.split(" | ")
        runs.setdefault((name, method, horizon), []).append(record)
    out: dict[str, Any] = {}
    for (name, method, horizon), records in runs.items():
        series = SERIES[name]()
        assert series is not None
        entry = out.setdefault(name, {"title": series.title, "rows": len(series.y), "errors": {}})
        fields = [field for field in ("mae", "coverage") if field in records[0]]
        medians = {field: brief(float(np.median([record[field] for record in records]))) for field in fields}
        entry["errors"].setdefault(horizon, {})[method] = medians
    return out


def lines(results: Mapping[str, Any], horizon: int) -> Iterator[list[str]]:
    for entry in results.values():
        errors = {method: entry["errors"][str(horizon)][method] for method in METHODS}
        best = min(errors.values(), key=lambda error: error["mae"])["mae"]
        shown = [f"**{e['mae']:.3g}**" if e["mae"] == best else f"{e['mae']:.3g}" for e in errors.values()]
        yield [entry["title"], *shown, f"{100 * errors['GraphMKL with lags']['coverage']:.1f}"]


def where_worse(results: Mapping[str, Any]) -> str:
    """A sentence for each series and horizon where another method has a smaller error than GraphMKL."""
    out = []
    for entry in results.values():
        for horizon, found in entry["errors"].items():
            errors = {method: found[method] for method in METHODS}
            own = errors["GraphMKL with lags"]["mae"]
            better = [f"{method} ({error['mae']:.3g})" for method, error in errors.items() if error["mae"] < own]
            if better:
                hours = "hour" if horizon == "1" else "hours"
                out.append(f"- {entry['title']}, {horizon} {hours} ahead: {own:.3g}, better: {', '.join(better)}.")
    return "\n".join(out) if out else "GraphMKL has the smallest error on all of them."


def tables(results: Mapping[str, Any]) -> str:
    head = ["mean absolute error", *METHODS, "coverage, %"]
    parts = []
    for horizon in HORIZONS:
        ahead = "One hour ahead" if horizon == 1 else f"{horizon} hours ahead"
        parts += [f"{ahead}; the last column is the coverage of GraphMKL's 90 % interval:\n",
                  markdown.table(head, lines(results, horizon))]  # fmt: skip
    seeming = ", ".join(f"{entry['errors'][str(DAY)][TOO_EARLY]['mae']:.3g}" for entry in results.values())
    early = (f"If GraphMKL learned each target at once, before it can be known {DAY} hours ahead, its errors in the "
             f"second table would seem to be {seeming}.\n")  # fmt: skip
    return "\n".join([*parts, "Where GraphMKL is not the best:\n", where_worse(results), "", early])


def quoted(results: Mapping[str, Any]) -> dict[str, str]:
    """The generated part of docs/time_series.md."""
    return {"forecasts": tables(results)}


def units() -> list[Unit]:
    found = [name for name, load in SERIES.items() if load() is not None]
    return [
        Unit((f"{name} | {method} | {horizon} | {seed}",), measure,
             {"name": name, "method": method, "horizon": horizon, "seed": seed})
        for name in found for horizon in HORIZONS for method in (*METHODS, TOO_EARLY)
        for seed in range(SEEDS if method in ("GraphMKL with lags", TOO_EARLY) else 1)
    ]  # fmt: skip


def main() -> None:
    planned = units()
    found = {keys[0]: records[0] for keys, records in run_parallel(planned, 1)}
    results = summary({unit.keys[0]: found[unit.keys[0]] for unit in planned})
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print(tables(results))


if __name__ == "__main__":
    run_without_arguments("omkl_lab.forecasts", __doc__, main)
