"""Models of many keys: keys with few rows take little memory, and what takes much is announced or refused."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import invoke

import omkl
from omkl.fleet import Fleet
from omkl.fleet.storage import FIRST_ROWS
from omkl.stream import keyed, memory
from omkl.stream.memory import NOTICE_BYTES, check_memory
from omkl.stream.raw import DataError

RUN = """
import re, sys
from omkl.cli.run import run_and_show
from omkl.stream.options import Options
from omkl.stream.run import Run
data, out = sys.argv[1:]
options = Options(data=(data,), target="y", by="id", model=f"{out}/m.omkl", report=f"{out}/r.html")
run_and_show(Run(options, print), True, False)
# the peak of this program; that of getrusage includes the program that started it
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def test_a_thousand_keys_of_one_row_take_little_memory_and_a_small_file(tmp_path: Path):
    data = tmp_path / "d.csv"
    data.write_text("id,a,b,y\n" + "".join(f"u{k},{k % 7},{k % 5},{k % 11}\n" for k in range(1000)))
    done = subprocess.run([sys.executable, "-c", RUN, data, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 400_000  # kilobytes
    assert (tmp_path / "m.omkl").stat().st_size < 10_000_000
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "linear model and memory" not in page
    assert "Largest weights" not in page


def rows(n: int, labels: bool, seed: int = 0) -> tuple[list[str], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[::9, 1] = np.nan
    y = np.where(X[:, 0] > 0, "up", "down") if labels else X[:, 0] + rng.normal(size=n)
    # of some keys there are few rows, of others many
    return [f"k{int(k)}" for k in rng.geometric(0.2, n)], X, y


def new_fleet(labels: bool) -> Fleet:
    if labels:
        return Fleet(omkl.GraphMKLClassifier(n_features=40), seed=1, classes=["down", "up"])
    return Fleet(omkl.GraphMKLRegressor(n_features=40), seed=1)


@pytest.mark.parametrize("labels", [False, True])
def test_keys_with_few_rows_are_those_of_separate_models_also_after_a_file(labels: bool):
    keys, X, y = rows(150, labels)
    fleet, separate = new_fleet(labels), {}
    for start in range(0, 150, 30):
        part = slice(start, start + 30)
        out = fleet.learn_rows(keys[part], X[part], y[part], gaps=True)
        fleet = omkl.from_bytes(omkl.to_bytes(fleet))
        for key in dict.fromkeys(keys[part]):
            mine = [k for k, other in enumerate(keys[part]) if other == key]
            model = separate.setdefault(key, fleet.fresh(key))
            expected = fleet._models.template.learn(model, X[part][mine], y[part][mine])
            assert out[mine].tolist() == expected.tolist()
    counts = {key: keys.count(key) for key in fleet}
    assert min(counts.values()) <= FIRST_ROWS < max(counts.values())
    for key in fleet:
        kept = fleet._models.first_rows(key)
        assert (kept is not None) == (counts[key] <= FIRST_ROWS)
        assert fleet.pack(key) == fleet._models.template.pack(separate[key])
        assert fleet.predict_rows([key], X[:1], gaps=True).tolist() == separate_prediction(fleet, separate[key], X[:1])


def separate_prediction(fleet: Fleet, model: Any, X: np.ndarray) -> list[Any]:
    return list(fleet._models.template.predict(model, X).tolist())


def test_the_growth_that_is_announced_is_the_growth():
    keys, X, y = rows(150, False)
    fleet = new_fleet(False)
    for start in range(0, 150, 50):
        part = slice(start, start + 50)
        before, announced = fleet.nbytes, fleet.growth(keys[part], 2)
        fleet.learn_rows(keys[part], X[part], y[part], gaps=True)
        assert fleet.nbytes - before == pytest.approx(announced, rel=0.01, abs=20_000)


def test_much_memory_is_announced_and_too_much_refused():
    said: list[str] = []
    check_memory(0, NOTICE_BYTES - 1, 10, lambda about, text: said.append(text), lambda: 0, True)
    assert said == []
    check_memory(0, NOTICE_BYTES, 1000, lambda about, text: said.append(text), lambda: 10 * NOTICE_BYTES, True)
    check_memory(0, NOTICE_BYTES, 1000, lambda about, text: said.append(text), lambda: None, True)
    assert "the models of 1,000 keys take about 400 MB of memory" in said[0]
    assert "--learner sfg-mkl" in said[0]
    assert len(said) == 2
    with pytest.raises(DataError, match="400 MB of memory, twice that while they are saved, and 700 MB are available"):
        check_memory(0, NOTICE_BYTES, 1000, lambda about, text: said.append(text), lambda: 700_000_000, True)
    check_memory(0, NOTICE_BYTES, 1000, lambda about, text: said.append(text), lambda: 700_000_000, False)
    with pytest.raises(DataError, match="400 MB of memory, and 300 MB are available"):
        check_memory(0, NOTICE_BYTES, 1000, lambda about, text: said.append(text), lambda: 300_000_000, False)
    check_memory(NOTICE_BYTES // 2, NOTICE_BYTES, 9, lambda about, text: said.append(text), lambda: 700_000_000, True)


def test_a_run_that_needs_more_memory_than_there_is_stops_before_it_learns(tmp_path: Path, monkeypatch: Any):
    data, out = tmp_path / "d.csv", tmp_path / "p.csv"
    data.write_text("id,a,y\n" + "".join(f"u{k % 40},{k % 7},{k % 11}\n" for k in range(1000)))
    monkeypatch.setattr(memory, "NOTICE_BYTES", 3_000_000)
    monkeypatch.setattr(keyed, "available_memory", lambda: 4_000_000)
    result = invoke("run", data, "-t", "y", "--task", "regression", "--by", "id", "--predictions", out)
    assert result.exit_code == 2
    assert re.search(r"the models of 40 keys take about \d+(\.\d+)? MB of memory, and 4 MB are", result.stderr)
    assert not out.exists()
    monkeypatch.setattr(keyed, "available_memory", lambda: None)
    result = invoke("run", data, "-t", "y", "--task", "regression", "--by", "id", "--learner", "sfg-mkl", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["keys"] == 40


def test_the_memory_that_is_available_is_read_from_the_system(tmp_path: Path, monkeypatch: Any):
    found = memory.available_memory()
    assert found is None or found > 1_000_000
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert memory.available_memory() is None
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 50 kB\n")
    assert memory.available_memory() == 51_200
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert memory.available_memory() == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() == 51_200
