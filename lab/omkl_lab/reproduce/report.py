"""Writes report.html of `omkl-lab reproduce`, one self-contained file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omkl.persist import write_atomically
from omkl.report.charts import Choice, choice
from omkl.report.render import render
from omkl_lab.data.sets import SETS
from omkl_lab.files import read_json, read_lines
from omkl_lab.reproduce import charts, claims, parameter_sweeps, tables
from omkl_lab.reproduce.graphs import Drawn
from omkl_lab.reproduce.results import Detail, Result
from omkl_lab.reproduce.theory import report as theory_report


def write(out: Path) -> Path:
    """Write the report from the files in `out`."""
    path = out / "report.html"
    write_atomically(path, page(out).encode())
    return path


def page(out: Path) -> str:
    results: list[Result] = read_lines(out / "results.jsonl")
    details: list[Detail] = read_lines(out / "details.jsonl")
    graphs: list[Drawn] = read_lines(out / "graphs.jsonl")
    theory = read_json(out / "theory.json")
    sweeps = read_lines(out / "sweeps.jsonl")
    names = list(tables.titles(results))
    by_set = {name: [d for d in details if d["dataset"] == name] for name in names}
    drawings: dict[str, Any] = {
        "curves": [
            choice(name, charts.curves(by_set[name])) for name in names if any(d["curve"] for d in by_set[name])
        ],
        "weights": heat_maps(by_set, graphs),
        "graph": [choice(g["dataset"], charts.graph(g)) for g in graphs],
    }
    sections: dict[str, Any] = {}
    if theory:
        drawings["theory"] = theory_report.charts_of(theory)
        sections["theory"] = theory_report.tables_of(theory)
    if sweeps:
        drawings["sweeps"] = parameter_sweeps.charts_of(sweeps)
        sections["sweeps"] = parameter_sweeps.tables_of(sweeps)
    done, of_all = tables.within(results)
    return render(
        "omkl_lab/reproduce",
        "report.html.j2",
        drawings,
        tables=[table_of(results, name, title) for name, title in tables.titles(results).items()],
        sets=[set_of(by_set[name][0]) for name in names if by_set[name]],
        claims=claims.claims(results, details, sweeps),
        disagreements=claims.disagreements(results),
        cells=published_cells(results),
        done=done,
        of_all=of_all,
        diverged=[r for r in results if r["diverged"]],
        runs=max((r["runs"] for r in results), default=0),
        theory=sections.get("theory"),
        sweeps=sections.get("sweeps"),
    )


def published_cells(results: Sequence[Result]) -> dict[str, Any]:
    """Every published number with ours beside it, in the form that the paper must have used; a line per algorithm."""
    matching = [(r, cells) for r in results if (cells := tables.row(r)).matching]
    names = list(dict.fromkeys(r["dataset"] for r, _ in matching))
    found = {(r["algorithm"], r["dataset"]): cells for r, cells in matching}
    lines = [
        [algorithm, *(cell_of(found.get((algorithm, name))) for name in names)]
        for algorithm in dict.fromkeys(r["algorithm"] for r, _ in matching)
    ]
    return {"head": ["algorithm", *names], "rows": lines}


def cell_of(cells: tables.Row | None) -> str:
    if cells is None:
        return "not run"
    difference = "" if cells.verdict == "as published" else f", {cells.verdict}"
    return f"{cells.ours} ({cells.paper}){difference}"


def heat_maps(by_set: dict[str, list[Detail]], graphs: Sequence[Drawn]) -> list[Choice]:
    """One per data set and form; without Delta in one dimension, which looks the same."""
    scales = {g["dataset"]: g["scales"] for g in graphs}
    return [
        choice(f"{name}: {d['algorithm']}, {d['variant']}", charts.weights(d, scales[name]))
        for name, ds in by_set.items()
        for d in ds
        if d["history"] and name in scales and "1-D" not in d["variant"]
    ]


def table_of(results: Sequence[Result], name: str, title: str) -> dict[str, Any]:
    lines = tables.of(results, name)
    return {"title": title, "head": tables.HEAD, "runs": max(r["runs"] for r in lines),
            "rows": [tables.row(r) for r in lines]}  # fmt: skip


def set_of(d: Detail) -> dict[str, Any]:
    title = SETS[d["dataset"]].title if d["dataset"] in SETS else d["dataset"]
    return {"name": d["dataset"], "title": title, "rows": d["rows"], "features": d["features"], "columns": d["columns"],
            "mean": f"{1e3 * d['mean_mse']:.2f}"}  # fmt: skip
