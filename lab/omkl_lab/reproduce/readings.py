"""Other readings of the paper's text, and the cures for long steps: python -m omkl_lab.reproduce.readings

Writes results/readings.json, which docs/deviations.md quotes. Needs the paper's data sets (`OMKL_DATA`, or fetched).
"""

from pathlib import Path
from typing import Any

import numpy as np

from omkl.kernels import Gaussian
from omkl.online import Online
from omkl.settings import Settings
from omkl_lab.data.sets import PAPER, load
from omkl_lab.entrants import Entrant
from omkl_lab.files import brief, write_json
from omkl_lab.prequential import Features, run_once, runs_of
from omkl_lab.reproduce.theory.regret import node_law
from omkl_lab.streams import Stream

RESULTS = Path("results/readings.json")
SEEDS = 20
AS_LENGTHS = [Gaussian(10 ** ((i - 20) / 10)) for i in range(41)]
READINGS = {
    "Raker, bandwidth read as the length scale": Entrant("raker", "", {"kernels": AS_LENGTHS}),
    "OMKR, the other learners' kernels": Entrant("omkr", "", {"kernels": "paper"}),
}
CURES = {
    "none": Entrant("sfg-mkl", "", {}),
    "aware": Entrant("sfg-mkl", "", {"stabiliser": "aware"}),
    "floor": Entrant("sfg-mkl", "", {"stabiliser": "floor"}),
    "project, radius 10": Entrant("sfg-mkl", "", {"stabiliser": "project", "radius": 10.0}),
    "project, radius 1": Entrant("sfg-mkl", "", {"stabiliser": "project", "radius": 1.0}),
}


def cell(title: str, entrant: Entrant, stream: Stream, seeds: int = SEEDS) -> dict[str, Any]:
    """One line of a table: mean, least and most MSE over the feature sets; no mean where one diverged."""
    rows, d = stream.X.shape
    settings = entrant.settings(rows)
    problem = settings.problem(entrant.learner, d)
    runs = [
        run_once(entrant, Features(d, seed).given_to(problem, settings), stream, seed)
        for seed in range(runs_of(entrant, seeds))
    ]
    found = [run["mse"] for run in runs if run["mse"] is not None]
    return {
        "title": title, "dataset": stream.name, "runs": len(runs), "diverged": sum(run["diverged"] for run in runs),
        "mse": None if any(run["diverged"] for run in runs) else brief(float(np.mean(found))),
        "least": brief(min(found)) if found else None, "most": brief(max(found)) if found else None,
    }  # fmt: skip


def held(stream: Stream) -> dict[str, Any]:
    """SFG-MKL after the round from which a node is held, seed 0.

    How often the argmax is another node than in the round before; and how likely the kernels are said to be heard
    that the first node, when it is the one held, makes heard in every round.
    """
    rows, d = stream.X.shape
    nodes, chances = [], []
    for commit in ("argmax", "first"):
        settings = Settings.paper(rows, commit=commit)
        online = Online.make("sfg-mkl", settings, d, 0)
        for x, y in zip(stream.X, stream.y.tolist(), strict=True):
            if online.t >= settings.commit_after:
                if commit == "argmax":
                    nodes.append(online.state.node)
                else:
                    p, A = node_law("sfg-mkl", online.problem, online.state)
                    chances.append((p @ A)[A[online.state.node]])
            online.tell(x, y)
    return {
        "dataset": stream.name,
        "moves": brief(float(np.mean(np.diff(nodes) != 0))),
        "chance": brief(float(np.median(chances))),
    }


def main() -> None:
    streams = [load(name) for name in PAPER]
    results = {
        "seeds": SEEDS,
        "readings": [cell(title, who, stream) for title, who in READINGS.items() for stream in streams],
        "cures": [cell(title, who, stream) for title, who in CURES.items() for stream in streams],
        "held": [held(stream) for stream in streams],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    write_json(RESULTS, results)


if __name__ == "__main__":
    main()
