"""omkl run: nothing lost when it is killed, stopped or refused; live pipes; what people see."""

import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from command import OMKL, invoke, omkl

from omkl import persist


def table(rows: int, seed: int = 0) -> str:
    """Numbers, gaps, categories that come late, dates, and targets that are missing now and then."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    lines = ["when,a,b,c,colour,y"]
    for k in range(rows):
        a, b, c = x[k]
        colour = ["red", "green", "blue", "white"][min(int(k * 4 / rows * rng.random() * 2), 3)]
        y = "" if k % 97 == 13 else f"{np.sin(2 * a) + b * c + 0.3 * (colour == 'red'):.6f}"
        gap = "" if k > rows // 3 and k % 50 == 0 else f"{b:.6f}"
        lines.append(f"2024-01-{1 + k % 28:02d} {k % 24:02d}:00,{a:.6f},{gap},{c:.6f},{colour},{y}")
    return "\n".join(lines) + "\n"


def outputs(folder: Path) -> list[Any]:
    folder.mkdir(exist_ok=True)
    return ["--predictions", folder / "p.csv", "--model", folder / "m.omkl", "--checkpoint", folder / "c.ckpt"]


@pytest.mark.parametrize(("learner", "rows"), [("graph-mkl", 6_000), ("sfg-mkl", 20_000)])
def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(tmp_path: Path, learner: str, rows: int):
    data = tmp_path / "data.csv"
    data.write_text(table(rows))
    command = ["run", data, "-t", "y", "--learner", learner, "--every", 300]
    began = time.monotonic()
    assert omkl(*command, *outputs(tmp_path / "whole")).returncode == 0
    whole = time.monotonic() - began
    draw = random.Random(rows)
    kills = round_trips = 0
    while kills < 15:
        folder = tmp_path / f"killed {round_trips}"
        finished = False
        while not finished:
            process = subprocess.Popen(
                [*OMKL, *map(str, [*command, *outputs(folder)])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                process.wait(draw.uniform(0.3, 1.0) * whole)
                finished = True
                assert process.returncode == 0
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        for name in ("p.csv", "m.omkl"):
            assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        round_trips += 1


def test_a_finished_run_repeated_changes_nothing_and_says_so(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(800))
    words = ["run", data, "-t", "y", *outputs(tmp_path / "out"), "--every", 100]
    assert invoke(*words).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    again = invoke(*words)
    assert again.exit_code == 0
    assert "nothing to do" in again.stdout
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_finished_run_goes_on_when_rows_were_appended(tmp_path: Path):
    whole = table(900)
    lines = whole.splitlines(keepends=True)
    grown, at_once = tmp_path / "grown.csv", tmp_path / "once.csv"
    at_once.write_text(whole)
    assert invoke("run", at_once, "-t", "y", *outputs(tmp_path / "a"), "--every", 100).exit_code == 0
    for stop in (400, 901):
        grown.write_text("".join(lines[:stop]))
        assert invoke("run", grown, "-t", "y", *outputs(tmp_path / "b"), "--every", 100).exit_code == 0
    for name in ("p.csv", "m.omkl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--learner", "raker"], "the checkpoint of another run, with learner='sfg-mkl' instead of 'raker'"),
        (["--seed", "7"], "with seed=0 instead of 7"),
        (["--drop", "a"], "with drop=[] instead of ['a']"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, change: list[str], message: str):
    data = tmp_path / "data.csv"
    data.write_text(table(300))
    words = ["run", data, "-t", "y", "--learner", "sfg-mkl", *outputs(tmp_path / "out")]
    assert invoke(*words).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    result = invoke(*words, *change)
    assert result.exit_code == 2
    assert message in result.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(300))
    words = ["run", data, "-t", "y", *outputs(tmp_path / "out")]
    assert invoke(*words).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for other in (table(300, seed=1), table(200)):
        data.write_text(other)
        result = invoke(*words)
        assert result.exit_code == 2
        assert "not the data that the checkpoint was written for" in result.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_model_is_no_checkpoint_and_a_damaged_one_is_named(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(300))
    assert invoke("run", data, "-t", "y", *outputs(tmp_path / "out")).exit_code == 0
    words = ["run", data, "-t", "y", "--checkpoint"]
    result = invoke(*words, tmp_path / "out" / "m.omkl")
    assert result.exit_code == 2
    assert "not a checkpoint but a model" in result.stderr
    damaged = tmp_path / "damaged.ckpt"
    damaged.write_bytes((tmp_path / "out" / "c.ckpt").read_bytes()[:-5])
    result = invoke(*words, damaged)
    assert result.exit_code == 2
    assert "truncated or corrupted" in result.stderr


def test_predictions_that_were_cut_or_are_gone_are_not_made_up(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(300))
    words = ["run", data, "-t", "y", *outputs(tmp_path / "out")]
    assert invoke(*words).exit_code == 0
    with data.open("a") as file:
        file.write(table(20).partition("\n")[2])
    (tmp_path / "out" / "p.csv").write_text("row\n")
    result = invoke(*words)
    assert result.exit_code == 2
    assert "shorter than when the checkpoint was written" in result.stderr
    assert (tmp_path / "out" / "p.csv").read_text() == "row\n"


def test_a_file_that_changes_underneath_stops_the_run(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(60_000))
    process = subprocess.Popen(
        [*OMKL, "run", str(data), "-t", "y", "--every", "100", "--checkpoint", str(tmp_path / "c.ckpt"), "-q"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (tmp_path / "c.ckpt").exists():
        time.sleep(0.01)
        assert process.poll() is None
    replaced = tmp_path / "new.csv"
    replaced.write_text(table(10))
    replaced.replace(data)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "changed while it was read" in err


@pytest.mark.parametrize("name", ["predictions", "model", "checkpoint", "report"])
def test_what_cannot_be_written_is_refused_before_the_work(tmp_path: Path, name: str):
    data = tmp_path / "data.csv"
    data.write_text(table(50))
    (tmp_path / "folder.csv").mkdir()
    for place, message in ((tmp_path / "no" / "x.csv", "there is no folder"), (tmp_path / "folder.csv", "a folder"),
                           (data, "the same file as the data")):  # fmt: skip
        result = invoke("run", data, "-t", "y", f"--{name}", place)
        assert result.exit_code == 2
        assert message in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_refused(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(50))
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    result = invoke("run", data, "-t", "y", "--model", locked / "m.omkl")
    assert result.exit_code == 2
    assert "cannot be written to" in result.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_an_error_and_earlier_files_stay(tmp_path: Path, small_disk: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(500))
    words = ["run", data, "-t", "y", "--learner", "sfg-mkl", "--predictions", small_disk / "p.csv",
             "--model", small_disk / "m.omkl"]  # fmt: skip
    assert invoke(*words).exit_code == 0
    before = {path: path.read_bytes() for path in small_disk.iterdir()}
    (small_disk / "ballast").write_bytes(b"x" * (600_000 - sum(map(len, before.values())) - 30_000))
    data.write_text(table(20_000))
    result = invoke(*words)
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert all(path.read_bytes() == content for path, content in before.items())


def test_an_earlier_prediction_file_is_replaced_only_at_the_end(tmp_path: Path):
    data, out = tmp_path / "data.csv", tmp_path / "p.csv"
    out.write_text("precious\n")
    data.write_bytes(table(300).encode() + b"1" * (17 << 20))
    assert invoke("run", data, "-t", "y", "--predictions", out, "--every", 100).exit_code == 2
    assert out.read_text() == "precious\n"
    data.write_text(table(300))
    assert invoke("run", data, "-t", "y", "--predictions", out).exit_code == 0
    assert len(out.read_text().splitlines()) == 301
    assert not (tmp_path / "p.csv.part").exists()


# Stopping


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_with_everything_in_order_and_the_run_goes_on_later(tmp_path: Path, sent: signal.Signals):
    data = tmp_path / "data.csv"
    data.write_text(table(20_000))
    command = ["run", data, "-t", "y", "--every", 200]
    assert omkl(*command, *outputs(tmp_path / "whole")).returncode == 0
    words = [*OMKL, *map(str, [*command, *outputs(tmp_path / "out")])]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "out" / "c.ckpt").exists():
        time.sleep(0.01)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in err
    kept = persist.load(tmp_path / "out" / "c.ckpt")
    assert not kept.progress.finished
    assert len((tmp_path / "out" / "p.csv").read_text().splitlines()) == kept.progress.records + 1
    assert (tmp_path / "out" / "m.omkl").exists()
    assert omkl(*command, *outputs(tmp_path / "out")).returncode == 0
    for name in ("p.csv", "m.omkl"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def live(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*OMKL, "run", "-", "--predictions", "-", "--every", "1", *words], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)  # fmt: skip


def said(process: subprocess.Popen[bytes]) -> str:
    """The next line, which must come while nothing more is sent."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready, "no prediction came"
        line += process.stdout.read(1)
    return line.decode().rstrip("\n")


