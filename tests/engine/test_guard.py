"""Instructions of a round, counted by callgrind: a test of speed that does not depend on how busy the machine is.

Counts differ between compilers, so that expected.json has one list for every compiler they were measured with. For
another compiler the counts are compared in proportion to that of the sine and cosine loop, with a larger tolerance.
After an intended change: python tests/engine/test_guard.py
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omkl.engine import _native, supported

FOLDER = Path(__file__).parent / "guard"
EXPECTED = FOLDER / "expected.json"
TOLERANCE, TOLERANCE_ELSEWHERE = 0.03, 0.25
GAUGE = "sincos"
PER = {"sincos": 512, "least_squares": 5}  # pairs and steps that were counted; else 256 rounds
HEADER = Path("/usr/include/valgrind/callgrind.h")


def compiler() -> str:
    """Name, and major and minor number."""
    return " ".join(re.match(r"(\w+) (\d+\.\d+)", _native.compiler).groups())


def why_not() -> str:
    if "avx2" not in supported():
        return "the counts are those of AVX2, which this machine does not have"
    if not (shutil.which("valgrind") and shutil.which("cc") and HEADER.exists()):
        return "no valgrind: install Debian's valgrind and gcc to count instructions"
    return ""


def counts(folder: Path) -> dict[str, float]:
    """Instructions per round of every algorithm, per least-squares step, and per sine and cosine."""
    marks = folder / "marks.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", marks, FOLDER / "marks.c"], check=True)
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder / 'out'}",
               sys.executable, FOLDER / "counted.py", marks]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    found = {}
    for path in folder.glob("out.*"):
        text = path.read_text()
        name = re.search(r"Client Request: (\S+)", text)
        if name and name[1] != "-":
            found[name[1]] = int(re.search(r"^totals: (\d+)", text, re.MULTILINE)[1]) / PER.get(name[1], 256)
    return found


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_round_takes_as_many_instructions_as_it_did(tmp_path: Path):
    expected = json.loads(EXPECTED.read_text())
    now = counts(tmp_path)
    known = expected.get(compiler())
    tolerance = TOLERANCE if known else TOLERANCE_ELSEWHERE
    want = known or {name: count * now[GAUGE] / other[GAUGE]
                     for other in [next(iter(expected.values()))] for name, count in other.items()}  # fmt: skip
    assert now.keys() == want.keys()
    off = {name: f"{now[name]:.0f} instead of {want[name]:.0f}"
           for name in want if abs(now[name] / want[name] - 1) > tolerance}  # fmt: skip
    assert not off, f"{compiler()}: {off}; if that is intended: python tests/engine/test_guard.py"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        kept = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
        kept[compiler()] = {name: round(count, 1) for name, count in sorted(counts(Path(folder)).items())}
    EXPECTED.write_text(json.dumps(kept, indent=1) + "\n")
    print(EXPECTED.read_text())
