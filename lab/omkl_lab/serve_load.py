"""Load on `omkl serve` by one client on the same machine: python -m omkl_lab.serve_load [PART ...] [--save]

Measures single rows and batches, what the processor and the memory do meanwhile, how long predictions wait for the
learner, and the library's own speed on the same rows in the same run. With --save it writes results/serve.json and the
table in docs/serve.md; of some parts (singles, batches, waits), the others are those of the last time.
"""

import argparse
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omkl import GraphMKLRegressor
from omkl.arrays import Matrix, Vector
from omkl.serve.bodies import ARROW, JSON, arrow_bytes
from omkl_lab import markdown
from omkl_lab.files import brief, write_json
from omkl_lab.machine import described

RESULTS, PAGE = Path("results/serve.json"), Path("docs/serve.md")
COMMAND = "python -m omkl_lab.serve_load --save"
RUN = "from omkl.cli import main; main()"
INPUTS, BATCH, CONNECTIONS, BUDGET = 8, 1000, 24, "small"
BUDGETS = (BUDGET, "standard")  # of batches
WANTED_PER_SECOND, WANTED_P99_MS, WANTED_SHARE = 2_000, 20, 0.5
WARM_UP = 5.0  # seconds of requests before those that count
SAMPLES = 10  # of the memory
UNCOUNTED = 10  # batches before those that count
HEAD = ("POST /v1/models/-/{verb} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
        "Content-Length: {length}\r\n\r\n")  # fmt: skip


