"""The work of `omkl-lab data`: list the data sets, print a path, download."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from omkl_lab.data.download import ARCHIVES, fetch
from omkl_lab.data.sets import EMBEDDED, SETS, DataSetNotFoundError, find, how_to_get, locate
from omkl_lab.progress import Progress


def listing() -> Table:
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("name", "rows", "features", "task", "where"):
        numeric = name in ("rows", "features")
        out.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=name != "where")
    for s in SETS.values():
        if s.name in EMBEDDED:
            where = Text("embedded", "dim")
        elif path := locate(s.name):
            where = Text(str(path))
        else:
            where = Text("not found; " + ("see data fetch" if s.name in ARCHIVES else "add it by hand"), "dim")
        out.add_row(s.name, str(s.rows), str(s.features), s.task, where)
    return out


def path_of(name: str) -> Path:
    """The path of a data set's file."""
    if find(name).name in EMBEDDED:
        raise DataSetNotFoundError(f"{name} is embedded and has no file")
    path = locate(name)
    if path is None:
        raise DataSetNotFoundError(f"data set {name} not found: {how_to_get(name)}")
    return path


def get(name: str, console: Console) -> Path:
    """Download a data set into the cache, replacing an earlier download."""
    with Progress(None, console, f"downloading {name}") as bar:
        return fetch(find(name).name, bar.update)
