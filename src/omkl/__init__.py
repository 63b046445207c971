"""Online multi-kernel learning: predict, see the answer, learn, without choosing a kernel beforehand."""

import importlib
from typing import Any

_HOMES = {
    "omkl.kernels": ("Gaussian", "Laplacian", "Matern", "Cauchy", "Kernel", "dictionary", "log_grid", "mixture"),
    "omkl.settings": ("GraphSettings", "Settings"),
    "omkl.online": ("Online",),
    "omkl.errors": ("DivergenceError", "BudgetWarning", "ModelFileError"),
    "omkl.persist": ("save", "load", "to_bytes", "from_bytes"),
    "omkl.estimators.sklearn": (
        "GraphMKLRegressor", "GraphMKLClassifier",
        "SFGMKLRegressor", "SFGMKLClassifier", "RakerRegressor", "RakerClassifier",
        "OMKLGFRegressor", "OMKLGFClassifier", "OMKRRegressor", "RFOMKRRegressor",
    ),
    "omkl._version": ("__version__",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(name for name in _HOME_OF if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    # names are imported when used (PEP 562), so that `import omkl` costs nothing
    if name not in _HOME_OF:
        raise AttributeError(f"module 'omkl' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF]
