"""The models of a service, in a folder: opened, created, deleted, looked at."""

import asyncio
import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from omkl import persist
from omkl.log import logger
from omkl.notices import Notices
from omkl.serve.handles import WORKER, Handle, LocalModel, ShardedModel, shard
from omkl.serve.limits import Limits, Refused, invalid
from omkl.serve.metrics import Meters
from omkl.serve.model import CHECKPOINT, LOG, TEMPORARY, ServedModel
from omkl.serve.views import View
from omkl.serve.writer import CHECKPOINT_ROWS
from omkl.stream.checkpoint import Checkpoint
from omkl.stream.files import load_stream_model
from omkl.stream.history import History
from omkl.stream.keyed import ModelPerKey
from omkl.stream.model import StreamModel
from omkl.stream.options import Options
from omkl.stream.raw import DataError
from omkl.stream.run import new_model

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
CHOSEN = (
    "target",
    "task",
    "learner",
    "features",
    "drop",
    "categorical",
    "date_format",
    "parameters",
    "seed",
    "key",
    "pending",
    "by",
    "lags",
    "lag_columns",
    "horizon",
)  # fmt: skip  of the options, by a request
LARGEST_PARAMETER, MOST_VALUES = 10_000, 1_000
DELETED = f"{TEMPORARY}deleted-"  # an empty folder remembers a request that removed a model: its digest, and the name
MOST_DELETED = 1_000  # that are remembered
FRESH = 0.9  # seconds for which a view is shown


@dataclass(frozen=True)
class Start:
    """A model that the service is started with: from a file, or with nothing learned."""

    name: str
    path: str | None = None
    options: Options = field(default_factory=Options)
    workers: int = 1

    def source(self) -> str:
        """What the model began with; a folder of another one is not continued."""
        if self.path is not None:
            with open(self.path, "rb") as file:
                return f"file {hashlib.file_digest(file, 'sha256').hexdigest()}"
        return json.dumps(self.options.decisive(), sort_keys=True)


