"""The generated parts of README, docs/reproduction.md and docs/deviations.md about the reproduction."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from omkl_lab.configurations import DEFAULTS, MATCHING, NAMES
from omkl_lab.data.sets import PAPER
from omkl_lab.markdown import table
from omkl_lab.reproduce import claims
from omkl_lab.reproduce.parameter_sweeps import Sweep, shown
from omkl_lab.reproduce.results import CaseId, Result
from omkl_lab.reproduce.tables import seconds, within

TITLES = {name: name.replace("_", " ") for name in PAPER}
DIVERGES = "diverges"
FIRST, ARGMAX, NEVER = "commit first, 1-D Delta", "commit argmax", "commit never"


def milli(cell: Result | None) -> str:
    if cell is None:
        return "-"
    return DIVERGES if cell["mse"] is None else f"{1e3 * cell['mse']:.2f}"


def published(measured: Mapping[CaseId, Result], name: str, algorithm: str) -> str:
    found = next((cell["paper_mse"] for (d, a, _), cell in measured.items() if (d, a) == (name, algorithm)), None)
    return "-" if found is None else f"{1e3 * found:.2f}"


def in_forms(measured: Mapping[CaseId, Result], rows: list[tuple[str, str, str | None]]) -> str:
    """A row for each (title, algorithm, form), a column for each of the paper's data sets; form None: published."""

    def cell(name: str, algorithm: str, form: str | None) -> str:
        return published(measured, name, algorithm) if form is None else milli(measured.get((name, algorithm, form)))

    lines = [[title, *(cell(name, algorithm, form) for name in TITLES)] for title, algorithm, form in rows]
    return table(["", *TITLES.values()], lines)


def of_the_paper(measured: Mapping[CaseId, Result]) -> str:
    return in_forms(
        measured,
        [
            ("Raker, paper", "Raker", None),
            ("Raker, here, paper's protocol", "Raker", MATCHING["Raker"].form),
            ("Raker, here, `Settings()`", "Raker", DEFAULTS),
            ("SFG-MKL-R, paper", "SFG-MKL-R", None),
            ("SFG-MKL-R, here, node 1 after 300 rounds, 1-D distances", "SFG-MKL-R", FIRST),
            ("SFG-MKL-R, here, argmax after 300 rounds (the paper's text)", "SFG-MKL-R", ARGMAX),
            ("SFG-MKL-R, here, `Settings()`", "SFG-MKL-R", DEFAULTS),
        ],
    )


def matching(measured: Mapping[CaseId, Result]) -> str:
    """The published numbers and ours in the form that matches them."""
    rows = []
    for algorithm, match in MATCHING.items():
        ours = {name: milli(measured.get((name, algorithm, match.form))) for name in TITLES}
        pairs = [f"{published(measured, name, algorithm)} / {ours[name]}" for name in TITLES]
        rows.append([f"{algorithm}: {match.form}", *pairs])
    done, of_all = within(list(measured.values()))
    tolerances = [
        (name, f"{m.within:g} x {m.unit}" if m.unit else f"{100 * m.within:g} %") for name, m in MATCHING.items()
    ]
    return (
        f"In the form that matches the published column, {done} of {of_all} results agree within the tolerance "
        f"({', '.join(f'{name} {tolerance}' for name, tolerance in tolerances)}):\n\n"
        + table(["paper / ours", *TITLES.values()], rows)
    )


def commit_rules(measured: Mapping[CaseId, Result]) -> str:
    rows: list[tuple[str, str, str | None]] = []
    for algorithm, printed_as in (("SFG-MKL", "Algorithm 1"), ("SFG-MKL-R", "Algorithm 2")):
        rows += [
            (f"{algorithm}, published", algorithm, None),
            ("first node", algorithm, "commit first"),
            ("first node, Delta in one dimension", algorithm, FIRST),
            ("argmax, as in the text", algorithm, ARGMAX),
            (f"no commitment, as {printed_as} is printed", algorithm, NEVER),
        ]
    return in_forms(measured, rows)


def graph_feedback(measured: Mapping[CaseId, Result]) -> str:
    forms = dict.fromkeys(form for _, algorithm, form in measured if algorithm == "OMKL-GF" and form != DEFAULTS)
    return in_forms(measured, [("published", "OMKL-GF", None), *((form, "OMKL-GF", form) for form in forms)])


