"""Load on `omkl serve` by one client on the same machine: python -m omkl_lab.serve_load [--seconds 300] [--save]

Measures single rows and batches, what the processor and the memory do meanwhile, how long predictions wait for the
learner, and the library's own speed on the same rows in the same run. With --save it writes results/serve.json and the
table in docs/serve.md.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omkl import GraphMKLRegressor
from omkl.arrays import Matrix, Vector
from omkl_lab import markdown
from omkl_lab.files import brief, write_json
from omkl_lab.machine import described

RESULTS, PAGE = Path("results/serve.json"), Path("docs/serve.md")
COMMAND = "python -m omkl_lab.serve_load --save"
RUN = "from omkl.cli import main; main()"
INPUTS, BATCH, CONNECTIONS = 8, 1000, 16
WANTED_PER_SECOND, WANTED_P99_MS = 2_000, 20
HEAD = ("POST /v1/models/-/{verb} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: {length}\r\n\r\n")  # fmt: skip


def stream(n: int, seed: int = 0) -> tuple[Matrix, Vector]:
    """Rows of a smooth function of some inputs, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, INPUTS))
    return X, np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def rows_of(X: Matrix, y: Vector) -> list[dict[str, float]]:
    return [{f"x{k}": v for k, v in enumerate(x)} | {"y": t} for x, t in zip(X.tolist(), y.tolist(), strict=True)]


def request(verb: str, body: object) -> bytes:
    """The bytes of a request."""
    content = json.dumps(body).encode()
    return HEAD.format(verb=verb, length=len(content)).encode() + content


