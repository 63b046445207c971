"""What a model file holds, for people and as JSON."""

import json
import os
from functools import singledispatch

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from omkl import persist
from omkl.arrays import Vector
from omkl.estimators.core import Core
from omkl.estimators.cores import core_of
from omkl.estimators.explaining import Explaining, Importance
from omkl.estimators.outputs import OutputsCore
from omkl.explain import Change, Expert
from omkl.online import Online
from omkl.stream import explaining
from omkl.stream.checkpoint import Checkpoint
from omkl.stream.display import kernel_name
from omkl.stream.estimators import is_estimator
from omkl.stream.model import StreamModel

Facts = dict[str, persist.Json]
SHOWN = 12  # columns, and experts
JUDGED_ROWS = 16  # for the importance of columns to models of keys, of which there may be several


def facts(path: str) -> Facts:
    """The main facts about the model in this file, as JSON."""
    model, about = persist.read(path), persist.about(path)
    return {"file": path, "bytes": os.path.getsize(path)} | describe(model, about)


@singledispatch
def describe(model: object, out: Facts) -> Facts:
    """`out` with the facts about a model; any class without a function of its own is an estimator or a pipeline."""
    if not is_estimator(model) and (steps := dict(getattr(model, "steps", ()))):  # of scikit-learn or river
        return describe(list(steps.values())[-1], out) | {"kind": f"pipeline: {', '.join(map(str, steps))}"}
    out |= {"kind": f"{type(model).__module__.rpartition('.')[2]} {type(model).__name__}"}
    wrapped = getattr(model, "estimator_", None) or getattr(model, "regressor", None)  # of a model with lags
    core = core_of(model) or core_of(wrapped)
    if core is None:
        return out | {"rows": 0}
    out |= {"learner": core.learner, "rows": core.online.t, "seed": core.seed, "features": [str(n) for n in core.names]}
    if isinstance(model, Explaining):
        out |= explained(model.importance_, model.experts_, core.last_changes())
    labels = [str(label) for label in core.labels]
    targets = {"targets": [str(name) for name in core.outputs]} if isinstance(core, OutputsCore) else {}
    return out | targets | ({"labels": labels} if labels else {}) | kernels_of(core)


@describe.register
def _(checkpoint: Checkpoint, out: Facts) -> Facts:
    progress = checkpoint.progress
    out |= {"kind": "checkpoint", "records": progress.records, "finished": progress.finished}
    return describe(checkpoint.model, out)


@describe.register
def _(model: StreamModel, out: Facts) -> Facts:
    preparer, learner = model.preparer, model.learner
    columns = {
        name: {"kind": column.kind, "gaps": column.gaps}
        | ({"categories": column.categories} if column.categories else {})
        for name, column in preparer.encoder.columns.items()
    }
    out = {"kind": "omkl run", **out, "target": model.target, "task": model.task, "key": preparer.key,
           "waiting": len(model.waiting), "columns": columns}  # fmt: skip
    if model.parameters:
        out |= {"parameters": model.parameters}
    if preparer.lagged is not None:
        settings = preparer.lagged.settings
        of_columns = {name: list(lags) for name, lags in settings.columns.items()}
        out |= {"lags": list(settings.lags), "lag_columns": of_columns, "horizon": settings.horizon}
    if learner is None:
        return out | {"rows": 0}
    if preparer.by is not None:
        out |= {"by": preparer.by}
    out |= learner.facts()
    out |= {"learner": model.algorithm, "rows": model.learned, "seed": model.seed, "features": list(learner.names)}
    if model.task == "classification":
        out["labels"] = list(learner.labels)
    core = learner.first_core()
    if model.learned:
        found = explaining.importance_of(model, None if preparer.by is None else JUDGED_ROWS)
        out |= explained(found, explaining.experts(model), explaining.last_changes(model))
    return out if core is None else out | kernels_of(core)


@describe.register
def _(online: Online, out: Facts) -> Facts:
    out |= {"kind": "Online", "learner": online.algorithm.name, "rows": online.t, "evaluations": online.evaluations}
    names = [str(kernel) for kernel in getattr(online.problem, "kernels", ())]
    return out | with_graph(online, names, online.kernel_weights)


def explained(importance: Importance, experts: list[Expert], changes: list[Change]) -> Facts:
    """What a model has learned, as JSON; importance of several targets is that for the first."""
    if importance and isinstance(next(iter(importance.values())), dict):
        importance = next(iter(importance.values()))
    return {
        "importance": [{"column": str(name), "importance": value} for name, value in importance.items()],
        "experts": [{"expert": expert.name, "weight": expert.weight} for expert in experts],
        "changes": [{"row": change.row, "what": list(change.what), "inputs": [str(name) for name in change.inputs],
                     "text": str(change)} for change in changes],
    }  # fmt: skip


