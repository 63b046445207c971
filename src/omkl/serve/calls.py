"""One request: its options, its body, and what it asks a model for."""

import hashlib
import zlib
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import Response
from starlette.types import Receive, Scope

from omkl.serve import bodies
from omkl.serve.access import Tokens, body_of
from omkl.serve.bodies import ARROW, FORMATS, JSON, json_bytes, parse_rows
from omkl.serve.commands import Command
from omkl.serve.limits import Refused, invalid
from omkl.serve.service import Service
from omkl.serve.store import RequestId

LONGEST_ID = 200


class Call:
    """One request, and what is measured of it."""

    def __init__(self, service: Service, tokens: Tokens, scope: Scope, receive: Receive, verb: str) -> None:
        self.service, self.tokens, self.verb = service, tokens, verb
        self.headers: dict[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        self.query: dict[str, str] = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        self.path: dict[str, str] = scope.get("path_params", {})
        self._receive = receive
        self._held = 0  # bytes
        self.rows = 0
        self.raw: bytes | None = None  # the body
        self.columns: bodies.Columns | None = None  # the cells of its rows
        self.model: str | None = None

    @property
    def name(self) -> str:
        """The model's name in the path; "-" where there is none."""
        return self.path.get("name", "-")

    def flag(self, name: str) -> bool:
        """Whether an option of the query is true."""
        value = self.query.get(name, "false")
        if value not in ("true", "false"):
            raise invalid(f"{name} must be true or false")
        return value == "true"

    def check_options(self, *known: str) -> None:
        """Refuse an option that is not understood."""
        for name in self.query:
            if name not in known:
                raise invalid(f"there is no option {name[:50]!r} here; there are {', '.join(known) or 'none'}")

    async def body(self) -> bytes:
        return await body_of(self.headers, self._receive, self.service.limits, self._hold)

    def _hold(self, size: int) -> None:
        """Count bytes until the request is answered."""
        service = self.service
        if service.held + size > service.limits.bodies:
            raise Refused(429, f"requests with {service.held >> 20} MiB are being answered; try again later")
        service.held += size
        self._held += size

    def release(self) -> None:
        """The request has been answered."""
        self.service.held -= self._held
        self._held = 0

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def rows_of(self) -> tuple[list[bodies.Row], Any, str, bool]:
        """The rows of the body, or its table; its format; whether it is a single row."""
        given = self.content_type
        if given not in FORMATS:
            raise Refused(415, f"the content type must be {', '.join(FORMATS)}")
        body = await self.body()
        if given == ARROW:
            table = bodies.read_arrow(body, self.service.limits)
            self.rows = table.num_rows
            return [], table, given, False
        rows, self.columns, single = parse_rows(body, given, self.service.limits)
        bodies.check_names(body, given, rows, self.columns)
        self.rows, self.raw = len(rows), body
        return rows, None, given, single

    @property
    def id(self) -> str | None:
        """The id that the client has given this request."""
        given = self.headers.get("idempotency-key")
        if given is not None and not 0 < len(given) <= LONGEST_ID:
            raise invalid(f"Idempotency-Key must have 1 to {LONGEST_ID} characters")
        return given

    def digest(self, content: bytes) -> str | None:
        """Of the id and what is asked for; None without an id."""
        return None if self.id is None else hashlib.sha256(json_bytes(self.id) + content).hexdigest()[:32]

    async def write(self, command: Command) -> Any:
        """Let the model learn; a request with an id that came before has the answer that it had then."""
        given = self.id
        if given is not None:
            content = json_bytes(command.rows) if command.raw is None else command.raw
            digest = zlib.crc32(json_bytes([command.kind, command.key, command.targets]) + content)
            if command.table is not None:
                digest = zlib.crc32(bodies.arrow_bytes(command.table), digest)
            command.id = RequestId(given, digest)
        handle = self.service.get(self.name)
        self.model = self.service.resolved(self.name)
        return await handle.write(command)


def json_answer(value: Any) -> Response:
    return Response(json_bytes(value), media_type=JSON)


def wanted_type(call: Call, *kinds: str) -> str:
    given = call.content_type
    if given not in kinds:
        raise Refused(415, f"the content type must be {' or '.join(kinds)}")
    return given


def number_of(call: Call, name: str, default: int) -> int:
    text = call.query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise invalid(f"{name} must be a whole number")
    return int(text)
