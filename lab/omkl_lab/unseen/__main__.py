"""Runs the comparison on further streams: python -m omkl_lab.unseen"""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from omkl.persist import write_atomically
from omkl_lab.parallel import Unit
from omkl_lab.peers.job import run_missing
from omkl_lab.unseen.job import LEARNERS, MAKERS, SEEDS, evaluate_by_name, progress_line
from omkl_lab.unseen.page import PAGE, RESULTS, page


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m omkl_lab.unseen",
        description="Compare GraphMKL with boosting and streaming learners on streams that need no files.",
    )
    add = parser.add_argument
    add("--streams", nargs="+", choices=MAKERS, default=list(MAKERS), metavar="NAME", help="by default all")
    add("--jobs", type=int, default=1, metavar="N", help="runs in parallel")
    add("--out", type=Path, default=RESULTS, metavar="FILE", help="results, appended as they become available")
    add("--docs", type=Path, default=PAGE, metavar="FILE", help="the page to write from the results")
    args = parser.parse_args(arguments)
    units = [
        Unit((f"{name} | {learner}",), evaluate_by_name, {"name": name, "learner": learner})
        for name in args.streams for learner in LEARNERS[MAKERS[name][1]]
    ]  # fmt: skip
    try:
        records = run_missing(units, args.out, args.jobs, SEEDS, Console(stderr=True), progress_line)
    except KeyboardInterrupt:
        print("interrupted; the same command resumes here", file=sys.stderr)
        return 130
    write_atomically(args.docs, page(records).encode())
    print(f"wrote {args.docs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
