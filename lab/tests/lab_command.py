"""Runs the laboratory's command line, in this process or in a separate one."""

import os
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from omkl_lab.cli import app

OMKL_LAB = [sys.executable, "-c", "from omkl_lab.cli import main; main()"]


def invoke(*words: Any, **options: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words], **options)


def omkl_lab(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """80 columns wide, without a terminal."""
    env = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [*OMKL_LAB, *map(str, words)], **{"capture_output": True, "text": True, "timeout": 300, "env": env, **options}
    )
