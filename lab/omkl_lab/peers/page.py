"""Writes docs/peers.md, the comparison with other libraries, from results/peers.jsonl."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from omkl_lab.files import read_lines
from omkl_lab.markdown import table
from omkl_lab.parallel import Record
from omkl_lab.peers.evaluation import AFTER, BEFORE, BINS, SKIP, WINDOW
from omkl_lab.peers.learners import LEARNERS
from omkl_lab.peers.streams import CAP, DRIFT, DRIFT_ROWS, LABELS, SHUFFLED, STREAMS, Task

RESULTS, PAGE = Path("results/peers.jsonl"), Path("docs/peers.md")
Results = dict[str, dict[str, Record]]  # stream -> learner -> record

US, US_ALL, ROW_BY_ROW = "omkl GraphMKL", "omkl GraphMKL, all experts", "omkl GraphMKL, river row by row"
LAST = "last label"
TUNED_ON = ("airfoil", "concrete", "wine_white", "naval", "bias", "energy", *DRIFT, *LABELS)
COMMAND = "OMKL_DATA=~/data python -m omkl_lab.peers --jobs 2 --out results/peers.jsonl --docs docs/peers.md"
STATUS = {"diverged": "diverges", "raised": "fails", "missing": "not installed"}
NOTHING = "-"
MACHINE = "machine"  # prefix of the keys of records that describe the machine, one for each start of the command

HOW = f"""\
Every row is predicted, then learned, in file order, by every learner of a table. Data sets are scaled as in the paper:
targets to [0, 1] over the file, inputs divided by the largest row norm; generated streams are not scaled. Only the
first {CAP} rows of longer data sets are used, for all learners, since some peers take milliseconds per row; the paper's
four data sets and the classification sets are used whole.

- **omkl**: default parameters; the median over the seeds. GraphMKL evaluates a quarter of its experts for each row
  after a warm-up, or all of them where the table says so. All rows are passed in one call (`predict_then_learn`); the
  table of times also has the cost of one call per row with the river API.
- **Peers**: one run, with a fixed seed where there is one, and default parameters except for what a row's name says
  and for the following. All of river's learners follow a `StandardScaler` (except "river logistic"), without which
  KNN, tree and forest did worse on airfoil. "KNN, exact" uses the `LazySearch` engine over the last 1000 rows. The five
  RBF of EWA have gamma 0.01 to 100 and 20 features each; the other random features are 100 with gamma 1. scikit-learn
  learns with one `partial_fit` per row. padasip's filters get a constant 1 as an additional input. VW is called from
  Python with lines of text. The settings in the names and those of EWA were chosen in favour of the peers, by their
  results on the paper's four data sets.
- **Microseconds** are processor time of one core for predicting and learning a row; rows are converted to the format of
  each learner before the clock starts. For CapyMOA the time of all threads of the Java machine counts. Two runs were
  made in parallel on a shared machine: compare ratios rather than absolute numbers.
- **To run it**: `pip install -e 'lab[peers]'` installs all peers except CapyMOA, which needs `pip install capymoa` and
  Java 17.
- **diverges**: the sum of squared errors exceeded that of any constant in the range of the targets, and the run was
  stopped. **fails**: an error was raised. **{NOTHING}**: not measured.
