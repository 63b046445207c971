"""Running the cells: in parallel, resumably, results appended as they come."""

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from omkl_lab.files import read_lines, write_lines
from omkl_lab.parallel import Journal, Record, Unit, spread, stop_if_told
from omkl_lab.prequential import Features, run_once
from omkl_lab.reproduce.results import Cell, Detail, Result, detail, fingerprint, keys_of, place, result
from omkl_lab.streams import Stream


def measure(
    cells: list[Cell], out: Path, jobs: int, tick: Callable[[int], object] = lambda rows: None
) -> tuple[list[Result], list[Detail]]:
    """Run what the journal in `out` does not have yet, and write results.jsonl and details.jsonl.

    Lines of earlier commands for other cells stay. `tick` hears of the rows done.
    """
    prints = {id(cell.stream): fingerprint(cell.stream) for cell in cells}
    keys = {cell.place: keys_of(cell, prints[id(cell.stream)]) for cell in cells}
    with Journal(out / "journal.jsonl") as journal:
        done: dict[tuple[str, str, str], tuple[Result, Detail]] = {}

        def finish(cell: Cell) -> None:
            runs: list[Any] = [journal.records[k] for k in keys[cell.place]]
            done[cell.place] = result(cell, runs), detail(cell, runs)

        waiting = {}
        for cell in cells:
            missing = {k for k in keys[cell.place] if k not in journal.records}
            tick(len(cell.stream.y) * (len(cell.seeds) - len(missing)))
            if missing:
                waiting[cell.place] = missing
            else:
                finish(cell)
        mine = {cell.place for cell in cells}
        results = out / "results.jsonl"
        kept = [line for line in read_lines(results) if place(line) not in mine]
        write_lines(results, [*kept, *(done[cell.place][0] for cell in cells if cell.place in done)])

        by_key = {k: cell for cell in cells for k in keys[cell.place]}
        with results.open("a", encoding="utf-8") as file, closing(spread(units(cells, keys, waiting), jobs)) as coming:
            for names, records in coming:
                journal.add(names, records)
                for name in names:
                    cell = by_key[name]
                    tick(len(cell.stream.y))
                    waiting[cell.place].discard(name)
                    if not waiting[cell.place]:
                        finish(cell)
                        file.write(json.dumps(done[cell.place][0], allow_nan=False) + "\n")
                        file.flush()

        ours = [done[cell.place] for cell in cells]
        others = [line for line in read_lines(out / "details.jsonl") if place(line) not in mine]
        write_lines(out / "details.jsonl", [*others, *(d for _, d in ours)])
        write_lines(results, [*kept, *(r for r, _ in ours)])  # in the order of the plan, whoever finished first
    return [r for r, _ in ours], [d for _, d in ours]


def units(cells: list[Cell], keys: Any, waiting: Any) -> Iterable[Unit]:
    """One unit per stream and seed, whose learners share their random features; the long ones first."""
    groups: dict[tuple[str, int, bool], list[Cell]] = {}
    for cell in cells:
        for number, seed in enumerate(cell.seeds):
            if keys[cell.place][number] in waiting.get(cell.place, ()):
                groups.setdefault((cell.stream.name, seed, cell.entrant.learner != "omkr"), []).append(cell)
    problems: dict[tuple[str, str, str], Any] = {}

    def problem(cell: Cell) -> Any:
        if cell.place not in problems:
            rows, d = cell.stream.X.shape
            problems[cell.place] = cell.entrant.settings(rows).problem(cell.entrant.learner, d)
        return problems[cell.place]

    # OMKR, whose cost grows with the square of the rows, goes first: nobody waits for it at the end
    order = sorted(groups, key=lambda g: (g[2], -len(groups[g][0].stream.y)))
    for group in order:
        stream, seed = groups[group][0].stream, group[1]
        entrants = [(cell.entrant, problem(cell), seed == cell.seeds[0]) for cell in groups[group]]
        names = tuple(keys[cell.place][cell.seeds.index(seed)] for cell in groups[group])
        yield Unit(names, replicate, {"stream": stream, "seed": seed, "entrants": entrants})


def replicate(stream: Stream, seed: int, entrants: list[Any]) -> list[Record]:
    """Every entrant once over the stream, on the random features of `seed`."""
    features = Features(stream.X.shape[1], seed)
    records: list[Record] = []
    for entrant, problem, history in entrants:
        settings = entrant.settings(len(stream.y))
        given = features.given_to(problem, settings)
        records.append({**run_once(entrant, given, stream, seed, history, stop_if_told)})
    return records
