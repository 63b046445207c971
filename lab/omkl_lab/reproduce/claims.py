"""Tests the claims of the paper's experimental section, for every form of the algorithms."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from omkl_lab.configurations import DEFAULTS, MATCHING
from omkl_lab.data.sets import PAPER, SETS
from omkl_lab.reproduce.experiments import paper_figures, printed
from omkl_lab.reproduce.results import Detail, Result

GRAPH = ("SFG-MKL", "SFG-MKL-R")
RIVALS = ("OMKR", "Raker", "OMKL-GF")
PUBLISHED_GF = MATCHING["OMKL-GF"].form


class Verdict(NamedTuple):
    form: str
    holds: bool | None  # None if the form is not part of the claim
    why: str

    @property
    def word(self) -> str:
        return "not part of the claim" if self.holds is None else "holds" if self.holds else "does not hold"


class Claim(NamedTuple):
    quote: str
    tested: str  # what was compared
    verdicts: list[Verdict]


def claims(results: Sequence[Result], details: Sequence[Detail], sweeps: Sequence[Any] = ()) -> list[Claim]:
    """The claims that can be tested with these results (and sweeps), on the paper's data sets.

    The claims are about the paper's protocol, so results of the library's defaults are not used.
    """
    rs = [r for r in results if r["dataset"] in PAPER and r["variant"] != DEFAULTS]
    ds = [d for d in details if d["dataset"] in PAPER and d["variant"] != DEFAULTS]
    return [claim for claim in (
        sizes(ds),
        Claim(
            "The bandwidth of the i-th kernel is 10^sigma_i ... Parameters xi and eta are set to 1/sqrt(T).",
            "every published number within its tolerance, in the matching form (bandwidth interpreted as the variance)",
            published(rs),
        ),
        Claim(
            "In order to speed up SFG-MKL and SFG-MKL-R, after 300 time instants, both algorithms choose "
            "I_t = argmax u_i / U_t.",
            "the MSE of this rule against the published one, within 2.5 % (1-D Delta) or 6 % (Delta in R^d)",
            commit_rule(rs),
        ),
        Claim(
            "Both SFG-MKL and SFG-MKL-R can provide lower MSE in comparison with other algorithms.",
            "MSE below OMKR's, Raker's and OMKL-GF's published form on every set; OMKL-GF's other forms are mentioned",
            beat(rs, GRAPH, RIVALS, lambda r: np.inf if r["mse"] is None else r["mse"], "MSE"),
        ),
        Claim(
            "Using the feedback graph, SFG-MKL can effectively prune the irrelevant kernels to improve the accuracy.",
            "MSE below that of Raker, which evaluates every kernel, on every set",
            beat(rs, GRAPH[:1], RIVALS[1:2], lambda r: np.inf if r["mse"] is None else r["mse"], "MSE"),
        ),
        Claim(
            "SFG-MKL runs faster than other kernel learning approaches significantly.",
            "seconds per run below OMKR's, Raker's and OMKL-GF's in every form, on every set",
            beat(rs, GRAPH[:1], RIVALS, lambda r: r["seconds"], "seconds"),
        ),
        Claim(
            "Both SFG-MKL and SFG-MKL-R run faster than Raker.",
            "seconds per run below Raker's on every set",
            beat(rs, GRAPH, RIVALS[1:2], lambda r: r["seconds"], "seconds"),
        ),
        Claim(
            "SFG-MKL is faster than OMKL-GF.",
            "seconds per run below OMKL-GF's in every form, on every set",
            beat(rs, GRAPH[:1], RIVALS[2:], lambda r: r["seconds"], "seconds"),
        ),
        Claim(
            "Our proposed algorithms converge faster than all other alternatives (Figures 1 and 2).",
            "mean of MSE_t over t (the area under the curve) below OMKR's, Raker's and OMKL-GF's published form",
            convergence(ds),
        ),
        Claim(
            "For OMKL-GF ... the maximum number of kernels chosen at each time instant is 10, which obtains the best "
            "results.",
            "MSE against the number of draws, from omkl-lab reproduce --sweeps (drawn on, aware step)",
            best_draws(sweeps),
        ),
    ) if claim.verdicts]  # fmt: skip


def forms(lines: Iterable[Result], algorithm: str) -> list[str]:
    return list(dict.fromkeys(r["variant"] for r in lines if r["algorithm"] == algorithm))


def sizes(ds: Sequence[Detail]) -> Claim:
    seen = {d["dataset"]: (d["rows"], d["features"]) for d in ds}
    wrong = [f"{name} has {size}" for name, size in seen.items() if size != (SETS[name].rows, SETS[name].features)]
    return Claim(
        "Airfoil comprises 1503 samples of 5 features, Concrete 1030 of 8, Naval 11934 of 15, Wine 4898 of 11.",
        "rows and columns of the files",
        [Verdict("", not wrong, "; ".join(wrong) or f"as published: {', '.join(seen)}")] if seen else [],
    )


def published(rs: Sequence[Result]) -> list[Verdict]:
    out = []
    for algorithm, match in MATCHING.items():
        cells = [r for r in rs if r["algorithm"] == algorithm and r["variant"] == match.form]
        parts, good = [], True
        for r in cells:
            if r["mse"] is None or r["paper_mse"] is None:
                good = False
                parts.append(f"{r['dataset']} diverges")
            else:
                good &= match.agrees(r["mse"], r["paper_mse"])
                parts.append(f"{r['dataset']} {1e3 * r['mse']:.2f} for {1e3 * r['paper_mse']:.2f}")
        if cells:
            out.append(Verdict(f"{algorithm}, {match.form}", good, "; ".join(parts)))
    rf = [r for r in rs if r["algorithm"] == "RFOMKR" and r["mse"] is not None and r["paper_mse"] is not None]
    if rf:
        parts = [f"{r['dataset']} {1e3 * (r['mse'] or 0):.2f} for {1e3 * (r['paper_mse'] or 0):.2f}" for r in rf]
        out.append(Verdict("RFOMKR (a comment in the source, not printed)", False, "; ".join(parts)))
    return out


def commit_rule(rs: Sequence[Result]) -> list[Verdict]:
    out = []
    for algorithm in GRAPH:
        for form in forms(rs, algorithm):
            tolerance = 0.025 if "1-D" in form else 0.06
            cells = [r for r in rs if (r["algorithm"], r["variant"]) == (algorithm, form) and r["paper_mse"]]
            parts = [
                f"{r['dataset']} " + ("diverges" if r["mse"] is None else f"{r['mse'] / (r['paper_mse'] or 1):.2f} x")
                for r in cells
            ]
            near = all(
                r["mse"] is not None and abs(r["mse"] / (r["paper_mse"] or 1) - 1) <= tolerance for r in cells
            )  # on every data set
            if cells:
                reproduced = "the published numbers are reproduced" if near else "they are not reproduced"
                holds = near if "argmax" in form else None  # the other rules are not part of the claim
                why = f"{reproduced}; ours / published: {', '.join(parts)}"
                out.append(Verdict(f"{algorithm}, {form}", holds, why))
    return out


def beat(
    rs: Sequence[Result], ours: Sequence[str], rivals: Sequence[str], measure: Callable[[Result], float], what: str
) -> list[Verdict]:
    """Every form of the graph algorithms against the rivals. OMKL-GF's unpublished forms do not decide on MSE."""
    out = []
    for algorithm in ours:
        for form in forms(rs, algorithm):
            lost: dict[str, list[str]] = {}
            lost_to_others: dict[str, list[str]] = {}
            compared = 0
            for mine in (r for r in rs if (r["algorithm"], r["variant"]) == (algorithm, form)):
                for r in rs:
                    if r["dataset"] != mine["dataset"] or r["algorithm"] not in rivals:
                        continue
                    decides = what != "MSE" or r["algorithm"] != "OMKL-GF" or r["variant"] == PUBLISHED_GF
                    compared += decides
                    if not measure(mine) < measure(r):
                        rival = r["algorithm"] if decides and what == "MSE" else f"{r['algorithm']} {r['variant']}"
                        (lost if decides else lost_to_others).setdefault(r["dataset"], []).append(rival)
            if compared:
                why = f"lower {what} in all {compared} comparisons" if not lost else "not lower: " + listed(lost)
                if lost_to_others:
                    why += "; nor than the other forms: " + listed(lost_to_others)
                out.append(Verdict(f"{algorithm}, {form}", not lost, why))
    return out


