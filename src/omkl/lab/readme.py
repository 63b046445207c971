"""What the README and docs/reproduction.md quote, and every picture: python -m omkl.lab.readme

Fills what stands between markers from results/peers.jsonl, results/reproduction.jsonl and one run of
the command line, and draws docs/pictures. results/reproduction.jsonl is made by

    omkl reproduce --defaults --out build/reproduction
    cp build/reproduction/results.jsonl results/reproduction.jsonl

with the paper's data sets at hand (`OMKL_DATA`, or fetched).
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from omkl.lab.data.sets import PAPER
from omkl.lab.entrants import DEFAULTS, MATCHING
from omkl.lab.files import read_lines
from omkl.lab.peers.page import (
    TUNED_ON,
    US,
    Results,
    best_peer,
    by_course,
    digits,
    losses,
    of_task,
    read,
    table,
    thousandths,
    time_shown,
    value,
)
from omkl.lab.pictures import drawings
from omkl.lab.reproduce.results import Place, Result, place
from omkl.persist import write_atomically

PEERS, REPRODUCTION = Path("results/peers.jsonl"), Path("results/reproduction.jsonl")
PICTURES = Path("docs/pictures")
COMMAND = "python -m omkl.lab.readme"
DIVERGES = "diverges"
TITLES = {name: name.replace("_", " ") for name in PAPER}


def between(name: str) -> tuple[str, str]:
    """The two markers of a part."""
    return f"<!-- {name}: made by {COMMAND} -->", f"<!-- end of {name} -->"


def filled(page: str, parts: Mapping[str, str]) -> str:
    """The page with these parts between their markers.

    >>> page = filled("a <!-- x: made by python -m omkl.lab.readme -->old<!-- end of x --> b", {"x": "new"})
    >>> page.splitlines()
    ['a <!-- x: made by python -m omkl.lab.readme -->', 'new', '<!-- end of x --> b']
    """
    for name, content in parts.items():
        start, end = between(name)
        if page.count(start) != 1 or page.count(end) != 1:
            raise ValueError(f"the page must hold {start} and {end} once each; put them back")
        head, rest = page.split(start)
        page = f"{head}{start}\n{content.strip()}\n{end}{rest.split(end)[1]}"
    return page


# Beside the peers


def beside_peers(results: Results, measured: Mapping[Place, Result]) -> str:
    """Every data set and changing stream: the paper's best, GraphMKL, the best peer."""
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
    return table(["", "paper's best", "GraphMKL", "best peer", "which", "microseconds, ours / its"], rows)


def tally(results: Results) -> str:
    """How often GraphMKL comes out ahead of every peer."""
    sets = {**of_task(results, "numbers"), **of_task(results, "drift")}
    pairs = [(value(cells.get(US), "mse"), best_peer(cells, "mse")) for cells in sets.values()]
    both = [(us, peer[1]) for us, peer in pairs if us is not None and peer is not None]
    ahead = sum(us < peer for us, peer in both)
    return f"GraphMKL has the smallest error on {ahead} of {len(both)}."


# The paper's learners

FIRST, ARGMAX, NEVER = "commit first, 1-D Delta", "commit argmax", "commit never"


def milli(cell: Result | None) -> str:
    if cell is None:
        return "-"
    return DIVERGES if cell["mse"] is None else f"{1e3 * cell['mse']:.2f}"


def published(measured: Mapping[Place, Result], name: str, algorithm: str) -> str:
    found = next((cell["paper_mse"] for (d, a, _), cell in measured.items() if (d, a) == (name, algorithm)), None)
    return "-" if found is None else f"{1e3 * found:.2f}"


def in_forms(measured: Mapping[Place, Result], rows: list[tuple[str, str, str | None]]) -> str:
    """Rows of (title, algorithm, form), form None for the paper's own numbers; the paper's sets across."""

    def cell(name: str, algorithm: str, form: str | None) -> str:
        return published(measured, name, algorithm) if form is None else milli(measured.get((name, algorithm, form)))

    lines = [[title, *(cell(name, algorithm, form) for name in TITLES)] for title, algorithm, form in rows]
    return table(["", *TITLES.values()], lines)


