"""omkl run: nothing is lost when it is killed, stopped or refused; live pipes; delayed labels."""

import json
import os
import random
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from command import OMKL, invoke, omkl, outputs
from tables import table

from omkl import persist


@pytest.mark.parametrize(
    ("learner", "rows", "enough"),
    [
        ("graph-mkl", 6_000, 5),
        ("sfg-mkl", 10_000, 5),
        pytest.param("graph-mkl", 6_000, 15, marks=pytest.mark.slow),
        pytest.param("sfg-mkl", 20_000, 15, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(
    tmp_path: Path, learner: str, rows: int, enough: int
):
    data = tmp_path / "data.csv"
    data.write_text(table(rows))
    command = ["run", data, "-t", "y", "--learner", learner, "--every", 300]
    began = time.monotonic()
    assert omkl(*command, *outputs(tmp_path / "whole")).returncode == 0
    whole = time.monotonic() - began
    draw = random.Random(rows)
    kills = round_trips = 0
    while kills < enough:
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
    arguments = ["run", data, "-t", "y", *outputs(tmp_path / "out"), "--every", 100]
    assert invoke(*arguments).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    again = invoke(*arguments)
    assert again.exit_code == 0
    assert "nothing to do" in again.stdout
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_finished_run_resumes_when_rows_were_appended(tmp_path: Path):
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
    arguments = ["run", data, "-t", "y", "--learner", "sfg-mkl", *outputs(tmp_path / "out")]
    assert invoke(*arguments).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    result = invoke(*arguments, *change)
    assert result.exit_code == 2
    assert message in result.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(300))
    arguments = ["run", data, "-t", "y", *outputs(tmp_path / "out")]
    assert invoke(*arguments).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for other in (table(300, seed=1), table(200)):
        data.write_text(other)
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert "not the data that the checkpoint was written for" in result.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_model_is_no_checkpoint_and_a_damaged_one_is_named(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(300))
    assert invoke("run", data, "-t", "y", *outputs(tmp_path / "out")).exit_code == 0
    arguments = ["run", data, "-t", "y", "--checkpoint"]
    result = invoke(*arguments, tmp_path / "out" / "m.omkl")
    assert result.exit_code == 2
    assert "not a checkpoint but a model" in result.stderr
    damaged = tmp_path / "damaged.ckpt"
    damaged.write_bytes((tmp_path / "out" / "c.ckpt").read_bytes()[:-5])
    result = invoke(*arguments, damaged)
    assert result.exit_code == 2
    assert "truncated or corrupted" in result.stderr


def test_predictions_that_were_cut_or_removed_are_refused(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(300))
    arguments = ["run", data, "-t", "y", *outputs(tmp_path / "out")]
    assert invoke(*arguments).exit_code == 0
    with data.open("a") as file:
        file.write(table(20).partition("\n")[2])
    (tmp_path / "out" / "p.csv").write_text("row\n")
    result = invoke(*arguments)
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
def test_outputs_that_cannot_be_written_are_refused_before_the_work(tmp_path: Path, name: str):
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
    arguments = ["run", data, "-t", "y", "--learner", "sfg-mkl", "--predictions", small_disk / "p.csv",
             "--model", small_disk / "m.omkl"]  # fmt: skip
    assert invoke(*arguments).exit_code == 0
    before = {path: path.read_bytes() for path in small_disk.iterdir()}
    (small_disk / "ballast").write_bytes(b"x" * (600_000 - sum(map(len, before.values())) - 30_000))
    data.write_text(table(20_000))
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert f"{small_disk / 'p.csv'}: cannot be written (No space left on device)" in result.stderr
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
def test_ctrl_c_leaves_complete_files_and_the_run_resumes_later(tmp_path: Path, sent: signal.Signals):
    data = tmp_path / "data.csv"
    data.write_text(table(20_000))
    command = ["run", data, "-t", "y", "--every", 200]
    assert omkl(*command, *outputs(tmp_path / "whole")).returncode == 0
    arguments = [*OMKL, *map(str, [*command, *outputs(tmp_path / "out")])]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "out" / "c.ckpt").exists():
        time.sleep(0.01)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command resumes from here" in err
    checkpoint = persist.load(tmp_path / "out" / "c.ckpt")
    assert not checkpoint.progress.finished
    assert len((tmp_path / "out" / "p.csv").read_text().splitlines()) == checkpoint.progress.records + 1
    assert (tmp_path / "out" / "m.omkl").exists()
    assert omkl(*command, *outputs(tmp_path / "out")).returncode == 0
    for name in ("p.csv", "m.omkl"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def live(*arguments: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [*OMKL, "run", "-", "--predictions", "-", "--every", "1", *arguments]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)


def next_line(process: subprocess.Popen[bytes]) -> str:
    """The next line, which must come while nothing more is sent."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready, "no prediction came"
        line += process.stdout.read(1)
    return line.decode().rstrip("\n")


def test_each_row_of_a_pipe_is_predicted_before_the_next_is_sent():
    process = live("-t", "y", "-q")
    assert process.stdin is not None
    process.stdin.write(b"a,b,y\n")
    header = None
    for k in range(20):
        process.stdin.write(f"{k},{k * k},{3 * k}\n".encode())
        header = header or next_line(process)
        row = next_line(process).split(",")
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
    assert summary["features"] == 1  # the empty cells of a row that only brings a target are not gaps
    assert summary["rmse"] < 0.5 * summary["baseline_rmse"]


def test_no_more_rows_wait_than_were_allowed(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text("id,a,y\n" + "".join(f"{k},{k},\n" for k in range(50)) + "3,,1\n49,,2\n")
    result = invoke("run", data, "-t", "y", "--key", "id", "--pending", 10, "--predictions", tmp_path / "p.csv")
    assert result.exit_code == 0
    assert "more than 10 rows wait for their target" in result.stderr
    rows = pyarrow.csv.read_csv(tmp_path / "p.csv")
    # row 3 was dropped, so its target is a row of its own
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
