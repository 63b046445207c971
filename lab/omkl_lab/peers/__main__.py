"""Runs the comparison with other libraries: python -m omkl_lab.peers"""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from omkl_lab.peers import job


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m omkl_lab.peers",
        description="Compare omkl's learners with those of other libraries on the same streams.",
    )
    add = parser.add_argument
    add("--datasets", nargs="+", default=[], metavar="NAME", help="streams, or paths of CSV files; by default all")
    add("--learners", nargs="+", default=[], metavar="NAME", help="parts of learners' names; by default all")
    add("--rows", type=int, metavar="N", help="maximum rows of every stream")
    add("--seeds", type=int, default=10, metavar="N", help="seeds of omkl's learners; the median is reported")
    add("--jobs", type=int, default=1, metavar="N", help="runs in parallel")
    add(
        "--out",
        type=Path,
        default=Path("results/peers.jsonl"),
        metavar="FILE",
        help="results, appended as they become available",
    )
    add("--docs", type=Path, metavar="FILE", help="the page to write from the results")
    add("--fresh", action="store_true", help="repeat measurements that are already in the file")
    args = parser.parse_args(arguments)
    for name in ("rows", "seeds", "jobs"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    try:
        options = job.Options.checked(
            args.datasets, args.learners, rows=args.rows, seeds=args.seeds, jobs=args.jobs, out=args.out,
            docs=args.docs, fresh=args.fresh,
        )  # fmt: skip
        job.compare(options, Console(), Console(stderr=True))
    except KeyboardInterrupt:
        print("interrupted; the same command resumes here", file=sys.stderr)
        return 130
    except (OSError, ValueError, LookupError) as error:
        print(f"omkl: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
