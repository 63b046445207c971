"""A service in a process of its own, for tests."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from omkl.notices import Notices
from omkl.serve import Client
from omkl.serve.bodies import batch_of
from omkl.stream.model import StreamModel
from omkl.stream.options import Options
from omkl.stream.run import new_model

RUN = "from omkl.cli import main; main()"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Service:
    """`omkl serve` on a port of its own."""

    def __init__(self, state: Path, *options: str, env: dict[str, str] | None = None) -> None:
        self.words = [sys.executable, "-W", "error", "-c", RUN, "serve", "--state", str(state), *options]
        self.env, self.port = {**os.environ, **(env or {})}, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = state.with_suffix(".log")
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*self.words, "--port", str(self.port)], stderr=log, env=self.env)
        until = time.monotonic() + 300
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/ready", timeout=5).close()
                return
            if self.process.poll() is not None:
                raise RuntimeError(self.log.read_text())
            time.sleep(0.05)
        raise RuntimeError("the service did not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def workers(self) -> list[int]:
        """Its worker processes."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob(
            "*/children"
        )  # a process belongs to the thread that began it
        found = [int(pid) for task in tasks for pid in task.read_text().split()]
        return [pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def resident(self) -> int:
        """Bytes of memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def serving(state: Path, *options: str, env: dict[str, str] | None = None) -> Iterator[Service]:
    service = Service(state, *options, env=env)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.stop()


def some_rows(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows with numbers, text and gaps, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    rows = []
    for k, (a, b, c) in enumerate(X.tolist()):
        row: dict[str, Any] = {"a": a, "b": b, "town": "north" if c > 0.3 else "south" if c > -0.6 else "east"}
        row["y"] = float(np.sin(3 * a) + b * (c > 0.3) + 0.1 * rng.standard_normal())
        if k % 7 == 3:
            row["b"] = None
        rows.append(row)
    return rows


def learned_alone(rows: list[dict[str, Any]], **options: Any) -> tuple[StreamModel, list[Any]]:
    """What the library itself learns from the same rows in the same order, and predicts before each."""
    model = new_model(Options(target="y", task="regression", **options), Notices())
    found: list[Any] = []
    for k, row in enumerate(rows, 1):
        found += model.run(batch_of([row], k))[0].y_pred.tolist()
    return model, found


class Clients:
    """Threads that send rows one by one, each until it is acknowledged, whatever becomes of the service."""

    def __init__(self, url: str, rows: list[dict[str, Any]], threads: int) -> None:
        self.acknowledged: dict[int, tuple[dict[str, Any], float]] = {}  # by the row's number
        self.twice: list[int] = []
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send, args=(url, k, rows[k::threads])) for k in range(threads)]
        for thread in self._threads:
            thread.start()

    def _send(self, url: str, k: int, rows: list[dict[str, Any]]) -> None:
        with Client(url, retries=0, timeout=10) as client:
            self._send_all(client, k, rows)

    def _send_all(self, client: Client, k: int, rows: list[dict[str, Any]]) -> None:
        for n, row in enumerate(rows):
            while not self.stopped.is_set():
                try:
                    answer = client.predict_then_learn(row, id=f"{k}-{n}")
                except Exception:  # the service was killed: again, with the same id
                    time.sleep(0.01)
                    continue
                with self._lock:
                    if answer["row"] in self.acknowledged:
                        self.twice.append(answer["row"])
                    self.acknowledged[answer["row"]] = row, answer["prediction"]
                break

    @property
    def done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def join(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        self.stopped.set()
        for thread in self._threads:
            thread.join()


def get(url: str, **headers: str) -> Any:
    """JSON from the service."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return json.loads(answer.read())
