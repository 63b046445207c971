"""The measurements of `omkl-lab bench`, as one dictionary."""

import time
from collections.abc import Callable
from typing import Any, TypedDict, cast, get_args

from threadpoolctl import threadpool_limits

from omkl.algorithms.settings import Settings
from omkl.engine import cores
from omkl.features import Draw
from omkl.online import Online
from omkl_lab import machine
from omkl_lab.bench import floor, peers, timing
from omkl_lab.bench.floor import Peaks
from omkl_lab.bench.timing import BASE, QUICK, Effort, Growth, LearnerFactory, LongRun, Replicates, Timing
from omkl_lab.data.sets import is_available, load
from omkl_lab.files import brief
from omkl_lab.parallel import Record

COMMAND = "OMKL_DATA=~/data omkl-lab bench --json results/bench.json --docs docs/benchmark.md"
COMPARED: tuple[str, ...] = ("sfg-mkl", "sfg-mkl-r", "raker")  # learners compared with the floor
Tick = Callable[[int], object]


class Requirement(TypedDict):
    """A performance requirement and whether it is met."""

    what: str
    required: str
    measured: str
    holds: bool | None  # None: cannot be decided on this machine


class Results(TypedDict):
    command: str
    quick: bool
    machine: Record
    seconds: float
    peaks: Peaks
    floors: list[Record]
    least_squares: Record
    shared: list[Record]  # independent and shared random features
    timings: list[Timing]
    growth: list[Growth]
    long_run: LongRun
    replicates: Replicates | None
    omkr_on_naval: float | None  # seconds
    river: list[Record]
    peers: list[Record]
    left_out: list[str]
    requirements: list[Requirement]


def ticks(quick: bool) -> int:
    """The total that `run` passes to `tick`."""
    return len(timing.cases()) + len(peers.runs(quick)) + 12


def run(quick: bool = False, tick: Tick = lambda count: None) -> Results:
    begin = time.perf_counter()
    effort = QUICK if quick else Effort()
    with threadpool_limits(1):
        peaks, floors = measure_floor(effort, tick)
        timings = []
        for case in timing.cases():
            timings.append(timing.timing(*case, effort, cores()))
            tick(1)
        shared = [compare_draws(learner, d, effort) for learner in COMPARED for d in (5, 15, 50)]
        tick(1)
        growth = [*timing.growth_of_time(timings), *timing.growth_of_memory()]
        long_run = timing.long_run(effort.long_run)
        tick(1)
        twice = timing.replicates(effort)
        tick(1)
        naval = omkr_on_naval() if not quick and is_available("naval") else None
        tick(1)
        river = [compare_with_river(timings, d, effort, tick) for d in (5, 15)]
        peer_records = []
        for name, learner in peers.runs(quick):
            peer_records.append(peers.evaluate_peer(name, learner, effort.rows if quick else peers.ROWS))
            tick(1)
    results: Results = {
        "command": COMMAND, "quick": quick, "machine": machine.described(), "seconds": 0.0,
        "peaks": peaks, "floors": floors,
        "least_squares": {"floor": floor.of_least_squares(peaks, 100), "measured": peaks["least_squares"]},
        "shared": shared, "timings": timings, "growth": growth, "long_run": long_run, "replicates": twice,
        "omkr_on_naval": naval,
        "river": river, "peers": peer_records, "left_out": peers.unavailable(), "requirements": [],
    }  # fmt: skip
    results["requirements"] = requirements(results)
    results["seconds"] = time.perf_counter() - begin
    return cast(Results, rounded(results))


def measure_floor(effort: Effort, tick: Tick) -> tuple[Peaks, list[Record]]:
    """Peak rates and rounds, measured alternately so that both see the same machine load; the best of each counts."""
    turns = 6
    peaks: Peaks = {}
    best: dict[tuple[str, int], tuple[float, float]] = {}
    for _ in range(turns):
        new = floor.measured(effort.seconds / 4)
        peaks = {name: min(peaks.get(name, now), now) for name, now in new.items()}
        for learner in COMPARED:
            for d in (5, 15):
                shape = BASE._replace(d=d)
                make_learner = LearnerFactory(learner, shape)
                X, y = timing.stream(effort.rows, d)
                elapsed = timing.best_time(make_learner, timing.run_chunk, X, y, effort.seconds / 2)
                online = make_learner()
                online.run(X, y)
                evaluated = online.evaluations / len(y)
                before = best.get((learner, d), (float("inf"), evaluated))
                best[learner, d] = min(before[0], 1e3 * elapsed), evaluated
        tick(1)
    lines: list[Record] = []
    for (learner, d), (elapsed, evaluated) in best.items():
        at_least = floor.of_round(peaks, evaluated, BASE.D, d)
        lines.append({"algorithm": timing.TITLES[learner], "d": d, "evaluated": evaluated, **at_least._asdict(),
                      "measured": elapsed, "share": at_least.least / elapsed})  # fmt: skip
    return peaks, lines


