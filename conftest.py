"""What pytest collects, how hypothesis runs, and the browser that tests share."""

import os
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from browser import started
from hypothesis import HealthCheck, settings

# A shell starts background processes with SIGINT ignored, and Python then raises no KeyboardInterrupt: tests of Ctrl-C
# would fail under `make test &`, and the processes that they start would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# modules that need what is not installed everywhere
WITH_SPARK = ["src/omkl/fleet/spark.py", "src/omkl/fleet/spark_columns.py", "src/omkl/fleet/spark_tasks.py"]
collect_ignore = [] if find_spec("pyspark") else [*WITH_SPARK, "tests/fleet/spark_driver.py"]
collect_ignore += ["tests/other_build/sitecustomize.py"]  # which other builds start with
collect_ignore += [] if find_spec("cosmic_ray") else ["lab/omkl_lab/mutants/planting.py"]

settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("quick", deadline=None, derandomize=True, database=None, max_examples=15)
settings.register_profile("wander", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    yield from started(tmp_path / "profile")
