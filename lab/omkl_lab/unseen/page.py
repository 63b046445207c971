"""docs/unseen.md: a function of the results and of nothing else."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from omkl_lab.markdown import escaped, table
from omkl_lab.parallel import Record
from omkl_lab.peers.page import US, about, bold, digits, is_machine, time_shown, value

RESULTS, PAGE = Path("results/unseen.jsonl"), Path("docs/unseen.md")
COMMAND = "python -m omkl_lab.unseen --jobs 2"
CERTAIN = "last label"  # speaks in certainties and has no log-loss worth reading
LEVEL = 1.02  # errors closer than this are level
USUAL = (0.87, 0.94)  # coverage of a 90 % interval that needs no word
GROUPS = ("fresh", "used")
MEASURES = {
    "error": ("numbers", "squared error / variance"),
    "wrong": ("labels", "share of wrong labels"),
    "log_loss": ("labels", "log-loss"),
}

HOW = """\
Every row is predicted, then learned. All learners get the same rows, {rows} at most. The streams are made by the
laboratory or come with river and scikit-learn: no files are needed, and each has one fixed seed.

- **Numbers**: mean squared error over the variance of the target, so that 1 is what the mean of the whole stream
  would have. All learners are told the target less its first value, and the first row counts for nothing, since
  nobody can know the level. **Labels**: share of wrong labels (a tie counts by its share) and log-loss (chances no
  smaller than 1e-15); the first row of each label counts for nothing. GraphMKL is told beforehand which labels there
  are, river's learners find out.
- **GraphMKL**: defaults, the median of {seeds} seeds. **Peers**: one run, a fixed seed where there is one, defaults
  as in [the comparison](peers.md): river's learners behind its `StandardScaler` (but GaussianNB), "KNN, exact" over
  the last 1000 rows, padasip's filter on the inputs as they are. "recursive ridge" is least squares with a ridge of 1
  on standardised inputs, which most linear streams want.
- **Won, lost**: errors more than {level:.0f} % apart; else **level**. The best peer is another one on each stream,
  chosen afterwards, which no user can do; hence also the table of each peer alone.
- **Microseconds** are processor time of one core for predicting and learning a row, with other cells at work beside it:
  read ratios, not digits.