def best_draws(sweeps: Sequence[Any]) -> list[Verdict]:
    lines = [s for s in sweeps if (s["factor"], s["algorithm"]) == ("M", "OMKL-GF") and s["mse"] is not None]
    least = {}
    for name in dict.fromkeys(s["dataset"] for s in lines):
        least[name] = min((s for s in lines if s["dataset"] == name), key=lambda s: float(s["mse"]))["value"]
    if not least:
        return [Verdict("", None, "not measured in this run")]
    why = "least MSE with " + ", ".join(f"{value} draws on {name}" for name, value in least.items())
    return [Verdict("OMKL-GF", set(least.values()) == {"10"}, why)]


def listed(losses: dict[str, list[str]]) -> str:
    """
    >>> listed({"airfoil": ["OMKR", "Raker"], "naval": ["Raker"]})
    'airfoil (OMKR, Raker), naval (Raker)'
    """
    return ", ".join(f"{dataset} ({', '.join(rivals)})" for dataset, rivals in losses.items())


def convergence(ds: Sequence[Detail]) -> list[Verdict]:
    def area(d: Detail) -> float:
        if not d["curve"]:
            return float("inf")
        t, mse = np.array(d["t"]), np.array(d["curve"])
        return float(np.trapezoid(mse, t) / (t[-1] - t[0])) if len(t) > 1 else float(mse[0])

    sets = [figure.dataset for figure in paper_figures()]
    out = []
    for algorithm in GRAPH:
        for form in dict.fromkeys(d["variant"] for d in ds if d["algorithm"] == algorithm):
            lost: dict[str, list[str]] = {}
            compared = 0
            for mine in ds:
                if (mine["algorithm"], mine["variant"]) != (algorithm, form) or mine["dataset"] not in sets:
                    continue
                for d in ds:
                    rival = d["algorithm"] in RIVALS and d["variant"] == MATCHING[d["algorithm"]].form
                    if d["dataset"] == mine["dataset"] and rival:
                        compared += 1
                        if not area(mine) < area(d):
                            lost.setdefault(d["dataset"], []).append(d["algorithm"])
            if compared:
                why = f"lower in all {compared} comparisons" if not lost else "not lower: " + listed(lost)
                out.append(Verdict(f"{algorithm}, {form}", not lost, why))
    return out


