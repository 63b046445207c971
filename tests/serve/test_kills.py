"""A service that is killed at any moment loses nothing and learns nothing twice."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from serving import Clients, Service, learned_alone, serving, some_rows

from omkl import persist
from omkl.serve import Client
from omkl.serve.client import ServiceError
from omkl.serve.workers import WAITS


def killed(folder: Path, kills: int, rows: int, seconds: float, seed: int) -> None:
    """Kill the service at random moments under load; then compare with a run that nothing disturbed."""
    chance = random.Random(seed)
    service = Service(folder / "state", "--target", "y", "--task", "regression", "--checkpoint-rows", "300", "--quiet")
    clients = Clients(service.url, some_rows(rows, seed), threads=8)
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.05, seconds))
            service.kill()
            service.start()
        clients.join(600)
        assert len(clients.acknowledged) == rows
        assert not clients.twice
        assert sorted(clients.acknowledged) == list(range(1, rows + 1))
        in_order = [clients.acknowledged[number] for number in range(1, rows + 1)]
        model, predictions = learned_alone([row for row, _ in in_order])
        assert [prediction for _, prediction in in_order] == predictions
        with Client(service.url) as client:
            assert client.download() == persist.to_bytes(model)
    finally:
        clients.stopped.set()
        service.kill()


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    killed(tmp_path, kills=5, rows=1_500, seconds=1.0, seed=0)


@pytest.mark.soak
def test_killed_fifty_times(tmp_path: Path) -> None:
    killed(tmp_path, kills=50, rows=15_000, seconds=3.0, seed=1)


@pytest.mark.slow
def test_requests_about_models_are_remembered(tmp_path: Path) -> None:
    options = ("--target", "y", "--task", "regression")
    with serving(tmp_path / "state", *options) as service, Client(service.url) as client:
        body = {"target": "y", "task": "regression"}
        for name in ("a", "b"):
            client.request("PUT", f"/v1/models/{name}", body, id=f"new {name}")
        client.request("DELETE", "/v1/models/b", id="old")
        service.kill()
        service.start()
        assert client.request("PUT", "/v1/models/a", body, id="new a")["name"] == "a"
        assert client.request("DELETE", "/v1/models/b", id="old") == {"deleted": "b"}
        with pytest.raises(ServiceError, match="no model 'b'"):
            client.request("DELETE", "/v1/models/b", id="other")


BY_KEY = ("--target", "y", "--task", "regression", "--by", "meter", "--learner", "sfg-mkl", "--workers", "2")


@pytest.mark.slow
def test_workers_that_are_killed_are_started_again(tmp_path: Path) -> None:
    """Every row that was acknowledged has been learned once, in its order, whatever became of the worker."""
    keys, each = 6, 120
    rows = [[{"meter": f"m{k}", "a": row["a"], "y": row["y"]} for row in some_rows(each, k)] for k in range(keys)]
    predictions: list[list[float]] = [[] for _ in range(keys)]
    refused: list[ServiceError] = []
    stopped = threading.Event()

    def send(url: str, k: int) -> None:
        with Client(url, retries=0, timeout=30) as client:
            for n, row in enumerate(rows[k]):
                while not stopped.is_set():
                    try:
                        predictions[k].append(client.predict_then_learn(row, id=f"{k}-{n}")["prediction"])
                        break
                    except ServiceError as error:
                        refused.append(error)
                        time.sleep(0.05)

    with serving(tmp_path / "killed", *BY_KEY, "--checkpoint-rows", "50") as service, Client(service.url) as client:
        threads = [threading.Thread(target=send, args=(service.url, k)) for k in range(keys)]
        for thread in threads:
            thread.start()
        try:
            for kill in range(3):
                while sum(map(len, predictions)) < keys * each * (kill + 1) // 5:
                    time.sleep(0.01)
                os.kill(service.workers()[kill % 2], signal.SIGKILL)
                with Client(service.url, retries=0) as other:
                    until_ready(other, False)
                    assert other.request("GET", "/health") == {"status": "ok"}
                    other.request("GET", "/metrics")
                until_ready(client, True)
            for thread in threads:
                thread.join(300)
        finally:
            stopped.set()
        assert {(error.status, "is being restarted" in str(error)) for error in refused} == {(503, True)}
        assert client.describe()["learned"] == keys * each
        assert b'omkl_worker_restarts_total{model="model"} 3' in client.request("GET", "/metrics")
        alone = [learned_alone(own, by="meter", learner="sfg-mkl")[1] for own in rows]
        # the first row of a key is predicted from the other keys of its worker
        assert [own[1:] for own in predictions] == [own[1:] for own in alone]
        assert service.stop() == 0
    assert "records of the log replayed" in (tmp_path / "killed.log").read_text()  # what a worker logs is not lost


def until_ready(client: Client, wanted: bool) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        status, text = ready(client)
        assert status == 200 or (status == 503 and "worker process" in text)
        if (status == 200) == wanted:
            return
        time.sleep(0.005)
    raise AssertionError


def ready(client: Client) -> tuple[int, str]:
    try:
        return 200, client.request("GET", "/ready")["status"]
    except ServiceError as error:
        return error.status, str(error)


@pytest.mark.slow
def test_a_worker_that_cannot_be_started_is_given_up(tmp_path: Path) -> None:
    with serving(tmp_path / "state", *BY_KEY) as service, Client(service.url, retries=0) as client:
        client.learn({"meter": "m1", "a": 1.0, "y": 2.0})
        for part in (tmp_path / "state").glob("*/worker-*/checkpoint.omkl"):
            part.write_bytes(b"damaged")
        os.kill(service.workers()[0], signal.SIGKILL)
        until_ready(client, False)
        until = time.monotonic() + sum(WAITS) + 120
        while "again and again" not in ready(client)[1] and time.monotonic() < until:
            assert ready(client)[0] == 503
            time.sleep(0.1)
        assert "again and again" in ready(client)[1]
        assert service.stop() == 0
