"""What the service answers, learns and refuses, over HTTP as a client sees it."""

import contextlib
import http.client
import json
import re
import socket
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families
from serving import Service, learned_alone, serving, some_rows

import omkl
from omkl import persist
from omkl.serve import Client, ServiceError
from omkl.serve.bodies import ARROW, JSON, LINES, arrow_bytes, batch_of

ROWS = some_rows(300)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """With a model for the tests of each verb, created by a request."""
    with serving(tmp_path_factory.mktemp("serve") / "state", "--target", "y", "--task", "regression") as found:
        yield found


@pytest.fixture
def client(service: Service, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of a model of its own."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:60]
    with Client(service.url, name) as found:
        found.create(target="y", task="regression")
        yield found
        found.delete()


def send(service: Service, method: str, path: str, body: bytes | str | None = None, **headers: str) -> tuple[int, Any]:
    """The status of an answer, and its JSON or bytes."""
    line = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, path, body, names)
    answer = line.getresponse()
    content = answer.read()
    line.close()
    return answer.status, json.loads(content) if answer.headers.get("content-type") == JSON else content


def post(service: Service, path: str, rows: Any, **headers: str) -> tuple[int, Any]:
    return send(service, "POST", path, json.dumps(rows), content_type=JSON, **headers)


# The same as the library


def test_predictions_are_those_of_the_library(client: Client) -> None:
    first, rest = client.predict_then_learn(ROWS[0]), client.predict_then_learn(ROWS[1:])
    model, expected = learned_alone(ROWS)
    assert [answer["prediction"] for answer in (first, *rest)] == expected
    assert [answer["row"] for answer in (first, *rest)] == list(range(1, 301))
    assert client.download() == persist.to_bytes(model)
    assert client.predict({"a": 0.1})["prediction"] == client.predict([{"a": 0.1}])[0]["prediction"]


@pytest.mark.parametrize("kind", [LINES, ARROW])
def test_formats_agree(service: Service, client: Client, kind: str) -> None:
    path = f"/v1/models/{client.model}/predict-then-learn"
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    body = lines.encode() if kind == LINES else arrow_bytes(pa.Table.from_pylist(ROWS))
    status, answer = send(service, "POST", path, body, content_type=kind)
    assert status == 200
    if kind == LINES:
        found = [json.loads(line)["prediction"] for line in answer.splitlines()]
    else:
        table = pa.ipc.open_stream(answer).read_all()
        assert table.column_names == ["row", "prediction", "interval.lower", "interval.upper"]
        found = table["prediction"].to_pylist()
    assert found == learned_alone(ROWS)[1]


def test_intervals_and_contributions(client: Client) -> None:
    client.learn(ROWS)
    both = client.predict(ROWS[:5], coverage=[0.5, 0.95])
    for answer in both:
        (low, high), (lower, upper) = answer["intervals"]["0.5"], answer["intervals"]["0.95"]
        assert lower < low < answer["prediction"] < high < upper
    (one,) = client.predict(ROWS[:1], explain=True)
    assert one["base"] + sum(one["contributions"].values()) == pytest.approx(one["prediction"], abs=1e-9)
    assert set(one["contributions"]) == {"a", "b", "town"}


def test_labels_and_their_probabilities(service: Service) -> None:
    with Client(service.url, "labels") as client:
        client.create(target="kind", task="classification")
        for row in ROWS:
            client.learn({"a": row["a"], "b": row["b"], "kind": "up" if row["a"] > 0 else "down"})
        answer = client.predict({"a": 0.8, "b": 0.0}, probabilities=True)
        assert answer["prediction"] == "up"
        assert sum(answer["probabilities"].values()) == pytest.approx(1)
        assert answer["probability"] == max(answer["probabilities"].values())
        with pytest.raises(ServiceError, match="coverage is for numbers"):
            client.predict({"a": 0.8}, coverage=0.9)
        client.delete()


