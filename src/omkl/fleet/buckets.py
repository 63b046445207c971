"""Many keys in buckets on disk: the rows learned since the last copy of the states, and that copy every so often.

Learning is deterministic and its rows take far fewer bytes than the states it changes, so that what a batch adds to
a bucket is a file of its rows. Whoever has the states after an earlier batch learns the rows of those since; a copy of
all states bounds how many these are. Every file is written whole or not at all, and only what belongs to batches
before the current one is put together or deleted: a batch may be repeated at any time, by several processes at once.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from omkl import persist
from omkl.algorithms.invariants import is_count
from omkl.arrays import Array, Index, Matrix
from omkl.errors import DivergenceError, ModelFileError
from omkl.fleet.groups import Threads
from omkl.fleet.inputs import Key, check_keys
from omkl.fleet.local import Fleet
from omkl.fleet.models import KeyedModels
from omkl.fleet.template import Template

ROWS_PER_KEY = 100  # on average, learned since the last copy of the states: then there is a new one
FILES = 64  # of one batch each: so many are put together
LENGTH = 8  # bytes before the rows of a batch in their file
NAME = re.compile(r"(?:states-(?P<batch>\d+)|rows-(?P<first>\d+)-(?P<last>\d+))\.omkl")


class Rows(NamedTuple):
    """What one batch adds to a bucket: keys that are forgotten, and then rows that are learned."""

    batch: int
    time: int  # of the batch, in milliseconds
    forgotten: list[Key]
    keys: list[Key]  # each once
    key: Index  # of each row, its place in `keys`
    X: Matrix
    y: Array  # of a classifier: the place of the label among the classes


@dataclass
class Bucket:
    """The models of a bucket's keys before a batch, and when there was a row of each."""

    fleet: Fleet
    batch: int = 0
    seen: dict[Key, int] = field(default_factory=dict)

    def learn(self, rows: Rows) -> Array:
        """The predictions of the rows, each made before its row was learned."""
        self.forget(rows.forgotten)
        classes = self.fleet.classes
        y = rows.y if classes is None else classes[rows.y.astype(np.intp)]
        predictions = self.fleet.learn_rows([rows.keys[place] for place in rows.key.tolist()], rows.X, y)
        self.seen.update(dict.fromkeys(rows.keys, rows.time))
        self.batch = rows.batch + 1
        return predictions

    def forget(self, keys: list[Key]) -> None:
        """Forget those of the keys that are there."""
        for key in keys:
            if key in self.fleet:
                del self.fleet[key]
            self.seen.pop(key, None)

    def learn_what_can_be(self, rows: Rows, reload: Callable[[], "Bucket"]) -> tuple["Bucket", Rows, Array, list[str]]:
        """The bucket after the rows of the keys that do not diverge, these rows, and of each row of all the prediction.

        The last is for each of `rows.keys` why it was not learned, "" where it was.
        """
        reasons = [""] * len(rows.keys)
        try:
            return self, rows, self.learn(rows), reasons
        except DivergenceError:
            bucket = reload()  # this one may have learned some of the rows
        bucket.fleet._may_diverge = True
        bucket.forget(rows.forgotten)
        remaining = rows._replace(forgotten=[])
        predictions = bucket.fleet._empty(len(rows.key))
        for place in range(len(rows.keys)):
            mine = rows.key == place
            try:
                predictions[mine] = bucket.learn(chosen(remaining, mine))
            except DivergenceError as error:
                reasons[place] = str(error)
        learned = chosen(rows, np.array([not reason for reason in reasons])[rows.key])
        return bucket, learned, predictions, reasons

    def idle_since(self, time: int) -> list[Key]:
        """The keys with no row since then."""
        return [key for key, seen in self.seen.items() if seen < time]


def chosen(rows: Rows, some: Array) -> Rows:
    """Some of the rows, and their keys."""
    places, key = np.unique(rows.key[some], return_inverse=True)
    return rows._replace(keys=[rows.keys[place] for place in places], key=key, X=rows.X[some], y=rows.y[some])


class Listing(NamedTuple):
    """The files of a bucket as they are now."""

    states: list[int]  # before which batch, ascending
    rows: list[tuple[int, int, Path]]  # first and last batch; ascending

    @classmethod
    def of(cls, folder: Path) -> "Listing":
        states, rows = [], []
        for path in folder.iterdir() if folder.is_dir() else ():
            if match := NAME.fullmatch(path.name):
                if match["batch"]:
                    states.append(int(match["batch"]))
                else:
                    rows.append((int(match["first"]), int(match["last"]), path))
        return cls(sorted(states), sorted(rows))


