"""Draws the pictures of the comparison: error against time and memory, and mean ranks."""

import math
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

from omkl_lab.comparison.outcome import PREFIX
from omkl_lab.comparison.page import rankings
from omkl_lab.comparison.ranks import Ranking
from omkl_lab.comparison.results import Cells, is_ours, of_group, summarised
from omkl_lab.parallel import Record
from omkl_lab.peers.showing import US, value
from omkl_lab.pictures import BOLD, INK, LETTER, OURS, THEIRS, dot, line, svg, text

MEAN = "running mean"
WORST = 1.25  # learners with a larger share of the running mean's error are listed below the picture, not drawn


class LearnerSummary(NamedTuple):
    """Medians of a learner over all sets."""

    name: str  # with an asterisk if it ran on the first rows only
    ours: bool
    cost: float  # microseconds per row or kilobytes
    share: float  # of the running mean's squared error on the same rows; infinite if it diverges on most
    diverged: int


def learner_summaries(whole: Cells, first: Cells, cost: str) -> list[LearnerSummary]:
    """Every learner that ran, or diverged, on all sets of numbers: on whole sets or else on the first rows."""
    out: dict[str, LearnerSummary] = {}
    for cells, mark in ((whole, ""), (first, " *")):
        sets = of_group(cells, "real", "project", task="numbers")
        for name in dict.fromkeys(who for there in sets.values() for who in there):
            records = [there[name] for there in sets.values() if name in there]
            if name not in out and name != MEAN and len(records) == len(sets) and all(MEAN in t for t in sets.values()):
                found = summarise(f"{name}{mark}", records, [there[MEAN] for there in sets.values()], cost)
                if found is not None:
                    out[name] = found
    return list(out.values())


def summarise(name: str, records: list[Record], means: list[Record], cost: str) -> LearnerSummary | None:
    shares = []
    for record, mean in zip(records, means, strict=True):
        mine, theirs = value(record, "mse"), value(mean, "mse")
        shares.append(math.inf if mine is None or theirs is None else mine / theirs)
    costs = [v for record in records if (v := value(record, cost)) is not None]
    if not costs:
        return None
    scale = 1e-3 if cost == "bytes" else 1
    middle = max(scale * median(costs), 1e-2)
    return LearnerSummary(name, is_ours(name), middle, median(shares), sum(map(math.isinf, shares)))


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: "Box") -> float:
        wide = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        tall = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return max(wide, 0.0) * max(tall, 0.0)


def overlap_cost(place: Box, taken: list[Box], inner: Box) -> float:
    """The area of other labels that a label here would cover, and of the label outside the picture."""
    outside = place.width * place.height - place.overlap(inner)
    return sum(place.overlap(other) for other in taken) + 3 * outside


