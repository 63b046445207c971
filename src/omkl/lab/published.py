"""The paper's four tables: its numbers beside ours, every form of every algorithm.

    OMKL_DATA=folder python -m omkl.lab.published [--sets 20] [--json FILE]

The folder holds airfoil.csv, concrete.csv, wine_white.csv and naval.csv.
"""

import argparse
import os
from pathlib import Path
from typing import TypedDict

from rich import box
from rich.console import Console
from rich.table import Table

from omkl.lab.entrants import Entrant, entrants
from omkl.lab.files import write_json
from omkl.lab.patience import Patience
from omkl.lab.prequential import Score, score, sets_of
from omkl.lab.streams import read

DATA = ("airfoil", "concrete", "wine_white", "naval")

# MSE x 1e-3; RFOMKR's are commented out in the paper's source
PUBLISHED = {
    "OMKR": (28.32, 30.51, 21.95, 7.59),
    "RFOMKR": (355.63, 212.76, 251.54, 347.15),
    "Raker": (22.85, 26.02, 21.04, 6.82),
    "OMKL-GF": (30.41, 40.69, 23.95, 10.50),
    "SFG-MKL": (12.83, 21.56, 20.19, 4.35),
    "SFG-MKL-R": (12.81, 21.38, 20.20, 4.36),
}


class Results(TypedDict):
    command: str
    sets: int
    scores: dict[str, list[Score]]  # by data set


def everyone() -> list[Entrant]:
    """All entrants, the graph's learners also with Delta (7) taken in one dimension."""
    printed = entrants()
    flat = [
        Entrant(e.learner, f"{e.variant}, 1-D Delta", {**e.changes, "delta_dimension": 1})
        for e in printed
        if e.changes is not None and e.learner.startswith("sfg")
    ]
    return printed + flat


def run(folder: Path, sets: int, console: Console) -> Results:
    streams = [read(folder / f"{name}.csv") for name in DATA]
    rows = sum(len(stream.y) * sets_of(entrant, sets) for stream in streams for entrant in everyone())
    with Patience(rows, console) as patience:
        scores = {s.name: [score(entrant, s, sets, tick=patience.tick) for entrant in everyone()] for s in streams}
    return {"command": f"python -m omkl.lab.published --sets {sets}", "sets": sets, "scores": scores}


def show(results: Results, console: Console) -> None:
    title = f"MSE x 1e-3, mean over {results['sets']} random-feature sets"
    out = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    out.add_column("algorithm", no_wrap=True)
    out.add_column("form", no_wrap=True)
    for name in DATA:
        out.add_column(name, justify="right", no_wrap=True)
    for algorithm, published in PUBLISHED.items():
        out.add_row(algorithm, "published", *(f"{mse:.2f}" for mse in published), style="bold")
        for forms in zip(*(results["scores"][name] for name in DATA), strict=True):
            if forms[0]["algorithm"] == algorithm:
                cells = ["diverges" if s["mse"] is None else f"{1e3 * s['mse']:.2f}" for s in forms]
                out.add_row("", forms[0]["variant"], *cells)
        out.add_section()
    console.print(out)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m omkl.lab.published", description="The paper's tables beside ours.")
    parser.add_argument("--sets", type=int, default=20, metavar="N", help="random-feature sets to average over")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    options = parser.parse_args()
    if "OMKL_DATA" not in os.environ:
        parser.error("OMKL_DATA must name the folder with " + ", ".join(f"{name}.csv" for name in DATA))
    results = run(Path(os.environ["OMKL_DATA"]), options.sets, Console(stderr=True))
    if options.json is not None:
        write_json(options.json, results)
    show(results, Console())


if __name__ == "__main__":
    main()
