"""How results are read and shown on the pages that compare learners."""

from collections.abc import Iterable
from pathlib import Path

from omkl_lab.files import read_lines
from omkl_lab.parallel import Record

US = "omkl GraphMKL"
STATUS = {"diverged": "diverges", "raised": "fails", "missing": "not installed"}
NOTHING = "-"
MACHINE = "machine"  # prefix of the keys of records that describe the machine, one for each start of a command


def read(path: Path) -> dict[str, Record]:
    """The records of a results file by key; later records replace earlier ones."""
    return {entry["key"]: entry["record"] for entry in read_lines(path)}


def is_machine(key: str) -> bool:
    return key.startswith(MACHINE)


def about(starts: list[Record]) -> Iterable[str]:
    """The machine of the measurements, as recorded at the last start, with the range of the load at all starts."""
    if not starts:
        return
    last = starts[-1]
    java = f", {last['java']}" if last["java"] else ""
    loads = [f"{load:.1f}" for load in sorted(s["load"] for s in starts if s["load"] is not None)]
    load = f"{loads[0]} to {loads[-1]}" if loads[1:] else "".join(loads) or "unknown"
    seeds = f", {last['seeds']} seeds" if "seeds" in last else ""
    yield (
        f"Machine: {last['processor']}, {last['cores']} cores, {last.get('jobs', 1)} in use; started "
        f"{len(starts)} times, load then {load}; {last['system']}, Python {last['python']}, NumPy "
        f"{last['numpy']}{java}, {last['instruction_set']} in omkl's engine; {last['date']}{seeds}.\n"
    )


def value(cell: Record | None, what: str) -> float | None:
    found = None if cell is None or cell["status"] != "ok" else cell.get(what)
    return None if found is None else float(found)


def digits(x: float) -> str:
    return f"{x:.3g}" if x < 1000 else f"{x:.0f}"


def time_shown(x: float) -> str:
    return f"{x:.0f}" if x >= 9.95 else f"{x:.1f}"


def bold(text: str, best: str) -> str:
    return f"**{text}**" if text == best else text
