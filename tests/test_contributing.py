"""CONTRIBUTING, followed to the letter."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omkl import Gaussian, Laplacian, load, persist, save
from omkl.graph import log_overlap

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def page() -> Any:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    here: dict[str, Any] = {"__name__": "contributing"}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, "CONTRIBUTING.md", "exec"), here)
    yield here
    persist._KERNELS.pop("Blurred")


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


def test_every_file_that_the_page_names_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_A-Z]+\.(?:py|hpp|cpp|pyi|md))`", text)) - {
        "algorithms/name.py",
        "engine/algorithms/name.hpp",
    }
    places = [ROOT, ROOT / "src", ROOT / "src/omkl", ROOT / "src/omkl/engine", ROOT / "src/omkl/estimators"]
    assert not [name for name in named if not any((place / name).exists() for place in places)]
