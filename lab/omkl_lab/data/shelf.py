"""`omkl data`: what there is, where it lies, and getting what is missing."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from omkl_lab.data.download import ARCHIVES, fetch
from omkl_lab.data.sets import EMBEDDED, SETS, MissingSetError, find, how_to_get, locate
from omkl_lab.progress import Patience


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
            where = Text(
                "missing; " + ("omkl data fetch gets it" if s.name in ARCHIVES else "bring it yourself"), "dim"
            )
        out.add_row(s.name, str(s.rows), str(s.features), s.task, where)
    return out


def path_of(name: str) -> Path:
    """The file of a set that is at hand."""
    if find(name).name in EMBEDDED:
        raise MissingSetError(f"{name} is embedded and has no file")
    path = locate(name)
    if path is None:
        raise MissingSetError(f"{name} is not at hand: {how_to_get(name)}")
    return path


def get(name: str, console: Console) -> Path:
    """Fetch a set into the cache, whether or not it is there already."""
    with Patience(None, console, f"fetching {name}") as patience:
        return fetch(find(name).name, patience.at)
