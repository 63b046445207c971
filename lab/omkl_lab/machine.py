"""Describes the machine that measurements were made on, and the memory of this process."""

import datetime
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from omkl._version import __version__
from omkl.engine import cores, instruction_set
from omkl_lab.files import brief


def described() -> dict[str, Any]:
    """Processor, versions, date and load average."""
    return {
        "processor": processor(), "cores": cores(), "instruction_set": instruction_set(), "system": platform.system(),
        "load": brief(os.getloadavg()[0]) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(), "numpy": np.__version__, "java": java(), "omkl": __version__,
        "date": datetime.date.today().isoformat(),
    }  # fmt: skip


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def java() -> str | None:
    try:
        shown = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    return shown.splitlines()[0].split(" ", 1)[0] + " " + shown.split('"')[1] if '"' in shown else None


def processor_seconds() -> float:
    """Seconds for which processors of this machine have been busy since it started, 0 where the system does not say."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, soft, *_ = map(int, fields)
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


class Meter:
    """Adds up seconds by the clock, processor seconds of this process, and how many cores others kept busy."""

    def __init__(self) -> None:
        self.wall = self.cores = self._machine = 0.0

    def __enter__(self) -> "Meter":
        self._count(-1)
        return self

    def __exit__(self, *error: object) -> None:
        self._count(1)

    def _count(self, sign: int) -> None:
        self.wall += sign * time.perf_counter()
        self.cores += sign * time.process_time()
        self._machine += sign * processor_seconds()

    @property
    def others(self) -> float:
        return max(self._machine - self.cores, 0.0) / self.wall


def resident() -> int:
    """Resident memory of this process in bytes; its peak where the system reports nothing else."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_resident()


def peak_resident() -> int:
    """Peak resident memory of this process in bytes."""
    import resource  # not available on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
