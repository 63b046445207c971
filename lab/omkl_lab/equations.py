"""docs/equations.md: where each printed equation of the paper is computed, read off the source itself.

A computed left-hand side ends in its number, `# (15)` in Python and `// (15)` in C++.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PYTHON = (
    "src/omkl/kernels.py",
    "src/omkl/features.py",
    "src/omkl/graph.py",
    "src/omkl/losses.py",
    "src/omkl/algorithms/**/*.py",
    "lab/omkl_lab/reproduce/theory/*.py",
)
CPP = ("src/omkl/engine/**/*.hpp",)


class Equation(NamedTuple):
    label: str  # in the LaTeX source
    what: str
    formula: str


EQUATIONS = {
    "3": Equation("eq:24", "features z of x from D spectral draws psi_1, ..., psi_D of kernel i",
                  "z_i(x) = [sin(psi_1 . x), ..., sin(psi_D . x), cos(psi_1 . x), ..., cos(psi_D . x)] / sqrt(D)"),
    "4": Equation("eq:26", "what kernel i predicts", "f_i(x) = theta_i . z_i(x)"),
    "5": Equation("eq:4", "regularised loss of kernel i", "L_i = C(f_i(x), y) + lambda |theta_i|^2"),
    "6": Equation("eq:27", "combination of the kernels heard", "f(x) = sum_i w_i f_i(x) / sum_i w_i"),
    "7": Equation("eq:1", "how different two kernels are", "Delta(i, j) = integral of |kappa_i - kappa_j|^2"),
    "11": Equation("eq:28", "threshold gamma_i that leaves node i exactly M out-neighbours",
                   "(i, j) is an edge when Delta(i, j) <= gamma_i"),
    "12": Equation("eq:2", "law of the node I_t", "p_i = (1 - xi) u_i / U + xi [i in D] / |D|"),
    "13": Equation("eq:3", "prediction of SFG-MKL",
                   "f(x) = sum of w_i f_i(x) / sum of w_i, i over the out-neighbours of I_t"),
    "14": Equation("eq:5", "importance-weighted loss of kernel i", "l_i = L_i / q_i where i was heard, else 0"),
    "15": Equation("eq:6", "chance that kernel i is heard", "q_i = sum of p_j, j over the in-neighbours of i"),
    "16": Equation("eq:14", "importance-weighted loss of node i", "l^_i = C(f(x), y) / p_i where i = I_t, else 0"),
    "17": Equation("eq:7", "step of theta", "theta_i <- theta_i - eta grad l_i"),
    "18a": Equation("eq:8a", "weight of kernel i", "w_i <- w_i exp(-eta l_i)"),
    "18b": Equation("eq:8b", "weight of node i", "u_i <- u_i exp(-eta l^_i)"),
    "19": Equation("eq:10", "best function in hindsight", "f* = the best f_i*, f_i* = argmin of sum_t L(f(x_t))"),
    "20": Equation("eq:11", "stochastic regret", "sum_t E_t[L(f(x_t))] - sum_t L(f*(x_t))"),
    "21": Equation("eq:12", "bound of Theorem 3", "of the regret of SFG-MKL, from epsilon, C, L, 1/q and 1/q_bar"),
    "22": Equation("eq:15", "nodes that lead the refined graph",
                   "D' = {i : u_i / U >= (beta - xi / N) / (1 - xi)}"),
    "23": Equation("eq:16", "the leader nearest to kernel i", "d_i = argmin of Delta(i, j), j over D'"),
    "24": Equation("eq:17", "law of the node I_t on the refined graph", "p_i = (1 - xi) u_i / U + xi [i in D'] / |D'|"),
    "25": Equation("eq:19", "prediction of SFG-MKL-R", "as (13), on the refined graph"),
    "26": Equation("eq:18", "bound of Theorem 4", "of the regret of SFG-MKL-R, from epsilon, C, L and beta"),
}  # fmt: skip


class Place(NamedTuple):
    """A line of source that computes an equation."""

    path: str  # within the project
    line: int
    text: str


def tagged(patterns: Iterable[str]) -> dict[str, list[Place]]:
    """Every number at the end of a line of these files, with its places."""
    found: dict[str, list[Place]] = {}
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if tag := re.search(r"^(.*\S)\s+(?:#|//) ((?:\(\d+[ab]?\) ?)+)$", text):
                for number in re.findall(r"\d+[ab]?", tag[2]):
                    place = Place(path.relative_to(ROOT).as_posix(), line, tag[1].strip())
                    found.setdefault(number, []).append(place)
    return found


def page() -> str:
    """The text of docs/equations.md."""
    texts = {"Python": tagged(PYTHON), "C++": tagged(CPP)}
    lines = [
        "# From equation to line",
        "",
        "Written by `make equations` from the numbers at the ends of the lines; a test keeps it true. Numbers are the",
        "printed ones of the paper (arXiv 2102.04690), with the label in its LaTeX source beside them.",
    ]
    for number, (label, what, formula) in EQUATIONS.items():
        lines += ["", f"## ({number}) {what}", "", f"`{formula}` ({label})", ""]
        for language, found in texts.items():
            for path, line, text in found.get(number, []):
                lines.append(f"- {language} [{path}:{line}](../{path}#L{line}) `{text}`")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "equations.md").write_text(page(), encoding="utf-8")
