"""Online multi-kernel learning: predict, see the target, learn, without choosing a kernel beforehand."""

import importlib
from typing import Any

_HOMES = {
    "omkl.kernels": ("Gaussian", "Laplacian", "Matern", "Cauchy", "Kernel", "dictionary", "log_grid", "mixture"),
    "omkl.algorithms.settings": ("Settings",),
    "omkl.algorithms.graph_mkl": ("GraphSettings",),
    "omkl.online": ("Online",),
    "omkl.estimators.sklearn.lags": ("Lags",),
    "omkl.explain.displays": ("ImportanceDisplay", "EffectDisplay", "ContributionsDisplay"),
    "omkl.errors": ("DivergenceError", "BudgetWarning", "SharedFeaturesWarning", "ModelFileError"),
    "omkl.estimators.sklearn.encoder": ("TableEncoder",),
    "omkl.persist": ("save", "load", "read_metadata", "to_bytes", "from_bytes"),
    "omkl._version": ("__version__",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ESTIMATORS = "omkl.estimators.sklearn.estimators"


def _estimators() -> list[str]:
    """Names of the estimators, read from their source: importing them would import scikit-learn."""
    import re
    from pathlib import Path

    source = Path(__file__).parent.joinpath(*_ESTIMATORS.split(".")[1:]).with_suffix(".py")
    return re.findall(r"^class (\w+)", source.read_text(encoding="utf-8"), flags=re.MULTILINE)


def __getattr__(name: str) -> Any:
    # names are imported when used (PEP 562), so that `import omkl` costs nothing
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    if name == "__all__":
        return sorted([*(name for name in _HOME_OF if not name.startswith("_")), *_estimators()])
    if name in _estimators():
        return getattr(importlib.import_module(_ESTIMATORS), name)
    if name == "river":  # a module of its own, since not all who use omkl have to wait for river
        return importlib.import_module("omkl.river")
    raise AttributeError(f"module 'omkl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")} - {"Any", "importlib"})  # what a user may want to complete
