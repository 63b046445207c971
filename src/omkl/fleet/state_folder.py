"""The states of a fleet in Spark's checkpoint folder: which buckets there are, where they are, and up to which batch.

A stream adds to the files of a generation. All else that changes states (a history, another number of buckets, keys to
be forgotten) writes a new generation, which is taken by writing one small file.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from omkl import persist, validation
from omkl.errors import ModelFileError
from omkl.fleet.buckets import BucketFiles, empty_like, template
from omkl.fleet.local import Fleet

FOLDER, SETTINGS, START = "fleet", "fleet.json", "start.omkl"
MOST_BUCKETS = 2**16


@dataclass(frozen=True)
class States:
    """The states of all keys, by bucket; workers get a copy."""

    checkpoint: Path
    start: bytes  # the fleet before its first row
    key: str  # "string" or "integer": what the keys are
    buckets: int
    generation: int = 0
    batch: int = 0  # before which its first states are

    @classmethod
    def open(cls, checkpoint: str | os.PathLike[str]) -> "States | None":
        """The states in a checkpoint, if there are any."""
        checkpoint = Path(checkpoint).absolute()
        path = checkpoint / FOLDER / SETTINGS
        if not path.exists():
            return None
        try:
            body = json.loads(path.read_text())
            numbers = [body["buckets"], body["generation"], body["batch"]]
            fits = all(type(number) is int and number >= 0 for number in numbers)
            if not fits or not 1 <= numbers[0] <= MOST_BUCKETS or body["key"] not in ("string", "integer"):
                raise ValueError("a value that cannot be")
        except (ValueError, KeyError, TypeError) as error:
            raise ModelFileError(f"{path}: not the description of a fleet's states ({error})") from None
        return cls(checkpoint, (checkpoint / FOLDER / START).read_bytes(), body["key"], *numbers)

    @classmethod
    def open_for(
        cls, checkpoint: str | os.PathLike[str], start: Fleet, key: str, buckets: int | None, default: int
    ) -> "States":
        """The states in a checkpoint, which must be of this learner, or new ones in `buckets`, by default `default`."""
        states = cls.open(checkpoint)
        if states is None:
            number = default if buckets is None else buckets
            check_buckets(number)
            states = cls(Path(checkpoint).absolute(), persist.to_bytes(start), key, number)
            (states.checkpoint / FOLDER).mkdir(parents=True, exist_ok=True)
            persist.write_atomically(states.checkpoint / FOLDER / START, states.start)
            states.take()
        if template(states.first()).fingerprint != template(start).fingerprint or states.key != key:
            raise ValueError(
                f"the states in {states.checkpoint} were learned with another learner, other parameters, features or "
                "labels, another seed or another type of key; give those of then, or take a new checkpoint"
            )
        if buckets not in (None, states.buckets):
            raise ValueError(
                f"the states in {states.checkpoint} are in {states.buckets} buckets, not {buckets}; "
                "omkl.fleet.spark.rebucket changes that"
            )
        return states

    def first(self) -> Fleet:
        """A fleet of this learner without keys."""
        return empty_like(first_fleet(self.start))

    def take(self) -> None:
        """Make this the generation that counts."""
        body = {"key": self.key, "buckets": self.buckets, "generation": self.generation, "batch": self.batch}
        persist.write_atomically(self.checkpoint / FOLDER / SETTINGS, json.dumps(body).encode())

    def bucket(self, number: int) -> BucketFiles:
        """The files of a bucket. Buckets that learn alike fill at different times, see `BucketFiles`."""
        folder = self._generation() / str(number)
        return BucketFiles(folder, self.first, 0.5 + (number + 0.5) / self.buckets)

    def next_batch(self) -> int:
        """The batch that Spark will process next: all before it are certain."""
        commits = self.checkpoint / "commits"
        names = [path.name for path in commits.iterdir()] if commits.is_dir() else []
        return max((int(name) + 1 for name in names if name.isdigit()), default=self.batch)

    def require_current(self) -> None:
        """Raise an error if another generation has been taken meanwhile."""
        states = States.open(self.checkpoint)
        if states is None or states.generation != self.generation:
            raise RuntimeError(
                f"the states in {self.checkpoint} were rewritten while a query ran on them; stop the query before "
                "learning a history, changing the number of buckets or forgetting keys, and start it again afterwards"
            )

    @contextmanager
    def rewritten(self, buckets: int | None = None, keep: bool = False) -> Iterator["States"]:
        """A new generation, of states before the next batch; at the end of the block it takes the place of this one.

        With `keep`, buckets that were not written remain what they were.
        """
        batch = self.next_batch()
        new = replace(self, buckets=buckets or self.buckets, generation=self.generation + 1, batch=batch)
        shutil.rmtree(new._generation(), ignore_errors=True)  # of an attempt that did not end
        yield new
        self.require_current()
        if self.next_batch() != batch:
            raise RuntimeError(f"a query continued in {self.checkpoint} meanwhile; stop it, and repeat this")
        for old in self._generation().glob("*") if keep else ():
            if not (kept := new._generation() / old.name).exists():
                shutil.copytree(old, kept, copy_function=os.link)  # files never change
        new.take()
        shutil.rmtree(self._generation(), ignore_errors=True)

    def _generation(self) -> Path:
        return self.checkpoint / FOLDER / f"generation-{self.generation}"


def check_buckets(number: object) -> None:
    if not validation.is_whole(number) or not 1 <= number <= MOST_BUCKETS:  # type: ignore[operator]  # is_whole has looked
        raise ValueError(f"buckets must be a whole number from 1 to {MOST_BUCKETS:,}, got {number!r}")


@lru_cache(maxsize=4)  # the problem is drawn and compiled once in a process
def first_fleet(start: bytes) -> Fleet:
    fleet: Fleet = persist.from_bytes(start)
    return fleet


def batch_time(checkpoint: Path, batch: int) -> int:
    """When Spark planned a batch, in milliseconds: a batch that is repeated has the same time."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    time = json.loads(lines[1])["batchTimestampMs"]
    persist.demand(type(time) is int and time >= 0, f"{checkpoint}: batch {batch} has no time")
    return int(time)


def check_query(checkpoint: Path, query: str | None) -> None:
    """Raise an error unless this is the checkpoint of the query."""
    path = checkpoint / "metadata"
    if query is None or not path.exists() or json.loads(path.read_text())["id"] != query:
        raise RuntimeError(
            f"the query does not keep its checkpoint in {checkpoint}, which learn_stream was given: both must be the "
            "same folder, and all workers must be able to access it"
        )
