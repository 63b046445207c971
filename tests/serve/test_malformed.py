"""Malformed requests, made from the description of the interface: no internal error, no growth, and the same model."""

import contextlib
import http.client
import io
import json
import random
import string
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from serving import Service, get, learned_alone, serving, some_rows

from omkl import persist
from omkl.serve import Client
from omkl.serve.bodies import ARROW, JSON, LINES, parse_rows, read_arrow
from omkl.serve.limits import Limits, Refused

ODD = (
    "",
    "\x00",
    "é",
    "\ud800",
    "a" * 3000,
    "NaN",
    "-1",
    "1e999",
    "../..",
    "%2e%2e",
    "'; DROP TABLE records",
    "{{7*7}}",
)
NUMBERS = (0, -1, 1, 0.5, 1e308, -1e308, 1e-308, 2**63, -(2**70), 10**40, 3.25)


LONG_NAMES = {
    "one object": [{"x" * 500_000: {str(k): 1 for k in range(300)}}],
    "objects in objects": [{"a": {"x" * 990: {"x" * 50: 1}}}],
    "other rows": [{str(k) + "x" * 900: {str(j): 1 for j in range(100)}} for k in range(1000)],
}


@pytest.mark.parametrize("rows", LONG_NAMES.values(), ids=LONG_NAMES.keys())
def test_names_that_repeat_those_of_objects_do_not_exhaust_memory(rows: list[dict[str, Any]]) -> None:
    body = json.dumps(rows).encode()
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match=r"more than 1,000 (characters|columns)"):
            parse_rows(body, JSON, Limits())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(body)


def test_rows_share_the_names_of_their_columns() -> None:
    rows = [{"x" * 900: {str(j): 1 for j in range(100)}}] * 300
    tracemalloc.start()
    try:
        found, _, _ = parse_rows(json.dumps(rows).encode(), JSON, Limits())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(row) for row in found] == [100] * 300
    assert peak < 20 << 20  # the names alone would have 27 MB


class Requests:
    """Requests for every operation of a description, some as it says and some not."""

    def __init__(self, document: dict[str, Any], seed: int, known: tuple[str, ...]) -> None:
        self.random, self.document, self.known = random.Random(seed), document, known
        self.operations = [(path, method, operation) for path, methods in document["paths"].items()
                           for method, operation in methods.items() if not path.endswith("/events")]  # fmt: skip

    def next(self) -> tuple[str, str, bytes | None, dict[str, str]]:
        path, method, operation = self.random.choice(self.operations)
        headers: dict[str, str] = {}
        query: list[str] = []
        for parameter in operation["parameters"]:
            value = self.text(parameter["schema"])
            if parameter["in"] == "path":
                name = self.random.choice([*self.known, value]) if parameter["name"] == "name" else value
                path = path.replace(f"{{{parameter['name']}}}", quoted(name) or "-")
            elif self.random.random() < 0.3:
                if parameter["in"] == "query":
                    query.append(f"{quoted(parameter['name'])}={quoted(value)}")
                else:
                    headers[parameter["name"]] = "".join(c for c in value if " " < c < "\x7f")[:300]
        if self.random.random() < 0.05:
            query.append(quoted(self.random.choice(ODD)))
        if self.random.random() < 0.05:
            method = self.random.choice(["get", "post", "put", "delete", "patch", "options"])
        if method == "delete" and "{key}" not in path and path.count("/") < 5:
            method = "get"  # the models are needed
        body = None
        if "requestBody" in operation or self.random.random() < 0.05:
            content = operation.get("requestBody", {}).get("content", {JSON: {"schema": {}}})
            kind = self.random.choice([*content, JSON])
            body = self.body(content.get(kind, {"schema": {}})["schema"], kind)
            headers["Content-Type"] = kind if self.random.random() < 0.95 else self.random.choice(ODD[4:])[:50]
        return method.upper(), path + ("?" + "&".join(query) if query else ""), body, headers

    def body(self, schema: dict[str, Any], kind: str) -> bytes:
        if kind == ARROW or self.random.random() < 0.05:
            return self.random.randbytes(self.random.randrange(200))
        if kind == LINES:
            row = {"$ref": "#/components/schemas/Row"}
            return b"\n".join(json.dumps(self.value(row, 0)).encode() for _ in range(self.random.randrange(4)))
        content = json.dumps(self.value(schema, 0)).encode()
        if self.random.random() < 0.1 and content:  # one byte changed
            at = self.random.randrange(len(content))
            content = content[:at] + self.random.randbytes(1) + content[at + 1 :]
        return content

    def text(self, schema: dict[str, Any]) -> str:
        if "enum" in schema and self.random.random() < 0.7:
            return str(self.random.choice(schema["enum"]))
        if self.random.random() < 0.3:
            return self.random.choice(ODD)
        return "".join(
            self.random.choices(string.ascii_lowercase + string.digits + ".,", k=self.random.randrange(1, 8))
        )

    def value(self, schema: dict[str, Any], depth: int) -> Any:
        """A value of the schema, or of none."""
        if "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if self.random.random() < 0.06 or depth > 6:
            return self.random.choice([None, True, [], {}, [[]], "x", 7, {"a": {"b": {"c": 1}}}, *ODD, *NUMBERS])
        if "anyOf" in schema:
            return self.value(self.random.choice(schema["anyOf"]), depth + 1)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kinds = schema.get("type", "object")
        kind = self.random.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "array":
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(self.random.randrange(4))]
        if kind == "object":
            given = schema.get("properties", {})
            names = [n for n in given if n in schema.get("required", ()) or self.random.random() < 0.4]
            out = {name: self.value(given[name], depth + 1) for name in names}
            extra = schema.get("additionalProperties", {})
            if isinstance(extra, dict):
                columns = self.random.sample(
                    ["a", "b", "town", "y", "meter", "order", *ODD], k=self.random.randrange(5)
                )
                out |= {name: self.value(extra or {"type": ["number", "string"]}, depth + 1) for name in columns}
            return out
        if kind in ("number", "integer"):
            return self.random.choice(NUMBERS) if self.random.random() < 0.5 else self.random.randrange(-5, 50)
        return {"boolean": True, "null": None}.get(kind, self.text({}))


