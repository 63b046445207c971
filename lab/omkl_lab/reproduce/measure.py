"""Runs the cases in parallel with a journal, so that an interrupted command can resume."""

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from omkl import algorithms
from omkl_lab.files import read_lines, write_lines
from omkl_lab.parallel import Journal, Record, Unit, raise_if_stopped, run_parallel
from omkl_lab.prequential import Features, run_once
from omkl_lab.reproduce.results import Case, Detail, Result, case_id, detail, fingerprint, keys_of, result
from omkl_lab.streams import Stream


def measure(
    cases: list[Case], out: Path, jobs: int, tick: Callable[[int], object] = lambda rows: None
) -> tuple[list[Result], list[Detail]]:
    """Run what the journal in `out` does not have yet, and write results.jsonl and details.jsonl.

    Lines of earlier commands for other cases are kept. `tick` is called with the number of finished rows.
    """
    prints = {id(case.stream): fingerprint(case.stream) for case in cases}
    keys = {case.id: keys_of(case, prints[id(case.stream)]) for case in cases}
    with Journal(out / "journal.jsonl") as journal:
        done: dict[tuple[str, str, str], tuple[Result, Detail]] = {}

        def finish(case: Case) -> None:
            runs: list[Any] = [journal.records[k] for k in keys[case.id]]
            done[case.id] = result(case, runs), detail(case, runs)

        waiting = {}
        for case in cases:
            missing = {k for k in keys[case.id] if k not in journal.records}
            tick(len(case.stream.y) * (len(case.seeds) - len(missing)))
            if missing:
                waiting[case.id] = missing
            else:
                finish(case)
        mine = {case.id for case in cases}
        results = out / "results.jsonl"
        kept = [line for line in read_lines(results) if case_id(line) not in mine]
        write_lines(results, [*kept, *(done[case.id][0] for case in cases if case.id in done)])

        by_key = {k: case for case in cases for k in keys[case.id]}
        with (
            results.open("a", encoding="utf-8") as file,
            closing(run_parallel(units(cases, keys, waiting), jobs)) as coming,
        ):
            for names, records in coming:
                journal.add(names, records)
                for name in names:
                    case = by_key[name]
                    tick(len(case.stream.y))
                    waiting[case.id].discard(name)
                    if not waiting[case.id]:
                        finish(case)
                        file.write(json.dumps(done[case.id][0], allow_nan=False) + "\n")
                        file.flush()

        ours = [done[case.id] for case in cases]
        others = [line for line in read_lines(out / "details.jsonl") if case_id(line) not in mine]
        write_lines(out / "details.jsonl", [*others, *(d for _, d in ours)])
        write_lines(results, [*kept, *(r for r, _ in ours)])  # in the order of `cases`, not of completion
    return [r for r, _ in ours], [d for _, d in ours]


def units(cases: list[Case], keys: Any, waiting: Any) -> Iterable[Unit]:
    """One unit per stream and seed, whose learners share random features; long ones first."""
    groups: dict[tuple[str, int, bool], list[Case]] = {}
    for case in cases:
        for number, seed in enumerate(case.seeds):
            if keys[case.id][number] in waiting.get(case.id, ()):
                groups.setdefault((case.stream.name, seed, case.configuration.learner != "omkr"), []).append(case)
    problems: dict[tuple[str, str, str], Any] = {}

    def problem(case: Case) -> Any:
        if case.id not in problems:
            rows, d = case.stream.X.shape
            problems[case.id] = algorithms.problem(case.configuration.learner, case.configuration.settings(rows), d)
        return problems[case.id]

    # OMKR first, since its cost grows with the square of the rows: no core should be idle at the end
    order = sorted(groups, key=lambda g: (g[2], -len(groups[g][0].stream.y)))
    for group in order:
        stream, seed = groups[group][0].stream, group[1]
        configurations = [(case.configuration, problem(case), seed == case.seeds[0]) for case in groups[group]]
        names = tuple(keys[case.id][case.seeds.index(seed)] for case in groups[group])
        yield Unit(names, replicate, {"stream": stream, "seed": seed, "configurations": configurations})


def replicate(stream: Stream, seed: int, configurations: list[Any]) -> list[Record]:
    """One run of every configuration on the stream, with the random features of `seed`."""
    features = Features(stream.X.shape[1], seed)
    records: list[Record] = []
    for configuration, problem, history in configurations:
        settings = configuration.settings(len(stream.y))
        with_features = features.assign(problem, settings)
        records.append({**run_once(configuration, with_features, stream, seed, history, raise_if_stopped)})
    return records
