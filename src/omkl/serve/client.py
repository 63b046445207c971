"""A client of the service that needs nothing but Python."""

import http.client
import json
import math
import time
import urllib.parse
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
RETRIED = (429, 502, 503)


class ServiceError(Exception):
    """The service refused a request; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Predicts and learns over HTTP.

    Requests that learn carry an id, so that one that is sent again after an interruption is learned once. A connection
    is kept open; use one client for each thread.

    Parameters
    ----------
    url
        Of the service.
    model
        The model's name; needed where the service has several.
    token
        The token for reading, or that for writing.
    retries
        How often a request is sent again where the service is busy or cannot be reached.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8000", model: str | None = None, *, token: str | None = None,
        retries: int = 5, timeout: float = 60.0,
    ) -> None:  # fmt: skip
        self.url, self.model, self.retries, self.timeout = url.rstrip("/"), model, retries, timeout
        self._token = token
        self._connection: http.client.HTTPConnection | None = None

    def __repr__(self) -> str:
        return f"Client({self.url!r})" if self.model is None else f"Client({self.url!r}, {self.model!r})"

    # Rows

    def predict(
        self, rows: Row | Sequence[Row], *, coverage: float | Sequence[float] | None = None,
        probabilities: bool = False, explain: bool = False, wait: bool = False,
    ) -> Any:  # fmt: skip
        """A prediction for a row, or a list of them for a list of rows; with `wait` their targets come later."""
        shares = [coverage] if isinstance(coverage, (int, float)) else coverage or ()
        options: dict[str, str] = {"coverage": ",".join(map(str, shares))} if shares else {}
        flags = {"probabilities": probabilities, "explain": explain, "wait": wait}
        options |= {name: "true" for name, given in flags.items() if given}
        return self._post("predict", rows, options, new_id() if wait else None)

    def learn(self, rows: Row | Sequence[Row], *, id: str | None = None) -> Any:
        """Learn rows, each with its target."""
        return self._post("learn", rows, {}, id or new_id())

    def predict_then_learn(self, rows: Row | Sequence[Row], *, id: str | None = None) -> Any:
        """The prediction for each row, made before it was learned."""
        return self._post("predict-then-learn", rows, {}, id or new_id())

    def label(self, key: str | int, target: float | str | bool, *, id: str | None = None) -> Any:
        """Learn a row that was predicted with `wait`, now that its target is known."""
        return self._post("labels", {"key": key, "target": target}, {}, id or new_id())

    # Models

    def models(self) -> Any:
        """All models of the service."""
        return self.request("GET", "/v1/models")

    def describe(self) -> Any:
        """What the service tells about the model."""
        return self.request("GET", self._path(""))

    def create(self, **options: Any) -> Any:
        """A new model, with the options of `omkl serve`: target, task, learner, by, key and others."""
        return self.request("PUT", self._path(""), options, new_id())

    def delete(self) -> Any:
        """Remove the model and what it has learned."""
        return self.request("DELETE", self._path(""), id=new_id())

    def download(self) -> bytes:
        """The model as a file, for `omkl.from_bytes`."""
        found = self.request("GET", self._path("/file"))
        assert isinstance(found, bytes)
        return found

    # HTTP

    def _path(self, rest: str) -> str:
        return f"/v1/models/{urllib.parse.quote(self.model or '-', safe='')}{rest}"

    def _post(self, verb: str, rows: Any, options: dict[str, str], id: str | None) -> Any:
        query = f"?{urllib.parse.urlencode(options)}" if options else ""
        return self.request("POST", self._path(f"/{verb}{query}"), rows, id)

    def request(self, method: str, path: str, body: Any = None, id: str | None = None) -> Any:
        """Send a request, again if need be; returns JSON, or the bytes of a file."""
        data = None if body is None else json_of(body)
        headers = {"Content-Type": "application/json"} if data is not None else {}
        if id is not None:
            headers["Idempotency-Key"] = id
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        safe = method == "GET" or id is not None or "/predict" in path
        for attempt in range(self.retries + 1):
            last = attempt == self.retries or not safe
            try:
                status, kind, content = self._send(method, path, data, headers)
            except (OSError, http.client.HTTPException):
                self.close()
                if last:
                    raise
            else:
                if status < 400:
                    return json.loads(content) if kind.startswith("application/json") else content
                if last or status not in RETRIED:
                    raise ServiceError(status, _message(content))
            time.sleep(min(0.05 * 2**attempt, 2.0))
        raise AssertionError

    def _send(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, str, bytes]:
        if self._connection is None:
            parts = urllib.parse.urlsplit(self.url)
            kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(parts.netloc, timeout=self.timeout)
        self._connection.request(method, urllib.parse.urlsplit(self.url).path + path, data, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def json_of(body: Any) -> bytes:
    """JSON, in which a number that is missing is null.

    >>> json_of({"size": float("nan"), "town": "north"})
    b'{"size": null, "town": "north"}'
    """
    try:
        return json.dumps(body, allow_nan=False).encode()
    except ValueError:
        return json.dumps(_gaps_as_null(body), allow_nan=False).encode()


def _gaps_as_null(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _gaps_as_null(cell) for name, cell in value.items()}
    if isinstance(value, (list, tuple)):
        return [_gaps_as_null(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        raise ValueError("a number must be finite; a cell that is missing is None or NaN")
    return None if isinstance(value, float) and math.isnan(value) else value


def new_id() -> str:
    """An id that no other request has."""
    return uuid.uuid4().hex


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode(errors="replace")
