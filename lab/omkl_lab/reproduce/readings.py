"""Other interpretations of the paper's text, and the stabilisers: python -m omkl_lab.reproduce.readings

Writes results/readings.json, which docs/deviations.md uses. Needs the paper's data sets (see `omkl-lab data`).
"""

from pathlib import Path
from typing import Any

import numpy as np

from omkl import algorithms
from omkl.algorithms.settings import Settings
from omkl.kernels import Gaussian
from omkl.online import Online
from omkl_lab.configurations import Configuration
from omkl_lab.data.sets import PAPER, load
from omkl_lab.files import brief, write_json
from omkl_lab.prequential import Features, run_once, runs_of
from omkl_lab.reproduce.theory.regret import node_distribution
from omkl_lab.streams import Stream

RESULTS = Path("results/readings.json")
SEEDS = 20
AS_LENGTHS = [Gaussian(10 ** ((i - 20) / 10)) for i in range(41)]
READINGS = {
    "Raker, bandwidth interpreted as the length scale": Configuration("raker", "", {"kernels": AS_LENGTHS}),
    "OMKR, the other learners' kernels": Configuration("omkr", "", {"kernels": "paper"}),
}
STABILISERS = {
    "none": Configuration("sfg-mkl", "", {}),
    "aware": Configuration("sfg-mkl", "", {"stabiliser": "aware"}),
    "floor": Configuration("sfg-mkl", "", {"stabiliser": "floor"}),
    "project, radius 10": Configuration("sfg-mkl", "", {"stabiliser": "project", "radius": 10.0}),
    "project, radius 1": Configuration("sfg-mkl", "", {"stabiliser": "project", "radius": 1.0}),
}


def summary(title: str, configuration: Configuration, stream: Stream, seeds: int = SEEDS) -> dict[str, Any]:
    """One row of a table: mean, least and largest MSE over the feature sets; no mean if a run diverged."""
    rows, d = stream.X.shape
    settings = configuration.settings(rows)
    problem = algorithms.problem(configuration.learner, settings, d)
    runs = [
        run_once(configuration, Features(d, seed).assign(problem, settings), stream, seed)
        for seed in range(runs_of(configuration, seeds))
    ]
    found = [run["mse"] for run in runs if run["mse"] is not None]
    return {
        "title": title, "dataset": stream.name, "runs": len(runs), "diverged": sum(run["diverged"] for run in runs),
        "mse": None if any(run["diverged"] for run in runs) else brief(float(np.mean(found))),
        "least": brief(min(found)) if found else None, "most": brief(max(found)) if found else None,
    }  # fmt: skip


def committed(stream: Stream) -> dict[str, Any]:
    """SFG-MKL after the round from which a node is fixed, seed 0.

    How often the argmax differs from that of the round before; and, with the first node fixed, the median
    probability q of its neighbours, which are evaluated in every round.
    """
    rows, d = stream.X.shape
    nodes, probabilities = [], []
    for commit in ("argmax", "first"):
        settings = Settings.paper(rows, commit=commit)
        online = Online.make("sfg-mkl", settings, d, 0)
        for x, y in zip(stream.X, stream.y.tolist(), strict=True):
            if online.t >= settings.commit_after:
                if commit == "argmax":
                    nodes.append(online.state.node)
                else:
                    p, A = node_distribution("sfg-mkl", online.problem, online.state)
                    probabilities.append((p @ A)[A[online.state.node]])
            online.learn_unchecked(x, y)
    return {
        "dataset": stream.name,
        "moves": brief(float(np.mean(np.diff(nodes) != 0))),
        "probability": brief(float(np.median(probabilities))),
    }


def main() -> None:
    streams = [load(name) for name in PAPER]
    results = {
        "seeds": SEEDS,
        "readings": [summary(title, who, stream) for title, who in READINGS.items() for stream in streams],
        "stabilisers": [summary(title, who, stream) for title, who in STABILISERS.items() for stream in streams],
        "held": [committed(stream) for stream in streams],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    write_json(RESULTS, results)


if __name__ == "__main__":
    main()
