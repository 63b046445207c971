"""Who may do what: tokens, slow clients, too many requests, and several workers."""

import contextlib
import signal
import socket
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from command import omkl
from serving import Service, get, serving, some_rows
from uvicorn.server import ServerState

from omkl import persist
from omkl.serve import Client, ServiceError
from omkl.serve.access import Tokens
from omkl.serve.bodies import ARROW, arrow_bytes
from omkl.serve.calls import Call
from omkl.serve.commands import Command
from omkl.serve.handles import text_keys
from omkl.serve.limits import Limits, Refused
from omkl.serve.model import ServedModel
from omkl.serve.server import protocol
from omkl.serve.turns import Turns
from omkl.serve.views import Want
from omkl.serve.writer import Writer
from omkl.stream.checkpoint import Checkpoint
from omkl.stream.raw import DataError
from omkl.stream.targets import labels

READ, WRITE = "r" * 20, "w" * 20


def status_of(client: Client, method: str, path: str, body: object = None) -> int:
    try:
        client.request(method, path, body)
    except ServiceError as error:
        return error.status
    return 200


@pytest.mark.slow
def test_tokens(tmp_path: Path) -> None:
    env = {"OMKL_READ_TOKEN": READ, "OMKL_WRITE_TOKEN": WRITE}
    row = some_rows(1)[0]
    with serving(tmp_path / "state", "--target", "y", "--task", "regression", "--host", "0.0.0.0", env=env) as service:
        with (
            Client(service.url, retries=0) as nobody, Client(service.url, token="x" * 20, retries=0) as wrong,
            Client(service.url, token=READ, retries=0) as reader, Client(service.url, token=WRITE, retries=0) as writer,
        ):  # fmt: skip
            assert get(f"{service.url}/health") == {"status": "ok"}
            assert [status_of(c, "POST", "/learn", row) for c in (nobody, wrong, reader, writer)] == [
                401,
                401,
                403,
                200,
            ]
            assert [status_of(c, "POST", "/predict", row) for c in (nobody, wrong, reader, writer)] == [
                401,
                401,
                200,
                200,
            ]
            assert [status_of(c, "GET", "/metrics") for c in (nobody, wrong, reader, writer)] == [401, 401, 200, 200]
            assert status_of(reader, "POST", "/predict?wait=true", row) == 403
            assert [status_of(c, "DELETE", "/v1/models/-") for c in (nobody, reader)] == [401, 403]
        assert service.log.read_text().count(READ) == service.log.read_text().count(WRITE) == 0


def test_other_addresses_need_tokens(tmp_path: Path) -> None:
    found = omkl("serve", "--target", "y", "--host", "0.0.0.0", "--state", tmp_path / "s", "--port", "0")
    assert found.returncode == 2
    assert "tokens are needed" in found.stderr
    (tmp_path / "short").write_text("short")
    found = omkl(
        "serve", "--target", "y", "--write-token", tmp_path / "short", "--state", tmp_path / "s", "--port", "0"
    )
    assert "at least 16 characters" in found.stderr
    found = omkl("serve", "--state", tmp_path / "s")
    assert "what is to be served?" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.slow
def test_slow_clients_are_cut_off(tmp_path: Path) -> None:
    import asyncio

    from omkl.serve.server import _serve, listen
    from omkl.serve.service import Start
    from omkl.stream.options import Options

    bound = listen("127.0.0.1", 0)
    port = bound.getsockname()[1]
    start = Start("model", None, Options(target="y", task="regression"))

    async def both() -> list[bytes]:
        task = asyncio.create_task(
            _serve(tmp_path / "s", [start], Tokens(), Limits(seconds=1.0), bound, 100, lambda url: None)
        )
        found = []
        head = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for sent in (b"", whole[:30], head + b"Content-Length: 9\r\n\r\n{", whole + b"\r\n"):
            for _ in range(100):
                with contextlib.suppress(OSError):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    break
                await asyncio.sleep(0.1)
            writer.write(sent)
            found.append(await asyncio.wait_for(reader.read(), 60))
            writer.close()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return found

    with bound:
        nothing, half, slow, empty = asyncio.run(both())
    assert (nothing, half) == (b"", b"")
    assert empty.endswith(b'{"status":"ok"}')  # an empty line after a request is no beginning of another
    assert slow.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("end", [b"X: ", b"A: b\r\nX: "])
