"""The effect of one draw of random features shared by all Gaussian kernels, on every available data set.

OMKL_DATA=~/data python -m omkl_lab.draws
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omkl.algorithms.settings import Settings
from omkl.features import Draw
from omkl.online import Online
from omkl.persist import write_atomically
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.configurations import NAMES
from omkl_lab.data.sets import SETS, is_available, load
from omkl_lab.files import brief, write_json
from omkl_lab.parallel import Unit, run_parallel

RESULTS, PAGE = Path("results/draws.json"), Path("docs/draws.md")
LEARNERS: tuple[str, ...] = ("raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r")
DRAWS: tuple[Draw, ...] = ("independent", "shared")
SEEDS = 20
MAX_ROWS = 4000  # of a data set
COMMAND = "OMKL_DATA=~/data python -m omkl_lab.draws"


def errors(name: str, learner: str, draw: Draw, seeds: int = SEEDS, rows: int = MAX_ROWS) -> list[float]:
    """Mean squared error, or share of wrong labels, for every seed, with the library's defaults."""
    stream, labels = load(name), SETS[name].task == "classification"
    X, y = np.ascontiguousarray(stream.X[:rows]), stream.y[:rows]
    settings = Settings(draw=draw, loss="logistic" if labels else "squared")
    out = []
    for seed in range(seeds):
        f = Online.make(learner, settings, X.shape[1], seed).run(X, y)
        out.append(float(np.mean(np.sign(f) != y) if labels else np.mean((f - y) ** 2)))
    return out


def compare(name: str, learner: str) -> list[dict[str, Any]]:
    """Both draws with the same seeds, and their mean difference divided by its standard error."""
    independent, shared = (np.array(errors(name, learner, draw)) for draw in DRAWS)
    gap = shared - independent
    deviation = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    return [{
        "set": name, "task": SETS[name].task, "learner": NAMES[learner],
        "independent": brief(float(independent.mean())), "shared": brief(float(shared.mean())),
        "spread_independent": brief(float(independent.std(ddof=1))), "spread_shared": brief(float(shared.std(ddof=1))),
        "z": brief(float(gap.mean()) / deviation) if deviation > 0 else 0.0,
    }]  # fmt: skip


def page(results: Mapping[str, Any]) -> str:
    """The text of docs/draws.md."""
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
        "# Shared random features",
        "",
        f"Written by `{COMMAND}` from `results/draws.json`; do not edit.",
        "",
        "`Settings(draw=\"shared\")` draws the frequencies of all Gaussian kernels once, G, and kernel i has G / l_i. "
        "Each kernel's features keep their distribution, but the errors of the kernels are no longer independent. The "
        "engine detects proportional frequencies and computes G x once for all evaluated kernels "
        "([time saved](benchmark.md)).",
        "",
        f"Library defaults otherwise, {results['seeds']} seeds, at most {results['rows']} rows of a data set. "
        "Regression: "
        "MSE x 1e-3; classification: per cent of wrong labels. z is the mean difference divided by its standard error.",
        "",
        f"Summary: the ratio of the error with the shared draw to that with independent draws has median "
        f"{np.median(ratios):.3f} and ranges from {min(ratios):.3f} to {max(ratios):.3f}; it is worse by more than "
        "three "
        f"standard errors in {len(worse)} and better in {len(better)} of {len(lines)} rows. The standard deviation of "
        "the "
        f"error between seeds is {spread_ratio:.2f} times as large in the median, since an unlucky draw affects all "
        "kernels. The default is therefore `draw=\"independent\"`.",
        "",
        markdown.table(("data set", "learner", "independent", "shared", "ratio", "z"), rows, left=2),
    ])  # fmt: skip


def shown(line: Mapping[str, Any], draw: Draw) -> str:
    return f"{(100 if line['task'] == 'classification' else 1e3) * line[draw]:.2f}"


def main() -> None:
    units = [
        Unit((f"{name} | {learner}",), compare, {"name": name, "learner": learner})
        for name in SETS if is_available(name) for learner in LEARNERS
    ]  # fmt: skip
    found = {keys[0]: records[0] for keys, records in run_parallel(units, 2, prefer="processes")}
    results = {"command": COMMAND, "seeds": SEEDS, "rows": MAX_ROWS, "lines": [found[unit.keys[0]] for unit in units]}
    write_json(RESULTS, results)
    write_atomically(PAGE, page(results).encode())
    print(page(results))


if __name__ == "__main__":
    run_without_arguments("omkl_lab.draws", __doc__, main)
