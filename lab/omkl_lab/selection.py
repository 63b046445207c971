"""Which experts to evaluate, at equal cost: python -m omkl_lab.selection

Writes results/selection.jsonl, and from it the table in docs/selection.md. Large experts are left out; every strategy
but "all" evaluates the same number of experts for a row.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern
from omkl_lab import markdown
from omkl_lab.ablation import one_run
from omkl_lab.commands import run_without_arguments
from omkl_lab.data.sets import load
from omkl_lab.files import write_lines

SETS = {"airfoil": None, "concrete": None, "wine_white": 2500, "bias": 2500}
SIZES = {12: 40, 32: 100, 99: 301}  # kernels, and the experts that they make
EVALUATED = 10  # experts for a row, after the warm-up
FAMILIES = (Gaussian, Laplacian, Matern, Cauchy)
GRAPH, UNIFORM, RANDOM, FEW, ALL = (
    "leaders, explorers by the graph",
    "leaders, explorers drawn uniformly",
    "random experts",
    "two kernels, all experts",
    "all experts",
)
STRATEGIES = (GRAPH, UNIFORM, RANDOM, FEW, ALL)
SEEDS = 2
RESULTS, PAGE = Path("results/selection.jsonl"), Path("docs/selection.md")
COMMAND = "python -m omkl_lab.selection"


def kernels(number: int) -> list[Kernel]:
    """Of four families in turn, from narrow to wide."""
    return [FAMILIES[i % len(FAMILIES)](float(scale)) for i, scale in enumerate(np.geomspace(0.1, 10.0, number))]


def settings(strategy: str, number: int) -> GraphSettings:
    chosen = kernels(number) if strategy != FEW else [Gaussian(0.3), Gaussian(2.0)]
    degree = max(1, number // 4) if strategy == GRAPH else 1
    evaluate = "all" if strategy in (ALL, FEW) else EVALUATED
    return GraphSettings(budget="small", kernels=chosen, evaluate=evaluate, out_degree=degree)


def measure() -> list[dict[str, Any]]:
    lines = []
    for name, rows in SETS.items():
        stream = load(name)
        for number, experts in SIZES.items():
            for strategy in STRATEGIES:
                if strategy == FEW and number != min(SIZES):
                    continue
                runs = [
                    one_run(settings(strategy, number), stream.X[:rows], stream.y[:rows], seed, strategy == RANDOM)
                    for seed in range(SEEDS)
                ]
                mse, micros, evaluated = np.median(np.array(runs), axis=0)
                line = {"dataset": name, "experts": experts, "strategy": strategy, "mse": mse,
                        "microseconds": round(micros, 1), "evaluated": round(evaluated, 1)}  # fmt: skip
                lines.append(line)
                print(f"{name:10} {experts:4} {strategy:36} {1e3 * mse:9.4f} {micros:6.0f}", file=sys.stderr)
    return lines


def quoted(lines: list[dict[str, Any]]) -> dict[str, str]:
    """The generated part of docs/selection.md."""
    return {"selection": f"{table(lines)}\n{reading(lines)}"}


def table(lines: list[dict[str, Any]]) -> str:
    rows = []
    for experts in SIZES.values():
        for strategy in STRATEGIES:
            own = [line for line in lines if (line["experts"], line["strategy"]) == (experts, strategy)]
            if own:
                cells = [f"{1e3 * line['mse']:.4g}" for line in own]
                timed = "" if strategy == RANDOM else f"{np.median([line['microseconds'] for line in own]):.0f}"
                rows.append([f"{experts}: {strategy}", *cells, timed])
    return markdown.table(("experts", *SETS, "us"), rows)


def reading(lines: list[dict[str, Any]]) -> str:
    mse = {(line["experts"], line["strategy"], line["dataset"]): line["mse"] for line in lines}
    out = []
    for experts in SIZES.values():
        ratios = {
            other: np.array([mse[experts, GRAPH, name] / mse[experts, other, name] for name in SETS])
            for other in (UNIFORM, RANDOM, ALL)
        }
        better = int((ratios[UNIFORM] < 1).sum())
        out.append(
            f"- **{experts} experts**: with the graph the error is {gap(ratios[UNIFORM])} that of uniform explorers "
            f"(smaller on {better} of {len(SETS)} sets), {gap(ratios[RANDOM])} that of random experts, and "
            f"{gap(ratios[ALL])} that of all experts."
        )
    return "\n".join(out)


def gap(ratios: np.ndarray) -> str:
    return f"{np.exp(np.log(ratios).mean()):.2f} times"


def main() -> None:
    lines = measure()
    RESULTS.parent.mkdir(exist_ok=True)
    write_lines(RESULTS, lines)
    markdown.fill(PAGE, quoted(lines), COMMAND)


if __name__ == "__main__":
    run_without_arguments("omkl_lab.selection", __doc__, main)
