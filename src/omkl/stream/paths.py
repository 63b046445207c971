"""The files that a command names: no two may be the same file, and outputs must be writable before the work begins."""

import os
import stat
import sys
import tempfile
import unicodedata
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import NamedTuple

from omkl.persist.container import MAGIC
from omkl.stream.lock import lock_path
from omkl.stream.options import Options
from omkl.stream.raw import DataError
from omkl.stream.terminal import require_output
from omkl.stream.writer import WRITTEN, partial_path

PLATFORM = sys.platform
REPORTS = ("", ".html", ".htm")


class Named(NamedTuple):
    """A file, and how messages refer to it."""

    label: str
    path: str | int  # a number is an open file: standard input or output


def check_files(options: Options) -> None:
    """Refuse a command that would write over a file it reads, write two outputs to one file, or fail to write one.

    Nothing is opened, except temporary files without a name, and inputs to see whether they are models.
    """
    inputs, outputs = list(_inputs(options)), list(_outputs(options))
    _check_order(options)
    _check_distinct(inputs, outputs)
    for label, path in outputs:
        if isinstance(path, str):
            _check_writable(label, path)
    where, report = options.predictions, options.report
    if where == "-":
        require_output()
    if report is not None and Path(report).suffix.lower() not in REPORTS and is_regular(report):
        raise DataError(f"--report {report}: a report is a page of HTML; wanted a name that ends in .html")
    if where is not None and where != "-" and Path(where).suffix.lower() not in WRITTEN and is_regular(where):
        raise DataError(
            f"--predictions {where}: wanted a name that ends in {', '.join(WRITTEN)}, or - for standard output"
        )


def is_regular(path: str) -> bool:
    """Whether this is a file, or nothing yet, rather than a pipe or a device."""
    return not os.path.exists(path) or os.path.isfile(path)


def identity(path: str | int) -> Hashable | None:
    """Equal for two names of one file, whether it exists or is still to be written; None for pipes and devices.

    >>> identity("new.csv") == identity("./new.csv"), identity(os.devnull)
    (True, None)
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        whole = os.path.realpath(str(path))  # what is open is always found
        if os.path.exists(whole):  # ".." leaves a folder that is not there
            return identity(whole)
        folder, name = os.path.split(whole)
        if not os.path.isdir(folder):
            return None
        if PLATFORM in ("darwin", "win32"):  # where names that differ in case are usually the same
            name = unicodedata.normalize("NFC", name).casefold()
        parent = os.stat(folder)
        return parent.st_dev, parent.st_ino, name
    except OSError:  # what cannot be opened cannot be destroyed either
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _inputs(options: Options) -> Iterator[Named]:
    for path in options.data:
        yield Named("standard input", 0) if path == "-" else Named(f"the data {path}", path)
    # a model that is learned further is replaced unless --out is given: then it is an output
    if options.start is not None and options.start != options.model:
        yield Named(f"MODEL {options.start}", options.start)


def _outputs(options: Options) -> Iterator[Named]:
    model = "--model" if options.start is None else "MODEL" if options.start == options.model else "--out"
    named = {"--predictions": options.predictions, model: options.model, "--checkpoint": options.checkpoint,
             "--report": options.report}  # fmt: skip
    for option, path in named.items():
        if path is not None:
            yield Named(f"{option} {path}", 1 if path == "-" else path)
    if options.predictions is not None and options.predictions != "-" and os.path.isfile(options.predictions):
        path = partial_path(options.predictions)
        yield Named(f"the file {path} of --predictions", path)
    if options.checkpoint is not None and is_regular(options.checkpoint):
        yield Named(f"the file {options.checkpoint}.lock of --checkpoint", lock_path(options.checkpoint))


def _check_order(options: Options) -> None:
    """Refuse a model behind the data that it is meant for."""
    swapped = next((path for path in options.data if is_model(path)), None)
    if options.start is not None and swapped is not None and not is_model(options.start):
        raise DataError(f"{options.start}: no model, but {swapped} is one; the model comes first, then the data")


def is_model(path: str) -> bool:
    """Whether this is a file that begins as a model does."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _check_distinct(inputs: list[Named], outputs: list[Named]) -> None:
    known = [(identity(named.path), named) for named in inputs]
    for output in outputs:
        own = identity(output.path)
        for other, named in known:
            replaced = named.label.startswith("MODEL ") and output.label.startswith("--out ")
            if own is not None and own == other and not replaced:
                raise DataError(f"{output.label}: the same file as {named.label}; give it another name")
        known.append((own, output))


def _check_writable(label: str, path: str) -> None:
    """Refuse a file that cannot be created or replaced."""
    parent, folder = str(Path(path).parent), os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise DataError(f"{label}: there is no folder {folder if os.path.isdir(parent) else parent!r}; make it first")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:  # such as a name that is too long
        raise DataError(f"{label}: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"{label}: a folder; wanted the name of a file")
    if not stat.S_ISREG(mode):
        if not os.access(path, os.W_OK):
            raise DataError(f"{label}: it cannot be written to")
        return
    try:
        with tempfile.TemporaryFile(dir=folder):  # removed by the system even if this process is killed
            pass
    except OSError as error:
        raise DataError(f"{label}: the folder {folder!r} cannot be written to ({error.strerror})") from None