def compare_draws(learner: str, d: int, effort: Effort) -> Record:
    """Microseconds per sample with independent random features for each kernel, and with one draw shared by all."""
    X, y = timing.stream(effort.rows, d)
    elapsed = {
        draw: timing.best_time(
            LearnerFactory(learner, BASE._replace(d=d), draw=draw), timing.run_chunk, X, y, effort.seconds
        )
        for draw in get_args(Draw)
    }
    return {"algorithm": timing.TITLES[learner], "d": d, **elapsed}


def omkr_on_naval() -> float:
    """Processor seconds of OMKR, which stores every row, with 41 kernels on the paper's largest data set."""
    naval = load("naval")
    online = Online.make("omkr", Settings.paper(len(naval.y)), naval.X.shape[1])
    begin = time.thread_time()
    online.run(naval.X, naval.y)
    return time.thread_time() - begin


def compare_with_river(timings: list[Timing], d: int, effort: Effort, tick: Tick) -> Record:
    """SFG-MKL and river's RBFSampler pipeline on one stream, predicting and learning, 100 random features each."""
    X, y = timing.stream(effort.rows, d)
    few = slice(min(300, effort.rows))
    theirs = peers.river_rbf_time(X[few], y[few])
    ours = next(t["chunk"] for t in timings
                if t["algorithm"] == "SFG-MKL" and t["d"] == d and t["factor"] in ("", "d"))  # fmt: skip
    tick(1)
    return {"d": d, "omkl": ours, "river": theirs, "ratio": None if theirs is None else theirs / ours}


# Requirements


def requirements(results: Results) -> list[Requirement]:
    """The performance requirements of the engine, and whether this run meets them."""
    out: list[Requirement] = []

    def add(what: str, required: str, measured: str, holds: bool | None) -> None:
        out.append({"what": what, "required": required, "measured": measured, "holds": holds})

    at = {(line["algorithm"], line["d"]): line for line in results["floors"]}
    for algorithm, least in (("SFG-MKL", 0.45), ("Raker", 0.5)):
        for d in (5, 15):
            share = at[algorithm, d]["share"]
            add(f"{algorithm}, d = {d}: share of the floor", f"at least {least:.0%}", f"{share:.1%}", share >= least)
    for d in (5, 15):
        ratio = at["SFG-MKL-R", d]["measured"] / at["SFG-MKL", d]["measured"]
        add(f"SFG-MKL-R against SFG-MKL, d = {d}", "at most 1.6 times", f"{ratio:.2f} times", ratio <= 1.6)
    for t in results["timings"]:
        if t["algorithm"] == "SFG-MKL" and (not t["factor"] or (t["factor"], t["d"]) == ("d", 5)):
            more = t["row"] - t["chunk"]
            add(f"SFG-MKL row by row, d = {t['d']}", "at most 1.5 us more", f"{more:.2f} us more", more <= 1.5)
    for line in results["river"]:
        shown = "river is missing" if line["ratio"] is None else f"{line['ratio']:.0f} times"
        add(f"SFG-MKL faster than river's RBF pipeline, d = {line['d']}", "400 times", shown,
            None if line["ratio"] is None else line["ratio"] >= 400)  # fmt: skip
    ratio = results["least_squares"]["measured"] / results["least_squares"]["floor"]
    add("GraphMKL's least-squares step", "at most 2.5 floors", f"{ratio:.2f} floors", ratio <= 2.5)
    seconds = results["omkr_on_naval"]
    add("OMKR on naval, 41 kernels", "at most 5 s", "naval not found" if seconds is None else f"{seconds:.1f} s",
        None if seconds is None else seconds <= 5)  # fmt: skip
    twice = results["replicates"]
    if twice is None:
        add("Replicates on two cores", "1.8 times", "only one core", None)
    else:
        shown = f"{twice['gain']:.2f} times" + (
            "" if twice["free"] else f", but only {twice['got']:.2f} cores were free"
        )
        add(f"{twice['replicates']} replicates on two cores", "at least 1.8 times", shown,
            twice["gain"] >= 1.8 or (None if not twice["free"] else False))  # fmt: skip
    long_run = results["long_run"]
    change = long_run["microseconds"][-1] / long_run["microseconds"][0] - 1
    last = f"t = 10^{len(str(long_run['t'][-1])) - 1}"
    add(f"Time per sample at {last} against 10^4", "within 5 %", f"{change:+.1%}", abs(change) <= 0.05)
    more = long_run["resident"][-1] - long_run["resident"][0]
    add(f"Resident memory at {last} against 10^4", "unchanged", f"{more / 1e3:+.0f} kB", abs(more) < 1_000_000)
    return out


def rounded(value: Any) -> Any:
    """All numbers rounded to five significant digits."""
    if isinstance(value, float):
        return brief(value)
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value
