"""The server: uvicorn with one application, time for slow clients that ends, and a stop that loses nothing."""

import asyncio
import gc
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from omkl.log import logger
from omkl.serve.access import LOOPBACK, Tokens
from omkl.serve.app import make_app
from omkl.serve.bodies import json_bytes
from omkl.serve.limits import Limits
from omkl.serve.service import Service, Start
from omkl.serve.workers import freeze
from omkl.stream.raw import DataError

SWITCH = 0.0005  # seconds after which a thread of Python lets others go on, so that predictions need not wait for 5 ms
GRACE = 10  # seconds for requests that are being answered when the service stops


def protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """HTTP for clients that send a request, and read its answer, in time and within bounds; uvicorn has neither."""
    seconds = limits.seconds
    too_slow = refusal_of("408 Request Timeout", f"the request did not come within {seconds:g} seconds")
    too_long = refusal_of("431 Request Header Fields Too Large", f"the headers may have {limits.headers >> 10} KiB")
    most = 2 * limits.body + limits.headers  # with what encloses the chunks of a body, and what follows it

    class Protocol(HttpToolsProtocol):
        _since: float | None  # when it began to wait for the client
        _timer: asyncio.TimerHandle
        _size = 0  # bytes of this request
        _in_head = True

        def data_received(self, data: bytes) -> None:
            self._size += len(data)
            if self._size > (limits.headers if self._in_head else most) and self._size > len(data):
                if self._in_head:
                    self.transport.write(too_long)
                self.transport.close()
                return
            if self._since is None and (self.cycle is None or self.cycle.response_complete):
                self._since = self.loop.time()  # also for an empty line, which need not be followed by a request
            super().data_received(data)

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._since = self.loop.time()
            self._look()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._since = self.loop.time()
            self._size, self._in_head = 0, True

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

        def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn returns nothing; asyncio asks for a bool
            """Whether the connection stays open: a client that has sent all of its request may wait for the answer."""
            asked = self.cycle is not None and not self.cycle.more_body and not self.cycle.response_started
            if asked:
                self.cycle.keep_alive = False  # it is closed after the answer
            return asked

        def on_message_complete(self) -> None:
            self._since = None
            super().on_message_complete()

        def pause_writing(self) -> None:
            self._since = self.loop.time()
            super().pause_writing()

        def resume_writing(self) -> None:
            self._since = None
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            super().connection_lost(exc)

        def _look(self) -> None:
            # one timer for each connection and not for each request, which would cost more than its parsing
            left = seconds if self._since is None else self._since + seconds - self.loop.time()
            if left > 0:
                self._timer = self.loop.call_later(left, self._look)
                return
            if self.cycle is not None and not self.cycle.response_started:  # the body did not come
                self.transport.write(too_slow)
                self.transport.close()
            else:
                self.transport.abort()

    return Protocol


def refusal_of(status: str, error: str) -> bytes:
    """An answer of HTTP that closes the connection, for what does not reach the application."""
    body = json_bytes({"error": error})
    return (b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
            % (status.encode(), len(body), body))  # fmt: skip


class Server(uvicorn.Server):
    """Tells the service that it is to stop, so that dashboards which follow it let go."""

    service: Service

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.service.closing = True
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # uvicorn would raise them anew and end the process before models are closed


def check_address(host: str, tokens: Tokens) -> None:
    """Refuse to answer other machines that need no token."""
    if host not in LOOPBACK and not tokens:
        raise DataError(f"--host {host}: other machines may connect, so tokens are needed: OMKL_READ_TOKEN and "
                        "OMKL_WRITE_TOKEN, or --read-token FILE and --write-token FILE")  # fmt: skip


def listen(host: str, port: int) -> socket.socket:
    """The socket, bound before models are opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host.strip("[]"), port))
    except OSError as error:
        found.close()
        raise DataError(f"--host {host} --port {port}: {error.strerror}") from None
    return found


def serve(
    state: Path, wanted: list[Start], tokens: Tokens, limits: Limits, host: str, port: int, every: int,
    started: Callable[[str], None],
) -> None:  # fmt: skip
    """Answer requests until the process is asked to stop."""
    check_address(host, tokens)
    bound = listen(host, port)
    sys.setswitchinterval(SWITCH)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(state, wanted, tokens, limits, bound, every, started))
    finally:
        bound.close()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(
    state: Path, wanted: list[Start], tokens: Tokens, limits: Limits, bound: socket.socket, every: int,
    started: Callable[[str], None],
) -> None:  # fmt: skip
    service = Service(state, limits, every)
    try:
        await service.start(wanted)
        freeze()
        config = uvicorn.Config(
            make_app(service, tokens), http=protocol(limits), loop="none", log_config=None, access_log=False,
            proxy_headers=False,
            server_header=False, date_header=False, lifespan="off", ws="none", interface="asgi3",
            limit_concurrency=limits.connections, timeout_graceful_shutdown=GRACE, h11_max_incomplete_event_size=65536,
        )  # fmt: skip
        server = Server(config)
        server.service = service
        host, port = bound.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        started(url)
        logger.info("listening on %s", url)
        await server.serve([bound])
    finally:
        service.closing = True
        await asyncio.to_thread(service.close)
        gc.unfreeze()  # so that all is taken apart before the engine, which else complains on standard error
