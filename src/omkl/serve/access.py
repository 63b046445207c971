"""Who may do what: tokens, hosts and origins, and the size of a request's body."""

import hmac
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from omkl.serve.limits import Limits, Refused
from omkl.stream.raw import DataError

Right = Literal["none", "read", "write"]
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
SHORTEST_TOKEN = 16  # characters
Headers = Mapping[str, str]  # of a request, their names in small letters


class Tokens(NamedTuple):
    """What a client must know to read, and to write; who may write may read."""

    read: str | None = None
    write: str | None = None

    @classmethod
    def find(cls, read_file: str | None, write_file: str | None) -> "Tokens":
        """From files, or from the environment: OMKL_READ_TOKEN and OMKL_WRITE_TOKEN."""
        return cls(_token(read_file, "OMKL_READ_TOKEN"), _token(write_file, "OMKL_WRITE_TOKEN"))

    def __bool__(self) -> bool:
        return self.read is not None or self.write is not None

    def check(self, headers: Headers, right: Right) -> None:
        """Refuse a request without the right token."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        token = given.strip() if kind.lower() == "bearer" else ""
        # all comparisons are made, each in a time that does not depend on how much is right
        writes, reads = _same(token, self.write), _same(token, self.read)
        if writes or (reads and right == "read"):
            return
        if not token:
            raise Refused(401, "this needs a token: Authorization: Bearer TOKEN")
        if reads:
            raise Refused(403, "this token is for reading; writing needs the other one")
        raise Refused(401, "the token is wrong")


def _same(given: str, token: str | None) -> bool:
    same = hmac.compare_digest(given.encode(errors="replace"), (token or "").encode())
    return same and token is not None


def _token(path: str | None, variable: str) -> str | None:
    found = os.environ.get(variable) if path is None else Path(path).read_text(encoding="utf-8").strip()
    if not found:
        return None
    if len(found) < SHORTEST_TOKEN or not found.isascii() or any(c.isspace() for c in found):
        raise DataError(f"{path or variable}: a token must have at least {SHORTEST_TOKEN} characters, without spaces; "
                        "for example: openssl rand -hex 32")  # fmt: skip
    return found


def check_host(headers: Headers, tokens: Tokens) -> None:
    """Refuse what a page of another site makes a browser send.

    Without tokens the service must not answer under a name that such a page could have chosen to point here.
    """
    host = headers.get("host", "")
    if not tokens and _name(host) not in LOOPBACK:
        raise Refused(421, "without tokens the service answers to localhost only")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise Refused(403, "requests from pages of other sites are refused")


def _name(host: str) -> str:
    """Without the port."""
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


async def body_of(headers: Headers, receive: Receive, limits: Limits, hold: Callable[[int], None]) -> bytes:
    """The body of a request, which must not be too large; `hold` may refuse each part, by its size."""
    too_large = f"a request may have {limits.body >> 10:,} KiB"
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > limits.body:
        raise Refused(413, too_large)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "a compressed body is not taken")
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message["body"])
        size, more = size + len(parts[-1]), message["more_body"]
        if size > limits.body:
            raise Refused(413, too_large)
        hold(len(parts[-1]))
    return b"".join(parts)
