"""Checkpoints: two runs on one are kept apart, and one that was tampered with is refused."""

import copy
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import OMKL, invoke
from tables import table

from omkl.persist.container import Content, pack, unpack

USED = "--checkpoint {}: another run is using it; wait until it has ended, or choose another name"


def waiting_run(checkpoint: Path) -> subprocess.Popen[bytes]:
    """A run that has taken its checkpoint and waits for data."""
    command = [*OMKL, "run", "-", "-t", "y", "--checkpoint", str(checkpoint), "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    for _ in range(3000):
        if checkpoint.with_name(f"{checkpoint.name}.lock").exists():
            return process
        time.sleep(0.01)
        assert process.poll() is None
    process.kill()
    pytest.fail("the run takes no lock")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "d.csv"
    path.write_text(table(60))
    return path


def test_a_checkpoint_that_another_run_uses_is_refused(tmp_path: Path, data: Path):
    (tmp_path / "link").symlink_to("c.ckpt")
    with waiting_run(tmp_path / "c.ckpt") as first:
        time.sleep(0.2)
        for name in ("c.ckpt", "link"):
            result = invoke("run", data, "-t", "y", "--checkpoint", tmp_path / name)
            assert (result.exit_code, result.stderr) == (2, f"omkl: {USED.format(tmp_path / name)}\n")
        first.communicate(data.read_bytes(), timeout=60)
    assert first.returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["c.ckpt", "d.csv", "link"]


def test_a_run_that_was_killed_leaves_no_lock(tmp_path: Path, data: Path):
    with waiting_run(tmp_path / "c.ckpt") as first:
        first.kill()
    assert (tmp_path / "c.ckpt.lock").exists()
    assert invoke("run", data, "-t", "y", "--checkpoint", tmp_path / "c.ckpt").exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["c.ckpt", "d.csv"]


def test_a_run_that_fails_leaves_no_lock(tmp_path: Path, data: Path):
    for arguments in (["-t", "cost"], ["-t", "y"], ["-t", "y", "--seed", "1"], ["-t", "y"]):
        code = invoke("run", data, *arguments, "--checkpoint", tmp_path / "c.ckpt").exit_code
        assert code == (0 if arguments == ["-t", "y"] else 2)
        assert not (tmp_path / "c.ckpt.lock").exists()


WRONG: tuple[Any, ...] = (None, -1, 0, 1.5, 10**6, "x", [], {}, True, [1], {"x": 1})


def places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand in the body of a checkpoint; of long lists the first two, and nothing within the learner."""
    if path:
        yield path
    if path == ("model", "core"):
        return
    keys = body if isinstance(body, dict) else range(min(len(body), 2)) if isinstance(body, list) else ()
    for key in keys:
        yield from places(body[key], (*path, key))


def changed(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    body = copy.deepcopy(body)
    part = body
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return body


@pytest.mark.parametrize(
    ("task", "options"),
    [("regression", ()), ("classification", ()), ("regression", ("--lags=1,3", "--lag-columns=a", "--horizon=3"))],
)
def test_a_checkpoint_that_was_tampered_with_is_refused_or_continued_but_is_no_internal_error(
    tmp_path: Path, task: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    lines = ["id,when,a,colour,y"]
    for k in range(150):
        y = "" if k % 4 == 0 else k % 7 if task == "regression" else f"l{k % 3}"
        lines.append(f"r{k},2024-01-{1 + k % 28:02d},{k % 5 if k % 11 else ''},{'red' if k % 3 else 'blue'},{y}")
        if options and k % 8 == 7:
            lines.append(f"r{k - 3},,,,{k % 7}")  # a late target
    arguments = ["run", "d.csv", "-t", "y", "--task", task, "--learner", "sfg-mkl", "--key", "id", "--checkpoint", "c",
                 "--predictions", "p.csv", *options]  # fmt: skip
    Path("d.csv").write_text("\n".join(lines[:120]) + "\n")
    assert invoke(*arguments).exit_code == 0
    content, predictions = unpack(Path("c").read_bytes()), Path("p.csv").read_bytes()
    Path("d.csv").write_text("\n".join(lines) + "\n")
    draw = random.Random(0)
    cases = [(changed(content.body, path, value), content.arrays)
             for path in places(content.body) for value in draw.sample(WRONG, 3)]  # fmt: skip
    for name in (name for name in content.arrays if name.startswith(("history", "waiting.0", "lags", "deferred"))):
        array = content.arrays[name]
        for wrong in (
            array[:-1],
            array.ravel()[:1],
            np.zeros_like(array, dtype=np.int64 if array.dtype == float else float),
        ):
            cases.append((content.body, content.arrays | {name: wrong}))
    refused = 0
    for body, arrays in cases:
        Path("c").write_bytes(b"".join(pack(Content(content.kind, body, arrays))))
        Path("p.csv").write_bytes(predictions)
        result = invoke(*arguments, "-q")
        assert isinstance(result.exception, SystemExit | None), (result.exception, body)
        assert result.exit_code in (0, 2)
        refused += result.exit_code == 2
        assert (result.exit_code == 2) == result.stderr.startswith("omkl: ")
    assert refused > len(cases) / 2