def quoted(text: str) -> str:
    import urllib.parse

    return urllib.parse.quote(text.encode(errors="surrogatepass"), safe="")


def fuzz(folder: Path, requests: int, seed: int) -> None:
    rows = some_rows(300)
    with (
        serving(folder / "state", "--target", "y", "--task", "regression") as service,
        Client(service.url, "safe") as safe,
    ):
        safe.create(target="y", task="regression")
        safe.learn(rows[:200])
        for name, options in (("late", {"key": "order"}), ("keyed", {"by": "meter", "learner": "sfg-mkl"}),
                              ("kinds", {"task": "classification"})):  # fmt: skip
            with Client(service.url, name) as client:
                client.create(**{"target": "y", "task": "regression"} | options)
        made = Requests(get(f"{service.url}/openapi.json"), seed, ("model", "late", "keyed", "kinds", "-"))
        statuses = dict[int, int]()
        memory = 0
        line = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        for number in range(requests):
            method, path, body, headers = made.next()
            try:
                line.request(method, path, body, headers)
                answer = line.getresponse()
                content = answer.read()
            except (http.client.HTTPException, OSError):  # what is no HTTP at all is cut off
                line.close()
                continue
            assert answer.status < 500 or answer.status == 503, (method, path, body, headers, content)
            assert b"Traceback" not in content
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            if number == requests // 2:
                memory = service.resident()
        line.close()
        print("statuses", dict(sorted(statuses.items())), "memory", memory / 1e6, service.resident() / 1e6)
        assert service.resident() < 1.5 * memory + 100e6
        assert statuses[200] > requests / 50
        assert "Traceback" not in service.log.read_text()
        still_right(service, safe, rows)


def still_right(service: Service, safe: Client, rows: list[dict[str, Any]]) -> None:
    """A model that was not meddled with is the one that the library would have."""
    safe.learn(rows[200:])
    assert safe.download() == persist.to_bytes(learned_alone(rows)[0])


@pytest.mark.slow
def test_malformed_requests(tmp_path: Path) -> None:
    fuzz(tmp_path, 1_500, seed=0)


@pytest.mark.soak
def test_many_malformed_requests(tmp_path: Path) -> None:
    fuzz(tmp_path, 10_000, seed=1)


def stream_of(table: pa.Table, compression: str | None) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=40)
    return out.getvalue()


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_tables_may_be_compressed(compression: str | None) -> None:
    table = pa.table({"a": [1.5, None] * 50, "b": ["text"] * 100, "c": [True] * 100})
    body = stream_of(table, compression)
    assert read_arrow(body, Limits()).equals(table)
    chance = random.Random(0)
    for _ in range(300):
        damaged = bytearray(body)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with contextlib.suppress(Refused):
            read_arrow(bytes(damaged), Limits())


def test_a_few_bytes_that_stand_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    body = stream_of(pa.table({"a": ["0" * 40_000] * 2_000}), "zstd")
    assert len(body) < 100_000
    monkeypatch.setattr(pa.ipc, "open_stream", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(Refused, match="more than 64 MiB") as refused:
        read_arrow(body, Limits())
    assert refused.value.status == 413
