"""The command line, in this process or in one of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from omkl.cli import app

OMKL = [sys.executable, "-c", "from omkl.cli import main; main()"]


def invoke(*arguments: Any, **options: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def omkl(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """80 columns wide, and no terminal."""
    env = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [*OMKL, *map(str, arguments)], **{"capture_output": True, "text": True, "timeout": 300, "env": env, **options}
    )


def outputs(folder: Path) -> list[Any]:
    """The options that make a run write all its files to a folder."""
    folder.mkdir(exist_ok=True)
    return ["--predictions", folder / "p.csv", "--model", folder / "m.omkl", "--checkpoint", folder / "c.ckpt"]
