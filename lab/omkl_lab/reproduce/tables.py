"""Tables of published and reproduced numbers, in Markdown, in LaTeX and for the terminal."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich import box
from rich.table import Table

from omkl_lab.configurations import MATCHING, is_matching
from omkl_lab.data.sets import SETS
from omkl_lab.markdown import escaped, table
from omkl_lab.reproduce.experiments import paper_tables
from omkl_lab.reproduce.results import Result

HEAD = ("algorithm", "form", "paper", "ours", "sd", "ratio", "paper s", "ours s", "faster", "verdict")


class Row(NamedTuple):
    """One result as text; `matching` if it is the form that reproduces the published column."""

    algorithm: str
    form: str
    paper: str
    ours: str
    sd: str
    ratio: str
    paper_seconds: str
    seconds: str
    faster: str
    verdict: str
    matching: bool


def row(r: Result) -> Row:
    matching = is_matching(r) and r["paper_mse"] is not None
    verdict = ""
    if r["diverged"]:
        verdict = "diverges"
    elif matching and r["mse"] is not None and r["paper_mse"] is not None:
        agrees = MATCHING[r["algorithm"]].agrees(r["mse"], r["paper_mse"])
        verdict = "as published" if agrees else "outside the tolerance"
    both = r["mse"] is not None and r["paper_mse"] is not None
    return Row(
        r["algorithm"], r["variant"],
        thousandths(r["paper_mse"]), "diverges" if r["diverged"] else thousandths(r["mse"]), thousandths(r["mse_std"]),
        f"{r['mse'] / r['paper_mse']:.3f}" if both and r["mse"] and r["paper_mse"] else "",
        "" if r["paper_seconds"] is None else f"{r['paper_seconds']:.2f}", seconds(r["seconds"]),
        "" if r["paper_seconds"] is None else f"{r['paper_seconds'] / max(r['seconds'], 1e-9):,.0f} x",
        verdict, matching,
    )  # fmt: skip


def thousandths(x: float | None) -> str:
    return "" if x is None else f"{1e3 * x:.2f}"


def seconds(x: float) -> str:
    """
    >>> seconds(2.31), seconds(0.0119)
    ('2.31', '0.0119')
    """
    return f"{x:.2f}" if x >= 1 else f"{x:.3g}"


def titles(results: Iterable[Result]) -> dict[str, str]:
    """Data sets in the order of the paper's tables, then the others, each with its heading."""
    here = list(dict.fromkeys(r["dataset"] for r in results))
    out = {t.dataset: f"Table {t.number}: {t.title}" for t in paper_tables() if t.dataset in here}
    return out | {name: SETS[name].title if name in SETS else name for name in here if name not in out}


def of(results: Sequence[Result], dataset: str) -> list[Result]:
    return [r for r in results if r["dataset"] == dataset]


def within(results: Iterable[Result]) -> tuple[int, int]:
    """How many published results are reproduced within the tolerance in their matching form, and of how many."""
    verdicts = [r.verdict for r in map(row, results) if r.matching]
    return verdicts.count("as published"), len(verdicts)


def markdown(results: Sequence[Result]) -> str:
    lines = [
        "MSE x 1e-3 (mean over the runs; OMKR has no randomness and runs once), sd between feature sets, seconds per",
        "run on one core. The paper has one number per algorithm, which is repeated for every form. A result is "
        "*diverged*",
        "when a run overflows or its MSE exceeds 1, the largest possible error of a constant in [0, 1].",
    ]
    for dataset, title in titles(results).items():
        runs = max(r["runs"] for r in of(results, dataset))
        lines += ["", f"## {escaped(title)}", "", f"{runs} random-feature sets", ""]
        rows = []
        for r in map(row, of(results, dataset)):
            cells = [escaped(c) for c in r[:-1]]
            rows.append([f"**{c}**" if r.matching and c else c for c in cells])
        lines.append(table(HEAD, rows, left=2))
    done, of_all = within(results)
    if of_all:
        lines += [
            "",
            f"In the matching form (bold) {done} of {of_all} published results are reproduced within the tolerance.",
        ]
    return "\n".join(lines) + "\n"


def sections(title: str, part: Any) -> str:
    """A section with notes and tables, for theory and sweeps."""
    lines = [f"# {title}", "", *(words + "\n" for words in part["words"])]
    for each in part["tables"]:
        lines += [f"## {each['title']}", "", *(words + "\n" for words in each["words"])]
        lines.append(table(each["head"], [[*map(escaped, cells)] for cells in each["rows"]], left=2))
    return "\n".join(lines)


def latex(results: Sequence[Result]) -> str:
    """Tables with booktabs, one per data set."""
    out = ["% needs \\usepackage{booktabs}"]
    for dataset, title in titles(results).items():
        out += ["", "\\begin{table}", f"\\caption{{{tex(title)} MSE $\\times 10^{{-3}}$.}}",
                "\\begin{tabular}{llrrrrrr}", "\\toprule",
                "algorithm & form & paper & ours & sd & ratio & paper (s) & ours (s) \\\\", "\\midrule"]  # fmt: skip
        out += [" & ".join(tex(c) for c in r[:8]) + " \\\\" for r in map(row, of(results, dataset))]
        out += ["\\bottomrule", "\\end{tabular}", "\\end{table}"]
    return "\n".join(out) + "\n"


def tex(text: str) -> str:
    """
    >>> tex("wine_white & 5 %")
    'wine\\\\_white \\\\& 5 \\\\%'
    """
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " "}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


def for_terminal(results: Sequence[Result], dataset: str, title: str) -> Table:
    out = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in HEAD[:2]:
        out.add_column(name, no_wrap=True)
    for name in (*HEAD[2:4], *HEAD[5:8]):
        out.add_column(name, justify="right", no_wrap=True)
    previous = ""
    for r in map(row, of(results, dataset)):
        ours = f"[red]{r.ours}[/]" if r.verdict == "diverges" else r.ours
        out.add_row(
            "" if r.algorithm == previous else r.algorithm, r.form, r.paper, ours, r.ratio, r.paper_seconds, r.seconds,
            style="bold" if r.matching else "",
        )  # fmt: skip
        previous = r.algorithm
    return out
