"""Writes the generated pages, the generated parts of other pages, and the pictures: python -m omkl_lab.readme

Fills the text between markers from the files in results/ and one run of the command line, and draws
docs/pictures. It measures nothing: docs/reproduction.md says how its results are made, and the other markers name
the command that measures.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from omkl.persist import write_atomically
from omkl_lab import (
    ablation,
    categories,
    coverage,
    draws,
    explanations,
    fleets,
    forecasts,
    interfaces,
    one_hot,
    passes,
    pauses,
    pooling,
    rare,
    recovery,
    regret,
    related,
    selection,
    serve_load,
    targets,
    wide,
)
from omkl_lab.bench import table as bench
from omkl_lab.comparison import page as comparison
from omkl_lab.comparison.drawings import drawings as drawn
from omkl_lab.comparison.job import RESULTS, records_of, starts_of
from omkl_lab.comparison.learners import LIGHTGBM
from omkl_lab.comparison.outcome import PREFIX
from omkl_lab.comparison.results import BOOSTED, Cells, best, measure, ours, streaming, summarised
from omkl_lab.files import read_json, read_lines
from omkl_lab.markdown import filled, part, table
from omkl_lab.mutants import page as mutants
from omkl_lab.peers.showing import NOTHING, bold, read, time_shown, value
from omkl_lab.pictures import drawings
from omkl_lab.reproduce import page_parts, readings
from omkl_lab.reproduce.results import case_id
from omkl_lab.unseen import page as unseen

REPRODUCTION = Path("results/reproduction.jsonl")
PICTURES = Path("docs/pictures")
COMMAND = "python -m omkl_lab.readme"


# Comparison with other learners

UNITS = (
    "Squared error x 1e-3 of the targets' squared range (unscaled on the last four streams, which are generated), or "
    f"wrong labels in %; medians over the seeds. {NOTHING}: not measured."
)


def comparison_table(cells: Cells) -> str:
    """For every stream: GraphMKL, refitted LightGBM and the best streaming peer."""
    rows = []
    for name, there in cells.items():
        us = ours(there)
        if us is None:
            continue
        what, show = measure(us), comparison.scaled(name, us)
        boosted, peer = best(there, BOOSTED, what), best(there, streaming(there), what)
        found = [us[what], boosted and boosted[1], peer and peer[1]]
        least = show(min(v for v in found if v is not None))
        numbers = [NOTHING if v is None else bold(show(v), least) for v in found]
        light = value(there.get(LIGHTGBM), "microseconds")
        times = f"{time_shown(us['microseconds'])} / {time_shown(light) if light else NOTHING}"
        rows.append([name, *numbers, peer[0] if peer else NOTHING, times])
    head = ["", "GraphMKL", "LightGBM, refitted", "streaming learner", "its name", "µs per row, GraphMKL / LightGBM"]
    return table(head, rows)


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
    return f"```sh\npython {SALES} > data.csv\n{' '.join(words)}\n```\n\n```text\n{output}\n```"


# Files


def pages(project: Path, run: str | None = None) -> dict[Path, str]:
    """The generated pages, the pages with generated parts, and the pictures, by path.

    The run of the command line in the README stays unchanged if `run` is None.
    """
    records = records_of(project / RESULTS)
    whole, first = summarised(records), summarised(records, PREFIX)
    measured = {case_id(cell): cell for cell in read_lines(project / REPRODUCTION)}
    in_readme = {
        "peers": "\n\n".join(
            [
                *comparison.losses(whole, first),
                comparison.tally(whole),
                "<details><summary>Every stream</summary>",
                UNITS,
                comparison_table(whole),
                "</details>",
            ]
        ),
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
        (selection.PAGE, selection.COMMAND, selection.quoted(read_lines(project / selection.RESULTS))),
        (categories.PAGE, categories.COMMAND, categories.quoted(read_json(project / categories.RESULTS))),
        (interfaces.PAGE, interfaces.COMMAND, interfaces.quoted(read_json(project / interfaces.RESULTS))),
        (one_hot.PAGE, one_hot.COMMAND, one_hot.quoted(read_json(project / one_hot.RESULTS))),
        (passes.PAGE, passes.COMMAND, passes.quoted(read_json(project / passes.RESULTS))),
        (pauses.PAGE, pauses.COMMAND, pauses.quoted(read_json(project / pauses.RESULTS))),
        (targets.PAGE, targets.COMMAND, targets.quoted(read_json(project / targets.RESULTS))),
        (wide.PAGE, wide.COMMAND, wide.quoted(read_json(project / wide.RESULTS))),
        (fleets.PAGE, fleets.COMMAND, fleets.quoted(read_json(project / fleets.RESULTS))),
        (pooling.PAGE, pooling.COMMAND, pooling.quoted(read_json(project / pooling.RESULTS))),
        (coverage.PAGE, coverage.COMMAND, coverage.quoted(read_json(project / coverage.RESULTS))),
        (related.PAGE, related.COMMAND, related.quoted(read_json(project / related.RESULTS))),
        (rare.PAGE, rare.COMMAND, rare.quoted(read_json(project / rare.RESULTS))),
        (serve_load.PAGE, serve_load.COMMAND, serve_load.quoted(read_json(project / serve_load.RESULTS))),
        (explanations.PAGE, explanations.COMMAND, explanations.quoted(read_json(project / explanations.RESULTS))),
        (forecasts.PAGE, forecasts.COMMAND, forecasts.quoted(read_json(project / forecasts.RESULTS))),
    )
    texts: dict[Path, str] = {}  # a page may have parts of several commands
    for page, command, parts in written:
        path = project / page
        texts[path] = filled(texts[path] if path in texts else path.read_text(encoding="utf-8"), parts, command)
    return {
        project / comparison.PAGE: comparison.page(records, starts_of(project / RESULTS)),
        project / unseen.PAGE: unseen.page(read(project / unseen.RESULTS)),
        project / bench.PAGE: bench.page(read_json(project / bench.RESULTS)),
        project / draws.PAGE: draws.page(read_json(project / draws.RESULTS)),
        project / regret.PAGE: regret.page(read_json(project / regret.RESULTS)),
        project / recovery.PAGE: recovery.page(read_json(project / recovery.RESULTS)),
        **texts,
        **{project / PICTURES / name: drawing for name, drawing in {**drawings(project), **drawn(records)}.items()},
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