def test_headers_without_end(end: bytes) -> None:
    import asyncio

    import uvicorn

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the headers were not whole")

    class Transport(asyncio.Transport):
        closed, written = False, b""

        def write(self, data: Any) -> None:
            self.written += data

        def close(self) -> None:
            self.closed = True

    async def client() -> Transport:
        config = uvicorn.Config(answer, http=protocol(Limits()), log_config=None, lifespan="off", ws="none")
        config.load()
        line = config.http_protocol_class(config=config, server_state=ServerState(), app_state={})  # type: ignore[operator]  # uvicorn has loaded the class
        transport = Transport()
        line.connection_made(transport)
        line.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + end)
        for _ in range(100):
            if transport.closed:
                break
            line.data_received(b"a" * 1000)
        line.connection_lost(None)
        return transport

    found = asyncio.run(client())
    assert found.closed
    assert found.written.startswith(b"HTTP/1.1 431")


def test_bytes_of_unanswered_requests_are_bounded() -> None:
    import asyncio

    service = SimpleNamespace(limits=Limits(bodies=100), held=0)
    scope = {"headers": [], "query_string": b""}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 60, "more_body": False}

    first, second = (Call(service, Tokens(), scope, receive, "learn") for _ in range(2))  # type: ignore[arg-type]  # what the call asks of a service
    asyncio.run(first.body())
    with pytest.raises(Refused, match="try again later") as refused:
        asyncio.run(second.body())
    assert refused.value.status == 429
    first.release()
    asyncio.run(second.body())
    second.release()
    assert service.held == 0


def test_a_model_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from omkl.serve import service as of
    from omkl.stream.options import Options

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/a/path")

    service = of.Service(tmp_path, Limits())
    start = of.Start("new", None, Options(target="y", task="regression"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(Refused, match="No space left on device") as refused:
            service.upload(b"file")
        assert refused.value.status == 507
    with monkeypatch.context() as patch:
        patch.setattr("omkl.persist.save", full)
        with pytest.raises(Refused, match=r"cannot be written \(No space left on device\); none was added") as refused:
            asyncio.run(service.create("new", start))
        assert refused.value.status == 507
    assert list(tmp_path.iterdir()) == []
    asyncio.run(service.create("new", start))
    assert list(service.handles) == ["new"]
    service.close()


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_is_stopped_writes_a_checkpoint(tmp_path: Path, by: signal.Signals) -> None:
    with serving(tmp_path / "state", "--target", "y", "--task", "regression") as service:
        with Client(service.url) as client:
            client.learn(some_rows(5))
            client.predict(some_rows(1))
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
            line.sendall(b"no HTTP\r\n\r\n")
            assert line.recv(100).startswith(b"HTTP/1.1 400")
        service.process.send_signal(by)
        assert service.process.wait(60) == 0
        *_, before, last = service.log.read_text().splitlines()
        assert "INFO listening" in before  # and nothing about a client that does not speak HTTP
        assert last.endswith("INFO model: closed")  # and nothing from the compiled code
        found = persist.read(tmp_path / "state" / "model" / "checkpoint.omkl")
        assert isinstance(found, Checkpoint)
        assert found.progress.records == 5


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    import asyncio

    from omkl.serve import service as of
    from omkl.stream.options import Options

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "text").write_text("mine")
    (tmp_path / ".old-photos").mkdir()
    start = of.Start("docs", None, Options(target="y", task="regression"))

    async def all_of_it() -> None:
        service = of.Service(tmp_path, Limits())
        await service.start([])
        assert list(service.handles) == []
        with pytest.raises(Refused, match="something else called 'docs'"):
            await service.create("docs", start)
        with pytest.raises(DataError, match="something else than a model of omkl serve"):
            await service.start([start])
        service.close()

    asyncio.run(all_of_it())
    assert (tmp_path / "docs" / "text").read_text() == "mine"
    assert (tmp_path / ".old-photos").exists()


def test_a_model_that_is_removed_while_it_is_looked_at(tmp_path: Path) -> None:
    import asyncio

    from omkl.serve import service as of
    from omkl.stream.options import Options

    starts = [of.Start(name, None, Options(target="y", task="regression")) for name in ("a", "b", "c")]

    async def all_of_it() -> None:
        service = of.Service(tmp_path, Limits())
        await service.start(starts)
        looking = asyncio.create_task(service.views(service.view))
        late, handle = asyncio.create_task(service.view("b", importance=True)), service.get("b")
        await asyncio.sleep(0)
        await asyncio.gather(service.delete("b"), looking, late, return_exceptions=True)
        assert {"a", "c"} <= set(looking.result())
        assert ("b", True) not in service._views
        for action in (handle.view(False), handle.predict(some_rows(1), None, Want()), handle.call("to_bytes")):
            with pytest.raises(Refused, match="being removed") as refused:
                await action
            assert refused.value.status == 503
        service.close()

    asyncio.run(all_of_it())


@pytest.mark.parametrize("keys", [["a", "b"], [1, 2], [1.0, 2.5], [None, None], [1, "a", 2.0, None, True, "1"]])
def test_keys_are_known_as_if_they_came_alone(keys: list[Any]) -> None:
    assert text_keys(keys) == [None if key is None else labels(pa.array([key]))[0] for key in keys]


@pytest.mark.slow
def test_a_client_that_does_not_read_is_cut_off(tmp_path: Path) -> None:
    import asyncio

    import uvicorn

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"50000000")]})
        await send({"type": "http.response.body", "body": bytes(50_000_000)})

    async def client() -> bool:
        http = protocol(Limits(seconds=1.0))
        config = uvicorn.Config(answer, http=http, loop="none", log_config=None, lifespan="off", ws="none")
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            server = uvicorn.Server(config)
            task = asyncio.create_task(server.serve([bound]))
            line = socket.socket()
            line.setblocking(False)
            while not server.started:
                await asyncio.sleep(0.05)
            await asyncio.get_running_loop().sock_connect(line, bound.getsockname())
            line.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for _ in range(600):  # nothing is read
                await asyncio.sleep(0.1)
                if server.server_state.total_requests and not server.server_state.connections:
                    break
            gone = not server.server_state.connections
            line.close()
            server.should_exit = True
            await task
            return gone

    assert asyncio.run(client())


