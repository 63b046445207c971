"""A fuzzer guided by coverage on the loader: bytes that reach new branches are kept and changed further (atheris)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import omkl
import omkl.river
from omkl.persist.container import FRONT

SECONDS = 600
X = np.random.default_rng(0).normal(size=(20, 2))
KERNELS = [omkl.Gaussian(0.5), omkl.Laplacian(2.0)]

# The input is the length of the header, the header and the arrays; the checksum is made right, as no fuzzer finds it.
PROGRAM = """
import hashlib, inspect, sys
import atheris
import omkl, omkl.river, omkl.fleet
from omkl.persist.container import DIGEST, FRONT, MAGIC, VERSION

def check(data):
    length = int.from_bytes(data[:4], "little")
    content = FRONT.pack(MAGIC, VERSION, length) + data[4:]
    try:
        omkl.from_bytes(content + hashlib.blake2b(content, digest_size=DIGEST).digest())
    except omkl.ModelFileError:
        pass

for name, module in list(sys.modules.items()):  # editable ones have importers of their own
    if name.startswith(("omkl.persist", "omkl.estimators", "omkl.fleet", "omkl.algorithms")):
        for value in list(vars(module).values()):
            if inspect.isfunction(value) and value.__module__ == name:
                atheris.instrument_func(value)
atheris.Setup(sys.argv, check)
atheris.Fuzz()
"""


def as_input(data: bytes) -> bytes:
    _, _, length = FRONT.unpack_from(data)
    return length.to_bytes(4, "little") + data[FRONT.size : -32]


@pytest.mark.soak
def test_the_loader_refuses_whatever_a_fuzzer_makes(tmp_path: Path):
    pytest.importorskip("atheris", reason="the fuzzer atheris is not installed (pip install atheris)")
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    choices = {"kernels": KERNELS, "n_features": 1}
    models = [omkl.RakerRegressor(**choices), omkl.SFGMKLClassifier(**choices, out_degree=1)]
    for k, model in enumerate(models):
        (seeds / f"new{k}").write_bytes(as_input(omkl.to_bytes(model)))
        model.fit(X, X[:, 0] if k == 0 else np.arange(20) % 2)
        (seeds / f"fitted{k}").write_bytes(as_input(omkl.to_bytes(model)))
    seconds = os.environ.get("OMKL_FUZZ_SECONDS", str(SECONDS))
    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=20000"]
    command = [sys.executable, "-c", PROGRAM, *limits, str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    print(done.stderr[-2000:])
    assert done.returncode == 0, done.stderr[-3000:]
