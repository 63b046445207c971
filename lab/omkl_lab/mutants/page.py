"""What CONTRIBUTING.md says of the planted faults: how many the tests notice, and why not the others."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from omkl_lab.markdown import table
from omkl_lab.mutants.survivors import REASONS

PAGE, RESULTS = Path("CONTRIBUTING.md"), Path("results/mutants.jsonl")


def quoted(results: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """The generated part.

    >>> line = {"package": "graph", "module": "graph.py", "after": "x = a | b"}
    >>> print(quoted([line | {"outcome": outcome} for outcome in ("killed", "timeout", "survived")])["mutants"])
    |  | faults | noticed | of these, by taking too long | share |
    | --- | ---: | ---: | ---: | ---: |
    | graph | 3 | 2 | 1 | 67% |
    <BLANKLINE>
    No test noticed these:
    <BLANKLINE>
    | module | line with the fault | reason |
    | --- | --- | --- |
    | graph.py | `x = a \\| b` | not known |
    <BLANKLINE>
    """
    rows = []
    for name in dict.fromkeys(str(line["package"]) for line in results):
        outcomes = [line["outcome"] for line in results if line["package"] == name]
        slow, noticed = outcomes.count("timeout"), len(outcomes) - outcomes.count("survived")
        rows.append((name, str(len(outcomes)), str(noticed), str(slow), f"{noticed / len(outcomes):.0%}"))
    alive = [(str(line["module"]), str(line["after"])) for line in results if line["outcome"] == "survived"]
    listed = [(module, as_code(after), REASONS.get((module, after), "not known")) for module, after in alive]
    return {
        "mutants": table(("", "faults", "noticed", "of these, by taking too long", "share"), rows)
        + "\nNo test noticed these:\n\n"
        + table(("module", "line with the fault", "reason"), listed, left=3)
    }


def as_code(line: str) -> str:
    return "`" + line.replace("|", "\\|") + "`"
