"""omkl run --by ... --pooled: one model for all keys, with corrections for each."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import invoke

import omkl
from omkl.fleet import PooledFleet


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    shop, price, day = rng.integers(20, size=400), rng.normal(size=400), rng.normal(size=400)
    units = np.sin(2 * price) + day * shop / 10
    frame = pd.DataFrame({"shop": [f"s{k}" for k in shop], "price": price, "day": day, "units": units})
    for name, part in (("all", frame), ("first", frame[:250]), ("rest", frame[250:])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def test_a_run_is_that_of_a_pooled_fleet_and_goes_on_exactly(sales: Path):
    options = ("-t", "units", "--by", "shop", "--pooled", "--learner", "raker")
    out = sales / "all.jsonl"
    assert invoke("run", sales / "all.csv", *options, "--predictions", out, "--model", sales / "a").exit_code == 0
    predictions = [json.loads(line)["prediction"] for line in out.read_text().splitlines()]
    frame = pd.read_csv(sales / "all.csv")
    fleet = PooledFleet(pool=omkl.RakerRegressor(), seed=0)
    expected = fleet.learn_rows(frame["shop"], frame[["day", "price"]], frame["units"])  # features by name
    np.testing.assert_allclose(predictions, expected, rtol=1e-6, atol=1e-6)

    assert invoke("run", sales / "first.csv", *options, "--model", sales / "b").exit_code == 0
    assert invoke("learn", sales / "b", sales / "rest.csv").exit_code == 0
    for name in ("a", "b"):
        result = invoke("predict", sales / name, sales / "all.csv", "--predictions", sales / f"{name}.csv")
        assert result.exit_code == 0, result.stderr
    assert (sales / "a.csv").read_bytes() == (sales / "b.csv").read_bytes()
    shown = json.loads(invoke("inspect", sales / "a", "--json").stdout)
    assert shown["keys"] == 20
    assert shown["pooled"]


def test_what_pooled_keys_cannot_do_is_refused(sales: Path):
    result = invoke("run", sales / "all.csv", "-t", "units", "--pooled")
    assert result.exit_code == 2
    assert "--pooled is for --by" in result.stderr
    result = invoke("run", sales / "all.csv", "-t", "shop", "--by", "units", "--pooled")
    assert result.exit_code == 2
    assert "--pooled predicts numbers" in result.stderr