class BucketFiles:
    """The files of one bucket.

    Parameters
    ----------
    folder
        It need not exist yet.
    start
        Makes the fleet that the bucket starts with.
    scale
        Multiplies `ROWS_PER_KEY`, so that buckets are not all copied in the same batch.
    """

    def __init__(self, folder: Path, start: Callable[[], Fleet], scale: float = 1.0) -> None:
        self._folder, self._start, self._scale = folder, start, scale

    def before(self, batch: int, held: Bucket | None = None) -> Bucket:
        """The bucket before a batch, from one that is held or from the files; `held` is used up."""
        listing = Listing.of(self._folder)
        if listing.states and listing.states[-1] > batch:
            raise ModelFileError(
                f"{self._folder}: its states are those before batch {listing.states[-1]}, but batch {batch} is asked "
                "for; the checkpoint was set back, or belongs to other states: take a new folder"
            )
        oldest = listing.states[0] if listing.states else 0
        if held is not None and held.batch <= batch and held.batch >= oldest:
            bucket = held
        elif listing.states:
            bucket = self._read_states(listing.states[-1])
        else:
            bucket = Bucket(self._start())
        for first, last, path in listing.rows:
            if last >= bucket.batch and first < batch:
                for rows in read_rows(path, bucket.fleet):
                    if bucket.batch <= rows.batch < batch:
                        bucket.learn(rows)
        bucket.batch = batch
        return bucket

    def write(self, rows: Rows) -> None:
        """Add what a batch has learned; of the same batch, it takes the place of what was there."""
        self._folder.mkdir(parents=True, exist_ok=True)
        data = persist.to_bytes(rows)
        persist.write_atomically(self._rows(rows.batch, rows.batch), len(data).to_bytes(LENGTH, "little"), data)

    def write_states(self, bucket: Bucket) -> None:
        """Write a copy of all states of the bucket before `bucket.batch`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        persist.save(bucket, self._folder / f"states-{bucket.batch:012}.omkl")

    def tidy(self, bucket: Bucket) -> None:
        """Write the states where many rows have been learned since, or put files together where there are many.

        All before `bucket.batch` must be certain. What is in the last copy of the states but one remains, for those who
        hold the states of that time.
        """
        listing = Listing.of(self._folder)
        done = [(first, last, path) for first, last, path in listing.rows if last < bucket.batch]
        latest = listing.states[-1] if listing.states else 0
        nbytes = sum(path.stat().st_size for _, last, path in done if last >= latest)
        if latest < bucket.batch and nbytes > self._scale * ROWS_PER_KEY * len(bucket.fleet) * row_bytes(bucket.fleet):
            self.write_states(bucket)
            for old in listing.states[:-1]:
                (self._folder / f"states-{old:012}.omkl").unlink(missing_ok=True)
            for _, last, path in done:
                if last < latest:
                    path.unlink(missing_ok=True)
            return
        single = [(first, path) for first, last, path in done if first == last]
        if len(single) >= FILES:
            pieces = [path.read_bytes() for _, path in single]
            persist.write_atomically(self._rows(single[0][0], single[-1][0]), *pieces)
            for _, path in single:
                path.unlink(missing_ok=True)

    def _rows(self, first: int, last: int) -> Path:
        return self._folder / f"rows-{first:012}-{last:012}.omkl"

    def _read_states(self, batch: int) -> Bucket:
        path = self._folder / f"states-{batch:012}.omkl"
        bucket = persist.read(path)
        fits = isinstance(bucket, Bucket) and bucket.batch == batch
        if not fits or template(bucket.fleet).fingerprint != template(self._start()).fingerprint:
            raise ModelFileError(f"{path}: not the states of this learner before batch {batch}")
        bucket.fleet._threads = Threads(1)  # Spark gives a task one core
        assert isinstance(bucket, Bucket)
        return bucket


def template(fleet: Fleet) -> Template:
    """The template of a fleet that knows its features."""
    assert fleet._models is not None
    return fleet._models.template


def empty_like(fleet: Fleet) -> Fleet:
    """A fleet without keys that shares the problem of this one, for one thread."""
    new = Fleet(fleet.learner, seed=fleet.seed, classes=fleet.classes, threads=1)
    new._models = KeyedModels(template(fleet))
    return new


def row_bytes(fleet: Fleet) -> int:
    """Of a row in a file: features, target and place of the key."""
    return 8 * (template(fleet).n_features + 2)


def read_rows(path: Path, fleet: Fleet) -> Iterator[Rows]:
    """The rows of each batch in a file, checked to be such as the fleet learns."""
    data = path.read_bytes()
    start = 0
    while start < len(data):
        end = start + LENGTH + int.from_bytes(data[start : start + LENGTH], "little")
        rows = persist.from_bytes(data[start + LENGTH : end])
        if not isinstance(rows, Rows):
            raise ModelFileError(f"{path}: not a file of rows")
        persist.demand(rows.X.shape[1] == template(fleet).n_features, f"{path}: rows of another number of features")
        if fleet.classes is not None:
            fits = bool(np.isin(rows.y, np.arange(len(fleet.classes))).all())
            persist.demand(fits, f"{path}: a label is not known")
        yield rows
        start = end


class Held:
    """Buckets that stay in the memory of a process between batches, up to so many bytes; those used last remain."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[Path, tuple[str, Bucket, int]] = OrderedDict()

    def take(self, path: Path, run: str) -> Bucket | None:
        """Hand over the bucket that this run of the query has put, if it is there."""
        of, bucket, _ = self._buckets.pop(path, ("", None, 0))
        return bucket if of == run else None

    def put(self, path: Path, run: str, bucket: Bucket, most: int) -> None:
        self._buckets[path] = run, bucket, bucket.fleet.nbytes
        while sum(nbytes for _, _, nbytes in self._buckets.values()) > most:
            self._buckets.popitem(last=False)

    def clear(self) -> None:
        self._buckets.clear()


