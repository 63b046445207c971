"""Every learner on a user's data in one pass: rows are read and encoded once and given to all of them."""

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NotRequired, TypedDict

import numpy as np

from omkl.algorithms.base import Task
from omkl.arrays import Mask, Vector
from omkl.encoder.table import Batch
from omkl.errors import BudgetWarning, DivergenceError
from omkl.estimators.declaration import supports
from omkl.lags import LagSettings
from omkl.notices import Notices
from omkl.stream.baselines import most_frequent, running_means
from omkl.stream.history import History
from omkl.stream.linear import LinearModel
from omkl.stream.model import StreamModel
from omkl.stream.options import PIECE_ROWS, Options
from omkl.stream.parsers import Reading
from omkl.stream.paths import check_files
from omkl.stream.predictions import LateTargets, Predictions, Targets, as_labels, as_numbers
from omkl.stream.prepare import Prepared, Preparer
from omkl.stream.raw import DataError, Stop
from omkl.stream.source import Source
from omkl.stream.targets import Target, known

LINEAR = "linear model"
BASELINES = {"regression": ("running mean", "last value"), "classification": ("most frequent label", "last label")}


class Entry(TypedDict):
    """A learner or baseline in a ranking; its errors are there if rows were scored and it did not diverge."""

    name: str
    kind: str
    diverged: str | None  # where, and why
    relative: NotRequired[float | None]  # its error, relative to the best
    microseconds_per_row: NotRequired[float | None]
    rmse: NotRequired[float]  # of numbers
    mae: NotRequired[float]
    error_rate: NotRequired[float]  # of labels
    log_loss: NotRequired[float | None]


def error_of(entry: Entry) -> float:
    """The error that decides the place in a ranking; infinite where there is none."""
    return entry.get("rmse", entry.get("error_rate", math.inf))


class ComparedKeys(TypedDict, total=False):
    """Where every key has a model of each learner."""

    by: str
    keys: int


class ComparisonSummary(ComparedKeys):
    """The results of a comparison, as JSON."""

    target: str
    task: Task | None
    rows: int
    scored: int
    skipped: int
    features: int
    ranking: list[Entry]
    preparing_microseconds_per_row: float
    seconds: float
    stopped: bool


class LearnerEntrant:
    """A learner that takes part."""

    kind = "learner"

    def __init__(self, name: str, preparer: Preparer, task: Task, seed: int) -> None:
        self.name = name
        self.model = StreamModel(preparer, name, seed)
        self.history = History(task)
        self.seconds = 0.0
        self.diverged: str | None = None  # why it takes part no longer

    def learn(self, prepared: Prepared) -> None:
        """Predict and learn these rows; a learner that diverges drops out."""
        began = time.thread_time()
        try:
            predictions, late = self.model.learn(prepared, self.history)
        except DivergenceError as error:
            first, last = prepared.rows[0], prepared.rows[-1]
            self.diverged = f"between rows {first:,} and {last:,}: {str(error).partition(';')[0]}"
            return
        finally:
            self.seconds += time.thread_time() - began
        self.history.update(predictions, late)


class BaselineEntrant(ABC):
    """A simple prediction."""

    kind = "baseline"
    diverged = None

    def __init__(self, name: str, task: Task) -> None:
        self.name, self.task = name, task
        self.history = History(task)
        self.seconds = 0.0

    def learn(self, prepared: Prepared) -> None:
        """Predict each row with a target from the rows before it."""
        began = time.thread_time()
        mask = known(prepared.y)
        y = prepared.y[mask]
        if len(y):
            y_pred = self.predict_then_learn(prepared, mask)
            self.seconds += time.thread_time() - began
            predictions = Predictions(prepared.rows[mask], None, y_pred, None, None, None, y, None)
            self.history.update(predictions, LateTargets.none())

    @abstractmethod
    def predict_then_learn(self, prepared: Prepared, mask: Mask) -> Targets:
        """The predictions of the rows in `mask`, all of which have a target."""


