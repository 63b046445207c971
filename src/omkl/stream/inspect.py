"""What a model file holds, for people and for machines."""

import json
import os
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from omkl import persist
from omkl.algorithms.weights import normalised
from omkl.estimators.core import Core
from omkl.online import Online
from omkl.stream.display import kernel_name
from omkl.stream.model import StreamModel
from omkl.stream.run import Kept


def facts(path: str) -> dict[str, Any]:
    """Everything worth telling about the model in this file, as JSON."""
    model = persist.load(path)
    out: dict[str, Any] = {"file": path, "bytes": os.path.getsize(path)}
    if isinstance(model, Kept):
        progress = model.progress
        out |= {"kind": "checkpoint", "records": progress.records, "finished": progress.finished}
        model = model.model
    if isinstance(model, StreamModel):
        columns = {
            name: {"kind": column.kind, "gaps": column.gaps}
            | ({"categories": column.categories} if column.categories else {})
            for name, column in model.encoder.columns.items()
        }
        out = {"kind": "omkl run", **out, "target": model.target, "task": model.task, "key": model.key,
               "waiting": len(model.waiting), "columns": columns}  # fmt: skip
        core: Any = model.core
        if model.fleet is not None:
            first = next(iter(model.fleet))
            core = model.fleet[first].core_
            out |= {"by": model.by, "keys": len(model.fleet), "bytes_per_key": model.fleet.nbytes // len(model.fleet),
                    "learner": model.learner, "rows": model.learned, "seed": model.seed, "features": model.names,
                    "of_key": first}  # fmt: skip
            return out | _kernels_of(core.online, core)
    elif isinstance(model, Online):
        out |= {"kind": "Online", "learner": model.learner, "rows": model.t, "evaluations": model.evaluations}
        return out | _kernels_of(model, None)
    else:
        out |= {"kind": f"{type(model).__module__.rpartition('.')[2]} {type(model).__name__}"}
        core = getattr(model, "core_", None) or getattr(model, "_core", None)
        core = core if isinstance(core, Core) else None
    if core is None:
        return out | {"rows": 0}
    out |= {"learner": core.learner, "rows": core.online.t, "seed": core.seed, "features": [str(n) for n in core.names]}
    if hasattr(core, "labels"):
        out["labels"] = [str(label) for label in core.labels]
    return out | _kernels_of(core.online, core)


def _kernels_of(online: Online, core: Core | None) -> dict[str, Any]:
    """Kernels with their weights, and the graph among them."""
    problem = online.problem
    if core is not None:
        names, weights = [str(kernel) for kernel in core.settings.all_kernels], core.weights().mean(axis=0)
    else:
        names = [str(kernel) for kernel in getattr(problem, "kernels", ())]
        weights = np.empty(0) if online.learner == "graph-mkl" else normalised(online.peek("log_w"))
    names = names or [f"kernel {k + 1}" for k in range(len(weights))]
    out: dict[str, Any] = {
        "kernels": [{"kernel": name, "weight": float(w)} for name, w in zip(names, weights, strict=False)]
    }
    graph = getattr(problem, "graph", None)
    if graph is not None:
        out["graph"] = {"edges": int(graph.A.sum()), "out": [np.flatnonzero(row).tolist() for row in graph.A],
                        "dominating_set": np.flatnonzero(graph.cover > 0).tolist()}  # fmt: skip
    return out


def as_json(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=2)


def show(found: dict[str, Any], console: Console) -> None:
    """For people: facts, bars for the weights, the graph as a picture of letters."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    shown = ("file", "kind", "learner", "target", "task", "by", "keys", "key", "records", "finished", "rows", "waiting",
             "seed")  # fmt: skip
    for name in shown:
        if found.get(name) is not None:
            value = f"{found[name]:,}" if type(found[name]) is int and name != "seed" else found[name]
            table.add_row("rows learned" if name == "rows" else name, escape(str(value)))
    table.add_row("size", f"{found['bytes']:,} bytes")
    for name, column in found.get("columns", {}).items():
        many = column.get("categories", [])
        about = column["kind"] or "empty so far"
        about += f": {', '.join(many[:6])}{', ...' if len(many) > 6 else ''}" if many else ""
        about += ", has gaps" if column["gaps"] else ""
        table.add_row("columns" if name == next(iter(found["columns"])) else "", escape(f"{name} ({about})"))
    if found.get("labels"):
        table.add_row("labels", escape(", ".join(found["labels"][:20])))
    console.print(table)
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
            bars.add_column("hears")
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
