"""Plants faults and runs the tests on each: python -m omkl_lab.mutants, or make mutants

Needs cosmic-ray: pip install -e 'lab[mutants]'. The tests of a package are collected once, and run once without a
fault. Each fault is planted in a fork of that process, which runs the tests that call the faulty function, the quickest
first, until one fails or some seconds have passed. Doctests do not count.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path

import pytest

from omkl_lab.mutants.packages import PACKAGES
from omkl_lab.mutants.planting import Mutant, every, sampled
from omkl_lab.mutants.selection import Calls, Place, callers
from omkl_lab.mutants.transplant import transplant

RESULTS = Path("results/mutants.jsonl")
ENOUGH = 8.0  # seconds of processor time of the tests that are run for a fault, the quickest that call the function
SECONDS = 5  # beside twice what these tests take; a fault that takes longer has been noticed
PATIENCE = 10  # seconds on the clock for each of processor time, for a fault that waits for ever
MEMORY = 4 << 30
OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "-m", "not slow and not soak and not pages")


class Planting:
    """A plugin of pytest that runs the collected tests once for every fault, each time in a fork."""

    def __init__(self, name: str, mutants: list[Mutant], out: Path) -> None:
        self.name, self.mutants, self.out = name, mutants, out
        self.calls = Calls(PACKAGES[name].paths())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        with self.calls.of(item.nodeid.partition("::")[0]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        with self.calls.of(item.nodeid):
            return (yield)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        seconds, called = self.without_a_fault(session)
        items = {item.nodeid: item for item in session.items}
        names = sorted(items, key=lambda name: seconds[name])
        self.calls.files.clear()
        for mutant in self.mutants:
            source = mutant.source()
            able = callers((str(mutant.path.resolve()), mutant.start[0]), names, called)
            together = accumulate(seconds[name] for name in able)
            chosen = [name for name, total in zip(able, together, strict=True) if total < ENOUGH] or able[:1]
            limit = SECONDS + 2 * int(sum(seconds[name] for name in chosen))
            work = partial(plant_and_run, mutant.module, source, session, [items[name] for name in chosen])
            outcome = in_a_fork(work, limit)
            before, after = mutant.change(source)
            line = mutant.key() | {"package": self.name, "outcome": outcome, "before": before, "after": after}
            others = [kept for kept in read(self.out) if not is_of(mutant, kept)]
            write([*others, line], self.out)
            print(outcome, len(chosen), mutant.path, mutant.start[0], "|", after, flush=True)
        return True

    def without_a_fault(self, session: pytest.Session) -> tuple[dict[str, float], dict[str, list[Place]]]:
        """How long each test takes, and what it calls; all must pass."""
        with tempfile.TemporaryDirectory() as folder:
            found = Path(folder) / "found.json"

            def observe() -> None:
                times = dict(run(session, session.items))
                found.write_text(json.dumps((times, self.calls.lines())))

            if in_a_fork(observe) != "survived":
                raise SystemExit(f"{self.name}: its tests fail without a fault; run make test")
            seconds, called = json.loads(found.read_text())
        print(f"{self.name}: {len(seconds)} tests, {sum(seconds.values()):.0f} seconds", flush=True)
        return seconds, {name: [(path, line) for path, line in lines] for name, lines in called.items()}


def run(session: pytest.Session, items: list[pytest.Item]) -> list[tuple[str, float]]:
    """Run these tests; the process ends with the first that fails."""
    times = []
    for item, following in zip(items, (*items[1:], None), strict=True):
        start = sum(os.times()[:4])  # of this process and of those that it has started
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            os.write(2, f"{item.nodeid} fails\n".encode())
            os._exit(1)
        times.append((item.nodeid, sum(os.times()[:4]) - start))
    return times


def plant_and_run(module: str, source: str, session: pytest.Session, items: list[pytest.Item]) -> None:
    transplant(module, source)
    run(session, items)


def in_a_fork(work: Callable[[], object], limit: int | None = None) -> str:
    """ "survived" if the work comes to its end, "timeout" if it takes too long, else "killed"."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if limit is not None:
                used = int(time.process_time())
                resource.setrlimit(resource.RLIMIT_CPU, (used + limit, used + limit + 5))
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                signal.alarm(PATIENCE * limit)
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM) else "killed"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write(lines: list[dict[str, object]], path: Path) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def is_of(mutant: Mutant, line: dict[str, object]) -> bool:
    return mutant.key().items() <= line.items()


def is_same(mutant: Mutant, line: dict[str, object]) -> bool:
    """Numbers are changed in two ways at the same place by the same operator."""
    return is_of(mutant, line) and mutant.change(mutant.source()) == (line["before"], line["after"])


def plant(name: str, size: int, seed: int, out: Path, survivors: bool) -> int:
    """The exit code of pytest."""
    os.environ["HYPOTHESIS_PROFILE"] = "quick"
    again = [line for line in read(out) if line["package"] == name and (line["outcome"] == "survived" or not survivors)]
    mutants = sampled(PACKAGES[name], size, seed)
    if survivors:
        mutants = [mutant for mutant in every(PACKAGES[name]) if any(is_same(mutant, line) for line in again)]
    write([line for line in read(out) if line not in again], out)
    tests = [test for test in PACKAGES[name].tests if Path(test).exists()]
    return int(pytest.main([*OPTIONS, *tests], plugins=[Planting(name, mutants, out)]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m omkl_lab.mutants", description=__doc__)
    parser.add_argument("packages", nargs="*", help=f"all unless named: {', '.join(PACKAGES)}")
    parser.add_argument("--size", type=int, default=40, help="faults for each package, at most")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--survivors", action="store_true", help="plant only what survived before, by the file")
    given = parser.parse_args()
    if len(given.packages) == 1:
        sys.exit(plant(given.packages[0], given.size, given.seed, given.out, given.survivors))
    for name in given.packages or PACKAGES:  # each in a process that has imported nothing else
        options = [f"--size={given.size}", f"--seed={given.seed}", f"--out={given.out}"]
        options += ["--survivors"] if given.survivors else []
        subprocess.run([sys.executable, "-m", "omkl_lab.mutants", name, *options], check=True)


if __name__ == "__main__":
    main()
