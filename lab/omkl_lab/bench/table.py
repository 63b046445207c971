"""The results as tables: in the terminal, and as docs/benchmark.md, which is a function of the file."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from omkl_lab import markdown
from omkl_lab.bench.job import Results
from omkl_lab.bench.timing import FACTORS, GRAPH_KERNELS
from omkl_lab.parallel import Record
from omkl_lab.peers.page import WORDS

VERDICTS = {True: "yes", False: "NO", None: "-"}


class Table(NamedTuple):
    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


def tables(results: Results) -> list[Table]:
    return [
        demands(results),
        floors(results),
        base(results),
        *factors(results),
        shared(results),
        growth(results),
        *beside(results),
    ]


def demands(results: Results) -> Table:
    rows = [(d["what"], d["asked"], d["measured"], VERDICTS[d["holds"]]) for d in results["demands"]]
    return Table("What it must show", ("", "asked", "measured", "holds"), rows)


def floors(results: Results) -> Table:
    peaks = results["peaks"]
    rows = [
        (line["algorithm"], str(line["d"]), f"{line['heard']:.2f}", f"{line['arithmetic']:.0f}",
         f"{line['memory']:.0f}", f"{line['measured']:.0f}", f"{line['share']:.1%}")
        for line in results["floors"]
    ]  # fmt: skip
    square = results["least_squares"]
    rows.append(("least squares", "-", "1.00", "-", "-", f"{square['measured']:.0f}",
                 f"{square['floor'] / square['measured']:.1%}"))  # fmt: skip
    note = (
        f"Peaks: sine and cosine {peaks['sincos']:.3f} ns, multiply-add {peaks['multiply_adds']:.4f} ns, second cache "
        f"{1 / peaks['bytes_read']:.0f} GB/s. The floor is the larger of arithmetic and memory; the least-squares "
        f"step is GraphMKL's on 100 features, floor {square['floor']:.0f} ns."
    )
    head = ("algorithm", "d", "heard", "arithmetic", "memory", "measured", "floor/measured")
    return Table("The floor, nanoseconds per sample (N = 41, D = 50, M = 5)", head, rows, note)


def base(results: Results) -> Table:
    rows = []
    for t in results["timings"]:
        if not t["factor"]:
            rows.append((t["algorithm"], f"{t['heard']:.1f}", digits(t["chunk"]), digits(t["row"]),
                         digits(t["cores"]), digits(t["numpy"]), f"{t['numpy'] / t['chunk']:.0f} x"))  # fmt: skip
    note = (
        f"One core; in the column cores each of {results['machine']['cores']} has a learner. A row call is "
        f"Online.learn. OMKR keeps all its rows. GraphMKL has its own {GRAPH_KERNELS} kernels and no M."
    )
    head = ("algorithm", "heard", "chunk", "row", "cores", "NumPy", "NumPy/chunk")
    return Table("Microseconds per sample, (N, D, M, d) = (41, 50, 5, 15)", head, rows, note)


def factors(results: Results) -> Iterable[Table]:
    timings = results["timings"]
    names = [t["algorithm"] for t in timings if not t["factor"]]
    for way, title in (("chunk", "in chunks"), ("row", "row by row"), ("cores", "on all cores"), ("numpy", "NumPy")):
        head = ("algorithm", "base", *(f"{factor} {value}" for factor, values in FACTORS.items() for value in values))
        rows = []
        for name in names:
            mine: dict[tuple[str, int], float] = {}
            for t in timings:
                if t["algorithm"] == name:
                    mine[t["factor"], t[t["factor"]] if t["factor"] else 0] = t[way]  # type: ignore  # a factor and a way are fields
            cells = [mine.get((factor, value)) for factor, values in FACTORS.items() for value in values]
            rows.append((name, digits(mine["", 0]), *("-" if c is None else digits(c) for c in cells)))
        yield Table(f"Microseconds per sample, one factor at a time, {title}", head, rows)


def shared(results: Results) -> Table:
    rows = [
        (line["algorithm"], str(line["d"]), digits(line["independent"]), digits(line["shared"]),
         f"{line['independent'] / line['shared']:.2f} x")
        for line in results["shared"]
    ]  # fmt: skip
    note = "What it does to the errors is in draws.md."
    head = ("algorithm", "d", "independent", "shared", "faster")
    return Table("Microseconds per sample with one draw for all kernels", head, rows, note)


def growth(results: Results) -> Table:
    rows = [
        (g["algorithm"], g["what"], g["factor"], f"{g['at'][0]:g} to {g['at'][-1]:g}", f"{g['exponent']:.2f}")
        for g in results["growth"]
    ]
    long_run = results["long_run"]
    at = ", ".join(f"{us:.3f} at {t:.0e}" for t, us in zip(long_run["t"], long_run["microseconds"], strict=True))
    sizes = ", ".join(f"{size / 1e6:.1f}" for size in long_run["resident"])
    note = (
        f"Against t: SFG-MKL with the library's defaults, d = 5, takes {at} microseconds; the process holds {sizes} MB."
    )
    return Table("How it grows: exponents fitted to the logarithms",
                 ("algorithm", "what", "against", "from", "exponent"), rows, note)  # fmt: skip


def beside(results: Results) -> Iterable[Table]:
    """A table for each course, quickest first; who is missing comes last and says why."""
    courses = dict.fromkeys(record["course"] for record in results["peers"])
    for course in courses:
        records = [record for record in results["peers"] if record["course"] == course]
        records.sort(key=lambda record: record.get("microseconds", float("inf")))
        first = records[0]
        title = f"{course}: {first['rows']} rows, {first['features']} inputs"
        yield Table(title, ("learner", "us per row", "MSE x 1e-3", ""), [peer(record) for record in records])


def peer(record: Record) -> tuple[str, ...]:
    if record["status"] != "ok":
        us = record.get("microseconds")
        return record["learner"], "-" if us is None else digits(us), "-", f"{WORDS[record['status']]}: {record['note']}"
    return record["learner"], digits(record["microseconds"]), f"{1e3 * record['mse']:.2f}", ""


def digits(x: float) -> str:
    """Three digits, and no e.

    >>> digits(0.7341), digits(12.345), digits(1234.5)
    ('0.734', '12.3', '1234')
    """
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


# In the terminal


def show(results: Results, console: Console) -> None:
    wide = [*factors(results)]
    for table in tables(results):
        if table in wide or table in (growth(results), shared(results)):
            continue  # in the file and on the page
        out = RichTable(title=table.title, caption=table.note or None, title_justify="left", caption_justify="left",
                        box=box.SIMPLE_HEAD)  # fmt: skip
        for k, name in enumerate(table.head):
            out.add_column(name, justify="left" if k == 0 else "right", overflow="fold")
        for row in table.rows:
            out.add_row(*row)
        console.print()
        console.print(out)


# On the page


def in_markdown(table: Table) -> str:
    return f"{markdown.table(table.head, [[*map(markdown.escaped, row)] for row in table.rows])}\n{table.note}"


HOW = """\
- **The floor** counts what the equations ask for (phases, sines and cosines, theta z, theta's step) on D features
  without padding, at the peaks that the same run has measured: the engine's own polynomial on numbers in the first
  cache, multiply-adds in registers, bytes from the second cache. Nothing is counted for weights, chances, the draw of
  the node or the call. Peaks and rounds are measured by turns, and the best of each counts.
- **chunk**: all rows in one call of `Online.run`; **row**: one call of `Online.learn` for each, which checks its row;
  **cores**: as many learners at a time as there are cores; **NumPy**: `omkl.algorithms` itself. The quickest of
  many short replays counts; rows are normal noise, with the step of the paper's longest stream.
- **Peers** run as on [the page of the peers](peers.md), row by row in processor time, on the first rows of each set;
  ours come through the scikit-learn door in one call, which costs about as much as their first thousand rows.
- Read ratios within a table, not digits: others may use the machine too.
"""


def page(results: Results) -> str:
    """docs/benchmark.md."""
    told = results["machine"]
    about = (
        f"{told['processor']}, {told['cores']} cores, {told['instruction_set']}, {told['system']}, Python "
        f"{told['python']}, NumPy {told['numpy']}, Java {told['java'] or 'none'}; load {told['load']}; {told['date']}; "
        f"{results['seconds']:.0f} s in all."
    )
    parts = ["# Speed", f"Written by `{results['command']}` from `results/bench.json`; do not edit.", about,
             "## How", HOW]  # fmt: skip
    for table in tables(results):
        parts += [f"## {table.title}", in_markdown(table)]
    if results["left_out"]:
        parts.append(f"Not at hand: {', '.join(results['left_out'])}.")
    return "\n\n".join(part.strip() for part in parts) + "\n"