def test_delayed_labels(service: Service) -> None:
    with Client(service.url, "late") as client:
        client.create(target="y", task="regression", key="order", pending=3)
        keyed = [{**row, "order": str(k)} for k, row in enumerate(ROWS)]
        client.learn(keyed[:100])
        for row in keyed[100:105]:
            client.predict(row, wait=True)
        assert client.describe()["waiting"] == 3  # the oldest are dropped: their labels never came in time
        assert client.label("101", 1.0) == {"learned": 0, "unknown": ["101"]}
        assert client.label("104", ROWS[104]["y"]) == {"learned": 1, "unknown": []}
        assert client.label("104", ROWS[104]["y"]) == {"learned": 0, "unknown": ["104"]}
        assert client.describe()["learned"] == 101
        with pytest.raises(ServiceError, match="comes twice"):
            client.request("POST", "/v1/models/late/labels", [{"key": "102", "target": 1}, {"key": 102, "target": 2}])
        client.delete()


def test_a_model_per_key(service: Service) -> None:
    with Client(service.url, "meters") as client:
        client.create(target="y", task="regression", by="meter", learner="sfg-mkl")
        rows = [{"meter": f"m{k % 5}", "a": row["a"], "y": row["y"]} for k, row in enumerate(ROWS)]
        found = [answer["prediction"] for answer in client.predict_then_learn(rows)]
        model, _ = learned_alone([], by="meter", learner="sfg-mkl")
        assert found == model.run(batch_of(rows, 1))[0].y_pred.tolist()
        assert client.request("GET", "/v1/models/meters/keys") == {"keys": [f"m{k}" for k in range(5)], "total": 5}
        assert client.request("DELETE", "/v1/models/meters/keys/m3", id="f") == {"forgotten": "m3"}
        assert client.request("DELETE", "/v1/models/meters/keys/m3", id="f") == {"forgotten": "m3"}
        with pytest.raises(ServiceError, match="no row of key"):
            client.request("DELETE", "/v1/models/meters/keys/m3")
        with pytest.raises(ServiceError, match="there is no column 'meter'"):
            client.predict({"a": 1.0})
        client.delete()


# Ids