def of_the_paper(measured: Mapping[Place, Result]) -> str:
    return in_forms(
        measured,
        [
            ("Raker, paper", "Raker", None),
            ("Raker, here, paper's protocol", "Raker", MATCHING["Raker"].form),
            ("Raker, here, `Settings()`", "Raker", DEFAULTS),
            ("SFG-MKL-R, paper", "SFG-MKL-R", None),
            ("SFG-MKL-R, here, node 1 held after 300 rounds, 1-D distances", "SFG-MKL-R", FIRST),
            ("SFG-MKL-R, here, as the paper's text has it (argmax)", "SFG-MKL-R", ARGMAX),
            ("SFG-MKL-R, here, `Settings()`", "SFG-MKL-R", DEFAULTS),
        ],
    )


def matching(measured: Mapping[Place, Result]) -> str:
    """The form that matches each published column."""
    rows = []
    for algorithm, match in MATCHING.items():
        ours = {name: milli(measured.get((name, algorithm, match.form))) for name in TITLES}
        pairs = [f"{published(measured, name, algorithm)} / {ours[name]}" for name in TITLES]
        rows.append([f"{algorithm}: {match.form}", *pairs])
    return table(["paper / ours", *TITLES.values()], rows)


def held_nodes(measured: Mapping[Place, Result]) -> str:
    rows: list[tuple[str, str, str | None]] = []
    for algorithm, printed_as in (("SFG-MKL", "Algorithm 1"), ("SFG-MKL-R", "Algorithm 2")):
        rows += [
            (f"{algorithm}, published", algorithm, None),
            ("first node held", algorithm, "commit first"),
            ("first node held, Delta in one dimension", algorithm, FIRST),
            ("argmax, as the text has it", algorithm, ARGMAX),
            (f"none held, as {printed_as} is printed", algorithm, NEVER),
        ]
    return in_forms(measured, rows)


def graph_feedback(measured: Mapping[Place, Result]) -> str:
    forms = dict.fromkeys(form for _, algorithm, form in measured if algorithm == "OMKL-GF" and form != DEFAULTS)
    return in_forms(measured, [("published", "OMKL-GF", None), *((form, "OMKL-GF", form) for form in forms)])


# A run of the command line

SALES = "examples/prices.py"


def command_line() -> str:
    """What `omkl run` says of the sales that examples/prices.py makes up."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        with data.open("w") as out:
            subprocess.run([sys.executable, SALES], stdout=out, check=True)
        words = ["omkl", "run", "data.csv", "--target", "price", "--model", "price.omkl"]
        run = subprocess.run(
            [sys.executable, "-c", "from omkl.cli import main; main()", *words[1:]],
            cwd=folder, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"},
        )  # fmt: skip
    said = "\n".join(row.rstrip() for row in run.stdout.splitlines() if not row.startswith("speed"))  # of this machine
    return f"```\n$ python {SALES} > data.csv\n$ {' '.join(words)}\n{said}\n```"


# Files


def pages(project: Path, run: str | None = None) -> dict[Path, str]:
    """Every file this module writes; the run of the command line as the README has it where none is given."""
    results = by_course(read(project / PEERS))
    measured: dict[Place, Result] = {place(cell): cell for cell in read_lines(project / REPRODUCTION)}
    readme, reproduction = project / "README.md", project / "docs" / "reproduction.md"
    in_readme = {
        "peers": f"{beside_peers(results, measured)}\n{tally(results)} Where it loses:\n\n"
        + "\n".join(losses(results)),
        "paper": of_the_paper(measured),
    }
    if run is not None:
        in_readme["run"] = run
    in_reproduction = {
        "matching": matching(measured),
        "held nodes": held_nodes(measured),
        "graph feedback": graph_feedback(measured),
    }
    return {
        readme: filled(readme.read_text(encoding="utf-8"), in_readme),
        reproduction: filled(reproduction.read_text(encoding="utf-8"), in_reproduction),
        **{project / PICTURES / name: drawing for name, drawing in drawings(project, results).items()},
    }


def quoted_run(project: Path) -> str:
    """The run that the README shows."""
    start, end = between("run")
    found = re.search(f"{re.escape(start)}\n(.*?)\n{re.escape(end)}", (project / "README.md").read_text(), re.DOTALL)
    return found.group(1) if found else ""


def main() -> None:
    for path, content in pages(Path(), command_line()).items():
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content.encode())
        print(path)


if __name__ == "__main__":
    main()