class Server:
    """A service in a process of its own."""

    def __init__(self, folder: str, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = [
            "serve",
            "--target",
            "y",
            "--task",
            "regression",
            "--state",
            f"{folder}/state",
            "--port",
            str(self.port),
        ]
        self.process = subprocess.Popen([sys.executable, "-c", RUN, *words, *options], stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{self.port}"
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/ready", timeout=1).close()
                return
            time.sleep(0.1)
        raise RuntimeError("the service did not start")

    def processor_seconds(self) -> float:
        """Of all its threads, up to now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """Bytes of memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


@contextlib.contextmanager
def served(*options: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, *options)
        try:
            yield server
        finally:
            server.stop()


class Connection(asyncio.Protocol):
    """Sends one request after another, each as soon as the last has been answered."""

    def __init__(self, requests: Iterator[bytes], until: float, times: list[float], bad: list[bytes]) -> None:
        self.requests, self.until, self.times, self.bad = requests, until, times, bad
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._next()

    def _next(self) -> None:
        if time.perf_counter() > self.until:
            self.transport.close()
            return
        self.sent = time.perf_counter()
        self.transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        if len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self.bad.append(self.buffer)
        self.times.append(time.perf_counter() - self.sent)
        self.buffer = b""
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def hammer(server: Server, requests: list[bytes], seconds: float, connections: int) -> dict[str, Any]:
    """All connections at once for so many seconds."""

    def endless() -> Iterator[bytes]:
        while True:
            yield from requests

    loop, times, bad, source = asyncio.get_running_loop(), list[float](), list[bytes](), endless()
    before, began, memory = server.processor_seconds(), time.perf_counter(), [server.resident()]
    until = began + seconds
    made = [(await loop.create_connection(lambda: Connection(source, until, times, bad), "127.0.0.1", server.port))[1]
            for _ in range(connections)]  # fmt: skip
    while time.perf_counter() < until:
        await asyncio.sleep(min(seconds / 10, 5.0))
        memory.append(server.resident())
    await asyncio.gather(*(each.done for each in made))
    took = time.perf_counter() - began
    if bad:
        raise RuntimeError(f"{len(bad)} requests failed, first {bad[0][:300]!r}")
    ms = 1000 * np.sort(times)
    middle = memory[len(memory) // 2]
    return {
        "seconds": brief(took), "requests": len(times), "per_second": brief(len(times) / took),
        "p50_ms": brief(float(np.quantile(ms, 0.5))), "p99_ms": brief(float(np.quantile(ms, 0.99))),
        "max_ms": brief(float(ms[-1])),
        "processor_us": brief(1e6 * (server.processor_seconds() - before) / len(times)),
        "memory_mb": [brief(memory[0] / 1e6), brief(middle / 1e6), brief(memory[-1] / 1e6)],
    }  # fmt: skip


def singles(seconds: float, connections: int) -> dict[str, Any]:
    """Predict-then-learn, one row in a request."""
    rows = rows_of(*stream(20_000))
    requests = [request("predict-then-learn", row) for row in rows]
    with served() as server:
        asyncio.run(hammer(server, requests, min(3.0, seconds), connections))  # its first rows decide about much
        return asyncio.run(hammer(server, requests, seconds, connections))


def batches(repeats: int) -> dict[str, Any]:
    """Batches of JSON, one after another, in turn with the same batch learned by the library in this process."""
    X, y = stream(BATCH * (repeats + 2))
    service, library, cpu, own = [], [], [], []
    model = GraphMKLRegressor(random_state=0)
    with served() as server, contextlib.closing(socket.create_connection(("127.0.0.1", server.port))) as line:
        for k in range(repeats + 2):
            here = slice(k * BATCH, (k + 1) * BATCH)
            data = request("predict-then-learn", rows_of(X[here], y[here]))
            began, before = time.perf_counter(), server.processor_seconds()
            line.sendall(data)
            answer = b""
            while not answer.endswith(b"}]"):
                answer += line.recv(1 << 20)
            service.append(time.perf_counter() - began)
            cpu.append(server.processor_seconds() - before)
            began, before = time.perf_counter(), time.process_time()
            model.predict_then_learn(X[here], y[here])
            library.append(time.perf_counter() - began)
            own.append(time.process_time() - before)
    rows = BATCH * repeats
    return {
        "rows": BATCH, "batches": repeats,
        "service_us_per_row": brief(1e6 * sum(service[2:]) / rows),
        "library_us_per_row": brief(1e6 * sum(library[2:]) / rows),
        "service_processor_us_per_row": brief(1e6 * sum(cpu[2:]) / rows),
        "library_processor_us_per_row": brief(1e6 * sum(own[2:]) / rows),
        "share_of_library": brief(sum(library[2:]) / sum(service[2:])),
        "share_by_processor": brief(sum(own[2:]) / sum(cpu[2:])),
    }  # fmt: skip


async def _two(server: Server, seconds: float, large: list[bytes], small: list[bytes]) -> dict[str, Any]:
    found = await asyncio.gather(
        hammer(server, large, seconds, 1) if large else asyncio.sleep(0, {}), hammer(server, small, seconds, 1)
    )
    return {"predict": found[1], "learn": found[0]}


def waits(seconds: float) -> dict[str, Any]:
    """How long predictions take while nothing is learned, and while batches are learned without a pause."""
    rows = rows_of(*stream(20 * BATCH))
    large = [request("learn", rows[k * BATCH : (k + 1) * BATCH]) for k in range(20)]
    small = [request("predict", row) for row in rows[:1000]]
    with served() as server:
        asyncio.run(hammer(server, large, 2.0, 1))
        alone = asyncio.run(_two(server, seconds, [], small))["predict"]
        beside = asyncio.run(_two(server, seconds, large, small))["predict"]
    names = ("p50_ms", "p99_ms", "max_ms")
    return {"alone": {name: alone[name] for name in names}, "while_learning": {name: beside[name] for name in names}}


def quoted(results: Mapping[str, Any]) -> dict[str, str]:
    """The text between the markers of docs/serve.md."""
    one, many, wait, machine = results["singles"], results["batches"], results["waits"], results["machine"]
    memory = one["memory_mb"]
    rows = [
        ["predict-then-learn, one row in a request", f"{one['per_second']:,.0f} requests a second",
         f"median {one['p50_ms']:.1f} ms, 99 % {one['p99_ms']:.1f} ms; {one['processor_us']:.0f} us of the server's "
         "processor for each"],
        [f"batches of {many['rows']:,} rows", f"{1e6 / many['service_us_per_row']:,.0f} rows a second",
         f"{100 * many['share_of_library']:.0f} % of the speed of `predict_then_learn` in Python, "
         f"{100 * many['share_by_processor']:.0f} % by time of the processor"],
        ["a prediction, nothing is learned", f"median {wait['alone']['p50_ms']:.1f} ms",
         f"99 % {wait['alone']['p99_ms']:.1f} ms"],
        ["a prediction while batches are learned", f"median {wait['while_learning']['p50_ms']:.1f} ms",
         f"99 % {wait['while_learning']['p99_ms']:.1f} ms"],
    ]  # fmt: skip
    about = (f"{one['seconds']:.0f} seconds of single rows over {results['connections']} connections, client and "
             f"server on the same {machine['cores']} cores ({machine['processor']}), which others used as well: "
             f"the load average was {machine['load']:.0f} before and {results['load_after']:.0f} after it. The "
             f"server's memory was {memory[0]:.0f} MB at the beginning, {memory[1]:.0f} MB in the middle and "
             f"{memory[2]:.0f} MB at the end.")  # fmt: skip
    reached = one["per_second"] >= WANTED_PER_SECOND and one["p99_ms"] <= WANTED_P99_MS
    about += (f" The aim is {WANTED_PER_SECOND:,} single rows a second, 99 % of them within {WANTED_P99_MS} ms. It was "
              f"{'reached' if reached else 'not reached'}; by time of the processor alone, a core of its own would "
              f"allow the server {1e6 / one['processor_us']:,.0f} a second.")  # fmt: skip
    return {"load": f"{about}\n\n{markdown.table(['', 'result', ''], rows).strip()}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="of single rows")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS}")
    options = parser.parse_args()
    results: dict[str, Any] = {"command": COMMAND, "machine": described(), "connections": options.connections}
    measures: tuple[tuple[str, Callable[[], dict[str, Any]]], ...] = (
        ("singles", lambda: singles(options.seconds, options.connections)), ("batches", lambda: batches(30)),
        ("waits", lambda: waits(min(options.seconds / 4, 20.0))),
    )  # fmt: skip
    for name, found in measures:
        results[name] = found()
        print(name, json.dumps(results[name], indent=1), flush=True)
    results["load_after"] = brief(os.getloadavg()[0])
    if options.save:
        write_json(RESULTS, results)
        markdown.fill(PAGE, quoted(results), COMMAND)


if __name__ == "__main__":
    main()