def stream(n: int, seed: int = 0) -> tuple[Matrix, Vector]:
    """Rows of a smooth function of some inputs, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, INPUTS))
    return X, np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def rows_of(X: Matrix, y: Vector) -> list[dict[str, float]]:
    return [{f"x{k}": v for k, v in enumerate(x)} | {"y": t} for x, t in zip(X.tolist(), y.tolist(), strict=True)]


def request(verb: str, body: object) -> bytes:
    """The bytes of a request: an Arrow stream, or anything else as JSON."""
    content, kind = (body, ARROW) if isinstance(body, bytes) else (json.dumps(body).encode(), JSON)
    return HEAD.format(verb=verb, kind=kind, length=len(content)).encode() + content


class Server:
    """A service in a process of its own."""

    def __init__(self, folder: str, budget: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["serve", "--target", "y", "--task", "regression", "--set", f"budget={budget}",
                 "--state", f"{folder}/state", "--port", str(self.port)]  # fmt: skip
        self.process = subprocess.Popen([sys.executable, "-c", RUN, *words], stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{self.port}"
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/ready", timeout=1).close()
                return
            time.sleep(0.1)
        raise RuntimeError("the service did not start")

    def processor_seconds(self) -> float:
        """Of all its threads, up to now, to the nanosecond; those that have ended are not counted."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def resident(self) -> int:
        """Bytes of memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


@contextlib.contextmanager
def served(budget: str = BUDGET) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, budget)
        try:
            yield server
        finally:
            server.stop()


class Connection:
    """Sends one request after another, each as soon as the last has been answered."""

    def __init__(self, server: Server, requests: Iterator[bytes]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests, self.times = requests, list[float]()
        self.buffer, self.missing = b"", 0

    def send(self) -> None:
        content = next(self.requests)  # which may have to be made first
        self.began = time.perf_counter()
        self.socket.sendall(content)

    def receive(self) -> bool:
        """Take what has come; whether it is a whole answer."""
        if not (came := self.socket.recv(1 << 20)):
            raise RuntimeError("the service closed the connection")
        self.buffer += came
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.partition(b"content-length: ")[2].split(b"\r\n", 1)[0]):
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"a request failed: {self.buffer[:300]!r}")
        self.times.append(time.perf_counter() - self.began)
        self.buffer = b""
        return True


def hammer(server: Server, seconds: float, connections: list[Connection]) -> dict[str, Any]:
    """All connections at once for so many seconds.

    One loop over plain sockets: a client on asyncio would take as much of the processor as the service.
    """
    ready, by_file = select.epoll(), {line.socket.fileno(): line for line in connections}
    for line in connections:
        line.times.clear()
        ready.register(line.socket, select.EPOLLIN)
    before, own, began, memory = server.processor_seconds(), time.process_time(), time.perf_counter(), list[int]()
    for line in connections:
        line.send()
    busy = len(connections)
    while busy:
        for file, _ in ready.poll():
            line = by_file[file]
            if not line.receive():
                continue
            passed = line.began + line.times[-1] - began
            if passed * SAMPLES >= seconds * len(memory):
                memory.append(server.resident())
            if passed < seconds:
                line.send()
            else:
                busy -= 1
    took = time.perf_counter() - began
    times = [each for line in connections for each in line.times]
    return latencies(times) | {
        "seconds": brief(took), "requests": len(times), "per_second": brief(len(times) / took),
        "processor_us": brief(1e6 * (server.processor_seconds() - before) / len(times)),
        "client_processor_us": brief(1e6 * (time.process_time() - own) / len(times)),
        "memory_mb": [brief(each / 1e6) for each in memory],
    }  # fmt: skip


def latencies(times: list[float]) -> dict[str, float]:
    """Of some requests, in milliseconds."""
    p50, p99, longest = 1000 * np.quantile(times, [0.5, 0.99, 1.0])
    return {"p50_ms": brief(p50), "p99_ms": brief(p99), "max_ms": brief(longest)}


def singles(seconds: float, connections: int) -> dict[str, Any]:
    """Predict-then-learn, one row in a request."""
    requests = cycle([request("predict-then-learn", row) for row in rows_of(*stream(20_000))])
    with served() as server:
        lines = [Connection(server, requests) for _ in range(connections)]
        hammer(server, min(WARM_UP, seconds), lines)  # its first rows decide about much
        return hammer(server, seconds, lines)


def batches(budget: str, repeats: int) -> dict[str, Any]:
    """Batches, one after another, as JSON and as Arrow, in turn with the same batch learned by the library here."""
    X, y = stream(BATCH * (repeats + UNCOUNTED))
    seconds: dict[str, list[float]] = {"library": [], "json": [], "arrow": []}
    processor: dict[str, list[float]] = {"library": [], "json": [], "arrow": []}
    model = GraphMKLRegressor(random_state=0, budget=budget)
    with served(budget) as json_server, served(budget) as arrow_server:
        parts = [slice(k * BATCH, (k + 1) * BATCH) for k in range(repeats + UNCOUNTED)]
        as_json = (request("predict-then-learn", rows_of(X[part], y[part])) for part in parts)
        as_arrow = (request("predict-then-learn", arrow_bytes(pa.Table.from_pylist(rows_of(X[part], y[part]))))
                    for part in parts)  # fmt: skip
        ways = (("json", json_server, Connection(json_server, as_json)),
                ("arrow", arrow_server, Connection(arrow_server, as_arrow)))  # fmt: skip
        for part in parts:
            for name, server, line in ways:
                before = server.processor_seconds()
                line.send()
                while not line.receive():
                    pass
                seconds[name].append(line.times[-1])
                processor[name].append(server.processor_seconds() - before)
            began, before = time.perf_counter(), time.process_time()
            model.predict_then_learn(X[part], y[part])
            seconds["library"].append(time.perf_counter() - began)
            processor["library"].append(time.process_time() - before)
    spent, used = ({name: float(np.sum(each[UNCOUNTED:])) for name, each in of.items()} for of in (seconds, processor))
    rows = BATCH * repeats
    return {
        name: {"us_per_row": brief(1e6 * spent[name] / rows), "processor_us_per_row": brief(1e6 * used[name] / rows),
               "share_of_library": brief(spent["library"] / spent[name]),
               "share_by_processor": brief(used["library"] / used[name])} for name in spent
    }  # fmt: skip


def waits(seconds: float) -> dict[str, Any]:
    """How long predictions take while nothing is learned, and while batches are learned without a pause."""
    rows = rows_of(*stream(20 * BATCH))
    large = cycle([request("learn", rows[k * BATCH : (k + 1) * BATCH]) for k in range(20)])
    small = cycle([request("predict", row) for row in rows[:1000]])
    with served() as server:
        hammer(server, 2.0, [Connection(server, large)])
        predicting = Connection(server, small)
        hammer(server, seconds, [predicting])
        alone = latencies(predicting.times)
        hammer(server, seconds, [predicting, Connection(server, large)])  # the service closes idle connections
    return {"alone": alone, "while_learning": latencies(predicting.times)}


def quoted(results: Mapping[str, Any]) -> dict[str, str]:
    """The text between the markers of docs/serve.md."""
    one, many, wait, machine = results["singles"], results["batches"], results["waits"], results["machine"]
    rows = [
        ["predict-then-learn, one row in a request", f"{one['per_second']:,.0f} requests a second",
         f"median {one['p50_ms']:.1f} ms, 99 % {one['p99_ms']:.1f} ms; {one['processor_us']:.0f} us of the server's "
         f"processor for each, and {one['client_processor_us']:.0f} us of the client's"],
        *([f"batches of {BATCH:,} rows, {name}, `budget={budget}`", f"{1e6 / found['us_per_row']:,.0f} rows a second",
           f"{100 * found['share_of_library']:.0f} % of the speed of `predict_then_learn` in Python, "
           f"{100 * found['share_by_processor']:.0f} % by time of the processor"]
          for budget, by_format in ((budget, many[budget]) for budget in BUDGETS)
          for name, found in (("JSON", by_format["json"]), ("Arrow", by_format["arrow"]))),
        ["a prediction, nothing is learned", f"median {wait['alone']['p50_ms']:.1f} ms",
         f"99 % {wait['alone']['p99_ms']:.1f} ms"],
        ["a prediction while batches are learned", f"median {wait['while_learning']['p50_ms']:.1f} ms",
         f"99 % {wait['while_learning']['p99_ms']:.1f} ms"],
    ]  # fmt: skip
    memory = ", ".join(f"{each:.0f}" for each in one["memory_mb"])
    reached = one["per_second"] >= WANTED_PER_SECOND and one["p99_ms"] <= WANTED_P99_MS
    fast = all(many[budget]["json"]["share_of_library"] >= WANTED_SHARE for budget in BUDGETS)
    about = (f"GraphMKL with `budget={BUDGET}` and {INPUTS} inputs; {one['seconds']:.0f} seconds of single "
             f"rows over {results['connections']} connections. Client and server shared {machine['cores']} cores "
             f"({machine['processor']}); times are those between the first byte of a request, which was made before, "
             f"and the last of its answer. The load average was {one['load'][0]:.1f} before and "
             f"{one['load'][1]:.1f} after it, of which they are 2. The server's memory, at equal distances: "
             f"{memory} MB. The aim of {WANTED_PER_SECOND:,} single rows a second, 99 % of them within "
             f"{WANTED_P99_MS} ms, was {'reached' if reached else 'not reached'}; that of batches at "
             f"{100 * WANTED_SHARE:.0f} % of the library's speed was {'reached' if fast else 'not reached'} with JSON. "
             f"By time of the processor alone, a core of its own would allow the server "
             f"{1e6 / one['processor_us']:,.0f} single rows a second.")  # fmt: skip
    return {"load": f"{about}\n\n{markdown.table(['', 'result', ''], rows).strip()}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="singles, batches, waits; all unless given")
    parser.add_argument("--seconds", type=float, default=300.0, help="of single rows")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS}")
    options = parser.parse_args()
    before: dict[str, Any] = json.loads(RESULTS.read_text()) if options.parts else {}
    results = before | {"command": COMMAND, "machine": described(), "connections": options.connections}
    measures: tuple[tuple[str, Callable[[], dict[str, Any]]], ...] = (
        ("singles", lambda: singles(options.seconds, options.connections)),
        ("batches", lambda: {budget: batches(budget, 30) for budget in BUDGETS}),
        ("waits", lambda: waits(min(options.seconds / 4, 20.0))),
    )  # fmt: skip
    if unknown := set(options.parts) - {name for name, _ in measures}:
        parser.error(f"there is no part {min(unknown)!r}")
    for name, found in measures:
        if not options.parts or name in options.parts:
            load = os.getloadavg()[0]
            results[name] = found() | {"load": [brief(load), brief(os.getloadavg()[0])]}
            print(name, json.dumps(results[name], indent=1), flush=True)
    if options.save:
        write_json(RESULTS, results)
        markdown.fill(PAGE, quoted(results), COMMAND)


if __name__ == "__main__":
    main()