# Files


def _encode_rows(rows: Rows, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    body = {"batch": rows.batch, "time": rows.time, "forgotten": rows.forgotten, "keys": rows.keys}
    return body, {"key": rows.key, "X": rows.X, "y": np.asarray(rows.y, dtype=np.float64)}


def _decode_rows(body: persist.Json, arrays: persist.Arrays) -> Rows:
    batch, time = body["batch"], body["time"]
    persist.demand(is_count(batch) and is_count(time), "batch and time must be counts")
    for keys in (body["forgotten"], body["keys"]):
        check_keys(keys)
        persist.demand(len(set(keys)) == len(keys), "a key comes twice")
    X, y = persist.float_array(arrays, "X"), persist.float_array(arrays, "y")
    fits = arrays["key"].shape == y.shape == X.shape[:1] and X.ndim == 2 and arrays["key"].dtype.kind == "i"
    persist.demand(fits, "key, X and y have not as many rows")
    key = arrays["key"].astype(np.int64)
    persist.demand(bool(((key >= 0) & (key < len(body["keys"]))).all()), "a row belongs to no key")
    persist.require_finite(X, "of the rows")
    persist.require_finite(y, "of the targets")
    return Rows(batch, time, body["forgotten"], body["keys"], key, X, y)


def _encode_bucket(bucket: Bucket, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    """Records as one array, which takes a tenth of the time of a fleet's file; other models as there."""
    assert bucket.fleet._models is not None
    arrays: persist.Arrays = {}
    keys, records = bucket.fleet._models.records()
    body = {"batch": bucket.batch, "keys": keys}
    if records is None:
        body["fleet"] = persist.encode_part(bucket.fleet, arrays, "fleet:", compact)
    else:
        body["fleet"] = persist.encode_part(empty_like(bucket.fleet), arrays, "fleet:", compact)
        arrays["records"] = records
    arrays["seen"] = np.array([bucket.seen[key] for key in keys], dtype=np.int64)
    return body, arrays


def _decode_bucket(body: persist.Json, arrays: persist.Arrays) -> Bucket:
    fleet, keys, seen = persist.decode_part(body["fleet"], arrays, "fleet:"), body["keys"], arrays["seen"]
    fits = type(fleet) is Fleet and fleet._models is not None and is_count(body["batch"])
    persist.demand(fits, "not a bucket")
    check_keys(keys)
    if "records" in arrays:
        fleet._models.put_records(keys, arrays["records"])
    persist.demand(set(keys) == set(fleet) and len(keys) == len(fleet), "keys and models differ")
    persist.demand(seen.shape == (len(keys),) and seen.dtype.kind == "i", "times and keys differ in number")
    return Bucket(fleet, body["batch"], dict(zip(keys, seen.tolist(), strict=True)))


persist.register("fleet-bucket", persist.Codec((Bucket,), _encode_bucket, _decode_bucket))
persist.register("fleet-rows", persist.Codec((Rows,), _encode_rows, _decode_rows))
