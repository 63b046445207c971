"""What one draw shared by all Gaussian kernels does to the learning, on every data set at hand.

OMKL_DATA=~/data python -m omkl_lab.draws
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omkl.features import Draw
from omkl.online import Online
from omkl.persist import write_atomically
from omkl.settings import LearnerName, Settings
from omkl_lab import markdown
from omkl_lab.data.sets import SETS, at_hand, load
from omkl_lab.entrants import NAMES
from omkl_lab.files import brief, write_json
from omkl_lab.parallel import Unit, spread

RESULTS, PAGE = Path("results/draws.json"), Path("docs/draws.md")
LEARNERS: tuple[LearnerName, ...] = ("raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r")
DRAWS: tuple[Draw, ...] = ("independent", "shared")
SEEDS = 20
MOST = 4000  # rows of a set
COMMAND = "OMKL_DATA=~/data python -m omkl_lab.draws"


def errors(name: str, learner: LearnerName, draw: Draw, seeds: int = SEEDS, rows: int = MOST) -> list[float]:
    """Mean squared error, or share of wrong labels, of every seed; the library's defaults."""
    stream, labels = load(name), SETS[name].task == "classification"
    X, y = np.ascontiguousarray(stream.X[:rows]), stream.y[:rows]
    settings = Settings(draw=draw, loss="logistic" if labels else "squared")
    out = []
    for seed in range(seeds):
        f = Online.make(learner, settings, X.shape[1], seed).run(X, y)
        out.append(float(np.mean(np.sign(f) != y) if labels else np.mean((f - y) ** 2)))
    return out


def cell(name: str, learner: LearnerName) -> list[dict[str, Any]]:
    """One line: both draws over the same seeds, and how their difference compares with its standard error."""
    apart, together = (np.array(errors(name, learner, draw)) for draw in DRAWS)
    gap = together - apart
    deviation = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    return [{
        "set": name, "task": SETS[name].task, "learner": NAMES[learner],
        "independent": brief(float(apart.mean())), "shared": brief(float(together.mean())),
        "spread_independent": brief(float(apart.std(ddof=1))), "spread_shared": brief(float(together.std(ddof=1))),
        "z": brief(float(gap.mean()) / deviation) if deviation > 0 else 0.0,
    }]  # fmt: skip


def page(results: Mapping[str, Any]) -> str:
    """docs/draws.md, a function of the file."""
    lines = results["lines"]
    ratios = [line["shared"] / line["independent"] for line in lines]
    worse = [line for line in lines if line["z"] > 3]
    better = [line for line in lines if line["z"] < -3]
    spread_ratio = float(np.median([line["spread_shared"] / line["spread_independent"] for line in lines]))
    rows = [
        (line["set"], line["learner"], shown(line, "independent"), shown(line, "shared"),
         f"{line['shared'] / line['independent']:.3f}", f"{line['z']:+.1f}")
        for line in lines
    ]  # fmt: skip
    return "\n".join([
        "# One draw for all Gaussian kernels",
        "",
        f"Written by `{COMMAND}` from `results/draws.json`; do not edit.",
        "",
        "`Settings(draw=\"shared\")` draws the frequencies of all Gaussian kernels once, G, and kernel i has G / l_i. "
        "Each kernel's features keep their law; what is lost is that the kernels' errors are independent. The engine "
        "sees that frequencies are proportional and takes G x once for all kernels heard "
        "([what that saves](benchmark.md)).",
        "",
        f"Library defaults otherwise, {results['seeds']} seeds, at most {results['rows']} rows of a set. Regression: "
        "MSE x 1e-3; labels: per cent wrong. z is the mean difference over its standard error; seeds give both draws "
        "different features, so that it says whether the draw matters beyond chance.",
        "",
        f"In short: error with the shared draw over that with independent ones is {np.median(ratios):.3f} in the "
        f"median, {min(ratios):.3f} to {max(ratios):.3f}; beyond three standard errors worse in {len(worse)} and "
        f"better in {len(better)} of {len(lines)} lines. From seed to seed errors spread {spread_ratio:.2f} times "
        "as much in the median: one unlucky draw is everybody's. So it is offered, and off unless asked for.",
        "",
        markdown.table(("set", "learner", "independent", "shared", "ratio", "z"), rows, left=2),
    ])  # fmt: skip


def shown(line: Mapping[str, Any], draw: Draw) -> str:
    return f"{(100 if line['task'] == 'classification' else 1e3) * line[draw]:.2f}"


def main() -> None:
    units = [
        Unit((f"{name} | {learner}",), cell, {"name": name, "learner": learner})
        for name in SETS if at_hand(name) for learner in LEARNERS
    ]  # fmt: skip
    found = {keys[0]: records[0] for keys, records in spread(units, 2, prefer="processes")}
    results = {"command": COMMAND, "seeds": SEEDS, "rows": MOST, "lines": [found[unit.keys[0]] for unit in units]}
    write_json(RESULTS, results)
    write_atomically(PAGE, page(results).encode())
    print(page(results))


if __name__ == "__main__":
    main()
