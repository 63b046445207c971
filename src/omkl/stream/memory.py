"""Whether the models of many keys fit into memory: checked before they are learned."""

from collections.abc import Callable
from pathlib import Path

from omkl.notices import Notify
from omkl.stream.raw import DataError

NOTICE_BYTES = 400_000_000  # of all models, from which on a notice says how much they take
MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def check_memory(
    bytes_before: int, bytes_after: int, keys: int, notify: Notify, available: Callable[[], int | None], copied: bool
) -> None:
    """Say how much memory the models of so many keys take where it is much, and refuse it where there is less.

    `copied`: it takes a copy of all models to save them.
    """
    if bytes_after < NOTICE_BYTES:
        return
    remedy = "a learner with smaller models, such as --learner sfg-mkl, or --set n_features=10 takes less"
    about = f"the models of {keys:,} keys take about {shown(bytes_after)} of memory"
    free = available()
    if free is not None and (1 + copied) * bytes_after - bytes_before > free:
        more = ", twice that while they are saved" if copied else ""
        raise DataError(f"{about}{more}, and {shown(free)} are available; {remedy}")
    notify("memory", f"{about}, and as much in a file; {remedy}")


def shown(size: int) -> str:
    """Bytes for people.

    >>> shown(2_262_184_000), shown(400_000_000)
    ('2.3 GB', '400 MB')
    """
    return f"{size / 1e9:.2g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


def available_memory() -> int | None:
    """Bytes that this process may still take, as far as the system reports it; None where it does not."""
    found = []
    if MEMINFO.exists():
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines() if ":" in line)
        if "MemAvailable" in lines:
            found.append(1024 * int(lines["MemAvailable"].split()[0]))
    limit, used = CGROUP / "memory.max", CGROUP / "memory.current"
    if limit.exists() and used.exists() and (most := limit.read_text().strip()) != "max":
        found.append(int(most) - int(used.read_text()))
    return max(min(found), 0) if found else None