class Service:
    """All models of a folder."""

    def __init__(self, state: Path, limits: Limits, every: int = CHECKPOINT_ROWS) -> None:
        self.state, self.limits, self.every = state, limits, every
        self.handles: dict[str, Handle] = {}
        self.meters = Meters()
        self.ready = False
        self.closing = False
        self.viewers = self.predicting = 0
        self.held = 0  # bytes of requests that have not been answered
        self._views: dict[tuple[str, bool], tuple[float, View]] = {}
        self._changing = asyncio.Lock()

    # Starting and stopping

    async def start(self, wanted: list[Start]) -> None:
        """Open the models of the folder, and create those that are wanted and not there."""
        self.state.mkdir(parents=True, exist_ok=True)
        for left in self.state.glob(f"{TEMPORARY}*"):  # of a service that was killed
            if left.name.startswith(DELETED):
                empty(left)
            else:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        for start in wanted:
            folder = self.state / start.name
            if not folder.exists():
                self._create(start)
            elif not self._parts(folder):
                raise DataError(f"{folder}: there is something else than a model of omkl serve; give the model another "
                                "name (NAME=FILE, --name), or another --state")  # fmt: skip
            elif (source := self._began(folder).get("source", "")) != start.source():
                what = "another file" if source.startswith("file") else "other options"
                raise DataError(f"{folder}: what was learned there began with {what}; give the model another name "
                                "(NAME=FILE), another --state, or remove the folder")  # fmt: skip
            elif (found := len(self._parts(folder))) != start.workers:
                raise DataError(f"{folder}: the keys are in {found} workers; give --workers {found}")
        for folder in sorted(self.state.iterdir()):
            if NAME.fullmatch(folder.name) and self._parts(folder):
                self.handles[folder.name] = self._opened(folder.name, asyncio.get_running_loop())
        self.ready = True

    def _opened(self, name: str, loop: asyncio.AbstractEventLoop) -> Handle:
        folder = self.state / name
        kind = LocalModel if (folder / CHECKPOINT).exists() else ShardedModel
        found = kind(folder, self.limits, self.every, loop)
        logger.info("%s: ready", name)
        return found

    def _parts(self, folder: Path) -> list[Path]:
        """The folder of a model, or those of its workers; none where it holds something else."""
        workers = sorted(folder.glob(f"{WORKER}-*/{CHECKPOINT}"))
        return [folder] if (folder / CHECKPOINT).exists() else [path.parent for path in workers]

    def _began(self, folder: Path) -> dict[str, Any]:
        """What a model began with."""
        found = persist.read(self._parts(folder)[0] / CHECKPOINT)
        return found.progress.options if isinstance(found, Checkpoint) else {}

    def close(self) -> None:
        """Learn what waits, write checkpoints, and let go of the folder."""
        self.ready = False
        for name, handle in self.handles.items():
            handle.close()
            logger.info("%s: closed", name)
        self.handles.clear()

    # Models

    def _create(self, start: Start, request: str | None = None) -> None:
        folder = self.state / start.name
        if start.workers == 1:
            ServedModel.create(folder, *opened(start), start.source(), request)
            return
        new = folder.with_name(f"{TEMPORARY}new-{folder.name}")
        for k in range(start.workers):
            model, _, rows = opened(start)
            if model.preparer.by is None:
                raise DataError("--workers is for a model per key (--by): its keys are shared out among them")
            keep_share(model, k, start.workers)
            ServedModel.create(new / f"{WORKER}-{k}", model, None, rows, start.source(), request)
        new.rename(folder)
        persist.flush_folder(self.state)

    async def create(self, name: str, start: Start, request: str | None = None) -> None:
        """Add a model, unless it is the one that the same request added before."""
        check_name(name)
        async with self._changing:
            if name in self.handles:
                if request is not None:
                    began = await asyncio.to_thread(self._began, self.state / name)
                    if began.get("request") == request:
                        return
                raise Refused(409, f"there is a model {name!r}; delete it first, or choose another name")
            if len(self.handles) >= self.limits.models:
                raise Refused(409, f"there are {self.limits.models} models, as many as are allowed")
            if (self.state / name).exists():
                raise Refused(409, f"the service's folder has something else called {name!r}; choose another name")
            try:
                await asyncio.to_thread(self._create, start, request)  # others are answered meanwhile
                self.handles[name] = await asyncio.to_thread(self._opened, name, asyncio.get_running_loop())
            except BaseException as error:
                for left in (self.state / name, self.state / f"{TEMPORARY}new-{name}"):
                    shutil.rmtree(left, ignore_errors=True)
                if isinstance(error, OSError):
                    raise unwritable(error) from None
                raise

    async def delete(self, name: str, request: str | None = None) -> str:
        """Remove a model and what it has learned, unless the same request removed it before; returns its name."""
        async with self._changing:
            if request is not None and (before := list(self.state.glob(f"{DELETED}{request}-*"))):
                removed = before[0].name.removeprefix(f"{DELETED}{request}-")
                if name not in ("-", removed):
                    raise Refused(409, f"another request had this id: it removed {removed!r}; an id is for one request")
                return removed
            handle = self.get(name)
            name = self.resolved(name)
            del self.handles[name]
            await asyncio.to_thread(handle.close)
            await asyncio.to_thread(self._remove, name, request)
            self._views = {key: value for key, value in self._views.items() if key[0] != name}
            self.meters.forget(name)
            return name

    def _remove(self, name: str, request: str | None) -> None:
        """Rename a model's folder and remove what it contains; the empty folder remembers the request."""
        prefix = f"{TEMPORARY}old-{secrets.token_hex(4)}" if request is None else f"{DELETED}{request}"
        old = (self.state / name).rename(self.state / f"{prefix}-{name}")
        persist.flush_folder(self.state)
        empty(old)
        if request is None:
            old.rmdir()
        for oldest in sorted(self.state.glob(f"{DELETED}*"), key=os.path.getmtime)[:-MOST_DELETED]:
            oldest.rmdir()

    def upload(self, content: bytes) -> str:
        """A file with these bytes, which the caller removes."""
        path = self.state / f"{TEMPORARY}upload-{secrets.token_hex(8)}"
        try:
            path.write_bytes(content)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise unwritable(error) from None
        return str(path)

    def resolved(self, name: str) -> str:
        """The name of a model; "-" is that of the only one."""
        if name == "-":
            if len(self.handles) != 1:
                raise Refused(404, f"there are {len(self.handles)} models; name one: /v1/models/NAME/...")
            return next(iter(self.handles))
        return name

    def get(self, name: str) -> Handle:
        """The model of this name."""
        found = self.handles.get(self.resolved(name))
        if found is None:
            raise Refused(404, f"there is no model {name[:64]!r}")
        return found

    async def view(self, name: str, importance: bool = False) -> View:
        """What there is to see of a model; not computed anew for each who looks."""
        name = self.resolved(name)
        taken, found = self._views.get((name, importance), (0.0, {}))
        if time.monotonic() - taken > FRESH:
            handle = self.get(name)
            found = await handle.view(importance)
            if self.handles.get(name) is handle:  # else it was removed meanwhile, and another may have its name
                self._views[name, importance] = time.monotonic(), found
        return found

    async def views(self, view: Callable[[str], Awaitable[View]]) -> dict[str, View]:
        """What `view` returns for all models, without those that are removed meanwhile."""
        out: dict[str, View] = {}
        for name in list(self.handles):
            with contextlib.suppress(Refused):
                out[name] = await view(name)
        return out