class SimpleEntrant(BaselineEntrant):
    """A prediction that needs no learning, from the targets before each row; with --by, from those of its key."""

    def __init__(self, name: str, task: Task) -> None:
        super().__init__(name, task)
        self._last: dict[str, float | str] = {}  # all by key
        self._so_far: dict[str, Vector] = {}
        self._counts: dict[str, dict[str, int]] = {}

    def predict_then_learn(self, prepared: Prepared, mask: Mask) -> Targets:
        y = prepared.y[mask]
        if prepared.keys is None:
            return self._of_key("", y)
        keys = np.array(prepared.keys, dtype=object)[mask]
        out: Targets = np.empty_like(y)
        for key in dict.fromkeys(keys.tolist()):
            rows = keys == key
            out[rows] = self._of_key(key, y[rows])
        return out

    def _of_key(self, key: str, y: Targets) -> Targets:
        if self.name == "running mean":
            return running_means(self._so_far.setdefault(key, np.zeros(2)), as_numbers(y))
        if self.name == "most frequent label":
            return most_frequent(self._counts.setdefault(key, {}), as_labels(y))
        y_pred = np.roll(y, 1)
        y_pred[0] = self._last.get(key, 0.0 if self.task == "regression" else None)
        self._last[key] = y[-1]
        return y_pred


class LinearEntrant(BaselineEntrant):
    """One linear model for all rows."""

    def __init__(self, preparer: Preparer, task: Task) -> None:
        super().__init__(LINEAR, task)
        self._preparer, self._model, self._names = preparer, LinearModel(task), dict[str, None]()

    def predict_then_learn(self, prepared: Prepared, mask: Mask) -> Targets:
        features, fills = dict(prepared.encoded.features), self._preparer.encoder.features
        new = [name for name in features if name not in self._names]
        for name in new:  # nothing was known of it before the row in which it begins
            begins = np.arange(len(features[name])) >= prepared.encoded.arrivals.get(name, 0)
            features[name] = np.where(begins, features[name], fills[name])
        self._names.update(dict.fromkeys(new))
        self._model.extend([fills[name] for name in new])
        X = np.column_stack([features[name][mask] for name in self._names])
        return self._model.learn(X, prepared.y[mask])


class PastValueEntrant:
    """A naive forecast: the target of a lag, or where that is missing of a smaller one."""

    kind = "baseline"
    diverged = None

    def __init__(self, settings: LagSettings, lag: int) -> None:
        back = settings.horizon + lag - 1
        self.name = "last value" if back == 1 else f"value {back} rows before"
        self._features = [feature.name for feature in settings.features if feature.column == 0 and feature.lag <= lag]
        self.history = History("regression")
        self.seconds = 0.0

    def learn(self, prepared: Prepared) -> None:
        """Predict each row with a target."""
        began = time.thread_time()
        mask = known(prepared.y)
        y_pred = np.zeros(len(mask))
        for name in self._features:
            lagged = prepared.encoded.features[name]
            y_pred = np.where(np.isnan(lagged), y_pred, lagged)
        self.seconds += time.thread_time() - began
        predictions = Predictions(prepared.rows, None, y_pred, None, None, None, prepared.y, None)
        self.history.update(predictions.where(mask), LateTargets.none())


Entrant = LearnerEntrant | BaselineEntrant | PastValueEntrant


