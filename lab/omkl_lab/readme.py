"""Writes the generated pages, the generated parts of other pages, and the pictures: python -m omkl_lab.readme

Fills the text between markers from the files in results/ and one run of the command line, and draws
docs/pictures. It measures nothing: docs/reproduction.md says how its results are made, and the other markers name
the command that measures.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from omkl.persist import write_atomically
from omkl_lab import (
    ablation,
    categories,
    coverage,
    draws,
    fleets,
    forecasts,
    interfaces,
    one_hot,
    rare,
    recovery,
    targets,
    wide,
)
from omkl_lab.bench import table as bench
from omkl_lab.configurations import MATCHING
from omkl_lab.files import read_json, read_lines
from omkl_lab.markdown import filled, part, table
from omkl_lab.mutants import page as mutants
from omkl_lab.peers import page as peers
from omkl_lab.peers.page import (
    TUNED_ON,
    US,
    Results,
    best_peer,
    by_stream,
    digits,
    losses,
    of_task,
    read,
    thousandths,
    time_shown,
    value,
)
from omkl_lab.pictures import drawings
from omkl_lab.reproduce import page_parts, readings
from omkl_lab.reproduce.results import CaseId, Result, case_id
from omkl_lab.unseen import page as unseen

REPRODUCTION = Path("results/reproduction.jsonl")
PICTURES = Path("docs/pictures")
COMMAND = "python -m omkl_lab.readme"


# Comparison with peers


def comparison_table(results: Results, measured: Mapping[CaseId, Result]) -> str:
    """For every data set and drifting stream: the paper's best result, GraphMKL and the best peer."""
    sets = of_task(results, "numbers")
    rows = []
    for name, cells in {**sets, **of_task(results, "drift")}.items():
        us, peer = value(cells.get(US), "mse"), best_peer(cells, "mse")
        if us is None or peer is None:
            continue
        shown = thousandths if name in sets else digits
        published = [
            found for algorithm in MATCHING
            if (cell := measured.get((name, algorithm, MATCHING[algorithm].form))) and (found := cell["paper_mse"])
        ]  # fmt: skip
        ours, theirs = shown(us), shown(peer[1])
        least = shown(min(us, peer[1]))
        times = f"{time_shown(cells[US]['microseconds'])} / {time_shown(cells[peer[0]]['microseconds'])}"
        rows.append([
            name if name in TUNED_ON else f"{name} *",
            shown(min(published)) if published else "",
            *(f"**{number}**" if number == least else number for number in (ours, theirs)),
            peer[0],
            times,
        ])  # fmt: skip
    return table(["", "paper's best", "GraphMKL", "best peer", "name", "microseconds, GraphMKL / peer"], rows)


def tally(results: Results) -> str:
    """On how many streams GraphMKL has a smaller error than every peer."""
    sets = {**of_task(results, "numbers"), **of_task(results, "drift")}
    pairs = [(value(cells.get(US), "mse"), best_peer(cells, "mse")) for cells in sets.values()]
    both = [(us, peer[1]) for us, peer in pairs if us is not None and peer is not None]
    ahead = sum(us < peer for us, peer in both)
    return f"GraphMKL has the smallest error on {ahead} of {len(both)}."


# A run of the command line

SALES = "examples/prices.py"


def command_line() -> str:
    """The output of `omkl run` on the sales that examples/prices.py generates."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        with data.open("w") as out:
            subprocess.run([sys.executable, SALES], stdout=out, check=True)
        words = ["omkl", "run", "data.csv", "--target", "price", "--model", "price.omkl"]
        run = subprocess.run(
            [sys.executable, "-c", "from omkl.cli import main; main()", *words[1:]],
            cwd=folder, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"},
        )  # fmt: skip
    lines = (row.rstrip() for row in run.stdout.splitlines() if not row.startswith("speed"))  # speed varies
    output = "\n".join(lines)
    return f"```\n$ python {SALES} > data.csv\n$ {' '.join(words)}\n{output}\n```"


# Files


def pages(project: Path, run: str | None = None) -> dict[Path, str]:
    """The generated pages, the pages with generated parts, and the pictures, by path.

    The run of the command line in the README stays unchanged if `run` is None.
    """
    records = read(project / peers.RESULTS)
    results = by_stream(records)
    measured = {case_id(cell): cell for cell in read_lines(project / REPRODUCTION)}
    in_readme = {
        "peers": f"{comparison_table(results, measured)}\n{tally(results)} Where it is worse:\n\n"
        + "\n".join(losses(results)),
        "unseen": unseen.in_a_sentence(read(project / unseen.RESULTS)),
        "paper": page_parts.of_the_paper(measured),
    }
    if run is not None:
        in_readme["run"] = run
    written = (
        (Path("README.md"), COMMAND, in_readme),
        (
            Path("docs/reproduction.md"),
            COMMAND,
            page_parts.in_reproduction(
                measured, read_json(project / "results/theory.json"), read_lines(project / "results/sweeps.jsonl")
            ),
        ),
        (
            Path("docs/deviations.md"),
            COMMAND,
            page_parts.in_deviations(measured, read_json(project / readings.RESULTS)),
        ),
        (mutants.PAGE, COMMAND, mutants.quoted(read_lines(project / mutants.RESULTS))),
        (ablation.PAGE, ablation.COMMAND, ablation.quoted(read_lines(project / ablation.RESULTS))),
        (categories.PAGE, categories.COMMAND, categories.quoted(read_json(project / categories.RESULTS))),
        (interfaces.PAGE, interfaces.COMMAND, interfaces.quoted(read_json(project / interfaces.RESULTS))),
        (one_hot.PAGE, one_hot.COMMAND, one_hot.quoted(read_json(project / one_hot.RESULTS))),
        (targets.PAGE, targets.COMMAND, targets.quoted(read_json(project / targets.RESULTS))),
        (wide.PAGE, wide.COMMAND, wide.quoted(read_json(project / wide.RESULTS))),
        (fleets.PAGE, fleets.COMMAND, fleets.quoted(read_json(project / fleets.RESULTS))),
        (coverage.PAGE, coverage.COMMAND, coverage.quoted(read_json(project / coverage.RESULTS))),
        (rare.PAGE, rare.COMMAND, rare.quoted(read_json(project / rare.RESULTS))),
        (forecasts.PAGE, forecasts.COMMAND, forecasts.quoted(read_json(project / forecasts.RESULTS))),
    )
    return {
        project / peers.PAGE: peers.page(records),
        project / unseen.PAGE: unseen.page(read(project / unseen.RESULTS)),
        project / bench.PAGE: bench.page(read_json(project / bench.RESULTS)),
        project / draws.PAGE: draws.page(read_json(project / draws.RESULTS)),
        project / recovery.PAGE: recovery.page(read_json(project / recovery.RESULTS)),
        **{project / page: filled((project / page).read_text(encoding="utf-8"), parts, command)
           for page, command, parts in written},
        **{project / PICTURES / name: drawing for name, drawing in drawings(project, results).items()},
    }  # fmt: skip


def quoted_run(project: Path) -> str:
    """The run of the command line that the README shows."""
    return part((project / "README.md").read_text(encoding="utf-8"), "run", COMMAND)


def main() -> None:
    for path, content in pages(Path(), command_line()).items():
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content.encode())
        print(path)


if __name__ == "__main__":
    main()