def test_too_many_requests_wait(tmp_path: Path) -> None:
    from omkl.notices import Notices
    from omkl.stream.options import Options
    from omkl.stream.run import new_model

    model = new_model(Options(target="y", task="regression"), Notices())
    ServedModel.create(tmp_path / "m", model, None, 0, "test")
    served = ServedModel(tmp_path / "m", Limits(queue=3, queue_rows=100))
    answered: list[object] = []
    with served.turns:  # nothing can be learned meanwhile
        writer = Writer(served, answered.extend)
        refused: list[Refused] = []
        for row in some_rows(10):
            try:
                writer.submit(Command("rows", [row]))
            except Refused as error:
                refused.append(error)
            time.sleep(0.01)
        with pytest.raises(Refused, match="wait to be learned"):
            writer.submit(Command("rows", some_rows(200)))
    assert {error.status for error in refused} == {429}
    writer.close()
    assert len(answered) == 10 - len(refused)


def test_turns_are_taken() -> None:
    import threading

    turns, order, started = Turns(), list[int](), threading.Event()

    def other() -> None:
        started.set()
        with turns:
            order.append(2)

    thread = threading.Thread(target=other)
    with turns:
        thread.start()
        started.wait()
        time.sleep(0.05)
    with turns:
        order.append(1)
    thread.join()
    assert order == [2, 1]  # who released it waits for who waited


@pytest.mark.slow
def test_keys_in_several_workers(tmp_path: Path) -> None:
    rows = [{"meter": f"m{k % 7}", "a": row["a"], "y": row["y"]} for k, row in enumerate(some_rows(210))]
    options = ("--target", "y", "--task", "regression", "--by", "meter", "--learner", "sfg-mkl")
    found = []
    for workers in ("1", "3"):
        with serving(tmp_path / workers, *options, "--workers", workers) as service, Client(service.url) as client:
            first = client.predict_then_learn(rows[:70])
            client.predict_then_learn(rows[:70], id="again")
            service.kill()
            time.sleep(0.5)  # the workers notice that they are alone
            service.start()
            client.predict_then_learn(rows[:70], id="again")  # learned once
            second = client.predict_then_learn(rows[70:])
            predicted = client.predict(rows[:20])
            found.append([answer["prediction"] for answer in (*first, *second, *predicted)])
            assert client.describe()["learned"] == 280
            assert client.request("GET", "/v1/models/-/keys")["total"] == 7
            table = pa.table({"meter": ["m1", "m1"], "a": [0.5, 0.7]})  # no row for two of the workers
            request = urllib.request.Request(f"{service.url}/predict", arrow_bytes(table), {"Content-Type": ARROW})
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert pa.ipc.open_stream(answer.read()).read_all().num_rows == 2
            if workers == "3":
                with pytest.raises(ServiceError, match="3 workers, each with a file"):
                    client.download()
                assert client.request("DELETE", "/v1/models/-/keys/m3") == {"forgotten": "m3"}
                assert client.describe()["keys"] == 6
    assert found[0][7:] == found[1][7:]  # the first row of a key is predicted from the other keys of its worker
    with pytest.raises(RuntimeError, match="give --workers 3"):
        Service(tmp_path / "3", *options, "--workers", "2")
