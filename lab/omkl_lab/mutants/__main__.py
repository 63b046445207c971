"""Plants faults and runs the tests on each: python -m omkl_lab.mutants, or make mutants

Needs cosmic-ray: pip install -e 'lab[mutants]'. The tests of a package are collected once. Each fault is planted in a
fork of that process, which runs the tests, the quickest first, until one fails. Doctests do not count.
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
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from omkl_lab.mutants.packages import PACKAGES
from omkl_lab.mutants.planting import Mutant, sampled
from omkl_lab.mutants.transplant import transplant

RESULTS = Path("results/mutants.jsonl")
SECONDS = 5  # of processor time, beside twice what all tests take: a fault that takes longer has been noticed
OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "-m", "not slow and not soak and not pages")


class Planting:
    """A plugin of pytest that runs the collected tests once for every fault, each time in a fork."""

    def __init__(self, name: str, mutants: list[Mutant], out: Path) -> None:
        self.name, self.mutants, self.out = name, mutants, out

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        order = self.quickest_first(session)
        limit = SECONDS + 2 * int(sum(order.values()))
        session.items.sort(key=lambda item: order[item.nodeid])
        for mutant in self.mutants:
            source = mutant.source()
            outcome = in_a_fork(partial(plant_and_run, mutant.module, source, session), limit)
            before, after = mutant.change(source)
            line = mutant.key() | {"package": self.name, "outcome": outcome, "before": before, "after": after}
            others = [kept for kept in read(self.out) if not is_of(mutant, kept)]
            self.out.write_text("".join(json.dumps(each) + "\n" for each in (*others, line)), encoding="utf-8")
            print(outcome, mutant.path, mutant.start[0], "|", after, flush=True)
        return True

    def quickest_first(self, session: pytest.Session) -> dict[str, float]:
        """How long each test takes; all must pass without a fault."""
        with tempfile.TemporaryDirectory() as folder:
            times = Path(folder) / "times.json"
            if in_a_fork(lambda: times.write_text(json.dumps(dict(run(session))))) != "survived":
                raise SystemExit(f"{self.name}: its tests fail without a fault; run make test")
            found: dict[str, float] = json.loads(times.read_text())
        print(f"{self.name}: {len(found)} tests, {sum(found.values()):.0f} seconds", flush=True)
        return found


def run(session: pytest.Session) -> list[tuple[str, float]]:
    """Run all tests; the process ends with the first that fails."""
    times = []
    for k, item in enumerate(session.items):
        start = sum(os.times()[:4])  # of this process and of those that it has started
        following = session.items[k + 1] if k + 1 < len(session.items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            os._exit(1)
        times.append((item.nodeid, sum(os.times()[:4]) - start))
    return times


def plant_and_run(module: str, source: str, session: pytest.Session) -> None:
    transplant(module, source)
    run(session)


def in_a_fork(work: Callable[[], object], limit: int | None = None) -> str:
    """ "survived" if the work comes to its end, "timeout" if it takes too long, else "killed"."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if limit is not None:
                used = int(time.process_time())
                resource.setrlimit(resource.RLIMIT_CPU, (used + limit, used + limit + 5))
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGXCPU else "killed"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def is_of(mutant: Mutant, line: dict[str, object]) -> bool:
    return mutant.key().items() <= line.items()


def plant(name: str, size: int, seed: int, out: Path, survivors: bool) -> int:
    """The exit code of pytest."""
    os.environ["HYPOTHESIS_PROFILE"] = "quick"
    mutants = sampled(PACKAGES[name], size, seed)
    if survivors:
        alive = [line for line in read(out) if line["outcome"] == "survived"]
        mutants = [mutant for mutant in mutants if any(is_of(mutant, line) for line in alive)]
    tests = [test for test in PACKAGES[name].tests if Path(test).exists()]
    return int(pytest.main([*OPTIONS, *tests], plugins=[Planting(name, mutants, out)]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m omkl_lab.mutants", description=__doc__)
    parser.add_argument("packages", nargs="*", help=f"all unless named: {', '.join(PACKAGES)}")
    parser.add_argument("--size", type=int, default=100, help="faults for each package, at most")
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