"""

TUNED = """\
- **used**: these streams were looked at when four changes were made to GraphMKL (reach of the linear expert, logistic
  experts for labels, columns noticed at once, kernels on single inputs; see
  [what they taught](graph_mkl.md#what-a-hundred-other-streams-taught)). What they say is flattering. They are a part of
  that collection, written anew with other seeds; which part was decided by what the streams are, without a look at
  results.
- **fresh**: these streams were written after those changes and committed before any learner was run on them. Neither
  they nor GraphMKL were changed afterwards. They are made up after what such streams are like in the world; they are
  not the world, and who wrote them knew how GraphMKL works. Once a change to it is made in their sight, they are used
  up too.
- **Peers**: no setting of theirs was chosen on any of these streams.
"""

HEAD = ["streams", "measure", "peer", "how many", "won", "level", "lost", "ours / its, median"]

Results = dict[str, dict[str, Record]]  # stream -> learner -> what came of it


class Pair(NamedTuple):
    """GraphMKL and a peer on one stream."""

    stream: str
    ours: float
    theirs: float
    who: str

    @property
    def ratio(self) -> float:
        if self.ours == self.theirs:
            return 1.0
        return self.ours / self.theirs if self.theirs > 0 else float("inf")

    @property
    def verdict(self) -> str:
        return "won" if self.ratio < 1 / LEVEL else "lost" if self.ratio > LEVEL else "level"


def page(records: Mapping[str, Record]) -> str:
    cells = [record for key, record in records.items() if not is_machine(key)]
    parts = [
        "# On other streams",
        f"Written by `{COMMAND}` from `{RESULTS.as_posix()}`; do not edit.",
        *about([record for key, record in records.items() if is_machine(key)]),
        "## In short", *in_short(cells),
        "## Where it loses", *losses(cells),
        "## What was tuned on what", TUNED,
        "## Beside each peer alone", *each_alone(cells),
        "## How", HOW.format(rows=most(cells, "rows"), seeds=most(cells, "seeds"), level=100 * (LEVEL - 1)),
    ]  # fmt: skip
    for group in GROUPS:
        parts += [f"## The {group} streams", *tables(cells, group), *described(cells, group)]
    parts += ["## Intervals", *intervals(cells), "## What did not run", *silent(cells), versions(cells)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def most(cells: Iterable[Record], what: str) -> int:
    return max(int(cell[what]) for cell in cells)


# Who is ahead


def by_stream(cells: Iterable[Record], group: str, task: str) -> Results:
    found: Results = {}
    for cell in cells:
        if (cell["group"], cell["task"]) == (group, task):
            found.setdefault(cell["course"], {})[cell["learner"]] = cell
    return {name: found[name] for name in sorted(found) if US in found[name]}


def pairs(results: Results, what: str, peer: str | None = None) -> list[Pair]:
    """GraphMKL beside one peer, or beside the best on each stream; those that it loses most come first."""
    out = []
    for name, cells in results.items():
        known = {
            who: v for who, cell in cells.items()
            if who != US and (peer is None or who == peer) and (what, who) != ("log_loss", CERTAIN)
            and (v := value(cell, what)) is not None
        }  # fmt: skip
        us = value(cells[US], what)
        if known and us is not None:
            best = min(known, key=lambda who: (known[who], who))
            out.append(Pair(name, us, known[best], best))
    return sorted(out, key=lambda pair: (-pair.ratio, pair.stream))


def tally(found: list[Pair]) -> list[str]:
    verdicts = [pair.verdict for pair in found]
    return [*(str(verdicts.count(v)) for v in ("won", "level", "lost")), f"{median(p.ratio for p in found):.2f}"]


def counted(cells: list[Record], peers: Callable[[Results], Iterable[str | None]]) -> list[list[str]]:
    """A line for each group, measure and peer; None is the best of each stream."""
    rows = []
    for group in GROUPS:
        for what, (task, title) in MEASURES.items():
            results = by_stream(cells, group, task)
            for who in peers(results):
                if found := pairs(results, what, who):
                    rows.append([group, title, who or "the best", str(len(found)), *tally(found)])
    return rows


def in_short(cells: list[Record]) -> Iterable[str]:
    yield "GraphMKL with its defaults beside the best of the peers, whichever that is on a stream:"
    yield table(HEAD, counted(cells, lambda results: [None]), left=3)


def in_a_sentence(records: Mapping[str, Record]) -> str:
    """For the README: the fresh streams alone."""
    cells = [record for key, record in records.items() if not is_machine(key)]
    fresh = {what: pairs(by_stream(cells, "fresh", task), what) for what, (task, _) in MEASURES.items()}
    won, lost = ({what: sum(p.verdict == v for p in found) for what, found in fresh.items()} for v in ("won", "lost"))
    numbers, labels = len(fresh["error"]), len(fresh["wrong"])
    return (
        f"On {numbers + labels} streams that were written afterwards, before any learner was run on them, GraphMKL is "
        f"ahead of the best of simple peers on {won['error']} of {numbers} in squared error and behind on "
        f"{lost['error']}; of {labels} with labels it is ahead on {won['wrong']} in wrong labels and on "
        f"{won['log_loss']} in log-loss, and behind on {lost['wrong']} and {lost['log_loss']}: "
        "[on other streams](docs/unseen.md)."
    )


def each_alone(cells: list[Record]) -> Iterable[str]:
    yield "Streams on which a peer diverged are not counted for it."
    yield table(
        HEAD, counted(cells, lambda results: sorted({who for c in results.values() for who in c} - {US})), left=3
    )


def losses(cells: list[Record]) -> Iterable[str]:
    yield "Streams lost to the best peer, GraphMKL's measure over its, the worst first."
    lines = []
    for group in GROUPS:
        for what, (task, title) in MEASURES.items():
            lost = [pair for pair in pairs(by_stream(cells, group, task), what) if pair.verdict == "lost"]
            said = ", ".join(f"{escaped(pair.stream)} {pair.ratio:.2f} ({pair.who})" for pair in lost) or "none"
            lines.append(f"- **{group}**, {title}: {said}.")
    yield "\n".join(lines)


# Streams


def tables(cells: list[Record], group: str) -> Iterable[str]:
    for task in ("numbers", "labels"):
        results = by_stream(cells, group, task)
        if not results:
            continue
        for what in (what for what, (of, _) in MEASURES.items() if of == task):
            shown: Callable[[float], str] = (lambda x: f"{x:.4f}") if task == "labels" else digits
            yield f"{task.capitalize()}, {MEASURES[what][1]}; what GraphMKL loses comes first."
            rows = []
            for pair in pairs(results, what):
                mine, its = results[pair.stream][US], results[pair.stream][pair.who]
                least = shown(min(pair.ours, pair.theirs))
                rows.append([
                    escaped(pair.stream), f"{mine['rows']} x {mine['features']}", bold(shown(pair.ours), least),
                    bold(shown(pair.theirs), least), pair.who, f"{pair.ratio:.2f}", pair.verdict,
                    f"{time_shown(mine['microseconds'])} / {time_shown(its['microseconds'])}",
                ])  # fmt: skip
            yield table(["", "rows x inputs", "GraphMKL", "best peer", "which", "ours / its", "", "microseconds"], rows)


def described(cells: list[Record], group: str) -> Iterable[str]:
    told = {cell["course"]: cell["about"] for cell in cells if cell["group"] == group and cell["about"]}
    if told:
        yield "\n".join(f"- {escaped(name)}: {escaped(told[name])}" for name in sorted(told))


# Intervals, and who has no number


def intervals(cells: list[Record]) -> Iterable[str]:
    rows, odd = [], []
    for group in GROUPS:
        results = by_stream(cells, group, "numbers")
        held = {name: c for name, by in results.items() if (c := value(by[US], "coverage")) is not None}
        if held:
            inside = sum(USUAL[0] <= c <= USUAL[1] for c in held.values())
            ends = [f"{100 * c:.1f}" for c in (min(held.values()), median(held.values()), max(held.values()))]
            rows.append([group, str(len(held)), *ends, str(inside)])
        odd += [f"- {escaped(n)} ({group}): {100 * c:.1f} %" for n, c in held.items() if not USUAL[0] <= c <= USUAL[1]]
    usual = f"{100 * USUAL[0]:.0f} to {100 * USUAL[1]:.0f} %"
    yield "Share of targets inside GraphMKL's 90 % intervals, each made before its row was learned."
    yield table(["streams", "how many", "least, %", "median, %", "most, %", f"within {usual}"], rows)
    yield f"Outside {usual}:\n\n" + "\n".join(odd) if odd else f"None lies outside {usual}."


def silent(cells: list[Record]) -> Iterable[str]:
    lines = sorted(
        f"- {cell['learner']} on {escaped(cell['course'])}: {cell['status']}, {escaped(cell['note'])}"
        for cell in cells if cell["status"] != "ok"
    )  # fmt: skip
    yield "\n".join(lines) or "Everything ran."


def versions(cells: list[Record]) -> str:
    found = sorted({f"{cell['package']} {cell['version']}" for cell in cells if "version" in cell})
    return f"Versions: {', '.join(found)}."
