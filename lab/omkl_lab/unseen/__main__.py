"""python -m omkl_lab.unseen"""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from omkl.persist import write_atomically
from omkl_lab.parallel import Unit
from omkl_lab.peers.job import run_missing
from omkl_lab.unseen.job import LEARNERS, MAKERS, SEEDS, cell, told
from omkl_lab.unseen.page import PAGE, RESULTS, page


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m omkl_lab.unseen", description="GraphMKL beside simple peers, on streams that need no files."
    )
    add = parser.add_argument
    add("--streams", nargs="+", choices=MAKERS, default=list(MAKERS), metavar="NAME", help="all unless named")
    add("--jobs", type=int, default=1, metavar="N", help="cells at a time")
    add("--out", type=Path, default=RESULTS, metavar="FILE", help="results, added to as they come")
    add("--docs", type=Path, default=PAGE, metavar="FILE", help="the page to write from them")
    given = parser.parse_args(arguments)
    units = [
        Unit((f"{name} | {learner}",), cell, {"name": name, "learner": learner})
        for name in given.streams for learner in LEARNERS[MAKERS[name][1]]
    ]  # fmt: skip
    try:
        records = run_missing(units, given.out, given.jobs, SEEDS, Console(stderr=True), told)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    write_atomically(given.docs, page(records).encode())
    print(f"wrote {given.docs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