def test_each_row_of_a_pipe_is_answered_before_the_next_is_sent():
    process = live("-t", "y", "-q")
    assert process.stdin is not None
    process.stdin.write(b"a,b,y\n")
    header = None
    for k in range(20):
        process.stdin.write(f"{k},{k * k},{3 * k}\n".encode())
        header = header or said(process)
        row = said(process).split(",")
        assert (row[0], float(row[-1])) == (str(k + 1), 3 * k)
    process.stdin.write(b"20,400")  # half a row is none
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"stopped after 20 rows" in err


def test_targets_that_come_later_by_key_are_learned_and_scored():
    process = live("-t", "y", "--key", "id", "--json", "--predictions", "/dev/stderr")
    lines = ["id,a,y"]
    for k in range(300):
        lines.append(f"r{k},{k % 7},")
        if k >= 5:
            lines.append(f"r{k - 5},,{2 * ((k - 5) % 7) + 1}")
    out, _ = process.communicate(("\n".join(lines) + "\n").encode(), timeout=120)
    summary = json.loads(out)
    assert (summary["rows"], summary["learned"], summary["scored"], summary["waiting"]) == (595, 295, 295, 5)
    assert summary["features"] == 1  # the empty cells of a row that only answers are no gaps
    assert summary["rmse"] < 0.5 * summary["baseline_rmse"]


