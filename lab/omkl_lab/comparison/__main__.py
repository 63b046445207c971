"""Compares learners on real streams: python -m omkl_lab.comparison"""

import argparse
import ast
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from omkl.persist import write_atomically
from omkl_lab.comparison import job
from omkl_lab.comparison.learners import LEARNERS
from omkl_lab.comparison.page import page
from omkl_lab.comparison.streams import GROUPS, names_of
from omkl_lab.comparison.table import against_boosting
from omkl_lab.peers.showing import US


def settings_of(words: list[str]) -> dict[str, Any]:
    """Parameters from words such as evaluate=all.

    >>> settings_of(["evaluate=all", "n_features=50"])
    {'evaluate': 'all', 'n_features': 50}
    """
    out: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--set takes name=value, got {word!r}")
        try:
            out[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            out[name] = value
    return out


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m omkl_lab.comparison",
        description="Predict, then learn, row by row: GraphMKL and what people would use instead.",
    )
    add = parser.add_argument
    add(
        "sets",
        nargs="*",
        default=["real"],
        metavar="SET",
        help=f"names of sets or of groups ({', '.join(GROUPS)}, all)",
    )
    add(
        "--learners",
        nargs="+",
        default=[US],
        metavar="NAME",
        help="parts of learners' names, or all; by default GraphMKL",
    )
    add("--set", nargs="+", default=[], metavar="NAME=VALUE", help="parameters of GraphMKL")
    add("--seeds", type=int, metavar="N", help="by default 5 for GraphMKL, and what is usual for each peer")
    add("--rows", type=int, metavar="N", help="maximum rows of every set")
    add("--out", type=Path, default=job.RESULTS, metavar="FILE", help="results, appended as they become available")
    add("--peers", type=Path, default=job.RESULTS, metavar="FILE", help="results that the table also shows")
    add("--docs", type=Path, metavar="FILE", help="the page to write from the results; make readme draws its pictures")
    add("--fresh", action="store_true", help="repeat runs that are in the file already")
    args = parser.parse_args(arguments)
    console, stderr = Console(), Console(stderr=True)
    if not console.is_terminal:
        console.width = 200
    try:
        settings = settings_of(args.set)
        streams = job.available(names_of(args.sets), stderr)
        runs = list(job.planned(streams, chosen(args.learners), " ".join(sorted(args.set)), args.seeds, args.rows))
        records = job.run_missing(runs, settings, args.out, args.fresh, stderr)
        if args.peers.resolve() != args.out.resolve():
            records = [r for r in job.records_of(args.peers) if r["learner"] != US] + records
        console.print(against_boosting(records, streams))
        if args.docs is not None:
            write_atomically(args.docs, page(records, job.starts_of(args.out)).encode())
            console.print(f"wrote {args.docs}", highlight=False)
    except KeyboardInterrupt:
        print("interrupted; the same command resumes here", file=sys.stderr)
        return 130
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"omkl: {error}", file=sys.stderr)
        return 1
    return 0


def chosen(parts: list[str]) -> tuple[str, ...]:
    """The learners whose names contain one of these parts."""
    found: set[str] = set()
    for part in parts:
        some = {name for name in LEARNERS if part == "all" or part.lower() in name.lower()}
        if not some:
            raise ValueError(f"unknown learner {part!r}; choose from all, {', '.join(LEARNERS)}")
        found |= some
    return tuple(name for name in LEARNERS if name in found)


if __name__ == "__main__":
    sys.exit(main())
