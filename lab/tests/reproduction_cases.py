"""Small cases of the reproduction, and results as published, that the tests share."""

from pathlib import Path
from typing import Any

from omkl_lab.configurations import Configuration
from omkl_lab.reproduce.experiments import printed
from omkl_lab.reproduce.measure import measure
from omkl_lab.reproduce.results import Result, cases
from omkl_lab.streams import Stream, mixture

CONFIGURATIONS = [
    Configuration("omkr", "exact kernels", {"kernels": "paper-omkr"}),
    Configuration("raker", "every kernel", {}),
    Configuration("omkl-gf", "frozen, step / q", {"freeze_after": 300}),
    Configuration("sfg-mkl", "commit first", {"commit": "first"}),
    Configuration("sfg-mkl-r", "commit never", {}),
]


def untimed(lines: list[Any]) -> list[Any]:
    """The results without the times, which differ from run to run."""
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def measured(out: Path, jobs: int = 2, runs: int = 3, stream: Stream | None = None, **options: Any) -> list[Result]:
    out.mkdir(exist_ok=True)
    return measure(cases([stream or mixture(350, 0)], CONFIGURATIONS, runs, seed=5), out, jobs, **options)[0]


def published_line(dataset: str, algorithm: str, variant: str, **changes: Any) -> Result:
    """A result that is exactly the published one."""
    paper = printed(dataset, algorithm)
    assert paper is not None
    line: Any = {
        "dataset": dataset, "algorithm": algorithm, "variant": variant, "runs": 50, "mse": paper.mse, "mse_std": 0.001,
        "seconds": paper.seconds, "diverged": False, "paper_mse": paper.mse, "paper_seconds": paper.seconds,
    }  # fmt: skip
    return {**line, **changes}
