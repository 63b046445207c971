"""The command line, in this process or in one of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from omkl.cli import app

OMKL = [sys.executable, "-c", "from omkl.cli import main; main()"]


def invoke(*words: Any, **options: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words], **options)


def omkl(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """80 columns wide, and no terminal."""
    env = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [*OMKL, *map(str, words)], **{"capture_output": True, "text": True, "timeout": 300, "env": env, **options}
    )


def outputs(folder: Path) -> list[Any]:
    """The words that make a run leave all its files here."""
    folder.mkdir(exist_ok=True)
    return ["--predictions", folder / "p.csv", "--model", folder / "m.omkl", "--checkpoint", folder / "c.ckpt"]