def on_random_features(measured: Mapping[CaseId, Result]) -> str:
    return in_forms(
        measured,
        [
            ("RFOMKR, in the paper's source", "RFOMKR", None),
            ("RFOMKR, here", "RFOMKR", "random features"),
            ("OMKR, here", "OMKR", MATCHING["OMKR"].form),
        ],
    )


def longest_run(measured: Mapping[CaseId, Result]) -> str:
    cell = measured["naval", "OMKR", MATCHING["OMKR"].form]
    return f"OMKR on naval takes {seconds(cell['seconds'])} s; the paper's run took {cell['paper_seconds']:,.0f} s."


# Claims

RULES = {"first node": "commit first", "argmax (the text)": ARGMAX, "no commitment": NEVER}


def claimed(measured: Mapping[CaseId, Result], lines: Sequence[Sweep]) -> str:
    """The claims about error and time for each commit rule, and the claim about OMKL-GF."""
    found = claims.claims(list(measured.values()), [], lines)
    rows = []
    for claim in found:
        judged = {
            title: [v.holds for v in claim.verdicts if v.holds is not None and v.form.endswith(f", {form}")]
            for title, form in RULES.items()
        }
        if all(judged.values()):
            rows.append([claim.quote, *("holds" if all(holds) else "does not hold" for holds in judged.values())])
    draws = next(verdict for claim in found if claim.quote.startswith("For OMKL-GF") for verdict in claim.verdicts)
    return (
        f"{table(['claim', *RULES], rows)}\nThat OMKL-GF is best with 10 draws {draws.word}: {draws.why} (`--sweeps`)."
    )


# Theory


def regret(theory: Any) -> str:
    rows = []
    for stream in theory["streams"]:
        for p in stream["points"]:
            if p["T"] == stream["rows"]:
                fit = stream["growth"][p["algorithm"]]
                rows.append([
                    stream["dataset"].replace("_", " "), p["algorithm"],
                    DIVERGES if p["regret"] is None else f"{p['regret'] / p['T']:.4f}",
                    f"{fit['exponent']:.2f}" if fit else "", f"{fit['low']:.2f} to {fit['high']:.2f}" if fit else "",
                    "" if p["bound"] is None else f"{p['bound'] / p['T']:.3g}",
                    "" if p["bound"] is None else f"{p['bound_without_features'] / p['T']:.3g}",
                    f"{100 * p['losses_out_of_range']:.2f} %",
                ])  # fmt: skip
    return table(
        ["stream", "algorithm", "regret / T", "exponent", "95 % interval", "bound / T", "without features", "loss > 1"],
        rows, left=2,
    )  # fmt: skip


def what_it_takes(theory: Any) -> str:
    last = [p for stream in theory["streams"] for p in stream["points"] if p["T"] == stream["rows"]]
    known = [p for p in last if p["bound"] is not None]
    needed = [n for stream in theory["streams"] for n in stream["needed"] if n["algorithm"] == "SFG-MKL-R"]
    return (
        "At D = 50 and 95 % the probability statement forces an epsilon of "
        f"{span((p['epsilon'] for p in known), '.1f')}, while a kernel's error can never exceed 2; C is "
        f"{span((p['C'] for p in known), '.0f')}. For (26) to fall to T with the measured C, L and q it would take "
        f"{span((n['D'] for n in needed), '.0e')} random features and {span((n['T'] for n in needed), '.0e')} samples."
    )


def span(values: Iterable[float], form: str) -> str:
    """
    >>> span([3.0, 1.0, 2.0], ".0f")
    '1 to 3'
    """
    known = list(values)
    return f"{min(known):{form}} to {max(known):{form}}"


def complexity(theory: Any) -> str:
    factors = list(dict.fromkeys(e["factor"] for e in theory["complexity"]))
    rows = []
    for name in dict.fromkeys(e["algorithm"] for e in theory["complexity"]):
        mine = {e["factor"]: e for e in theory["complexity"] if e["algorithm"] == name}
        cells = [f"{mine[f]['fitted']:.2f} ({mine[f]['expected']:g})" if f in mine else "" for f in factors]
        rows.append([name, next(iter(mine.values()))["printed"], *cells])
    return table(["algorithm", "printed", *factors], rows, left=2)


# Parameter sweeps


