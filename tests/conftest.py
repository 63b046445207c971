"""How hypothesis runs here: the same examples every time; HYPOTHESIS_PROFILE=wander looks for new ones. A browser."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import started
from hypothesis import HealthCheck, settings

settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("wander", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    yield from started(tmp_path / "profile")
