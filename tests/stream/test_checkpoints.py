"""Checkpoints: two runs on one are kept apart, and one that was tampered with is refused."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from command import OMKL, invoke
from tables import table

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
