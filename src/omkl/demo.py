"""A demonstration of the library: learners and baselines on a generated stream of hourly demand."""

import csv
import io
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import SGDRegressor
from sklearn.preprocessing import StandardScaler

from omkl.arrays import Matrix, Vector
from omkl.estimators.sklearn import GraphMKLRegressor, RakerRegressor
from omkl.persist import write_atomically

ROWS, WEEK, START = 3000, 168, datetime(2024, 1, 1)
WEATHER = ("temperature", "wind", "demand_hour_before", "demand_day_before")
FOR_REPORT = ("plotly", "jinja2")  # the extra `run`


class Demand(NamedTuple):
    """A generated stream, one row per hour."""

    X: Matrix  # (rows, 7): sine and cosine of the hour, weekend, and the columns of WEATHER
    y: Vector  # demand in MW
    change: int  # the first row of the new regime


def hourly_demand(rows: int = ROWS, seed: int = 0) -> Demand:
    """Electricity demand of a town by hour, weekday and weather, with one change of regime.

    Working days have a peak in the morning and one in the evening, weekends a wide one at noon. Below 15 degrees
    demand grows with the cold and the wind, above 22 degrees with the heat. After 60 % of the rows a night tariff
    moves the peaks of working days, and heat pumps triple the effect of the cold. The noise is autocorrelated.

    >>> stream = hourly_demand(100)
    >>> stream.X.shape, stream.y.shape, stream.change
    ((100, 7), (100,), 60)
    """
    rng = np.random.default_rng(seed)
    t = np.arange(rows + 24)
    hour, weekday, late = t % 24, t // 24 % 7, t - 24 >= int(0.6 * rows)
    weather, noise = np.zeros(len(t)), np.zeros(len(t))
    for k in range(1, len(t)):
        weather[k] = 0.99 * weather[k - 1] + rng.normal(scale=0.5)
        noise[k] = 0.7 * noise[k - 1] + rng.normal(scale=0.3)
    season = -10 * np.cos(2 * np.pi * t / (24 * 365))
    temperature = 12 + season + 4 * np.sin(2 * np.pi * (hour - 9) / 24) + weather
    wind = np.abs(rng.normal(4, 2, len(t)))

    def peak(at: int, width: float) -> Vector:
        distance = np.minimum((hour - at) % 24, (at - hour) % 24)
        return np.asarray(np.exp(-((distance / width) ** 2)))

    working_day = np.where(late, 6 * peak(13, 2) + 14 * peak(2, 2), 10 * peak(8, 2) + 12 * peak(19, 2))
    daily = np.where(weekday < 5, working_day, 8 * peak(13, 5))
    cold = np.maximum(15 - temperature, 0) * (1 + 0.05 * wind) * np.where(late, 1.5, 0.5)
    demand = 40 + daily + cold + 0.8 * np.maximum(temperature - 22, 0) + noise
    angle = 2 * np.pi * hour / 24
    calendar = (np.sin(angle), np.cos(angle), weekday > 4)
    X = np.column_stack((*calendar, temperature, wind, np.roll(demand, 1), np.roll(demand, 24)))
    return Demand(X[24:], demand[24:], int(0.6 * rows))


def as_csv(stream: Demand) -> str:
    """The stream with timestamps, from which `omkl run` derives hour and weekday."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["time", *WEATHER, "demand"])
    for k, (x, y) in enumerate(zip(stream.X, stream.y, strict=True)):
        writer.writerow([(START + timedelta(hours=k)).isoformat(" "), *(f"{v:.3f}" for v in (*x[3:], y))])
    return out.getvalue()


# Learners: predictions made before each row is learned


def linear_model(X: Matrix, y: Vector) -> Vector:
    """scikit-learn's StandardScaler and SGDRegressor, row by row."""
    scaler, out = StandardScaler(), np.zeros(len(y))
    model = SGDRegressor(learning_rate="constant", random_state=0)  # the default step decreases too fast for a stream
    for k in range(len(y)):
        z = scaler.partial_fit(X[k : k + 1]).transform(X[k : k + 1])
        out[k] = model.predict(z)[0] if k else 0.0
        model.partial_fit(z, y[k : k + 1])
    return out


def running_mean(X: Matrix, y: Vector) -> Vector:
    return np.concatenate(([0.0], np.cumsum(y)[:-1] / np.arange(1, len(y))))


def last_value(X: Matrix, y: Vector) -> Vector:
    return np.concatenate(([0.0], y[:-1]))


def learners(seed: int) -> dict[str, Callable[[Matrix, Vector], Matrix]]:
    """By name. GraphMKL returns predictions and the ends of 90 % intervals, the others predictions."""
    return {
        "GraphMKL": lambda X, y: GraphMKLRegressor(random_state=seed).predict_interval_then_learn(X, y, coverage=0.9),
        "Raker": lambda X, y: RakerRegressor(random_state=seed).predict_then_learn(X, y),
        "linear model (SGD)": linear_model,
        "last value": last_value,
        "running mean": running_mean,
    }


def comparison(stream: Demand, seed: int) -> Table:
    """Every learner on the stream; the first week is not scored."""
    table = Table("learner", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("MAE", "R2", "coverage", "us per row"):
        table.add_column(name, justify="right")
    y = stream.y[WEEK:]
    for name, run in learners(seed).items():
        began = time.process_time()
        out = run(stream.X, stream.y)
        microseconds = 1e6 * (time.process_time() - began) / len(stream.y)
        f = (out[:, 0] if out.ndim == 2 else out)[WEEK:]
        inside = (out[WEEK:, 1] <= y) & (y <= out[WEEK:, 2]) if out.ndim == 2 else None
        r2 = 1 - np.sum((f - y) ** 2) / np.sum((y - y.mean()) ** 2)
        coverage = "" if inside is None else f"{100 * inside.mean():.1f} %"
        table.add_row(name, f"{np.abs(f - y).mean():.3f}", f"{r2:.3f}", coverage, f"{microseconds:.1f}")
    return table


def report(path: Path, out: Path) -> list[int]:
    """Write the report of `omkl run` on the file, and return the rows at which it detected a change."""
    from omkl.stream.options import Options
    from omkl.stream.run import Run
    from omkl.stream.run_report import write

    outcome = Run(Options(target="demand", data=(str(path),)), lambda notice: None).run()
    write(outcome, out)
    return list(outcome.summary["changes"])


def run(out: Path, seed: int, console: Console) -> None:
    """Compare the learners, write the stream and the report to the folder `out`, and print what to do next."""
    stream, path = hourly_demand(seed=seed), out / "stream.csv"
    out.mkdir(exist_ok=True)
    write_atomically(path, as_csv(stream).encode())
    console.out(f"hourly demand of a town: {len(stream.y)} rows, each predicted before it is learned")
    console.print(comparison(stream, seed))
    console.out("MAE: mean absolute error in MW, after the first week. coverage: of 90 % intervals. us: microseconds.")
    if missing := [name for name in FOR_REPORT if find_spec(name) is None]:
        console.out(f"no report: {', '.join(missing)} not installed; pip install 'omkl[run]'")
    else:
        changes = report(path, out / "report.html")
        found = ", ".join(map(str, changes)) or "none"
        console.out(f"the regime changes at row {stream.change}; changes that omkl run detected: {found}")
    console.print()
    console.out(f"files: {', '.join(sorted(str(file) for file in out.iterdir()))}")
    console.out("next:")
    console.out(f"  omkl run {path} --target demand --model demand.omkl --report demand.html")
    console.out(f"  omkl compare {path} --target demand")
    console.out("  omkl run YOUR.csv --target COLUMN")
