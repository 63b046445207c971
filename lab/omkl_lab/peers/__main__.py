"""python -m omkl_lab.peers"""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from omkl_lab.peers import job


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m omkl_lab.peers", description="Compare our learners with streaming peers on the same streams."
    )
    add = parser.add_argument
    add("--datasets", nargs="+", default=[], metavar="NAME", help="courses, or paths of CSV files; all unless named")
    add("--learners", nargs="+", default=[], metavar="NAME", help="parts of learners' names; all unless named")
    add("--rows", type=int, metavar="N", help="most rows of every course")
    add("--seeds", type=int, default=10, metavar="N", help="seeds of our learners, of which the median is kept")
    add("--jobs", type=int, default=1, metavar="N", help="cells at a time")
    add("--out", type=Path, default=Path("results/peers.jsonl"), metavar="FILE", help="results, added to as they come")
    add("--docs", type=Path, metavar="FILE", help="the page to write from them")
    add("--fresh", action="store_true", help="measure again what the file has already")
    given = parser.parse_args(arguments)
    for name in ("rows", "seeds", "jobs"):
        if getattr(given, name) is not None and getattr(given, name) < 1:
            parser.error(f"--{name} must be at least 1")
    try:
        options = job.Options.checked(
            given.datasets, given.learners, rows=given.rows, seeds=given.seeds, jobs=given.jobs, out=given.out,
            docs=given.docs, fresh=given.fresh,
        )  # fmt: skip
        job.compare(options, Console(), Console(stderr=True))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    except (OSError, ValueError, LookupError) as error:
        print(f"omkl: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
