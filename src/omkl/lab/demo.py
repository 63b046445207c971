"""The main job: every algorithm over two embedded streams, as tables of MSE, kernels heard and time."""

from collections.abc import Callable
from typing import TypedDict

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from omkl._version import __version__
from omkl.engine import instruction_set
from omkl.kernels import dictionary
from omkl.lab.entrants import entrants
from omkl.lab.prequential import Score, running_mean_mse, score, sets_of
from omkl.lab.streams import Stream, diabetes, mixture

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.:-=+*#"
LABEL = 30  # columns before the bars


class StreamResult(TypedDict):
    name: str
    about: str
    rows: int
    features: int
    truth: list[int]  # kernels that made the stream, counted from 0; empty where nobody knows
    mean_mse: float  # MSE of the running mean
    scores: list[Score]


class Results(TypedDict):
    """All that the tables are made of; the file that `--json` writes."""

    command: str
    version: str
    instruction_set: str
    seed: int
    streams: list[StreamResult]


def embedded(quick: bool, seed: int) -> tuple[list[Stream], int]:
    """The streams, and how many random-feature sets to average over."""
    return ([diabetes(), mixture(600, seed)], 1) if quick else ([diabetes(), mixture(5000, seed)], 10)


def rows_to_run(quick: bool) -> int:
    """How often `run` will tick, in rows."""
    streams, sets = embedded(quick, 0)
    return sum(len(stream.y) * sets_of(entrant, sets) for stream in streams for entrant in entrants())


def run(quick: bool, seed: int, tick: Callable[[int], object] = lambda rows: None) -> Results:
    """Run everything; `tick` hears of the rows done."""
    streams, sets = embedded(quick, seed)
    return {
        "command": "omkl demo" + (" --quick" if quick else ""),
        "version": __version__,
        "instruction_set": instruction_set(),
        "seed": seed,
        "streams": [
            {
                "name": stream.name,
                "about": stream.about,
                "rows": len(stream.y),
                "features": stream.X.shape[1],
                "truth": list(stream.truth),
                "mean_mse": running_mean_mse(stream.y),
                "scores": [score(entrant, stream, sets, seed, tick) for entrant in entrants()],
            }
            for stream in streams
        ],
    }


# Tables are functions of results


def show(results: Results, console: Console) -> None:
    for stream in results["streams"]:
        console.print()
        console.print(table(stream))
        if stream["truth"]:
            console.print(weights(stream, console))
    console.print(
        Text(
            "\n/ mean: MSE as a share of the running mean's. kernels: evaluated per sample. us: microseconds per "
            f"sample, in chunks of rows, on one core ({results['instruction_set']}).\n"
            "safe defaults: Settings(), which need not know how long the stream is and whose step "
            "cannot overshoot; the other rows follow the paper's protocol.",
            style="dim",
        )
    )


def table(stream: StreamResult) -> Table:
    sets = max(score["sets"] for score in stream["scores"])
    over = f"mean over {sets} random-feature sets" if sets > 1 else "one random-feature set"
    out = Table(
        title=f"{stream['name']}: {stream['rows']} rows, {stream['features']} features ({over})",
        caption=stream["about"],
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    out.add_column("algorithm", no_wrap=True)
    out.add_column("form", no_wrap=True)
    for name in ("MSE x 1e-3", "/ mean", "kernels", "us"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_row("running mean", "", f"{1e3 * stream['mean_mse']:.2f}", "1.00", "", "", style="dim")
    best = min((s["mse"] for s in stream["scores"] if s["mse"] is not None), default=None)
    previous = ""
    for s in stream["scores"]:
        if s["variant"] == "safe defaults" != previous:
            out.add_section()
        previous = s["variant"]
        if s["mse"] is None:
            where = "diverges" if s["diverged"] == s["sets"] else f"{s['diverged']}/{s['sets']} diverge"
            mse, ratio = f"[red]{where}[/]", ""
        else:
            mse, ratio = f"{1e3 * s['mse']:.2f}", f"{s['mse'] / stream['mean_mse']:.2f}"
        out.add_row(
            s["algorithm"], s["variant"], mse, ratio, f"{s['kernels']:.1f}", f"{s['microseconds']:.2f}",
            style="bold" if s["mse"] is not None and s["mse"] == best else "",
        )  # fmt: skip
    return out


def weights(stream: StreamResult, console: Console) -> RenderableType:
    """One bar per kernel of the dictionary: what each learner made of the kernels, under the true ones."""
    plain = console.options.ascii_only
    kernels = dictionary("paper")
    ramp = ASCII_BARS if plain else BARS
    marks = "".join(("^" if plain else "▲") if i in stream["truth"] else "." for i in range(len(kernels)))
    scales = ", ".join(f"{kernels[i].length_scale:.2g}" for i in stream["truth"])
    lines = [
        Text("\nkernel weights learned, from the narrowest kernel to the widest", style="italic"),
        Text(f"{'true kernels: ' + scales:{LABEL}}").append(marks, "green").append(" heaviest", "dim"),
    ]
    for s in stream["scores"]:
        if s["weights"] is not None:
            line = Text(f"{s['algorithm'] + ' ' + s['variant']:{LABEL}}").append(bars(s["weights"], ramp), "cyan")
            lines.append(line.append(f" {s['heaviest']:.2g}", "dim"))
    lines.append(
        Text(
            "A kernel's weight says how well it predicts on its own, so the weights gather about the best single "
            "kernel (its length scale is at the end of the line) and need not find every true one.",
            style="dim",
        )
    )
    return Group(*lines)


def bars(w: list[float], ramp: str) -> str:
    """A bar per weight, as tall as its share of the largest; equal weights are of half height.

    >>> bars([0.25, 0.25, 0.25, 0.25], BARS), bars([0.0, 0.1, 0.6, 0.3], BARS)
    ('▅▅▅▅', '▁▂█▅')
    """
    top = max(max(w), 2 / len(w))
    return "".join(ramp[round((len(ramp) - 1) * x / top)] for x in w)
