"""A service that is killed at any moment loses nothing and learns nothing twice."""

import random
import time
from pathlib import Path

import pytest
from serving import Clients, Service, learned_alone, some_rows

from omkl import persist
from omkl.serve import Client


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