class Comparison:
    """One pass over data with many learners.

    Parameters
    ----------
    options
        Those of `omkl run`; outputs other than the report, the learner and the key are ignored.
    learners
        Names of the learners, to which baselines are added.
    rows
        How many rows to read at most.
    jobs
        Learners that run at a time.
    show
        Called with the text of every notice.
    """

    def __init__(
        self, options: Options, learners: Sequence[str], rows: int | None, jobs: int, show: Callable[[str], None]
    ) -> None:
        check_files(options)
        self.options, self.learners, self.max_rows, self.jobs = options, tuple(learners), rows, jobs
        self.notices = Notices(show)
        self.stop = Stop()
        self.preparer = Preparer(
            Target(options.target, options.task, self.notices), self.notices, date_format=options.date_format,
            categorical=options.categorical, by=options.by, lags=options.lag_settings(),
        )  # fmt: skip
        self.reading = Reading(options.format, options.delimiter, options.encoding, options.header, options.wants,
                               self.notices, stop=self.stop, columns=options.columns())  # fmt: skip
        self.source = Source(options.data, self.reading, min(PIECE_ROWS, rows or PIECE_ROWS))
        self.entrants: list[Entrant] = []
        self.rows = 0
        self.seconds = self.preparing = 0.0

    def run(self, after_piece: Callable[["Comparison"], None] = lambda comparison: None) -> None:
        """To the end of the data, the last row wanted, or until a stop is requested."""
        began = time.monotonic()
        with self.stop, ThreadPoolExecutor(self.jobs) as pool, warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # the model has a notice of its own
            started = time.thread_time()
            for batch in self.source:
                self._piece(batch, pool, started)
                self.seconds = time.monotonic() - began
                after_piece(self)
                if self.stop.requested or (self.max_rows is not None and self.rows >= self.max_rows):
                    break
                started = time.thread_time()
        if not self.rows and not self.stop.requested:
            raise DataError(f"{', '.join(self.options.data)}: a header and no rows; nothing was compared")

    def _piece(self, batch: Batch, pool: ThreadPoolExecutor, started: float) -> None:
        if self.max_rows is not None and len(batch.rows) > self.max_rows - self.rows:
            n = self.max_rows - self.rows
            batch = Batch(batch.rows[:n], {name: array[:n] for name, array in batch.columns.items()})
        if not len(batch.rows):
            return
        # models by key have the features of the first piece
        prepared = self.preparer.prepare(batch, self.options.by is None or not self.entrants)
        self.reading.numbers = self.preparer.plain_numbers()
        if not self.entrants:
            self.entrants = self._new_entrants()
        self.preparing += time.thread_time() - started
        # the slowest first, so that no thread waits long for the last one
        active = sorted((e for e in self.entrants if e.diverged is None), key=lambda e: -e.seconds)
        list(pool.map(lambda entrant: entrant.learn(prepared), active))
        self.rows += len(batch.rows)

    def _new_entrants(self) -> list[Entrant]:
        task = self.task or "regression"
        if self.options.by is not None:
            import omkl.fleet  # noqa: F401  # which takes a second to load, and is not the time of a learner
        able = [name for name in self.learners if supports(name, task)]
        if not able:
            raise DataError(f"{' and '.join(self.learners)} predict numbers only, and {self.options.target!r} holds "
                            "labels; choose other --learners")  # fmt: skip
        if unable := [name for name in self.learners if name not in able]:
            self.notices("no labels", f"{' and '.join(unable)} predict numbers only; not compared")
        return [*(LearnerEntrant(name, self.preparer, task, self.options.seed) for name in able),
                *self._baselines(task)]  # fmt: skip

    def _baselines(self, task: Task) -> list[Entrant]:
        linear = LinearEntrant(self.preparer, task)
        if self.preparer.lagged is None:
            return [*(SimpleEntrant(name, task) for name in BASELINES[task]), linear]
        settings = self.preparer.lagged.settings
        naive = [PastValueEntrant(settings, lag) for lag in sorted({*settings.lags[:1], *settings.lags[-1:]})]
        # what is learned from all rows before is known one row ahead only
        return [*naive, SimpleEntrant("running mean", task), linear] if settings.horizon == 1 else [*naive]

    @property
    def task(self) -> Task | None:
        return self.preparer.target.task

    @property
    def stopped(self) -> bool:
        return self.stop.requested

    def ranking(self) -> list[Entry]:
        """All entrants from the best to the worst, as JSON; those that diverged come last."""
        entries = [self._entry(entrant) for entrant in self.entrants]
        entries.sort(key=lambda entry: (entry["diverged"] is not None, error_of(entry)))
        best = error_of(entries[0]) if entries and entries[0]["diverged"] is None else math.inf
        for entry in entries:
            comparable = 0 < best < math.inf and error_of(entry) < math.inf
            entry["relative"] = error_of(entry) / best if comparable else None
        return entries

    def _entry(self, entrant: Entrant) -> Entry:
        entry: Entry = {"name": entrant.name, "kind": entrant.kind, "diverged": entrant.diverged}
        results = entrant.history.summary()
        if results["scored"] and entrant.diverged is None:
            if self.task == "regression":
                entry |= {"rmse": results["rmse"], "mae": results["mae"]}
            else:
                entry["error_rate"] = 1 - results["accuracy"]
                entry["log_loss"] = results.get("log_loss") if entrant.kind == "learner" else None
        return entry | {"microseconds_per_row": 1e6 * entrant.seconds / self.rows if entrant.diverged is None else None}

    def summary(self) -> ComparisonSummary:
        """The results so far, as JSON."""
        scored = [entrant.history.summary()["scored"] for entrant in self.entrants]
        by: ComparedKeys = {}
        if self.options.by is not None:
            models = [entrant.model.learner for entrant in self.entrants if isinstance(entrant, LearnerEntrant)]
            by = {"by": self.options.by, "keys": max((learner.n_keys or 0 for learner in models if learner), default=0)}
        return {
            "target": self.preparer.target.name, "task": self.task, **by, "rows": self.rows,
            "scored": max(scored, default=0), "skipped": self.reading.skipped,
            "features": len(self.preparer.fills), "ranking": self.ranking(),
            "preparing_microseconds_per_row": 1e6 * self.preparing / max(self.rows, 1),
            "seconds": self.seconds, "stopped": self.stopped,
        }  # fmt: skip
