"""The options of a pass over data."""

from dataclasses import dataclass, field, fields
from typing import Protocol

from omkl.algorithms.base import Task
from omkl.lags import LagSettings
from omkl.persist import Json
from omkl.stream.lagged import parse_lag_settings
from omkl.stream.names import NamedColumns
from omkl.stream.parsers import Format
from omkl.stream.predictions import DEFAULT_COVERAGE, Threshold
from omkl.stream.raw import DataError
from omkl.validation import require

PIECE_ROWS = 10_000
PENDING_ROWS = 10_000


class Checked(Protocol):
    """A model that knows which outputs it has."""

    def check_probabilities(self, option: str) -> None: ...

    def check_intervals(self) -> None: ...


@dataclass(frozen=True)
class Options:
    """The options of `omkl run`. Those of the first part decide what is learned."""

    target: str = ""
    task: Task | None = None
    learner: str = "graph-mkl"
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    date_format: str | None = None
    parameters: dict[str, Json] = field(default_factory=dict)  # of the learner, other than its defaults
    seed: int = 0
    keep: tuple[str, ...] = ()  # columns that predictions carry along
    threshold: str | None = None  # a number, or LABEL=number
    probabilities: bool = False  # of all labels, in the predictions
    coverage: tuple[float, ...] = ()  # of the intervals; none for that of 90 %
    key: str | None = None
    pending: int = PENDING_ROWS
    by: str | None = None
    pooled: bool = False  # one learner for all keys, with corrections for each
    lags: str | None = None  # of the target
    lag_columns: tuple[str, ...] = ()  # names, or NAME=lags
    horizon: int | None = None  # rows ahead; None for 1
    format: Format | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True

    data: tuple[str, ...] = field(default=(), metadata={"free": True})
    every: int = field(default=PIECE_ROWS, metadata={"free": True})
    predictions: str | None = field(default=None, metadata={"free": True})
    start: str | None = field(default=None, metadata={"free": True})  # the model to continue with
    model: str | None = field(default=None, metadata={"free": True})
    checkpoint: str | None = field(default=None, metadata={"free": True})
    report: str | None = field(default=None, metadata={"free": True})

    def decisive(self) -> dict[str, Json]:
        """As JSON, what two runs must share to be the same."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if not f.metadata.get("free")}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def columns(self, learned: tuple[str, ...] = ()) -> NamedColumns:
        """The columns that must be there; a model that has `learned` from some may do without others.

        With --key, a file of later targets needs none of these.
        """
        given = {"--target": self.target, "--key": self.key, "--by": self.by}
        named = {"--features": self.features, "--drop": self.drop, "--categorical": self.categorical,
                 "--lag-columns": self._lagged()}  # fmt: skip
        kept = {"--keep": self.keep}
        needed = {option: name for option, name in given.items() if name}
        if learned:
            return NamedColumns(needed, kept, () if self.key else learned)
        return NamedColumns(needed, named | kept)

    @property
    def coverages(self) -> tuple[float, ...]:
        """Of the intervals."""
        return self.coverage or (DEFAULT_COVERAGE,)

    def label_threshold(self) -> Threshold | None:
        """The threshold of a label, checked."""
        if self.threshold is None:
            return None
        label, sign, text = self.threshold.rpartition("=")
        try:
            least = float(text)
        except ValueError:
            least = -1.0
        require(0 <= least <= 1, "--threshold", "a number from 0 to 1, or LABEL=NUMBER", self.threshold)
        return Threshold(label if sign else None, least)

    def check_outputs(self, model: Checked) -> None:
        """Refuse options about outputs that the model does not have, as far as that is known."""
        if self.threshold is not None:
            model.check_probabilities("--threshold")
        if self.probabilities:
            model.check_probabilities("--probabilities")
        if self.coverage:
            model.check_intervals()

    def check_columns(self) -> None:
        """Refuse options that contradict each other about a column."""
        for option, name in (("--target", self.target), ("--key", self.key), ("--by", self.by)):
            if name and name in self.drop:
                raise DataError(f"{name!r} is both {option} and --drop; leave it out of one of them")
            if name and name in self._lagged() and option != "--target":
                raise DataError(f"{name!r} is both {option} and --lag-columns; it is no number to learn from")
            if name and name in self.features:
                raise DataError(f"{name!r} is both {option} and --features; it is not learned from, leave it out")
            if name and name in self.categorical and option != "--target":
                raise DataError(f"{name!r} is both {option} and --categorical; it is not learned from, leave it out")
        if self.target and self.target in self.categorical:
            raise DataError(f"{self.target!r} is both --target and --categorical; --task classification takes numeric "
                            "codes as labels")  # fmt: skip
        if self.features and self.drop:
            both = next((name for name in self.drop if name in self.features), None)
            what = "--drop leaves nothing out" if both is None else f"{both!r} is in both"
            raise DataError(f"--features names all columns to learn from, so {what}; use one of them")
        for name in self.categorical:
            if name in self.drop or (self.features and name not in self.features):
                option = "in --drop" if name in self.drop else "not in --features"
                raise DataError(f"{name!r} is in --categorical and {option}; it is not learned from")

    def check_predictions(self) -> None:
        """Refuse columns to be written beside predictions where none are written."""
        if self.keep and self.predictions is None:
            raise DataError("--keep says what is written beside the predictions; give --predictions FILE")

    def lag_settings(self) -> LagSettings | None:
        """The past values to learn from, checked."""
        settings = parse_lag_settings(self.lags, self.lag_columns, self.horizon, self.target)
        for name in () if settings is None else settings.columns:
            if name in self.drop:
                raise ValueError(f"column {name!r} is in both --lag-columns and --drop; its past values need it")
        return settings

    def _lagged(self) -> tuple[str, ...]:
        settings = self.lag_settings()
        return () if settings is None else tuple(settings.columns)

    def reads(self, name: str) -> bool:
        """Whether a column is to be read."""
        return self.wants(name) or name in self.keep

    def wants(self, name: str) -> bool:
        """Whether a column is to be learned from, or needed for that."""
        if name in (self.target, self.key, self.by, *self._lagged()):
            return True
        return (not self.features or name in self.features) and name not in self.drop