def test_no_more_rows_wait_than_were_allowed(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text("id,a,y\n" + "".join(f"{k},{k},\n" for k in range(50)) + "3,,1\n49,,2\n")
    result = invoke("run", data, "-t", "y", "--key", "id", "--pending", 10, "--predictions", tmp_path / "p.csv")
    assert result.exit_code == 0
    assert "more than 10 rows wait for their target" in result.stderr
    rows = pyarrow.csv.read_csv(tmp_path / "p.csv")
    # row 3 was given up, so what comes for it is a row of its own
    assert rows["key"].to_pylist() == [*range(50), 3]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_waiting_rows_survive_a_checkpoint(tmp_path: Path, task: str):
    lines = ["id,a,colour,y"]
    for k in range(400):
        lines.append(f"r{k},{k % 7},{'red' if k < 200 else 'blue'},")
        if k >= 30:
            lines.append(f"r{k - 30},,,{(k - 30) % 7 % 3}")
    data = tmp_path / "data.csv"
    for folder, cuts in (("whole", [len(lines)]), ("parts", [101, 350, 500, len(lines)])):
        for stop in cuts:
            data.write_text("\n".join(lines[:stop]) + "\n")
            result = invoke(
                "run", data, "-t", "y", "--task", task, "--key", "id", "--every", 50, *outputs(tmp_path / folder)
            )
            assert result.exit_code == 0, result.stderr
    for name in ("p.csv", "m.omkl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


# The other commands


def test_learn_goes_on_as_run_would_have(tmp_path: Path):
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


def test_a_thousand_columns_with_gaps_are_no_thousand_lines(tmp_path: Path):
    data = tmp_path / "data.csv"
    names = [f"c{k}" for k in range(200)]
    data.write_text(",".join([*names, "y"]) + "\n" + ",".join(["1"] * 201) + "\n" + "," * 200 + "2\n")
    result = invoke("run", data, "-t", "y", "--learner", "raker")
    assert result.exit_code == 0
    assert result.stderr.count("has empty cells") == 20
    assert "and more of this sort" in result.stderr


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
    assert "column 'when' is not there" in result.stderr
    assert model.read_bytes() == before


def test_models_of_the_doors_are_shown_but_cannot_read_files(tmp_path: Path):
    from omkl import Online, SFGMKLRegressor
    from omkl.river import SFGMKLRegressor as RiverRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    river = RiverRegressor(seed=1)
    river.learn_one({"a": 1.0, "b": 2.0}, 3.0)
    online = Online.from_settings("raker", 2, seed=1) if hasattr(Online, "from_settings") else None
    for name, model in {"a": SFGMKLRegressor(random_state=0).fit(X, X[:, 0]), "b": river, "c": online}.items():
        if model is None:
            continue
        path = tmp_path / f"{name}.omkl"
        persist.save(model, path)
        facts = json.loads(invoke("inspect", path, "--json").stdout)
        assert facts["learner"] in ("sfg-mkl", "raker")
        assert sum(kernel["weight"] for kernel in facts["kernels"]) == pytest.approx(1)
        assert "kernels" in invoke("inspect", path).stdout
        result = invoke("predict", path, tmp_path / "data.csv")
        assert result.exit_code == 2
        assert "wanted a model of omkl run" in result.stderr


def test_inspect_shows_columns_weights_and_graph(tmp_path: Path):
    data, model = tmp_path / "data.csv", tmp_path / "m.omkl"
    data.write_text(table(500))
    assert invoke("run", data, "-t", "y", "--learner", "sfg-mkl", "--model", model).exit_code == 0
    facts = json.loads(invoke("inspect", model, "--json").stdout)
    assert facts["columns"]["when"]["kind"] == "time"
    assert facts["columns"]["b"] == {"kind": "number", "gaps": True}
    assert len(facts["graph"]["out"]) == len(facts["kernels"]) == 41
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
    from omkl import GraphMKLRegressor, SFGMKLRegressor
    from omkl.fleet import Fleet

    data = tmp_path / "data.csv"
    data.write_text("\n".join(meters(900)) + "\n")
    result = invoke("run", data, "-t", "load", "--by", "meter", "--learner", learner, "--every", 100, "--predictions",
                    tmp_path / "p.csv")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    said = pyarrow.csv.read_csv(tmp_path / "p.csv").to_pandas()
    rows = pyarrow.csv.read_csv(data).to_pandas()
    fleet = Fleet({"sfg-mkl": SFGMKLRegressor, "graph-mkl": GraphMKLRegressor}[learner](), seed=0)
    mine = rows[(rows.meter == "m2") & rows.load.notna()]
    alone = fleet.fresh("m2", 2).predict_then_learn(mine[["hour", "temp"]].to_numpy(float), mine.load.to_numpy())
    np.testing.assert_array_equal(said.loc[mine.index, "prediction"], alone)
    assert said.loc[rows.load.isna(), "prediction"].notna().all()


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_fleet_s_run_goes_on_where_it_stopped(tmp_path: Path, task: str):
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
            words = ["run", data, "-t", "load", "--task", task, "--by", "meter", "--learner", "sfg-mkl", "--every", 100]
            result = invoke(*words, *outputs(tmp_path / folder))
            assert result.exit_code == 0, result.stderr
    for name in ("p.csv", "m.omkl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    facts = json.loads(invoke("inspect", tmp_path / "whole" / "m.omkl", "--json").stdout)
    assert (facts["by"], facts["keys"]) == ("meter", 5)
    assert len(invoke("predict", tmp_path / "whole" / "m.omkl", data).stdout.splitlines()) == 801


def test_rows_of_nobody_are_left_out_and_by_needs_its_column(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text("meter,a,y\nm1,1,2\n,2,3\nm2,3,4\n")
    result = invoke("run", data, "-t", "y", "--by", "meter", "--predictions", "-")
    assert "row 2: 'meter' is empty; such rows are left out" in result.stderr
    assert len(result.stdout.splitlines()) == 3
    assert "no column 'sensor'" in invoke("run", data, "-t", "y", "--by", "sensor").stderr
    assert "do not go together" in invoke("run", data, "-t", "y", "--by", "meter", "--key", "a").stderr


# What people and machines see


def test_the_summary_for_machines_is_this(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text("a,y\n" + "".join(f"{k % 5},{k % 5}\n" for k in range(40)) + "1,\n")
    result = invoke("run", data, "-t", "y", "--learner", "raker", "--json")
    assert result.stderr == ""
    summary = json.loads(result.stdout)
    assert list(summary) == [
        "target", "task", "learner", "rows", "learned", "skipped", "waiting", "features", "scored", "mse", "rmse",
        "mae", "baseline_mse", "baseline_rmse", "kernels", "changes", "seconds", "rows_per_second",
    ]  # fmt: skip
    known = {name: summary[name] for name in list(summary)[:9]}
    assert known == {"target": "y", "task": "regression", "learner": "raker", "rows": 41, "learned": 40, "skipped": 0,
                     "waiting": 0, "features": 1, "scored": 40}  # fmt: skip
    y = np.arange(40) % 5
    means = np.array([y[:k].mean() if k else 0 for k in range(40)])
    assert summary["baseline_mse"] == pytest.approx(((y - means) ** 2).mean())


def test_the_help_of_run_is_this():
    out = invoke("run", "--help", env={"COLUMNS": "80"}).output
    options = re.findall(r"--[a-z][a-z-]+", out.partition("Options:")[2])
    assert list(dict.fromkeys(options)) == [
        "--target", "--task", "--learner", "--features", "--drop", "--categorical", "--date-format", "--predictions",
        "--model", "--checkpoint", "--every", "--report", "--key", "--pending", "--by", "--seed", "--format",
        "--delimiter",
        "--encoding", "--no-header", "--quiet", "--json", "--help",
    ]  # fmt: skip
    assert "tail -f log.jsonl | omkl run - -t seconds --every 1 --predictions -" in out


def in_a_terminal(*words: Any, interrupt: bool = False) -> tuple[int, str]:
    """Exit code and everything that a terminal of 100 columns was sent."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*OMKL, *map(str, words)], stdin=child, stdout=child, stderr=child,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}, start_new_session=True,
    )  # fmt: skip
    os.close(child)
    out = b""
    while True:
        try:
            more = os.read(parent, 65536)
        except OSError:  # Linux's way to say that nobody holds the other end
            break
        if not more:
            break
        out += more
        if interrupt and b"rows/s" in out:
            process.send_signal(signal.SIGINT)
            interrupt = False
    os.close(parent)
    return process.wait(), out.decode(errors="replace")


def test_a_terminal_shows_progress_error_and_leading_kernels(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(15_000))
    code, out = in_a_terminal("run", data, "-t", "y", "--every", 500)
    assert code == 0
    assert re.search(r"[\d,]+ rows +[\d,]+ rows/s", out)
    assert re.search(r"\d+%, \d+:\d\d left", out)
    assert "running mean" in out
    assert "leading kernels: Gaussian" in out
    assert "rows per second" in out  # the summary stays


def test_ctrl_c_in_a_terminal_leaves_a_summary_and_no_traceback(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(60_000))
    code, out = in_a_terminal("run", data, "-t", "y", "--every", 500, interrupt=True)
    assert code == 130
    assert "Traceback" not in out
    assert "stopped after" in out


def test_without_a_terminal_there_are_notes_and_a_summary_but_no_escapes(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(500))
    result = omkl("run", data, "-t", "y")
    assert result.returncode == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert "note: column 'b' has empty cells" in result.stderr
    assert omkl("run", data, "-t", "y", "--quiet").stdout == ""


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(30_000))
    words = f"run {data} -t y --learner sfg-mkl --predictions - -q"
    script = f"{sys.executable} -c 'from omkl.cli import main; main()' {words} | head -2"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert result.stderr == ""
    assert result.stdout.startswith("row,prediction,target\n1,")
