"""What a run shows: on a terminal, without one, and as JSON."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import OMKL, invoke, omkl
from tables import table

from omkl.stream.display import NO_KERNEL, leading_weights


def test_the_json_summary_has_these_keys(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text("a,y\n" + "".join(f"{k % 5},{k % 5}\n" for k in range(40)) + "1,\n")
    result = invoke("run", data, "-t", "y", "--learner", "raker", "--json")
    assert result.stderr == ""
    summary = json.loads(result.stdout)
    assert list(summary) == [
        "target", "task", "learner", "rows", "learned", "skipped", "waiting", "features", "scored", "mse", "rmse",
"mae", "baseline_mse", "baseline_rmse", "linear_mse", "linear_rmse", "kernels", "changes", "seconds", "rows_per_second",
    ]  # fmt: skip
    known = {name: summary[name] for name in list(summary)[:9]}
    assert known == {"target": "y", "task": "regression", "learner": "raker", "rows": 41, "learned": 40, "skipped": 0,
                     "waiting": 0, "features": 1, "scored": 40}  # fmt: skip
    y = np.arange(40) % 5
    means = np.array([y[:k].mean() if k else 0 for k in range(40)])
    assert summary["baseline_mse"] == pytest.approx(((y - means) ** 2).mean())


def test_weights_are_those_of_kernels_and_of_what_has_none():
    kernels = [{"kernel": "Gaussian(length_scale=1.0)", "weight": 0.25}, {"kernel": "Gaussian(length_scale=2.0)",
                                                                           "weight": 0.004}]  # fmt: skip
    summary: Any = {"kernels": kernels}
    found = leading_weights(summary, np.array([0.25, 0.004, 0.1, 0.1]))
    assert [name for name, _ in found] == ["Gaussian 1", "2 other kernels", NO_KERNEL]
    assert [weight for _, weight in found] == pytest.approx([0.25, 0.2, 0.546])
    assert leading_weights({**summary, "kernels": []}, np.empty(0)) == []


def test_the_help_of_run_lists_these_options():
    out = invoke("run", "--help", env={"COLUMNS": "80"}).output
    options = re.findall(r"--[a-z][a-z-]+", out.partition("Options:")[2])
    assert list(dict.fromkeys(options)) == [
        "--target", "--task", "--learner", "--set", "--features", "--drop", "--categorical", "--date-format",
        "--predictions", "--keep", "--probabilities", "--threshold", "--coverage", "--model", "--checkpoint", "--every",
        "--report", "--key", "--pending", "--by", "--pooled", "--lags", "--lag-columns", "--horizon", "--seed",
        "--format", "--delimiter",
        "--encoding", "--no-header", "--quiet", "--json", "--help",
    ]  # fmt: skip
    assert "tail -f log.jsonl | omkl run - -t seconds --every 1 --predictions -" in out


def in_a_terminal(*arguments: Any, interrupt: bool = False) -> tuple[int, str]:
    """Exit code and everything that a terminal of 100 columns was sent."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*OMKL, *map(str, arguments)], stdin=child, stdout=child, stderr=child,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}, start_new_session=True,
    )  # fmt: skip
    os.close(child)
    out = b""
    while True:
        try:
            more = os.read(parent, 65536)
        except OSError:  # on Linux, the other end is closed
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
    assert "weights: Gaussian" in out
    assert "rows per second" in out  # the summary remains


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


def test_a_broken_pipe_is_no_traceback(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text(table(30_000))
    arguments = f"run {data} -t y --learner sfg-mkl --predictions - -q"
    script = f"{sys.executable} -c 'from omkl.cli import main; main()' {arguments} | head -2"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert result.stderr == ""
    assert result.stdout.startswith("row,prediction,target\n1,")


def test_two_hundred_columns_with_gaps_are_twenty_notices(tmp_path: Path):
    data = tmp_path / "data.csv"
    names = [f"c{k}" for k in range(200)]
    data.write_text(",".join([*names, "y"]) + "\n" + ",".join(["1"] * 201) + "\n" + "," * 200 + "2\n")
    result = invoke("run", data, "-t", "y", "--learner", "raker")
    assert result.exit_code == 0
    assert result.stderr.count("has empty cells") == 20
    assert "and more notices of this kind" in result.stderr