"""

TUNED = """\
GraphMKL's default parameters (ridges, discounts, widths, windows, trial length, orders, minimum leverage) were chosen
using airfoil, concrete, wine_white, naval, bias, energy, the four streams with drift and the three classification
sets, so its results there are optimistic. No parameter was chosen on air_quality, toms_hardware, twitter or istanbul,
but they are not fully independent either: an early prototype was run on them, the linear expert on the inputs was
added because of toms_hardware, and they were evaluated when random features of two inputs and residual stacking were
tried. The range of the linear expert, the logistic experts for labels and the kernels on single inputs were chosen on
about a hundred other streams ([details](graph_mkl.md)), while all data sets of this page were evaluated too. SFG-MKL
and Raker run with the library's defaults (horizon unknown, a step that cannot overshoot), not with the paper's
settings.
"""


def read(path: Path) -> dict[str, Record]:
    """The records of a results file by key; later records replace earlier ones."""
    return {entry["key"]: entry["record"] for entry in read_lines(path)}


def page(records: Mapping[str, Record]) -> str:
    results = by_stream(records)
    parts = [
        "# Comparison with streaming peers",
        f"Written by `{COMMAND}` from `results/peers.jsonl`; do not edit.\n",
        *about([record for key, record in records.items() if is_machine(key)]),
        "## Summary", *in_short(results),
        "## Where GraphMKL is worse", *losses(results),
        "## Method", HOW,
        "## What was tuned on what", TUNED,
        *numbers(results), *intervals(results), *drift(results), *labels(results), *failures(results),
    ]  # fmt: skip
    return "\n\n".join(part.strip() for part in parts) + "\n"


def by_stream(records: Mapping[str, Record]) -> Results:
    """For each stream the records with as many rows as the newest record, so that all are comparable."""
    found: Results = {}
    cells = [record for record in records.values() if record.get("learner") in LEARNERS]
    rows = {record["stream"]: record["rows"] for record in cells}
    for record in cells:
        if record["rows"] == rows[record["stream"]]:
            found.setdefault(record["stream"], {})[record["learner"]] = record
    order = [*(name for name in STREAMS if name in found), *sorted(set(found) - set(STREAMS))]
    return {name: {who: found[name][who] for who in LEARNERS if who in found[name]} for name in order}


def is_machine(key: str) -> bool:
    return key.startswith(MACHINE)


def about(starts: list[Record]) -> Iterable[str]:
    """The machine of the measurements, as recorded at the last start, with the load at every start."""
    if not starts:
        return
    last = starts[-1]
    java = f", {last['java']}" if last["java"] else ""
    loads = ", ".join(f"{s['load']:.1f}" for s in starts if s["load"] is not None)
    began = f"started {len(starts)} times, load then {loads}" if len(starts) > 1 else f"load {loads}"
    yield (
        f"Machine: {last['processor']}, {last['cores']} cores, {last['jobs']} in use; {began}; {last['system']}, "
        f"Python {last['python']}, NumPy {last['numpy']}{java}, {last['instruction_set']} in omkl's engine; "
        f"{last['date']}, {last['seeds']} seeds.\n"
    )


# Tables


def of_task(results: Results, task: Task) -> Results:
    return {name: cells for name, cells in results.items() if next(iter(cells.values()))["task"] == task}


def value(cell: Record | None, what: str) -> float | None:
    found = None if cell is None or cell["status"] != "ok" else cell.get(what)
    return None if found is None else float(found)


def grid(
    results: Results, what: str, shown: Callable[[float], str], learners: Iterable[str], best: str = "least"
) -> str:
    """A table of learners by streams, the best of each stream in bold."""
    columns = [column(cells, what, shown, list(learners), best) for cells in results.values()]
    return table(["", *results], [[who, *(c[who] for c in columns)] for who in columns[0]])


def column(
    cells: Mapping[str, Record], what: str, shown: Callable[[float], str], learners: list[str], best: str
) -> dict[str, str]:
    values = {who: value(cells.get(who), what) for who in learners}
    known = [v for v in values.values() if v is not None]
    top = shown(max(known) if best == "most" else min(known)) if known and best else None
    out = {}
    for who, v in values.items():
        text = status(cells.get(who)) if v is None else shown(v)
        out[who] = f"**{text}**" if v is not None and text == top else text
    return out


def status(cell: Record | None) -> str:
    return NOTHING if cell is None else STATUS.get(cell["status"], NOTHING)


def running(results: Results, leave_out: tuple[str, ...] = ()) -> list[str]:
    """Learners that have a record in these results."""
    return [who for who in LEARNERS if who not in leave_out and any(who in cells for cells in results.values())]


def digits(x: float) -> str:
    return f"{x:.3g}" if x < 1000 else f"{x:.0f}"


def thousandths(x: float) -> str:
    return digits(1e3 * x)


# Sections


def best_peer(cells: Mapping[str, Record], what: str, best: str = "least") -> tuple[str, float] | None:
    known = {who: v for who, cell in cells.items() if not cell["ours"] and (v := value(cell, what)) is not None}
    if what != "accuracy":
        known.pop(LAST, None)  # its probabilities are 0 and 1
    if not known:
        return None
    who = (max if best == "most" else min)(known, key=lambda name: known[name])
    return who, known[who]


def in_short(results: Results) -> Iterable[str]:
    rows = []
    for name, cells in {**of_task(results, "numbers"), **of_task(results, "drift")}.items():
        us, peer = value(cells.get(US), "mse"), best_peer(cells, "mse")
        if us is None or peer is None:
            continue
        shown = digits if name not in of_task(results, "numbers") else thousandths
        low, high = cells[US].get("mse_range", (us, us))
        line = [
            shown(us), f"{shown(low)} to {shown(high)}", maybe(value(cells.get(US_ALL), "mse"), shown), shown(peer[1]),
        ]  # fmt: skip
        values = [us, None, value(cells.get(US_ALL), "mse"), peer[1]]
        least = shown(min(v for v in values if v is not None))
        marked = [f"**{t}**" if v is not None and t == least else t for t, v in zip(line, values, strict=True)]
        first = next(iter(cells.values()))
        count = f"{first['rows']}" + (f" of {first['of']}" if first["of"] > first["rows"] else "")
        speed = f"{time_shown(cells[US]['microseconds'])} / {time_shown(cells[peer[0]]['microseconds'])}"
        seen = "yes" if name in TUNED_ON else "no"
        rows.append([name, count, *marked, peer[0], f"{us / peer[1]:.2f}", speed, seen])
    yield (
        "Mean squared error (x 1e-3 on the data sets), the best of each row in bold. The best peer differs between "
        "streams and is chosen in hindsight, which a user cannot do.\n"
    )
    yield table(
        ["", "rows", "GraphMKL", "range over seeds", "all experts", "best peer", "name", "ratio",
         "microseconds, GraphMKL / peer", "used for tuning"], rows,
    )  # fmt: skip
    rows = []
    for name, cells in of_task(results, "labels").items():
        us, peer = value(cells.get(US), "accuracy"), best_peer(cells, "accuracy", "most")
        loss, lower = value(cells.get(US), "log_loss"), best_peer(cells, "log_loss")
        if us is None or peer is None or loss is None or lower is None:
            continue
        ours, theirs = f"{us:.4f}", f"{peer[1]:.4f}"
        our_loss, their_loss = f"{loss:.4f}", f"{lower[1]:.4f}"
        top, least = max(ours, theirs), min(our_loss, their_loss, key=float)
        rows.append([
            name, bold(ours, top), bold(theirs, top), peer[0], bold(our_loss, least), bold(their_loss, least), lower[0],
        ])  # fmt: skip
    if rows:
        yield "Classification: accuracy and log-loss; the shuffled order is the meaningful one, see below.\n"
        yield table(["", "GraphMKL", "best peer", "name", "log-loss", "best peer", "name"], rows)


def bold(text: str, best: str) -> str:
    return f"**{text}**" if text == best else text


def maybe(x: float | None, shown: Callable[[float], str]) -> str:
    return NOTHING if x is None else shown(x)


def losses(results: Results) -> Iterable[str]:
    """Every stream and measure on which a peer is better than GraphMKL with its defaults."""
    found = []
    for name, cells in results.items():
        task = next(iter(cells.values()))["task"]
        measures = {"accuracy": "most", "log_loss": "least"} if task == "labels" else {"mse": "least"}
        for what, best in measures.items():
            us, peer = value(cells.get(US), what), best_peer(cells, what, best)
            if us is None or peer is None or us == peer[1] or (us > peer[1]) == (best == "most"):
                continue
            text = f"{us:.4g} against {peer[1]:.4g}"
            if what == "mse":
                better = [who for who, c in cells.items() if not c["ours"] and (value(c, what) or us) < us]
                more = f" ({len(better)} peers are better)" if len(better) > 1 else ""
                text = f"{100 * (us / peer[1] - 1):.2g} % more squared error than {peer[0]}, {text}{more}"
            else:
                text = f"{what.replace('_', '-')} {text} of {peer[0]}"
            found.append(f"- **{name}**: {text}.")
    yield "\n".join(found or ["On none of these streams."]) + "\n"


def numbers(results: Results) -> Iterable[str]:
    mine = of_task(results, "numbers")
    if not mine:
        return
    yield "## Regression\n\nMean squared error x 1e-3, the best on each set in bold.\n"
    yield grid(mine, "mse", thousandths, running(mine, (ROW_BY_ROW,)))
    yield "Microseconds per row, predicting and learning.\n"
    yield grid(mine, "microseconds", time_shown, running(mine), best="")


def time_shown(x: float) -> str:
    return f"{x:.0f}" if x >= 9.95 else f"{x:.1f}"


def intervals(results: Results) -> Iterable[str]:
    rows = []
    for name, cells in {**of_task(results, "numbers"), **of_task(results, "drift")}.items():
        if (cell := cells.get(US)) is None or value(cell, "coverage") is None:
            continue
        after = " / ".join(maybe(c, lambda x: f"{100 * x:.1f}") for c in cell.get("coverage_after", [])) or NOTHING
        rows.append([name, str(cell["rows"]), f"{100 * cell['coverage']:.1f}", digits(cell["width"]), after])
    if rows:
        yield (
            "## Prediction intervals\n\nGraphMKL's 90 % intervals, each computed before its row is learned, medians "
            "over the "
            "seeds: share of targets inside, mean width (targets of the data sets span 1), and share inside over the "
            f"{AFTER} rows that start {SKIP} rows after each change.\n"
        )
        yield table(["", "rows", "coverage, %", "mean width", "after changes, %"], rows)


def drift(results: Results) -> Iterable[str]:
    mine = of_task(results, "drift")
    if not mine:
        return
    yield (
        "## Concept drift\n\n"
        f'"switch": {DRIFT_ROWS} rows, 5 features uniform on [-1, 1], noise 0.05, sin(3 x0) + x1 x2 becomes '
        "cos(3 x1) - x0 x3 in the middle. The others: river's `synth.FriedmanDrift` (seed 42), changes at 35 and 70 % "
        "(gra), 25, 50 and 75 % (lea), and gradual ones that begin at 35 and 70 % and last 10 % of the stream (gsg). "
        "AMF, KNN with its default engine and the random-feature pipelines were omitted here for their run time. Mean "
        "squared error over the whole stream, unscaled:\n"
    )
    yield grid(mine, "mse", digits, running(mine))
    yield (
        f"Rows from each change until the mean of the last {WINDOW} squared errors is within twice its mean over the "
        f"{BEFORE} rows before the change ({WINDOW} is the minimum; never: not before the next change). "
        "A learner with a large error before a change recovers quickly, so compare with the errors above.\n"
    )
    rows = []
    for who in running(mine):
        line = []
        for cells in mine.values():
            found = cells[who].get("recovery") if who in cells and cells[who]["status"] == "ok" else None
            line.append(
                " / ".join("never" if r is None else f"{r:.0f}" for r in found) if found else status(cells.get(who))
            )
        rows.append([who, *line])
    yield table(["", *mine], rows)


def labels(results: Results) -> Iterable[str]:
    mine = of_task(results, "labels")
    parts = (
        ("in one fixed shuffled order", {n: c for n, c in mine.items() if n.endswith(SHUFFLED)}),
        ("in file order: labels come in long blocks, so repeating the last label is hard to beat",
         {n: c for n, c in mine.items() if not n.endswith(SHUFFLED)}),
    )  # fmt: skip
    if not mine:
        return
    yield (
        "## Classification\n\nAccuracy (a tie counts half), log-loss (probabilities at least 1e-15) and expected "
        "calibration "
        f"error ({BINS} bins of confidence). The last label predicts with probability 1, so its log-loss is not "
        "shown.\n"
    )
    for title, some in parts:
        if some:
            names = {name.removesuffix(SHUFFLED): cells for name, cells in some.items()}
            who = running(names)
            yield f"Accuracy, {title}:\n\n" + grid(names, "accuracy", lambda x: f"{x:.4f}", who, "most")
            scored = [name for name in who if name != LAST]
            yield "Log-loss:\n\n" + grid(names, "log_loss", lambda x: f"{x:.4f}", scored)
            yield "Expected calibration error:\n\n" + grid(names, "calibration", lambda x: f"{x:.4f}", scored)
            yield "Microseconds per row:\n\n" + grid(names, "microseconds", time_shown, scored, best="")


def failures(results: Results) -> Iterable[str]:
    """Learners without a result, with the reason, and versions."""
    lines = [
        f"- {who} on {name}: {cell['note']}"
        for name, cells in results.items() for who, cell in cells.items() if cell["status"] in ("missing", "raised")
    ]  # fmt: skip
    versions = {
        LEARNERS[who].package: cell["version"]
        for cells in results.values() for who, cell in cells.items()
        if "version" in cell and (cell["ours"] or LEARNERS[who].package != "omkl")
    }  # fmt: skip
    yield "## Versions\n\n" + ", ".join(f"{name} {versions[name]}" for name in sorted(versions)) + ".\n"
    if lines:
        yield "## Not run\n\n" + "\n".join(lines) + "\n"