def markdown(found: Sequence[Claim]) -> str:
    lines = ["# The paper's claims", ""]
    for claim in found:
        lines += [f"> {claim.quote}", "", f"Tested: {claim.tested}.", ""]
        for verdict in claim.verdicts:
            lines.append(f"- **{verdict.word}**{': ' + verdict.form if verdict.form else ''} ({verdict.why})")
        lines.append("")
    return "\n".join(lines)


SUBJECTS = {  # of the disagreements: the algorithm without which there is nothing to say
    "Which node is used after 300 rounds": "SFG-MKL",
    "The distance between two kernels": "SFG-MKL",
    "OMKL-GF": "OMKL-GF",
    "Algorithm 1 on Naval": "SFG-MKL",
    "RFOMKR": "RFOMKR",
}


def disagreements(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Where the paper's text and its tables disagree, as (title, explanation) with the numbers of this run."""

    def ours(dataset: str, algorithm: str, form: str) -> str:
        for r in results:
            if (r["dataset"], r["algorithm"], r["variant"]) == (dataset, algorithm, form):
                return "diverges" if r["mse"] is None else f"{1e3 * r['mse']:.2f}"
        return "not run"

    def line(algorithm: str, form: str) -> str:
        return " / ".join(ours(name, algorithm, form) for name in here)

    here = [name for name in PAPER if any(r["dataset"] == name for r in results)]
    run = {r["algorithm"] for r in results}
    if not here:
        return []
    numbers = {a: " / ".join(f"{1e3 * p.mse:.2f}" for n in here if (p := printed(n, a))) for a in MATCHING}
    order = " / ".join(here)
    found = [
        (
            "Which node is used after 300 rounds",
            f"The text says the node with the largest weight u. The published columns ({order}: SFG-MKL "
            f"{numbers['SFG-MKL']}, SFG-MKL-R {numbers['SFG-MKL-R']}) are reproduced when it is the first node, the "
            f"narrowest kernel: {line('SFG-MKL', 'commit first, 1-D Delta')} and "
            f"{line('SFG-MKL-R', 'commit first, 1-D Delta')}. With the rule in the text, MSE x 1e-3 is "
            f"{line('SFG-MKL', 'commit argmax')} and {line('SFG-MKL-R', 'commit argmax')}; without committing to a "
            f"node, as Algorithms 1 and 2 are printed, {line('SFG-MKL', 'commit never')} and "
            f"{line('SFG-MKL-R', 'commit never')}. Only the drawn node's u is ever lowered, so the argmax keeps "
            "changing; a node that is fixed keeps a small nominal probability while its neighbours are evaluated in "
            "every "
            "round, so that their steps are several times as long. On these streams this learns faster. The regret "
            "bounds do not cover it.",
        ),
        (
            "The distance between two kernels",
            "Equation (7) integrates over R^d. With it the first-node columns are "
            f"{line('SFG-MKL', 'commit first')} and {line('SFG-MKL-R', 'commit first')}; with the integral taken over "
            "one dimension they are closer to the published ones (above).",
        ),
        (
            "OMKL-GF",
            f"The published column ({numbers['OMKL-GF']}) is the form that keeps its subset after 300 rounds and does "
            f"not divide theta's step by q: {line('OMKL-GF', 'frozen, plain step')}. Divided by q, the baseline is "
            f"much better: {line('OMKL-GF', 'frozen, step / q')} frozen, {line('OMKL-GF', 'drawn on, step / q')} "
            "when it continues to draw.",
        ),
        (
            "Algorithm 1 on Naval",
            "As printed, without committing to a node, SFG-MKL's MSE x 1e-3 on naval: "
            f"{ours('naval', 'SFG-MKL', 'commit never')}. A step is "
            "eta / q long, q may fall to xi / |D|, and with eta = xi the step can be |D| = 9 times the one that hits "
            "the target. The theory assumes theta in a bounded set; the algorithm does not ensure this.",
        ),
        (
            "RFOMKR",
            "Its numbers are in a comment of the LaTeX source (355.63 / 212.76 / 347.15 / 251.54) and are not "
            "reproduced: "
            f"OMKR's step on the random features gives {line('RFOMKR', 'random features')}, close to OMKR's own.",
        ),
    ]
    absent = {title for title, algorithm in SUBJECTS.items() if algorithm not in run}
    if "naval" not in here:
        absent.add("Algorithm 1 on Naval")
    return [pair for pair in found if pair[0] not in absent]
