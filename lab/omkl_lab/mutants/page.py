"""The table of CONTRIBUTING.md: how many of the planted faults the tests notice."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from omkl_lab.markdown import table

PAGE, RESULTS = Path("CONTRIBUTING.md"), Path("results/mutants.jsonl")
NOTICED = ("killed", "timeout")


def quoted(results: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """The generated part.

    >>> lines = [{"package": "graph", "outcome": outcome} for outcome in ("killed", "survived")]
    >>> print(quoted(lines)["mutants"])
    |  | faults | noticed | share |
    | --- | ---: | ---: | ---: |
    | graph | 2 | 1 | 50% |
    <BLANKLINE>
    """
    rows = []
    for name in dict.fromkeys(str(line["package"]) for line in results):
        outcomes = [line["outcome"] for line in results if line["package"] == name]
        noticed = sum(outcome in NOTICED for outcome in outcomes)
        rows.append((name, str(len(outcomes)), str(noticed), f"{noticed / len(outcomes):.0%}"))
    return {"mutants": table(("", "faults", "noticed", "share"), rows)}
