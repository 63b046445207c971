"""The records of the comparison, summarised: medians over the seeds, on whole streams and on their first rows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from omkl_lab.comparison.learners import LAST_LABEL, LEARNERS, LIGHTGBM
from omkl_lab.comparison.outcome import PREFIX
from omkl_lab.comparison.streams import GROUPS, PROJECT, REAL
from omkl_lab.parallel import Record
from omkl_lab.peers.showing import US, value
from omkl_lab.peers.streams import DRIFT

Cells = dict[str, dict[str, Record]]  # stream -> learner -> medians over the seeds
ORDER = (*REAL, *PROJECT, *DRIFT)
ERRORS = ("mse", "wrong", "log_loss")
OURS = "omkl "
BOOSTED = (LIGHTGBM, "LightGBM, last 2000", f"{LIGHTGBM} + y")
BASELINES = ("running mean", "last value", "most frequent label", LAST_LABEL)


def name_of(record: Record) -> str:
    """The learner, with the parameters that are not its defaults.

    >>> name_of({"learner": "omkl GraphMKL", "settings": "evaluate=all"})
    'omkl GraphMKL, evaluate=all'
    """
    return f"{record['learner']}, {record['settings']}" if record["settings"] else str(record["learner"])


def summarised(records: Iterable[Record], rows: int | None = None) -> Cells:
    """The newest version of every learner on every stream, whole; with `rows`, on the first rows alone."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        here = record if rows is None else first_rows(record, rows)
        if here is not None and (rows is not None or record["rows"] == whole(record)):
            groups[record["stream"], name_of(record)].append(here)
    out: Cells = defaultdict(dict)
    order = {name: k for k, name in enumerate(LEARNERS)}
    streams = {name: k for k, name in enumerate(ORDER)}
    for stream, who in sorted(groups, key=lambda key: (streams.get(key[0], len(streams)), order.get(
        groups[key][0]["learner"], 0), key[1])):  # fmt: skip
        group = groups[stream, who]
        out[stream][who] = over_seeds([record for record in group if record["version"] == group[-1]["version"]])
    return dict(out)


def whole(record: Record) -> int:
    """Rows of the whole stream, as recorded with the run."""
    return int(record["of"])


def first_rows(record: Record, rows: int) -> Record | None:
    """The record over the first rows alone, if it is known."""
    if record["rows"] <= rows:
        return record if record["rows"] == min(rows, whole(record)) else None
    if record["status"] != "ok" or rows != PREFIX or f"{measure(record)}_prefix" not in record:
        return None if record["status"] == "ok" else record
    return record | {what: record[f"{what}_prefix"] for what in ERRORS if what in record} | {"rows": rows}


def over_seeds(runs: list[Record]) -> Record:
    """Medians of all measures, and the range of the errors; a learner that failed with most seeds has none."""
    good = [run for run in runs if run["status"] == "ok"]
    if 2 * len(good) <= len(runs):
        return next(run for run in runs if run["status"] != "ok") | {"seeds": len(runs)}
    out = good[-1] | {"seeds": len(runs)}
    for what, example in good[0].items():
        values = [run.get(what) for run in good]
        if isinstance(example, list):
            out[what] = [middle(each) for each in zip(*values, strict=True)]
        elif isinstance(example, float):
            out[what] = middle(values)
    for what in ERRORS:
        if what in good[0]:
            out[f"{what}_range"] = [min(run[what] for run in good), max(run[what] for run in good)]
    return out


def middle(values: Iterable[Any]) -> float | None:
    """The median, where None counts as infinite.

    >>> middle([3, None, 1]), middle([None, None, 1])
    (3.0, None)
    """
    found = float(median([float("inf") if value is None else value for value in values]))
    return found if found != float("inf") else None


def measure(record: Record) -> str:
    return "wrong" if record["task"] == "labels" else "mse"


def of_group(cells: Cells, *groups: str, task: str | None = None) -> Cells:
    """The streams of these groups, or of one task."""
    names = [name for group in groups for name in GROUPS[group]]
    return {
        name: there for name, there in cells.items()
        if name in names and (task is None or next(iter(there.values()))["task"] == task)
    }  # fmt: skip


def best(there: Mapping[str, Record], learners: Iterable[str], what: str) -> tuple[str, float] | None:
    """The learner with the smallest value, and that value."""
    known = {who: v for who in learners if (v := value(there.get(who), what)) is not None}
    if what == "log_loss":
        known.pop(LAST_LABEL, None)
    if not known:
        return None
    who = min(known, key=lambda name: known[name])
    return who, known[who]


def is_ours(who: str) -> bool:
    return who.startswith(OURS)


def streaming(there: Mapping[str, Record]) -> list[str]:
    """The peers that are not refitted, the simplest baselines included."""
    return [who for who in there if not is_ours(who) and not is_boosted(who)]


def is_boosted(who: str) -> bool:
    return who.startswith(("LightGBM", "HistGradientBoosting"))


def ours(there: Mapping[str, Record]) -> Record | None:
    record = there.get(US)
    return record if record is not None and record["status"] == "ok" else None
