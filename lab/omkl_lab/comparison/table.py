"""The table on the terminal: GraphMKL against refitted LightGBM, losses first."""

from collections import defaultdict
from collections.abc import Iterable

from rich.table import Table

from omkl_lab.comparison.learners import LIGHTGBM
from omkl_lab.comparison.results import BOOSTED, measure, over_seeds
from omkl_lab.parallel import Record
from omkl_lab.peers.showing import US
from omkl_lab.peers.streams import DRIFT

HEAD = (
    "set", "settings", "seeds", "error", "range", "LightGBM", "best of 3", "ratio", "log-loss or log score",
    "LightGBM's", "coverage", "us", "share of LightGBM's", "kB",
)  # fmt: skip


def against_boosting(records: Iterable[Record], streams: Iterable[str]) -> Table:
    """A row for each stream and settings of GraphMKL, the largest losses first; all over the same rows."""
    groups: dict[tuple[str, str, str, int], list[Record]] = defaultdict(list)
    newest: dict[tuple[str, str], Record] = {}
    for record in records:
        groups[record["stream"], record["learner"], record["settings"], record["rows"]].append(record)
        if record["learner"] == US:
            newest[record["stream"], record["settings"]] = record
    shown, lines = Table(*HEAD), []
    for (stream, settings), last in newest.items():
        runs = groups[stream, US, settings, last["rows"]]
        ours = over_seeds([run for run in runs if run["version"] == last["version"]])
        if stream in streams and ours["status"] == "ok":
            boosted = {
                who: over_seeds(found) for who in BOOSTED if (found := groups.get((stream, who, "", last["rows"])))
            }
            lines.append(line(ours, boosted))
    for _, cells in sorted(lines, key=lambda pair: -pair[0]):
        shown.add_row(*cells)
    return shown


def line(ours: Record, boosted: dict[str, Record]) -> tuple[float, list[str]]:
    """The ratio to the best LightGBM, and the cells."""
    what, score = measure(ours), "log_loss" if ours["task"] == "labels" else "log_score"
    scale = 100 if what == "wrong" else 1 if ours["stream"] in DRIFT else 1e3
    low, high = ours[f"{what}_range"]
    ratio, best, main, least, share = 0.0, "", "", "", ""
    if boosted:
        who = min(boosted, key=lambda name: boosted[name][what])
        ratio = ours[what] / boosted[who][what]
        best = f"{scale * boosted[who][what]:.3g}"
        best += "" if who == LIGHTGBM else f" ({who.removeprefix('LightGBM, ')})"
        least = f"{min(found[score] for found in boosted.values()):.3g}"
    if (all_rows := boosted.get(LIGHTGBM)) is not None:
        main = f"{scale * all_rows[what]:.3g}"
        share = f"{ours['microseconds'] / all_rows['microseconds']:.2f}"
    cells = [
        ours["stream"], ours["settings"] or "defaults", str(ours["seeds"]), f"{scale * ours[what]:.3g}",
        f"{scale * low:.3g} to {scale * high:.3g}", main, best, f"{ratio:.2f}" if boosted else "",
        f"{ours[score]:.3g}", least, f"{100 * ours['coverage']:.1f}" if "coverage" in ours else "",
        f"{ours['microseconds']:.3g}", share, f"{ours['bytes'] / 1000:.0f}",
    ]  # fmt: skip
    return ratio, cells
