"""`omkl-lab demo`: the paper's algorithms on the embedded streams and on the available data sets."""

from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from omkl.engine import instruction_set
from omkl.kernels import dictionary
from omkl_lab.configurations import DEFAULTS, NAMES, default_configurations, is_matching, paper_configurations
from omkl_lab.data.sets import EMBEDDED, PAPER, locate
from omkl_lab.reproduce.job import Options, finish, run_cases, streams
from omkl_lab.reproduce.results import Detail, Result
from omkl_lab.streams import mixture

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.:-=+*#"
LABEL = 30  # columns before the bars
RUNS, QUICK_RUNS, QUICK_ROWS = 5, 1, 600


def run(quick: bool, seed: int, jobs: int, out: Path, console: Console, stderr: Console) -> None:
    """Run, print the tables, and end with the path of the report."""
    if quick:
        found = [*streams(["diabetes"], seed, stderr), mixture(QUICK_ROWS, seed)]
    else:
        available = [name for name in PAPER if locate(name)]
        found = streams([*EMBEDDED, *available], seed, stderr, download=False)
        if missing := [name for name in PAPER if name not in available]:
            line = f"data sets not found: {', '.join(missing)}; run `omkl-lab data fetch` or set OMKL_DATA"
            console.print(line, style="dim", soft_wrap=True, highlight=False)
    options = Options([], list(NAMES.values()), QUICK_RUNS if quick else RUNS, jobs, seed, out)
    results, details = run_cases(found, [*paper_configurations(), *default_configurations()], options, stderr)
    show(results, details, console)
    finish(out, console)


# Tables are functions of results


def show(results: list[Result], details: list[Detail], console: Console) -> None:
    for dataset in dict.fromkeys(r["dataset"] for r in results):
        pairs = [(r, d) for r, d in zip(results, details, strict=True) if r["dataset"] == dataset and is_shown(r)]
        console.print()
        console.print(table(pairs))
        if pairs[0][1]["truth"]:
            console.print(weights(pairs, console))
    console.print(
        Text(
            "\npaper: the published MSE. / mean: MSE as a share of the running mean's. kernels: evaluated per "
            f"sample. us: microseconds per sample, on one core ({instruction_set()}).\n"
            f"{DEFAULTS}: Settings(), which need not know the length of the stream and whose step "
            "cannot overshoot; the other rows follow the paper's protocol.",
            style="dim",
        )
    )


def is_shown(r: Result) -> bool:
    """Forms with Delta in one dimension differ little; only those that match a published number are shown."""
    return "1-D" not in r["variant"] or (r["paper_mse"] is not None and is_matching(r))


def table(pairs: list[tuple[Result, Detail]]) -> Table:
    _, about = pairs[0]
    runs = max(r["runs"] for r, _ in pairs)
    over = f"mean over {runs} random-feature sets" if runs > 1 else "one random-feature set"
    out = Table(
        title=f"{about['dataset']}: {about['rows']} rows, {about['features']} features; MSE x 1e-3 ({over})",
        title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    published = any(r["paper_mse"] is not None for r, _ in pairs)
    out.add_column("algorithm", no_wrap=True)
    out.add_column("form", no_wrap=True)
    for name in (*(["paper"] if published else []), "MSE", "/ mean", "kernels", "us"):
        out.add_column(name, justify="right", no_wrap=True)
    mean = about["mean_mse"]
    blank = [""] if published else []
    out.add_row("running mean", "", *blank, f"{1e3 * mean:.2f}", "1.00", "", "", style="dim")
    best = min((r["mse"] for r, _ in pairs if r["mse"] is not None), default=None)
    previous = ""
    for r, d in pairs:
        if r["variant"] == DEFAULTS != previous:
            out.add_section()
        previous = r["variant"]
        if r["mse"] is None:
            where = "diverges" if d["diverged_runs"] == r["runs"] else f"{d['diverged_runs']}/{r['runs']} diverge"
            mse, ratio = f"[red]{where}[/]", ""
        else:
            mse, ratio = f"{1e3 * r['mse']:.2f}", f"{r['mse'] / mean:.2f}"
        paper = [f"{1e3 * r['paper_mse']:.2f}" if r["paper_mse"] is not None and is_matching(r) else ""]
        out.add_row(
            r["algorithm"], r["variant"], *(paper if published else []), mse, ratio, f"{d['kernels']:.1f}",
            f"{1e6 * r['seconds'] / d['rows']:.2f}", style="bold" if r["mse"] is not None and r["mse"] == best else "",
        )  # fmt: skip
    return out


def weights(pairs: list[tuple[Result, Detail]], console: Console) -> RenderableType:
    """One bar per kernel of the dictionary: the weights that each learner learned, below the true kernels."""
    plain = console.options.ascii_only
    kernels = dictionary("paper")
    ramp = ASCII_BARS if plain else BARS
    truth = pairs[0][1]["truth"]
    marks = "".join(("^" if plain else "▲") if i in truth else "." for i in range(len(kernels)))
    scales = ", ".join(f"{kernels[i].length_scale:.2g}" for i in truth)
    lines = [
        Text("\nkernel weights learned, from the narrowest kernel to the widest", style="italic"),
        Text(f"{'true kernels: ' + scales:{LABEL}}").append(marks, "green").append(" largest", "dim"),
    ]
    for r, d in pairs:
        if r["mse"] is not None:
            largest = kernels[max(range(len(kernels)), key=d["weights"].__getitem__)].length_scale
            line = Text(f"{r['algorithm'] + ' ' + r['variant']:{LABEL}}").append(bars(d["weights"], ramp), "cyan")
            lines.append(line.append(f" {largest:.2g}", "dim"))
    lines.append(
        Text(
            "A kernel's weight reflects how well it predicts on its own, so the weights concentrate around the best "
            "single kernel (its length scale is at the end of the line) and need not identify every true one.",
            style="dim",
        )
    )
    return Group(*lines)


def bars(w: list[float], ramp: str) -> str:
    """One bar per weight, relative to the largest; equal weights have half height.

    >>> bars([0.25, 0.25, 0.25, 0.25], BARS), bars([0.0, 0.1, 0.6, 0.3], BARS)
    ('▅▅▅▅', '▁▂█▅')
    """
    top = max(max(w), 2 / len(w))
    return "".join(ramp[round((len(ramp) - 1) * x / top)] for x in w)