def empty(folder: Path) -> None:
    """Remove what a folder contains."""
    for left in folder.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def unwritable(error: OSError) -> Refused:
    """A model that cannot be added, without the paths of this machine."""
    return Refused(507 if error.errno in (errno.ENOSPC, errno.EDQUOT) else 503,
                   f"the model cannot be written ({error.strerror}); none was added")  # fmt: skip


def check_name(name: str) -> None:
    """Refuse a name that is not one: it becomes that of a folder."""
    if not NAME.fullmatch(name):
        raise invalid("the name of a model has small letters, digits, - and _, at most 64")


def opened(start: Start) -> tuple[StreamModel, History | None, int]:
    """The model to begin with, the history of its run if there is one, and its number of rows."""
    if start.path is None:
        model = new_model(start.options, Notices())
        return model, None, 0
    found = persist.read(start.path)
    if isinstance(found, Checkpoint) and found.history is not None and len(found.history.coverages) == 1:
        return found.model, found.history, found.progress.records
    model = load_stream_model(start.path, start.options.target or None, learn=True)
    return model, None, model.learned


def keep_share(model: StreamModel, k: int, workers: int) -> None:
    """Leave those keys that belong to one of the workers."""
    learner = model.learner
    if isinstance(learner, ModelPerKey) and learner.fleet is not None:
        for key in list(learner.fleet):
            if shard(str(key), workers) != k:
                del learner.fleet[key]


def options_of(given: Any) -> tuple[Options, int]:
    """The options of a new model in a request, checked, and its number of workers."""
    if not isinstance(given, dict):
        raise invalid('the body must be an object of options, such as {"target": "price", "task": "regression"}')
    known = (*CHOSEN, "workers")
    if wrong := sorted(set(given) - set(known)):
        raise invalid(f"there is no option {str(wrong[0])[:50]!r}; there are {', '.join(known)}")
    types = {f.name: f.type for f in fields(Options) if f.name in CHOSEN}
    values: dict[str, Any] = {}
    for name, value in given.items():
        many = str(types.get(name, "int")).startswith("tuple")
        if many and not (isinstance(value, list) and all(isinstance(part, str) for part in value)):
            raise invalid(f"{name} must be a list of names")
        whole = name in ("seed", "pending", "horizon", "workers")
        if whole and (type(value) is not int or not 0 <= value < 2**31):
            raise invalid(f"{name} must be a whole number from 0 to 2**31 - 1")
        if not many and not whole and name != "parameters" and not isinstance(value, (str, type(None))):
            raise invalid(f"{name} must be text")
        if isinstance(value, (str, list)) and len(str(value)) > 100_000:
            raise invalid(f"{name} is too long")
        values[name] = tuple(value) if many else value
    _check_parameters(values.get("parameters", {}))
    workers = values.pop("workers", 1)
    if not values.get("target") or not 1 <= workers <= (os.cpu_count() or 1) * 4:
        raise invalid("target must be the name of a column, and workers a number of processes")
    if values.get("task") not in (None, "regression", "classification"):
        raise invalid("task must be regression or classification")
    if values.get("pending", 1) < 1 or values.get("horizon", 1) < 1:
        raise invalid("pending and horizon must be 1 or more")
    if workers > 1 and not values.get("by"):
        raise invalid("workers is for a model per key (by): its keys are shared out among them")
    try:
        options = Options(**values)
        options.check_columns()
        new_model(options, Notices())
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise invalid(str(error)[:300]) from None
    return options, workers


def _check_parameters(given: Any) -> None:
    """Refuse parameters that would ask for a model of any size."""
    if not isinstance(given, dict):
        raise invalid("parameters must be an object")
    values = list(given.values())
    for value in values:
        values += value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
        if len(values) > MOST_VALUES or (isinstance(value, (int, float)) and abs(value) > LARGEST_PARAMETER):
            raise invalid(f"parameters must be numbers up to {LARGEST_PARAMETER:,}, and at most {MOST_VALUES} of them")


__all__ = ["LOG", "Service", "Start", "check_name", "options_of"]