def test_a_request_with_an_id_is_learned_once(client: Client) -> None:
    answers = [client.predict_then_learn(ROWS[:3], id="one") for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert client.learn(ROWS[3], id="two") == client.learn(ROWS[3], id="two") == {"learned": 1, "row": 4}
    with pytest.raises(ServiceError, match="another request had the id") as refused:
        client.learn(ROWS[4], id="two")
    assert refused.value.status == 409
    assert client.learn(ROWS[4])["row"] == 5


# Refused


@pytest.mark.parametrize(
    ("verb", "rows", "wanted"),
    [
        ("learn", {"a": 1.0}, "there is no target 'y'"),
        ("learn", [{"a": 1.0, "y": 1}, {"a": 2.0, "y": "high"}], "row 2: the target 'y' must be a number"),
        ("learn", {"a": 1.0, "y": 1e200}, "must be a number of at most"),
        ("learn", {"y": 1.0}, "no column in common"),
        ("learn", {"other": 2.0, "y": 1.0}, "no column in common with the model, which has learned from 'a'"),
        ("learn", {"a": [1, 2], "y": 1.0}, "'a' is a list"),
        ("learn", [], "there is no row"),
        ("learn", [1], "row 1 must be an object"),
        ("learn", 7, "must be a row"),
        ("learn", {"a": "x" * 2000, "y": 1.0}, "more than 1,000 characters"),
        ("learn", {f"c{k}": 1.0 for k in range(2000)}, "2,000 columns"),
        ("predict", {"b": 1.0}, "no column in common"),
        ("labels", {"key": 1, "target": 2}, "no key by which a delayed target finds its row"),
        ("labels", {"key": 1}, "must be {"),
    ],
)
def test_rows_that_cannot_be_used(service: Service, verb: str, rows: Any, wanted: str) -> None:
    with Client(service.url, "refused") as client:
        if "refused" not in [model["name"] for model in client.models()["models"]]:
            client.create(target="y", task="regression")
            client.learn({"a": 1.0, "y": 2.0})
    before = persist_bytes(service, "refused")
    status, answer = post(service, f"/v1/models/refused/{verb}", rows)
    assert status in (409, 422), answer
    assert wanted in answer["error"]
    assert persist_bytes(service, "refused") == before


def persist_bytes(service: Service, name: str) -> bytes:
    with Client(service.url, name) as client:
        return client.download()


def test_requests_that_are_not_understood(service: Service) -> None:
    known = "/v1/models/model"
    assert post(service, f"{known}/predict?coverage=2", {"a": 1})[0] == 422
    assert post(service, f"{known}/predict?unknown=1", {"a": 1})[1]["error"].startswith("there is no option 'unknown'")
    assert post(service, f"{known}/predict", {"a": 1})[0] == 409  # nothing was learned
    assert post(service, "/v1/models/absent/predict", {"a": 1})[0] == 404
    assert send(service, "POST", f"{known}/learn", b"{}")[0] == 415
    assert send(service, "POST", f"{known}/learn", b"{", content_type=JSON)[0] == 400
    assert send(service, "POST", f"{known}/learn", b'{"a": NaN, "y": 1}', content_type=JSON)[0] == 400
    assert send(service, "POST", f"{known}/learn", b"\xff\xfe", content_type=JSON)[0] == 400
    assert send(service, "POST", f"{known}/learn", b"[" * 100_000, content_type=JSON)[0] == 400
    assert send(service, "POST", f"{known}/learn", b"arrow", content_type=ARROW)[0] == 400
    assert send(service, "GET", "/absent")[0] == 404
    assert send(service, "PATCH", known)[0] == 405
    assert send(service, "PUT", "/v1/models/Bad%20Name", b'{"target": "y"}', content_type=JSON)[0] == 422
    assert send(service, "PUT", "/v1/models/..%2Fx", b'{"target": "y"}', content_type=JSON)[0] in (404, 405, 422)
    for options in ({}, {"target": "y", "n": 1}, {"target": "y", "learner": "no"}, {"target": "y", "by": 3}, [],
                    {"target": "y", "parameters": {"n_features": 10**9}}, {"target": "y", "lags": "x"}):  # fmt: skip
        assert send(service, "PUT", "/v1/models/new", json.dumps(options), content_type=JSON)[0] == 422


def test_lone_surrogates_and_nested_objects(client: Client) -> None:
    path = f"/v1/models/{client.model}/learn"
    with pytest.raises(ServiceError, match="the body is not JSON"):
        client.request("POST", path, {"a": {"b": 1.5}, "t": "\ud800", "y": 1.0})
    client.request("POST", path, {"a": {"b": 1.5}, "t": "\u00e9", "y": 1.0})
    assert client.describe()["columns"] == {"a.b": "number", "t": "category"}


@pytest.mark.parametrize(
    "body",
    [
        '{"a": 1, "b": 2, "a": 3, "y": 1}',
        '[{"a": 1, "b": 2, "y": 1}, {"a": 1, "b": 2, "y":1, "y": 2}]',
        '{"a": "12:30 \\": ", "b" : 2, "b" :2, "y": 1}',
        '{"o": {"a": 1, "a": 2}, "y": 1}',
        '{"o": {"a": 1}, "o.a": 2, "y": 1}',
        '{"o": 1, "o": {}, "y": 1}',
        '{"t": "a", "\\u0074": "b", "y": 1}',
    ],
)
def test_a_column_that_comes_twice(service: Service, client: Client, body: str) -> None:
    path = f"/v1/models/{client.model}/learn"
    for kind in (JSON, LINES) if body.startswith("{") else (JSON,):
        for content in (body, body + " " * 5000):
            status, answer = send(service, "POST", path, content, content_type=kind)
            assert status == 422
            assert "twice" in answer["error"] or "two columns" in answer["error"]
    assert client.describe()["rows"] == 0


def test_numbers_that_json_does_not_have(service: Service, client: Client) -> None:
    path = f"/v1/models/{client.model}/learn"
    for number in ("NaN", "-Infinity", " Infinity"):
        status, answer = send(service, "POST", path, f'{{"a": {number}, "y": 1}}', content_type=JSON)
        assert status == 400
        assert "an empty cell is null" in answer["error"]
    assert client.learn([{"a": float("nan"), "b": 1.0, "y": 1.0}])["learned"] == 1
    with pytest.raises(ValueError, match="must be finite"):
        client.learn({"a": float("inf"), "y": 1.0})


def test_texts_that_look_like_columns(client: Client) -> None:
    rows = [{"a": '": ":', "b :": 1.5, "o": {"t": "12:30:00", "u": {}, ":": ' " : '}, "y": 1.0}] * 3
    for many in (1, 100):
        client.learn(rows * many)
    client.learn({"": 1, "a": "x", "y": 1})
    assert set(client.describe()["columns"]) == {"a", "b :", "o.t", "o.:", ""}


def test_a_client_that_has_closed_its_half_is_answered(service: Service, client: Client) -> None:
    body = json.dumps(ROWS).encode()
    head = f"POST /v1/models/{client.model}/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\n"
    content = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    for sent in (content, content * 2):
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as line:
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
            found = b""
            while part := line.recv(4096):
                found += part
        assert found.count(b"HTTP/1.1 200") == found.count(b'{"learned":300') == sent.count(b"POST")
    assert client.describe()["rows"] == 900


def test_head_and_methods_that_are_not_there(service: Service) -> None:
    line = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    for path in ("/health", "/", "/v1/models", "/metrics"):
        line.request("HEAD", path)
        answer = line.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        assert int(answer.headers["content-length"]) > 5
    for path, wanted in (("/learn", "POST"), ("/health", "GET, HEAD"), ("/v1/models/-/events", "GET")):
        line.request("PATCH", path)
        answer = line.getresponse()
        answer.read()
        assert (answer.status, answer.headers["allow"]) == (405, wanted)
    line.close()


def test_large_and_slow_bodies(service: Service) -> None:
    head = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for length in (
        b"Content-Length: 17000000\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n" + b"100000\r\n" + b" " * (1 << 20),
    ):
        with socket.create_connection(("127.0.0.1", service.port)) as line:
            line.sendall(head + length)
            with contextlib.suppress(OSError):  # it stops to read
                for _ in range(17):
                    line.sendall(b"\r\n100000\r\n" + b" " * (1 << 20))
            with contextlib.suppress(ConnectionResetError):
                assert line.recv(1000).startswith(b"HTTP/1.1 413")
    many = b'[{"a": 1, "y": 1}' + b',{"a": 1, "y": 1}' * 10_000 + b"]"
    assert send(service, "POST", "/v1/models/model/learn", many, content_type=JSON)[0] == 413
    # a client that sends half of a request and then only listens
    with socket.create_connection(("127.0.0.1", service.port)) as line:
        line.sendall(head + b"Content-Length: 99\r\n\r\n{")
        line.shutdown(socket.SHUT_WR)
        line.settimeout(20)
        line.recv(1000)
    assert send(service, "GET", "/health")[0] == 200


# Management


def test_models_are_created_described_and_deleted(service: Service, tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(size=(200, 2))
    model = omkl.GraphMKLRegressor(random_state=0).partial_fit(X, X[:, 0])
    content = omkl.to_bytes(model)
    path = "/v1/models/uploaded"
    status, found = send(service, "PUT", f"{path}?target=y", content, content_type="application/vnd.omkl")
    assert (status, found["learned"]) == (200, 200)
    assert send(service, "PUT", f"{path}?target=y", content, content_type="application/vnd.omkl")[0] == 409
    status, answer = post(service, f"{path}/predict", {"0": 0.5, "1": 0.5})
    assert answer["prediction"] == pytest.approx(model.predict(np.array([[0.5, 0.5]]))[0], rel=1e-12)
    assert send(service, "PUT", "/v1/models/bad", content[:-9], content_type="application/vnd.omkl")[0] == 422
    assert send(service, "DELETE", path)[0] == 200
    assert send(service, "GET", path)[0] == 404


def test_models_are_created_and_removed_once_by_one_request(service: Service) -> None:
    path, options = "/v1/models/once", b'{"target": "y", "task": "regression"}'
    sent = {"content_type": JSON, "idempotency_key": "a"}
    assert send(service, "PUT", path, options, **sent)[0] == 200
    assert post(service, f"{path}/learn", ROWS[:3])[0] == 200
    status, found = send(service, "PUT", path, options, **sent)  # the answer to the first was lost
    assert (status, found["learned"]) == (200, 3)
    assert send(service, "PUT", path, options, content_type=JSON)[0] == 409
    assert send(service, "PUT", path, options, content_type=JSON, idempotency_key="b")[0] == 409
    assert send(service, "PUT", path, b'{"target": "z", "task": "regression"}', **sent)[0] == 409
    for _ in range(2):
        assert send(service, "DELETE", path, idempotency_key="c") == (200, {"deleted": "once"})
    assert send(service, "DELETE", path, idempotency_key="d")[0] == send(service, "DELETE", path)[0] == 404
    assert send(service, "PUT", path, options, content_type=JSON)[0] == 200  # another model
    assert send(service, "DELETE", path, idempotency_key="c") == (200, {"deleted": "once"})
    assert send(service, "GET", path)[0] == 200  # the request removed the one before
    status, found = send(service, "DELETE", "/v1/models/other", idempotency_key="c")
    assert (status, found["error"]) == (409, "another request had this id: it removed 'once'; an id is for one request")
    assert send(service, "DELETE", path)[0] == 200


def test_a_client_whose_answers_are_lost_creates_and_removes_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Client._send

    def lost(self: Client, *request: Any) -> Any:
        real(self, *request)
        monkeypatch.setattr(Client, "_send", real)
        raise ConnectionResetError

    with Client(service.url, "lost") as client:
        monkeypatch.setattr(Client, "_send", lost)
        assert client.create(target="y", task="regression")["name"] == "lost"
        monkeypatch.setattr(Client, "_send", lost)
        assert client.delete() == {"deleted": "lost"}


def test_metrics_are_those_of_prometheus(service: Service, client: Client) -> None:
    client.predict_then_learn(ROWS)
    time.sleep(1)  # what is shown may be a second old
    status, text = send(service, "GET", "/metrics")
    assert status == 200
    samples = {
        (sample.name, sample.labels.get("model")): sample.value
        for family in text_string_to_metric_families(text.decode()) for sample in family.samples
    }  # fmt: skip
    assert samples["omkl_rows_total", client.model] == 300
    assert samples["omkl_rows_learned_total", client.model] == 300
    assert 0 < samples["omkl_rmse", client.model] < samples["omkl_baseline_rmse", client.model]
    assert 0.7 < samples["omkl_coverage", client.model] <= 1
    assert samples["omkl_request_seconds_count", client.model] >= 1


def test_health_version_and_description(service: Service) -> None:
    assert send(service, "GET", "/health") == (200, {"status": "ok"})
    assert send(service, "GET", "/ready")[1]["status"] == "ready"
    assert send(service, "GET", "/version") == (200, {"omkl": omkl.__version__})
    _, document = send(service, "GET", "/openapi.json")
    assert document["openapi"] == "3.1.0"
    for path, operations in document["paths"].items():
        for method in operations:
            filled = path.replace("{name}", "absent").replace("{key}", "k")
            assert send(service, method.upper(), filled, content_type=JSON)[0] != 405, path


def test_pages_load_nothing_from_elsewhere(service: Service) -> None:
    for path in ("/", "/dashboard.js", "/dashboard.css"):
        status, content = send(service, "GET", path)
        assert status == 200
        outside = content.replace(b"http://www.w3.org/2000/svg", b"")  # the name of a namespace
        assert b"http" not in outside.replace(b"http-", b"")


def test_other_sites_are_refused(service: Service) -> None:
    assert send(service, "GET", "/v1/models", host="evil.example")[0] == 421
    assert send(service, "GET", "/v1/models", origin="http://evil.example")[0] == 403
    own = f"127.0.0.1:{service.port}"
    assert send(service, "GET", "/v1/models", host=own, origin=f"http://{own}")[0] == 200
    line = http.client.HTTPConnection("127.0.0.1", service.port)
    line.request("OPTIONS", "/learn", headers={"Origin": "http://evil.example"})
    answer = line.getresponse()
    assert "access-control-allow-origin" not in answer.headers
    line.close()


def test_urls_of_the_client() -> None:
    assert repr(Client("http://host:1/", "m")) == "Client('http://host:1', 'm')"
    assert urllib.parse.urlsplit(Client("http://host/sub").url).path == "/sub"