def scatter(whole: Cells, first: Cells, cost: str, axis: str) -> str:
    """Squared error against what a learner costs, medians over the sets of numbers."""
    width, height, left, right, top, bottom = 880.0, 520.0, 66.0, 44.0, 34.0, 92.0
    summaries = learner_summaries(whole, first, cost)
    shown = sorted((who for who in summaries if who.share <= WORST), key=lambda who: (not who.ours, who.share))
    not_drawn = [who for who in summaries if who.share > WORST]
    sets = len(of_group(whole, "real", "project", task="numbers"))
    if not shown:
        return svg(width, 40, "Nothing measured yet", [text(20, 24, "nothing measured yet")])

    times, shares = [who.cost for who in shown], [who.share for who in shown]
    low_x, high_x = math.log10(min(times)) - 0.12, math.log10(max(times)) + 0.25
    low_y, high_y = math.log10(min(shares)) - 0.08, max(math.log10(max(shares)), 0) + 0.06

    def across(time: float) -> float:
        return left + (width - left - right) * (math.log10(time) - low_x) / (high_x - low_x)

    def down(share: float) -> float:
        return top + (height - top - bottom) * (high_y - math.log10(share)) / (high_y - low_y)

    parts = [text(left, 18, "squared error, as a share of the running mean's (both axes logarithmic)")]
    for share in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        if low_y <= math.log10(share) <= high_y:
            parts += [line(left, down(share), width - right, down(share)),
                      text(left - 8, down(share) + 4, f"{share:.0%}", "end")]  # fmt: skip
    for power in range(math.ceil(low_x), math.floor(high_x) + 1):
        x = across(10**power)
        parts += [line(x, top, x, height - bottom), text(x, height - bottom + 18, f"{10**power:g}", "middle")]
    centre = (left + width - right) / 2
    parts.append(text(centre, height - bottom + 38, axis, "middle"))

    taken = [Box(across(who.cost) - 9, down(who.share) - 9, 18, 18) for who in shown]
    inner = Box(left, top, width - left - right / 2, height - top - bottom)
    for who in shown:
        x, y = across(who.cost), down(who.share)
        colour = OURS if who.ours else THEIRS
        parts.append(dot(x, y, 6 if who.ours else 4.5, colour, hollow=who.diverged > 0))
        size = 13 if who.ours else 11.5
        wide = (BOLD if who.ours else LETTER) * size * len(who.name)
        places = [Box(x + dx if dx > 0 else x + dx - wide if dx < 0 else x - wide / 2, y + dy - size + 2, wide, size)
                  for dy in (4, -9, 17, -17, 24) for dx in (10, -10, 0) if dx or abs(dy) > 8]  # fmt: skip

        best = min(places, key=lambda place: overlap_cost(place, taken, inner))
        taken.append(best)
        # anchored next to the dot, so that a font wider than LETTER extends away from it
        anchor, at = ("start", best.x) if best.x > x else ("end", best.x + wide) if best.x + wide < x else ("middle", x)
        parts.append(text(at, best.y + size - 2, who.name, anchor, colour, font_size=size,
                          font_weight=600 if who.ours else 400))  # fmt: skip
    note = f"Medians over {sets} sets." + " A hollow dot diverged on some." * any(who.diverged for who in shown)
    note += f" * on the first {PREFIX} rows of each." * any("*" in who.name for who in shown)
    parts.append(text(left, height - 28, note, font_size=11.5))
    if not_drawn:
        note = f"Above {WORST:.0%}: " + ", ".join(who.name for who in not_drawn) + "."
        parts.append(text(left, height - 10, note, font_size=11.5))
    return svg(width, height, f"Squared error against {axis}: omkl's learners and others", parts)


# Ranks


def rank_diagram(title: str, found: Ranking) -> str:
    """Learners on an axis of mean ranks, the best at the left; bars join those that do not differ significantly."""
    width, left, right, top, step = 880.0, 250.0, 250.0, 62.0, 19.0
    count = len(found.learners)
    half = (count + 1) // 2
    bars = found.cliques
    below = top + 14 + 7 * len(bars)
    height = below + step * half + 14

    def across(rank: float) -> float:
        return left + (width - left - right) * (rank - 1) / max(count - 1, 1)

    parts = [text(12, 20, f"{title}: mean rank over {found.streams} streams", font_weight=600)]
    parts.append(line(across(1), top, across(count), top, INK))
    for rank in range(1, count + 1):
        parts.append(line(across(rank), top - 5, across(rank), top, INK))
        if count <= 12 or rank % 2:
            parts.append(text(across(rank), top - 9, str(rank), "middle", font_size=11))
    for k, (first, last) in enumerate(bars):
        y = top + 10 + 7 * k
        x1, x2 = across(found.ranks[first]) - 3, across(found.ranks[last]) + 3
        parts.append(line(x1, y, x2, y, INK, ' stroke-width="3"'))
    for k, (who, rank) in enumerate(zip(found.learners, found.ranks, strict=True)):
        x, at_left = across(float(rank)), k < half
        y = below + step * ((k if at_left else count - 1 - k) + 1)
        end = left - 8 if at_left else width - right + 8
        colour = OURS if is_ours(who) else THEIRS
        parts += [line(x, top, x, y - 4, colour), line(x, y - 4, end, y - 4, colour)]
        label = f"{who}  {rank:.2f}" if at_left else f"{rank:.2f}  {who}"
        parts.append(text(end - 4 if at_left else end + 4, y, label, "end" if at_left else "start", colour,
                          font_size=12, font_weight=600 if who == US else 400))  # fmt: skip
    return svg(width, height, f"{title}: mean ranks of {count} learners", parts)


def drawings(records: list[Record]) -> Mapping[str, str]:
    """The pictures of the comparison, by name."""
    whole, first = summarised(records), summarised(records, PREFIX)
    return {
        "peers.svg": scatter(whole, first, "microseconds", "core-microseconds per row, to predict and learn it"),
        "peers_bytes.svg": scatter(whole, first, "bytes", "kilobytes of the model, with the rows that it keeps"),
        **{f"{name}.svg": rank_diagram(title, found) for name, (title, found) in rankings(whole, first).items()},
    }