def sweeps(lines: Sequence[Sweep]) -> str:
    """One factor at a time, with the paper's data sets as columns; SFG-MKL alone if Raker does not have the factor."""
    rows = pairs(lines, [(f, v) for f, v in settings_of(lines) if f != "classification"], list(TITLES))
    return table(["Raker / SFG-MKL", *TITLES.values()], rows)


def classification_errors(lines: Sequence[Sweep]) -> str:
    sets = list(dict.fromkeys(line["dataset"] for line in lines if line["factor"] == "classification"))
    return table(["Raker / SFG-MKL", *sets], pairs(lines, settings_of(lines, "classification"), sets))


def settings_of(lines: Sequence[Sweep], factor: str | None = None) -> list[tuple[str, str]]:
    found = dict.fromkeys((line["factor"], line["value"]) for line in lines)
    return [(f, v) for f, v in found if factor is None or f == factor]


def pairs(lines: Sequence[Sweep], settings: Sequence[tuple[str, str]], sets: Sequence[str]) -> list[list[str]]:
    found = {(line["factor"], line["value"], line["dataset"], line["algorithm"]): line for line in lines}
    two = (NAMES["raker"], NAMES["sfg-mkl"])
    return [
        [value if factor == "classification" else f"{factor} = {value}",
         *(" / ".join(shown(found[factor, value, name, who]) for who in two if (factor, value, name, who) in found)
           for name in sets)]
        for factor, value in settings
    ]  # fmt: skip


# docs/deviations.md


def of_readings(lines: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for title in dict.fromkeys(line["title"] for line in lines):
        mine = {line["dataset"]: line for line in lines if line["title"] == title}
        rows.append([title, *(DIVERGES if mine[n]["mse"] is None else f"{1e3 * mine[n]['mse']:.2f}" for n in TITLES)])
    return table(["", *TITLES.values()], rows)


def other_readings(measured: Mapping[CaseId, Result], readings: Any) -> str:
    published_too = in_forms(measured, [(f"{name}, published", name, None) for name in ("Raker", "OMKR")])
    return published_too + "".join(of_readings(readings["readings"]).splitlines(keepends=True)[2:])


def argmax_node(readings: Any) -> str:
    moves, probabilities = ([line[what] for line in readings["held"]] for what in ("moves", "probability"))
    return (
        f"With `argmax` the node changes in {span(moves, '.0%')} of the rounds after 300 (seed 0, the four data sets). "
        "The neighbours of a fixed node are evaluated in every round, while their probability q is "
        f"{span(probabilities, '.2f')} (medians): their steps, divided by q, are {1 / max(probabilities):.0f} to "
        f"{1 / min(probabilities):.0f} times as long as those of a kernel that is evaluated with probability 1."
    )


def stabilisers(readings: Any) -> str:
    diverging = next(c for c in readings["stabilisers"] if (c["title"], c["dataset"]) == ("none", "naval"))
    return (
        f'SFG-MKL with `commit="never"`, {readings["seeds"]} feature sets. On naval without a stabiliser '
        f"{diverging['diverged']} of {diverging['runs']} diverge; their MSE x 1e-3 is between "
        f"{1e3 * diverging['least']:.0e} and "
        f"{1e3 * diverging['most']:.0e}.\n\n" + of_readings(readings["stabilisers"])
    )


def safe_defaults(measured: Mapping[CaseId, Result]) -> str:
    names = [algorithm for _, algorithm, form in measured if form == DEFAULTS]
    return in_forms(measured, [(name, name, DEFAULTS) for name in dict.fromkeys(names)])


# The pages


def in_reproduction(measured: Mapping[CaseId, Result], theory: Any, lines: Sequence[Sweep]) -> dict[str, str]:
    return {
        "matching": matching(measured),
        "longest run": longest_run(measured),
        "commit rules": commit_rules(measured),
        "graph feedback": graph_feedback(measured),
        "random features": on_random_features(measured),
        "claims": claimed(measured, lines),
        "regret": regret(theory),
        "what it takes": what_it_takes(theory),
        "complexity": complexity(theory),
        "sweeps": sweeps(lines),
        "classification errors": classification_errors(lines),
    }


def in_deviations(measured: Mapping[CaseId, Result], readings: Any) -> dict[str, str]:
    return {
        "argmax node": argmax_node(readings),
        "other readings": other_readings(measured, readings),
        "stabilisers": stabilisers(readings),
        "safe defaults": safe_defaults(measured),
    }
