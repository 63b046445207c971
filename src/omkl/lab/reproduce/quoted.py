"""What the README, docs/reproduction.md and docs/deviations.md quote of the reproduction."""

from collections.abc import Mapping

from omkl.lab.data.sets import PAPER
from omkl.lab.entrants import DEFAULTS, MATCHING
from omkl.lab.markdown import table
from omkl.lab.reproduce.results import Place, Result

TITLES = {name: name.replace("_", " ") for name in PAPER}
DIVERGES = "diverges"
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


def in_reproduction(measured: Mapping[Place, Result]) -> dict[str, str]:
    return {
        "matching": matching(measured),
        "held nodes": held_nodes(measured),
        "graph feedback": graph_feedback(measured),
    }
