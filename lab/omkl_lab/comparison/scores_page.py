"""Parts of docs/peers.md: scores of distributions, coverage of intervals, streams that change."""

from collections.abc import Iterable

from omkl_lab.comparison.learners import LIGHTGBM
from omkl_lab.comparison.results import BOOSTED, Cells, best, of_group, ours, streaming
from omkl_lab.markdown import table
from omkl_lab.parallel import Record
from omkl_lab.peers.evaluation import BEFORE, WINDOW
from omkl_lab.peers.showing import NOTHING, US, bold, digits, value
from omkl_lab.peers.streams import DRIFT_ROWS

SCORES = {"log_score": "log score", "crps": "CRPS x 1e-3", "interval_score": "interval score x 1e-3"}
WANTED = (0.88, 0.92)  # coverage of a 90 % interval

ABOUT_DRIFT = (
    f'"switch": {DRIFT_ROWS} rows, 5 features uniform on [-1, 1], noise 0.05, sin(3 x0) + x1 x2 becomes '
    "cos(3 x1) - x0 x3 in the middle. The others: river's `synth.FriedmanDrift` (seed 42), changes at 35 and 70 % "
    "(gra), 25, 50 and 75 % (lea), and gradual ones that begin at 35 and 70 % and last 10 % of the stream (gsg)."
)
ABOUT_RECOVERY = (
    f"Rows from each change until the mean of the last {WINDOW} squared errors is within twice its mean over the "
    f"{BEFORE} rows before the change ({WINDOW} is the minimum; never: not before the next change). A learner with a "
    "large error before a change recovers quickly, so compare with the errors above."
)


def recovered(record: Record | None) -> str:
    if record is None or record["status"] != "ok" or "recovery" not in record:
        return NOTHING
    return " / ".join("never" if rows is None else f"{rows:.0f}" for rows in record["recovery"])


def distributions(whole: Cells) -> Iterable[str]:
    """GraphMKL's distributions beside a normal distribution around the best point forecasts."""
    mine = {
        stream: there for stream, there in of_group(whole, "real", "project", "drift", task="numbers").items()
        if ours(there) is not None
    }  # fmt: skip
    if not mine:
        return
    head = [""]
    for title in SCORES.values():
        head += [title, "LightGBM", "streaming peer"]
    rows = []
    for stream, there in mine.items():
        row = [stream]
        for what in SCORES:
            factor = 1 if what == "log_score" else 1e3
            rivals = (best(there, BOOSTED, what), best(there, streaming(there), what))
            found = [value(there[US], what), *(pair and pair[1] for pair in rivals)]
            top = digits(factor * min(v for v in found if v is not None))
            row += [NOTHING if v is None else bold(digits(factor * v), top) for v in found]
        rows.append(row)
    yield "Scores, smaller is better, the best of the refitted LightGBM and of the streaming peers by each score:"
    yield table(head, rows)
    rows = []
    for stream, there in mine.items():
        row = [stream]
        for who in (US, LIGHTGBM):
            record = there.get(who)
            if record is None or record["status"] != "ok":
                row += [NOTHING] * 4
                continue
            windows, widths = ([100 * x for x in record[f"coverage_by_{by}"]] for by in ("window", "width"))
            shown = f"{100 * record['coverage']:.1f}"
            inside = WANTED[0] <= record["coverage"] <= WANTED[1]
            row += [shown if inside else f"{shown} (!)", f"{min(windows):.0f} to {max(windows):.0f}",
                    f"{widths[0]:.0f}, {widths[4]:.0f}, {widths[9]:.0f}", digits(record["width"])]  # fmt: skip
        rows.append(row)
    yield (
        "90 % intervals: coverage in % over the stream (marked where it is not 88 to 92), its range over ten windows "
        "of equal length, coverage of the narrowest, the fifth and the widest tenth of the intervals, and mean width. "
        "LightGBM's are those of the normal distribution; their width changes slowly, so that coverage by width says "
        "little."
    )
    yield table(["", *(f"{who}{what}" for who in ("", "LightGBM: ") for what in (
        "coverage", "windows", "by width", "width"))], rows)  # fmt: skip
