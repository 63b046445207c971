"""CONTRIBUTING, followed to the letter."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omkl import Gaussian, Laplacian, load, save
from omkl.graph import log_overlap
from omkl.persist import values

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def page() -> Any:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    here: dict[str, Any] = {"__name__": "contributing"}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, "CONTRIBUTING.md", "exec"), here)
    yield here
    values._KERNELS.pop("Blurred")


def test_the_toy_kernel_s_draws_reproduce_it(page: Any):
    kernel = page["Blurred"](0.7)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3))
    psi = kernel.spectral(rng, 200_000, 3)
    drawn = np.array([[np.cos(psi @ (x - y)).mean() for y in X] for x in X])
    np.testing.assert_allclose(drawn, kernel.value(X, X), atol=0.01)


def test_the_toy_kernel_s_overlaps_agree_with_quadrature(page: Any):
    kernel = page["Blurred"](0.7)
    rho = np.linspace(-40, 40, 400_001)[:, None]
    mine = kernel.value(rho, np.zeros((1, 1))).ravel()
    for other in (Gaussian(1.3), Laplacian(0.4), page["Blurred"](2.0)):
        theirs = other.value(rho, np.zeros((1, 1))).ravel()
        area = np.trapezoid(mine * theirs, rho.ravel())
        assert log_overlap(kernel, other, 1) == pytest.approx(np.log(area), abs=1e-6)


def test_a_model_of_toy_kernels_learns_and_comes_back_from_a_file(page: Any, tmp_path: Path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    model = page["model"].fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.1 * np.var(y)
    save(model, tmp_path / "m.omkl")
    np.testing.assert_array_equal(load(tmp_path / "m.omkl").predict(X), model.predict(X))


NEW = {"src/omkl/algorithms/random_mkl.py", "src/omkl/engine/algorithms/random_mkl.hpp"}


def test_every_file_that_the_page_names_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_A-Z]+\.(?:py|hpp|cpp|pyi|md))`", text)) - NEW
    places = [ROOT, ROOT / "src", ROOT / "src/omkl"]
    assert not [name for name in named if not any((place / name).exists() for place in places)]


# A new algorithm


def follow_the_page(project: Path) -> set[str]:
    """Apply what the page says about a new algorithm to a copy of the project; returns the files touched."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = re.findall(r'```(?:python|cpp) title="(.*?)"\n(.*?)```', text, flags=re.S)
    assert {name for name, _ in blocks} >= NEW
    touched = {name for name, _ in blocks}
    for name, block in blocks:
        path = project / name
        if name in NEW:
            path.write_text(block)
        else:
            replace(path, "from omkl.algorithms import (", "from omkl.algorithms import (random_mkl, ")
            path.write_text(f"{path.read_text()}\n\n{block}")
    member, registry = re.search(r'add `("random_mkl")` to `MODULES` in `(.*?)`', text).groups()
    replace(project / registry, "MODULES = (", f"MODULES = ({member}, ")
    return {*touched, registry}


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, path
    path.write_text(text.replace(old, new))


CHECKS = """
import dataclasses, inspect, subprocess, sys
import numpy as np, omkl, omkl.river
from omkl import algorithms
from omkl.fleet import Fleet
from sklearn.utils.estimator_checks import check_estimator

folder = sys.argv[1]
rng = np.random.default_rng(0)
X, keys = rng.uniform(-1, 1, (600, 3)), np.arange(600) % 3
y = np.sin(3 * X[:, 0]) + X[:, 1]
settings = omkl.Settings(n_features=20)

# both implementations
engine = omkl.Online.make("random-mkl", settings, d=3, seed=1)
reference = omkl.Online.make("random-mkl", settings, d=3, seed=1, backend="numpy")
assert (engine.backend, reference.backend) == ("engine", "numpy")
np.testing.assert_allclose(engine.run(X, y), reference.run(X, y), atol=1e-12)
assert engine.state.node == reference.state.node

# both APIs, with real signatures and documented parameters
assert "RandomMKLRegressor" in omkl.__all__
model = omkl.RandomMKLRegressor(n_features=30, random_state=1)
own, shared = ["kernels", "n_features", "scale"], ["shuffle", "epochs", "random_state"]
assert list(inspect.signature(omkl.RandomMKLRegressor).parameters) == [*own, *shared]
assert list(inspect.signature(omkl.RandomMKLClassifier).parameters) == [*own, "class_weight", *shared]
assert "n_features : int, default=50" in omkl.RandomMKLRegressor.__doc__
check_estimator(model)
check_estimator(omkl.RandomMKLClassifier(n_features=30, random_state=1))
model = omkl.RandomMKLRegressor(random_state=1)
before = model.predict_then_learn(X, y)
river = omkl.river.RandomMKLRegressor(seed=1)
for x, target, wanted in zip(X, y, before):
    row = {str(k): float(value) for k, value in enumerate(x)}
    assert river.predict_one(row) == wanted
    river.learn_one(row, float(target))

# files
for made in (model, river, engine):
    omkl.save(made, f"{folder}/model.omkl")
    loaded = omkl.load(f"{folder}/model.omkl")
    omkl.save(loaded, f"{folder}/again.omkl")
    assert open(f"{folder}/model.omkl", "rb").read() == open(f"{folder}/again.omkl", "rb").read()
state = engine.state
try:
    algorithms.get("random-mkl").check_state(engine.problem, state._replace(node=999))
except ValueError:
    pass
else:
    raise AssertionError("a node that is not there was accepted")

# a fleet in records of the engine
fleet = Fleet(omkl.RandomMKLRegressor(n_features=20), seed=1)
together = fleet.learn_rows(keys, X, y)
for key in range(3):
    own, alone = keys == key, Fleet(omkl.RandomMKLRegressor(n_features=20), seed=1)
    np.testing.assert_array_equal(alone.learn_rows(keys[own], X[own], y[own]), together[own])
assert fleet.nbytes < 3 * 20_000

# the command line
np.savetxt(f"{folder}/data.csv", np.column_stack((X, keys, y)), delimiter=",", header="a,b,c,key,y", comments="")
for more in ([], ["--by", "key"]):
    words = ["run", f"{folder}/data.csv", "--target", "y", "--learner", "random-mkl", *more]
    command = [sys.executable, "-S", "-c", "from omkl.cli import main; main()", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
"""


@pytest.mark.slow
def test_a_new_algorithm_touches_five_files_and_works_everywhere(tmp_path: Path):
    project, installed = tmp_path / "project", tmp_path / "installed"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        if name.startswith(("src/", "cmake/")) or name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, project / name)
    shutil.copy(ROOT / "src/omkl/_version.py", project / "src/omkl/_version.py")
    assert len(follow_the_page(project)) == 5

    environment = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": "0.0.1"}
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", installed]
    built = subprocess.run([*install, project], capture_output=True, text=True, env=environment, check=False)
    assert built.returncode == 0, built.stderr
    # without site, so that the editable installation of the project under test is not seen
    path = os.pathsep.join([str(installed), sysconfig.get_path("purelib")])
    script = [sys.executable, "-S", "-c", CHECKS, tmp_path]
    checked = subprocess.run(
        script, capture_output=True, text=True, env={**environment, "PYTHONPATH": path}, cwd=tmp_path, check=False
    )
    assert checked.returncode == 0, checked.stderr