def kernels_of(core: Core) -> Facts:
    """The kernels of a core with their weights, averaged over labels or targets, and the graph."""
    names = [str(kernel) for kernel in core.settings.all_kernels]
    return with_graph(core.online, names, core.kernel_weights().mean(axis=0))


def with_graph(online: Online, names: list[str], weights: Vector) -> Facts:
    """Kernels with their weights, and the graph among them if there is one."""
    names = names or [f"kernel {k + 1}" for k in range(len(weights))]
    out: Facts = {"kernels": [{"kernel": name, "weight": float(w)} for name, w in zip(names, weights, strict=False)]}
    graph = getattr(online.problem, "graph", None)
    if graph is not None:
        out["graph"] = {"edges": int(graph.A.sum()), "out": [np.flatnonzero(row).tolist() for row in graph.A],
                        "dominating_set": np.flatnonzero(graph.cover > 0).tolist()}  # fmt: skip
    return out


def as_json(found: Facts) -> str:
    """Facts as text."""
    return json.dumps(found, indent=2)


def show(found: Facts, console: Console) -> None:
    """Facts, bars for the weights, and the graph as lists of neighbours."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    shown = ("file", "omkl", "kind", "learner", "target", "task", "by", "keys", "key", "horizon", "records", "finished",
             "rows", "waiting", "seed")  # fmt: skip
    for name in shown:
        if found.get(name) is not None:
            value = f"{found[name]:,}" if type(found[name]) is int and name != "seed" else found[name]
            label = {"rows": "rows learned", "omkl": "saved by omkl"}.get(name, name)
            table.add_row(label, escape(str(value)))
    table.add_row("size", f"{found['bytes']:,} bytes")
    for k, (name, value) in enumerate(found.get("metadata", {}).items()):
        table.add_row("" if k else "metadata", escape(f"{name}: {value if type(value) is str else json.dumps(value)}"))
    for name, column in found.get("columns", {}).items():
        many = column.get("categories", [])
        about = column["kind"] or "empty so far"
        about += f": {', '.join(many[:6])}{', ...' if len(many) > 6 else ''}" if many else ""
        about += ", has gaps" if column["gaps"] else ""
        table.add_row("columns" if name == next(iter(found["columns"])) else "", escape(f"{name} ({about})"))
    if "lags" in found:
        given = {found["target"]: found["lags"]} | found["lag_columns"]
        table.add_row("lags", escape("; ".join(f"{name} {', '.join(map(str, lags))}" for name, lags in given.items())))
    if found.get("parameters"):
        chosen = ", ".join(f"{name}={json.dumps(value)}" for name, value in found["parameters"].items())
        table.add_row("parameters", escape(chosen))
    for change in found.get("changes", []):
        table.add_row("last change", escape(change["text"]))
    others = [e for e in found.get("experts", []) if e["weight"] >= 0.005 and " kernel, " not in e["expert"]]
    if others:  # the weights of kernels have a table of their own
        table.add_row("other experts", escape(", ".join(f"{e['expert']} {e['weight']:.0%}" for e in others)))
    if found.get("targets"):
        table.add_row("targets", escape(", ".join(found["targets"][:20])))
    if found.get("labels"):
        table.add_row("labels", escape(", ".join(found["labels"][:20])))
    console.print(table)
    if importance := found.get("importance"):
        console.print(bars_of([(one["column"], one["importance"]) for one in importance[:SHOWN]], len(importance)))
    kernels = found.get("kernels", [])
    if kernels:
        top = max(kernel["weight"] for kernel in kernels) or 1.0
        graph = found.get("graph")
        bars = Table(
            box=None,
            pad_edge=False,
            title=f"kernels of {found['of_key']!r}" if "of_key" in found else "kernels",
            title_justify="left",
            title_style="bold",
        )
        bars.add_column("", justify="right", style="dim")
        bars.add_column("kernel")
        bars.add_column("weight", justify="right")
        bars.add_column("")
        if graph:
            bars.add_column("neighbours")
        for k, kernel in enumerate(kernels):
            weight = kernel["weight"]
            row = [str(k), kernel_name(kernel["kernel"]), f"{weight:.1%}", "█" * round(24 * weight / top)]
            if graph:
                star = "* " if k in graph["dominating_set"] else "  "
                row.append(star + " ".join(str(j) for j in graph["out"][k]))
            bars.add_row(*row)
        console.print(bars)
        if graph:
            console.print(f"graph: {graph['edges']} edges; * marks the dominating set", style="dim")


def bars_of(importance: list[tuple[str, float]], columns: int) -> Table:
    """The importance of columns as bars, the largest first."""
    more = f", the first {len(importance)} of {columns} columns" if columns > len(importance) else ""
    bars = Table(box=None, pad_edge=False, title=f"importance{more}", title_justify="left", title_style="bold")
    for name in ("column", "", ""):
        bars.add_column(name, overflow="fold")
    most = importance[0][1] or 1.0
    for column, value in importance:
        bars.add_row(escape(column), f"{value:.3g}", "█" * round(24 * value / most))
    return bars
