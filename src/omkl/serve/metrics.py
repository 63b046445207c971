"""Times and counts of requests, and all metrics in the text format of Prometheus."""

import bisect
import time
from collections import defaultdict, deque

from omkl.serve.views import View, errors

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
RECENT = 2048  # requests of which the dashboard shows the times
SECONDS = 120  # of which it shows the rows per second
GAUGES = {
    "rows": ("counter", "omkl_rows_total", "Rows accepted."),
    "learned": ("counter", "omkl_rows_learned_total", "Rows learned."),
    "waiting": ("gauge", "omkl_rows_waiting", "Rows that wait for their target."),
    "keys": ("gauge", "omkl_keys", "Keys that have a model."),
    "queue": ("gauge", "omkl_queue_requests", "Requests that wait to be learned."),
    "queue_rows": ("gauge", "omkl_queue_rows", "Rows of these requests."),
    "log_bytes": ("gauge", "omkl_log_bytes", "Bytes of the log that no checkpoint contains yet."),
    "disk_bytes": ("gauge", "omkl_disk_bytes", "Bytes of log and checkpoint on the disk."),
    "checkpoints": ("counter", "omkl_checkpoints_total", "Checkpoints written since the start."),
    "failed_checkpoints": ("counter", "omkl_checkpoint_failures_total", "Checkpoints that could not be written."),
    "rollbacks": (
        "counter",
        "omkl_rollbacks_total",
        "Requests that were taken back because they could not be learned.",
    ),
    "restarts": ("counter", "omkl_worker_restarts_total", "Restarts of worker processes that had stopped."),
    "rmse": ("gauge", "omkl_rmse", "Root mean squared error of the predictions before each row was learned."),
    "mae": ("gauge", "omkl_mae", "Mean absolute error."),
    "baseline_rmse": ("gauge", "omkl_baseline_rmse", "Root mean squared error of the running mean."),
    "linear_rmse": ("gauge", "omkl_linear_rmse", "Root mean squared error of a linear model."),
    "accuracy": ("gauge", "omkl_accuracy", "Share of labels predicted rightly before each row was learned."),
    "baseline_accuracy": ("gauge", "omkl_baseline_accuracy", "Accuracy of the most frequent label."),
    "coverage": ("gauge", "omkl_coverage", "Share of targets inside the 90 % interval."),
    "changes": ("gauge", "omkl_changes", "Changes of the stream that were noticed."),
}


class Meter:
    """Requests of one kind to one model."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0
        self.recent: deque[float] = deque(maxlen=RECENT)

    def add(self, seconds: float) -> None:
        self.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds
        self.recent.append(seconds)


class Meters:
    """Counts and times of all requests."""

    def __init__(self) -> None:
        self.meters: dict[tuple[str, str], Meter] = defaultdict(Meter)
        self.statuses: dict[tuple[str, int], int] = defaultdict(int)
        self.rows: dict[str, deque[list[int]]] = defaultdict(lambda: deque(maxlen=SECONDS))

    def add(self, verb: str, status: int, model: str | None, seconds: float, rows: int) -> None:
        """A request that was answered."""
        self.statuses[verb, status] += 1
        if model is None:
            return
        self.meters[model, verb].add(seconds)
        now, per_second = int(time.monotonic()), self.rows[model]
        if not per_second or per_second[-1][0] != now:
            per_second.append([now, 0])
        per_second[-1][1] += rows

    def forget(self, model: str) -> None:
        """Of a model that was deleted."""
        self.meters = defaultdict(Meter, {key: meter for key, meter in self.meters.items() if key[0] != model})
        self.rows.pop(model, None)

    def latencies(self, model: str) -> dict[str, list[float]]:
        """Median and 99th percentile of the last requests, in milliseconds, by kind."""
        out = {}
        for (name, verb), meter in list(self.meters.items()):
            if name == model and meter.recent:
                times = sorted(meter.recent)
                out[verb] = [1000 * times[len(times) // 2], 1000 * times[min(int(0.99 * len(times)), len(times) - 1)]]
        return out

    def rates(self, model: str) -> list[int]:
        """Rows in each of the last seconds."""
        found: dict[int, int] = {pair[0]: pair[1] for pair in list(self.rows.get(model, ()))}
        now = int(time.monotonic())
        return [found.get(second, 0) for second in range(now - SECONDS + 1, now)]


def text(views: dict[str, View], meters: Meters, version: str) -> str:
    """All metrics, as Prometheus reads them."""
    lines = ["# HELP omkl_info Version of omkl.", "# TYPE omkl_info gauge", f'omkl_info{{version="{version}"}} 1']
    shown = {name: view | errors(view) | {"changes": len(view["changes"])} for name, view in views.items()}
    for field, (kind, name, about) in GAUGES.items():
        values = [(model, view.get(field)) for model, view in shown.items()]
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        lines += [f'{name}{{model="{model}"}} {value}' for model, value in values if value is not None]
    lines += ["# HELP omkl_requests_total Requests answered.", "# TYPE omkl_requests_total counter"]
    lines += [f'omkl_requests_total{{request="{verb}",status="{status}"}} {count}'
              for (verb, status), count in sorted(meters.statuses.items())]  # fmt: skip
    name = "omkl_request_seconds"
    lines += [f"# HELP {name} Time from the first byte of a request to its answer.", f"# TYPE {name} histogram"]
    for (model, verb), meter in sorted(meters.meters.items()):
        about, total = f'model="{model}",request="{verb}"', 0
        for bound, count in zip((*BUCKETS, "+Inf"), meter.buckets, strict=True):
            total += count
            lines.append(f'{name}_bucket{{{about},le="{bound}"}} {total}')
        lines += [f"{name}_sum{{{about}}} {meter.seconds}", f"{name}_count{{{about}}} {total}"]
    return "\n".join(lines) + "\n"
