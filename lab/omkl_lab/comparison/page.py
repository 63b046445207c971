"""Writes docs/peers.md, the comparison with what people would use instead, from results/comparison.jsonl."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from omkl_lab.comparison import scores_page
from omkl_lab.comparison.learners import LEARNERS, LIGHTGBM
from omkl_lab.comparison.outcome import PREFIX
from omkl_lab.comparison.ranks import ALPHA, Ranking, ranking
from omkl_lab.comparison.results import (
    BASELINES,
    BOOSTED,
    ORDER,
    Cells,
    best,
    is_boosted,
    is_ours,
    measure,
    of_group,
    ours,
    streaming,
    summarised,
)  # fmt: skip
from omkl_lab.comparison.text import HOW, TUNED
from omkl_lab.markdown import table
from omkl_lab.parallel import Record
from omkl_lab.peers.showing import NOTHING, STATUS, US, about, bold, digits, time_shown, value
from omkl_lab.peers.streams import DRIFT

PAGE = Path("docs/peers.md")
COMMAND = "OMKL_DATA=~/data python -m omkl_lab.comparison all --learners all --docs docs/peers.md"
MOST = ("real", "project", "drift")


def page(records: list[Record], starts: list[Record]) -> str:
    whole, first = summarised(records), summarised(records, PREFIX)
    parts = [
        "# Comparison with other learners",
        "GraphMKL with its default parameters beside what people would use instead: gradient boosting that is fitted "
        "anew as rows come, and online learners of other libraries. Each row is predicted before it is learned "
        "([method](#method)).",
        "## Where GraphMKL is worse", *losses(whole, first),
        "## Summary", *summary(whole, first),
        "## Ranks", *ranks(whole, first),
        "## Method", HOW,
        "## What was tuned on what", TUNED,
        "## Numbers", *numbers(whole, first),
        "## Labels", *labels(whole, first),
        "## Distributions and intervals", *scores_page.distributions(whole),
        "## Streams that change", *drift(whole),
        "## Time and memory", *resources(whole, first),
        "## Versions", *versions(whole, first), *about(starts),
        f"Written by `{COMMAND}` from `results/comparison.jsonl`; do not edit.",
    ]  # fmt: skip
    return "\n\n".join(part.strip() for part in parts) + "\n"


# Showing numbers


def scaled(stream: str, record: Record) -> Callable[[float], str]:
    """Errors of a set in thousandths of its squared range, of a generated stream as they are, of labels in per cent."""
    factor = 100 if record["task"] == "labels" else 1 if stream in DRIFT else 1e3
    return lambda x: digits(factor * x)


def status(record: Record | None) -> str:
    return NOTHING if record is None else STATUS.get(record["status"], NOTHING)


def grid(cells: Cells, what: Callable[[Record], str], shown: Callable[[str, Record], Callable[[float], str]],
         learners: Iterable[str], mark: bool = True) -> str:  # fmt: skip
    """Learners by streams; the best of each stream in bold."""
    rows: dict[str, list[str]] = {who: [who] for who in learners}
    for stream, there in cells.items():
        any_record = next(iter(there.values()))
        values = {who: value(there.get(who), what(any_record)) for who in rows}
        show = shown(stream, any_record)
        known = [v for v in values.values() if v is not None]
        top = show(min(known)) if known and mark else ""
        for who, v in values.items():
            rows[who].append(status(there.get(who)) if v is None else bold(show(v), top))
    return table(["", *cells], rows.values())


def present(cells: Cells) -> list[str]:
    """Every learner of these results, in the order of the list of learners."""
    found = dict.fromkeys(who for there in cells.values() for who in there)
    order = list(LEARNERS)

    def place(who: str) -> int:
        return max((k for k, name in enumerate(order) if who == name or who.startswith(f"{name}, ")), default=0)

    return sorted(found, key=lambda who: (place(who), who))


# Losses and summary


def rivals(whole: Cells, first: Cells, stream: str) -> Iterable[tuple[str, dict[str, Record], list[str]]]:
    """Boosting and streaming peers on the whole stream, and the slow ones on its first rows."""
    there = whole.get(stream, {})
    yield "", there, [who for who in there if is_boosted(who)]
    yield "", there, streaming(there)
    slow = [who for who in first.get(stream, {}) if who not in there and not is_ours(who)]
    yield f" on the first {PREFIX} rows", first.get(stream, {}), slow


def losses(whole: Cells, first: Cells) -> Iterable[str]:
    """Every stream and measure on which a peer is better than GraphMKL with its defaults, and by how much."""
    found: list[tuple[float, str]] = []
    for stream, there in whole.items():
        us = ours(there)
        if us is None:
            continue
        names = {"mse": "squared error", "wrong": "wrong labels", "log_loss": "log-loss", "log_score": "log score"}
        for what in ("wrong", "log_loss") if us["task"] == "labels" else ("mse", "log_score"):
            for where, cells, peers in rivals(whole, first, stream):
                mine, peer = value(cells.get(US), what), best(cells, peers, what)
                if mine is None or peer is None or not mine > peer[1]:
                    continue
                if what == "log_score":
                    text = f"log score {mine:.3g}, {peer[0]}{where} {peer[1]:.3g}"
                    found.append((mine - peer[1], f"- **{stream}**: {text}."))
                else:
                    more = mine / peer[1] - 1 if peer[1] > 0 else float("inf")
                    show = (lambda x: f"{x:.3g}") if what == "log_loss" else scaled(stream, us)
                    text = f"{names[what]} {show(mine)}, {peer[0]}{where} {show(peer[1])} ({percent(more)} more)"
                    found.append((more, f"- **{stream}**: {text}."))
    if not found:
        yield "On none of these streams, in none of the measures."
        return
    yield (
        "Streams on which another learner is better than GraphMKL, the largest loss first (squared error x 1e-3 of the "
        "targets' squared range, wrong labels in %, log-loss or log score). The other is the best refitted or the best "
        "streaming learner on that stream, chosen in hindsight:"
    )
    yield "\n".join(line for _, line in sorted(found, key=lambda pair: -pair[0]))


def percent(share: float) -> str:
    """
    >>> percent(0.0123), percent(2.523)
    ('1.2 %', '252 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def summary(whole: Cells, first: Cells) -> Iterable[str]:
    yield tally(whole)
    rows = []
    for stream, there in whole.items():
        us = ours(there)
        if us is None:
            continue
        what, show = measure(us), scaled(stream, us)
        low, high = us[f"{what}_range"]
        boosted = best(there, [who for who in there if is_boosted(who)], what)
        peer = best(there, streaming(there), what)
        least = show(min(v for v in (us[what], boosted and boosted[1], peer and peer[1]) if v is not None))
        title = stream if us["task"] == "numbers" else f"{stream}, % wrong"
        cells = [title, str(us["rows"]), bold(show(us[what]), least), f"{show(low)} to {show(high)}"]
        for rival in (boosted, peer):
            cells += [bold(show(rival[1]), least), rival[0]] if rival else [NOTHING, NOTHING]
        light = value(there.get(LIGHTGBM), "microseconds")
        cells += [f"{us[what] / boosted[1]:.2f}" if boosted and boosted[1] else NOTHING,
                  f"{us['microseconds'] / light:.2f}" if light else NOTHING]  # fmt: skip
        rows.append(cells)
    yield (
        "Squared error x 1e-3 of the targets' squared range (generated streams: unscaled), or wrong labels in %; whole "
        "streams, medians over the seeds. The best refitted and the best streaming peer differ between streams and are "
        "chosen in hindsight, which a user cannot do. Slow peers saw the first rows only and are in the tables below."
    )
    yield table(["", "rows", "GraphMKL", "over seeds", "refitted boosting", "name", "streaming peer", "name",
                 "error / boosting's", "core-time / LightGBM's"], rows)  # fmt: skip


def tally(whole: Cells) -> str:
    """On how many streams GraphMKL is ahead of refitted LightGBM and of every streaming peer on whole streams."""
    titles = {"real": "real sets", "project": "the project's other sets", "drift": "generated streams that change"}
    rows = []
    for group, title in titles.items():
        pairs = [(us, there) for there in of_group(whole, group).values() if (us := ours(there)) is not None]
        counts = []
        for peers in (lambda there: BOOSTED, streaming):
            found = [(us, best(there, peers(there), measure(us))) for us, there in pairs]
            known = [(us[measure(us)], rival[1]) for us, rival in found if rival is not None]
            counts.append(f"{sum(mine < theirs for mine, theirs in known)} of {len(known)}" if known else NOTHING)
        if pairs:
            rows.append([title, *counts])
    if not rows:
        return ""
    head = ["GraphMKL's error is smaller than that of", "the best refitted LightGBM", "every streaming learner"]
    return table(head, rows)


# Ranks


def compared(cells: Cells) -> dict[str, list[float]]:
    """Errors of the learners that ran, or failed, on all streams on which GraphMKL ran."""
    streams = [there for there in cells.values() if ours(there) is not None]
    everywhere = [who for who in present(cells) if all(who in there for there in streams)]
    return {
        who: [v if (v := value(there[who], measure(there[who]))) is not None else float("inf") for there in streams]
        for who in everywhere
    }  # fmt: skip


def rankings(whole: Cells, first: Cells) -> dict[str, tuple[str, Ranking]]:
    """Rankings by the name of their picture: a title, and the ranks."""
    chosen = {
        "ranks_real_numbers": ("Numbers, whole real sets", of_group(whole, "real", task="numbers")),
        "ranks_real_labels": ("Labels, whole real sets", of_group(whole, "real", task="labels")),
        "ranks_numbers": ("Numbers, whole streams", of_group(whole, *MOST, task="numbers")),
        "ranks_first": (f"Numbers, first {PREFIX} rows", of_group(first, "real", "project", task="numbers")),
        "ranks_labels": ("Labels, whole sets", of_group(whole, "real", "project", task="labels")),
        "ranks_labels_first": (f"Labels, first {PREFIX} rows", of_group(first, "real", "project", task="labels")),
    }
    out = {}
    for name, (title, cells) in chosen.items():
        errors = compared(cells)
        if US in errors and len(errors) > 2 and len(errors[US]) > 2:
            out[name] = (title, ranking(errors))
    return out


def ranks(whole: Cells, first: Cells) -> Iterable[str]:
    yield (
        "Mean rank of the error over the streams on which all learners of a diagram ran (a failure ranks last). "
        f"Learners joined by a bar do not differ at the level {ALPHA} by Wilcoxon's signed-rank tests on the "
        "logarithms of the errors with Holm's correction for all pairs. Streams are few and some of them alike, so the "
        "tests say little about streams of another kind."
    )
    for name, (title, found) in rankings(whole, first).items():
        k = found.learners.index(US)
        differ = [who for j, who in enumerate(found.learners) if found.adjusted[k, j] <= ALPHA]
        seen = first if "first" in name else whole
        absent = [who for who in present(seen) if is_boosted(who) and who not in found.learners]
        yield f"![{title}: mean ranks](pictures/{name}.svg)"
        yield (
            f"{title}: {found.streams} streams, {len(found.learners)} learners; Friedman's test has p = "
            f"{found.friedman:.1g}. "
            f"GraphMKL has the mean rank {found.ranks[k]:.2f} and differs significantly from "
            + (f"{len(differ)} of the {len(found.learners) - 1} others." if differ else "none of the others.")
            + (f" Not in it, since not measured on all of these streams: {'; '.join(absent)}." if absent else "")
        )


# Tables


def numbers(whole: Cells, first: Cells) -> Iterable[str]:
    for cells, rows in ((whole, "whole sets"), (first, f"the first {PREFIX} rows")):
        for group in ("real", "project"):
            mine = of_group(cells, group, task="numbers")
            if mine:
                yield f"Squared error x 1e-3, {rows}, {title_of(group)}:"
                yield grid(mine, lambda _: "mse", scaled, present(mine))


def title_of(group: str) -> str:
    return {"real": "the real sets", "project": "the project's other sets", "drift": "streams that change"}[group]


def labels(whole: Cells, first: Cells) -> Iterable[str]:
    shows: Mapping[str, tuple[str, float]] = {
        "wrong": ("Wrong labels in %", 100),
        "log_loss": ("Log-loss", 1),
        "calibration": ("Expected calibration error", 1),
    }  # fmt: skip
    for cells, rows in ((whole, "whole sets"), (first, f"the first {PREFIX} rows")):
        mine = of_group(cells, "real", "project", task="labels")
        for what, (title, factor) in shows.items():
            if mine and not (what == "calibration" and cells is first):
                yield f"{title}, {rows}:"
                yield grid(mine, lambda _, w=what: w, lambda *_, f=factor: lambda x: digits(f * x),  # type: ignore[misc]  # mypy cannot infer lambdas with defaults
                           [who for who in present(mine) if who not in BASELINES or what == "wrong"])  # fmt: skip


def drift(whole: Cells) -> Iterable[str]:
    mine = of_group(whole, "drift")
    if not mine:
        return
    yield scores_page.ABOUT_DRIFT
    yield "Squared error, unscaled:"
    yield grid(mine, lambda _: "mse", scaled, present(mine))
    yield scores_page.ABOUT_RECOVERY
    yield table(["", *mine], [
        [who, *(scores_page.recovered(there.get(who)) for there in mine.values())] for who in present(mine)
    ])  # fmt: skip


def resources(whole: Cells, first: Cells) -> Iterable[str]:
    yield (
        "![Squared error against microseconds per row](pictures/peers.svg)\n\n"
        "![Squared error against bytes of the model](pictures/peers_bytes.svg)"
    )
    known = [stream for stream in ORDER if stream in whole or stream in first]
    both = {stream: {**first.get(stream, {}), **whole.get(stream, {})} for stream in known}
    for group in MOST:
        mine = of_group(both, group)
        if mine:
            yield f"Core-microseconds per row, {title_of(group)}:"
            yield grid(mine, lambda _: "microseconds", lambda *_: time_shown, present(mine), mark=False)
            yield f"Bytes of the model at the end (kB), with the rows that it keeps, {title_of(group)}:"
            yield grid(mine, lambda _: "bytes", lambda *_: lambda x: digits(x / 1000), present(mine), mark=False)


def versions(whole: Cells, first: Cells) -> Iterable[str]:
    found, failed = {}, []
    for cells in (whole, first):
        for stream, there in cells.items():
            for who, record in there.items():
                if record["package"] != "omkl":
                    found[record["package"]] = record["version"]
                elif record["learner"] == US:
                    found["omkl (digest of its sources)"] = record["version"]
                if record["status"] == "raised":
                    failed.append(f"- {who} on {stream}: {record['note']}")
    yield ", ".join(f"{name} {found[name]}" for name in sorted(found)) + "."
    if failed:
        yield "Failures:\n\n" + "\n".join(dict.fromkeys(failed))
