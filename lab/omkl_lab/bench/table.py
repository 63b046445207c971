"""The benchmark results as tables, in the terminal and as docs/benchmark.md."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from omkl_lab import markdown
from omkl_lab.bench.job import Results
from omkl_lab.bench.timing import FACTORS, GRAPH_KERNELS
from omkl_lab.parallel import Record
from omkl_lab.peers.showing import STATUS

RESULTS, PAGE = Path("results/bench.json"), Path("docs/benchmark.md")
VERDICTS = {True: "yes", False: "NO", None: "-"}


class Table(NamedTuple):
    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


def tables(results: Results) -> list[Table]:
    return [
        requirements(results),
        floors(results),
        base(results),
        *factors(results),
        shared(results),
        growth(results),
        *peer_tables(results),
    ]


def requirements(results: Results) -> Table:
    rows = [(d["what"], d["required"], d["measured"], VERDICTS[d["holds"]]) for d in results["requirements"]]
    return Table("Requirements", ("", "required", "measured", "met"), rows)


def floors(results: Results) -> Table:
    peaks = results["peaks"]
    rows = [
        (line["algorithm"], str(line["d"]), f"{line['evaluated']:.2f}", f"{line['arithmetic']:.0f}",
         f"{line['memory']:.0f}", f"{line['measured']:.0f}", f"{line['share']:.1%}")
        for line in results["floors"]
    ]  # fmt: skip
    square = results["least_squares"]
    rows.append(("least squares", "-", "1.00", "-", "-", f"{square['measured']:.0f}",
                 f"{square['floor'] / square['measured']:.1%}"))  # fmt: skip
    note = (
        f"Peaks: sine and cosine {peaks['sincos']:.3f} ns, multiply-add {peaks['multiply_adds']:.4f} ns, L2 cache "
        f"{1 / peaks['bytes_read']:.0f} GB/s. The floor is the larger of arithmetic and memory; the least-squares "
        f"step is GraphMKL's on 100 features, with a floor of {square['floor']:.0f} ns."
    )
    head = ("algorithm", "d", "kernels", "arithmetic", "memory", "measured", "floor/measured")
    return Table("The floor, nanoseconds per sample (N = 41, D = 50, M = 5)", head, rows, note)


def base(results: Results) -> Table:
    rows = []
    for t in results["timings"]:
        if not t["factor"]:
            rows.append((t["algorithm"], f"{t['evaluated']:.1f}", digits(t["chunk"]), digits(t["row"]),
                         digits(t["cores"]), digits(t["numpy"]), f"{t['numpy'] / t['chunk']:.0f} x"))  # fmt: skip
    note = (
        f"One core; in the column cores each of {results['machine']['cores']} runs its own learner. A row call is "
        f"Online.learn. Kernels: evaluated per sample. OMKR stores all rows. GraphMKL has its own {GRAPH_KERNELS} "
        "kernels and no M."
    )
    head = ("algorithm", "kernels", "chunk", "row", "cores", "NumPy", "NumPy/chunk")
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
                    mine[t["factor"], t[t["factor"]] if t["factor"] else 0] = t[way]  # type: ignore  # both are field names
            cells = [mine.get((factor, value)) for factor, values in FACTORS.items() for value in values]
            rows.append((name, digits(mine["", 0]), *("-" if c is None else digits(c) for c in cells)))
        yield Table(f"Microseconds per sample, one factor at a time, {title}", head, rows)


def shared(results: Results) -> Table:
    rows = [
        (line["algorithm"], str(line["d"]), digits(line["independent"]), digits(line["shared"]),
         f"{line['independent'] / line['shared']:.2f} x")
        for line in results["shared"]
    ]  # fmt: skip
    note = "The effect on the errors is in draws.md."
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
    note = f"Against t: SFG-MKL with default settings, d = 5, takes {at} microseconds; resident memory is {sizes} MB."
    return Table("Scaling: exponents fitted to the logarithms",
                 ("algorithm", "what", "against", "from", "exponent"), rows, note)  # fmt: skip


def peer_tables(results: Results) -> Iterable[Table]:
    """A table for each stream, fastest first; learners without results come last, with the reason."""
    for stream in dict.fromkeys(record["stream"] for record in results["peers"]):
        records = [record for record in results["peers"] if record["stream"] == stream]
        records.sort(key=lambda record: record.get("microseconds", float("inf")))
        first = records[0]
        title = f"{stream}: {first['rows']} rows, {first['features']} inputs"
        yield Table(title, ("learner", "us per row", "MSE x 1e-3", ""), [peer(record) for record in records])


def peer(record: Record) -> tuple[str, ...]:
    if record["status"] != "ok":
        us = record.get("microseconds")
        return (
            record["learner"],
            "-" if us is None else digits(us),
            "-",
            f"{STATUS[record['status']]}: {record['note']}",
        )
    return record["learner"], digits(record["microseconds"]), f"{1e3 * record['mse']:.2f}", ""


def digits(x: float) -> str:
    """Three significant digits without an exponent.

    >>> digits(0.7341), digits(12.345), digits(1234.5)
    ('0.734', '12.3', '1234')
    """
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


# In the terminal


def show(results: Results, console: Console) -> None:
    wide = [*factors(results)]
    for table in tables(results):
        if table in wide or table in (growth(results), shared(results)):
            continue  # too wide for the terminal
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
- **The floor** is a lower bound on the time of a round. It counts the operations in the equations (phases, sines and
  cosines, theta z, theta's step) on D features without padding, at the peak rates measured in the same run: the
  engine's polynomial on numbers in the L1 cache, multiply-adds in registers, bytes from the L2 cache. Kernel weights,
  probabilities, drawing the node and the call itself are not counted. Peak rates and rounds are measured alternately,
  and the best of each counts.
- **chunk**: all rows in one call of `Online.run`; **row**: one call of `Online.learn` for each row, which validates
  it; **cores**: as many learners in parallel as there are cores; **NumPy**: the reference implementation in
  `omkl.algorithms`. The fastest of many short repetitions counts; rows are Gaussian noise, with the step size of the
  paper's longest stream.
- **Other libraries** run as in the [comparison with streaming peers](peers.md), row by row in processor time, on the
  first rows of each data set; omkl's learners are called once for all rows through the scikit-learn API, and the
  overhead of that call is about the cost of a thousand rows.
- Compare numbers within a table; absolute numbers depend on the machine and its load.
"""


def page(results: Results) -> str:
    """docs/benchmark.md."""
    machine = results["machine"]
    about = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['instruction_set']}, {machine['system']}, Python "
        f"{machine['python']}, NumPy {machine['numpy']}, Java {machine['java'] or 'none'}; load {machine['load']}; "
        f"{machine['date']}; {results['seconds']:.0f} s in total."
    )
    parts = ["# Speed", f"Written by `{results['command']}` from `results/bench.json`; do not edit.", about,
             "## Method", HOW]  # fmt: skip
    for table in tables(results):
        parts += [f"## {table.title}", in_markdown(table)]
    if results["left_out"]:
        parts.append(f"Data sets not found: {', '.join(results['left_out'])}.")
    return "\n\n".join(part.strip() for part in parts) + "\n"
