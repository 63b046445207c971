"""The engine built otherwise: by both compilers, with sanitizers, and for ARM. Each is a target of make."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "clang++": "clang",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "qemu-aarch64": "qemu-user",
    "g++": "g++",
}


def make(*arguments: str, needs: tuple[str, ...] = ("g++",)) -> None:
    for program in needs:
        if not shutil.which(program):
            pytest.skip(f"no {program}: install Debian's {PACKAGES[program]}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-10_000:]


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_engine_compiles_without_a_warning(compiler: str):
    make("warnings", f"COMPILERS={compiler}", needs=(compiler,))


def test_the_engine_that_clang_compiles_agrees_with_numpy():
    make("test-clang", needs=("clang++",))


def test_rounds_without_python_agree_with_numpy_and_stay_within_their_memory():
    make("self-test")


def test_rounds_on_aarch64_agree_with_numpy():
    make("self-test-aarch64", needs=("aarch64-linux-gnu-g++", "qemu-aarch64"))


@pytest.mark.parametrize("name", [b"predictions float", b"after.theta float", b"evaluated int"])
def test_the_self_test_notices_a_number_that_differs(name: bytes, tmp_path: Path):
    make("self-test")
    cases = bytearray((ROOT / "build" / "cases").read_bytes())
    line = cases.index(name)
    number = cases.index(b"\n", line) + 1
    cases[number + 7] ^= 0x40  # 0 becomes 2, and every other number another one
    (tmp_path / "cases").write_bytes(cases)
    done = subprocess.run([ROOT / "build/native/self_test", tmp_path / "cases"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "instead of" in done.stdout


def test_the_engine_stays_within_its_memory():
    make("sanitize")


def test_threads_never_use_the_same_memory_at_a_time():
    make("sanitize-threads")
