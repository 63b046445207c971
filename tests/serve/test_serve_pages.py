"""The examples of docs/serve.md, and the files for deployment."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import omkl
from serving import free_port, serving, some_rows

PROJECT = Path(__file__).parent.parent.parent
PAGE = (PROJECT / "docs" / "serve.md").read_text(encoding="utf-8")
REDIS = shutil.which("redis-server")


def test_the_examples_with_curl(tmp_path: Path) -> None:
    """Each command of the page, and its answer as the page has it."""
    (block,) = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    pairs = re.findall(r"^\$ (.*)\n(.*)$", block, flags=re.MULTILINE)
    assert len(pairs) > 5
    with serving(tmp_path / "s", "--target", "price", "--task", "regression", "--key", "order") as service:
        for command, answer in pairs:
            words = shlex.split(command.replace("localhost:8000", f"localhost:{service.port}"))
            found = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            assert found == answer, command


def test_the_example_in_python(tmp_path: Path) -> None:
    (block,) = re.findall(r"```\{\.python\}\n(.*?)```", PAGE, flags=re.DOTALL)
    with serving(tmp_path / "s", "--target", "price", "--task", "regression") as service:
        names: dict[str, Any] = {}
        exec(block.replace("8000", str(service.port)), names)
        assert names["client"].describe()["learned"] == 2
        names["client"].close()


def test_every_metric_of_the_grafana_dashboard_is_there() -> None:
    from omkl.serve.metrics import GAUGES

    dashboard = json.loads((PROJECT / "deploy" / "grafana.json").read_text())
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    known = {name for _, name, _ in GAUGES.values()} | {"omkl_requests_total", "omkl_request_seconds_bucket"}
    assert set(re.findall(r"omkl_\w+", asked)) <= known


def test_the_options_of_unit_and_image_are_understood() -> None:
    help_text = omkl("serve", "--help").stdout
    for name in ("omkl.service", "Dockerfile"):
        text = (PROJECT / "deploy" / name).read_text()
        line = next(line for line in text.replace("\\\n", " ").splitlines() if re.match("ExecStart|ENTRYPOINT", line))
        assert re.findall(r"--[a-z-]+", line)
        assert all(option in help_text for option in re.findall(r"--[a-z-]+", line))


@pytest.mark.slow
@pytest.mark.skipif(REDIS is None, reason="no broker: install Debian's redis-server to run this test")
def test_omkl_run_reads_a_broker(tmp_path: Path) -> None:
    port = free_port()
    words = [str(REDIS), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        reader = [sys.executable, str(PROJECT / "deploy" / "redis_stream.py"), "orders", "--port", str(port), "--once"]
        rows = some_rows(200)
        add(port, rows)
        pipe = subprocess.run(reader, capture_output=True, check=True)
        assert len(pipe.stdout.splitlines()) == 200
        found = omkl("run", "-", "--target", "y", "--every", "1", "--predictions", "-", input=pipe.stdout.decode())
        assert found.returncode == 0, found.stderr
        lines = found.stdout.splitlines()
        assert len(lines) == 201
        assert lines[0].startswith("row,prediction")
        plain = "".join(json.dumps({name: str(v) for name, v in row.items() if v is not None}) + "\n" for row in rows)
        assert omkl("run", "-", "--target", "y", "--predictions", "-", input=plain).stdout == found.stdout
    finally:
        server.terminate()
        server.wait()


def add(port: int, rows: list[dict[str, object]]) -> None:
    """Messages of a stream, one for each row."""
    import contextlib
    import socket
    import time

    for _ in range(100):
        with contextlib.suppress(OSError):
            line = socket.create_connection(("127.0.0.1", port))
            break
        time.sleep(0.1)
    with line, line.makefile("rb") as stream:
        for row in rows:
            words = ["XADD", "orders", "*", *(str(w) for pair in row.items() if pair[1] is not None for w in pair)]
            parts = "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
            line.sendall(f"*{len(words)}\r\n{parts}".encode())
            assert stream.readline().startswith(b"$")
            stream.readline()
