"""Markdown for generated pages: tables, escaping, and replacing the parts of a page between markers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from omkl.persist import write_atomically


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first `left` columns are left-aligned, the others right-aligned.

    >>> print(table(["set", "error"], [["airfoil", "4.6"]]), end="")
    | set | error |
    | --- | ---: |
    | airfoil | 4.6 |
    """
    lines = [head, ["---"] * left + ["---:"] * (len(head) - left), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def escaped(text: str) -> str:
    """Text escaped for a Markdown table and for HTML."""
    for a, b in (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("*", "\\*"), ("`", "\\`"),
                 ("_", "\\_"), ("\n", " ")):  # fmt: skip
        text = text.replace(a, b)
    return text


# Generated parts


def markers(name: str, command: str) -> tuple[str, str]:
    """The comments before and after a generated part."""
    return f"<!-- {name}: made by {command} -->", f"<!-- end of {name} -->"


def filled(page: str, parts: Mapping[str, str], command: str) -> str:
    """The page with these parts placed between their markers.

    >>> filled("a <!-- x: made by c -->old<!-- end of x --> b", {"x": "new"}, "c").splitlines()
    ['a <!-- x: made by c -->', 'new', '<!-- end of x --> b']
    """
    for name, content in parts.items():
        head, _, tail = split(page, name, command)
        start, end = markers(name, command)
        page = f"{head}{start}\n{content.strip()}\n{end}{tail}"
    return page


def part(page: str, name: str, command: str) -> str:
    """The text between the markers."""
    return split(page, name, command)[1].strip()


def split(page: str, name: str, command: str) -> tuple[str, str, str]:
    """The page before a part, the part, and the page after it."""
    start, end = markers(name, command)
    if page.count(start) != 1 or page.count(end) != 1:
        raise ValueError(f"the page must hold {start} and {end} once each; put them back")
    head, rest = page.split(start)
    inside, tail = rest.split(end)
    return head, inside, tail


def fill(path: Path, parts: Mapping[str, str], command: str) -> None:
    write_atomically(path, filled(path.read_text(encoding="utf-8"), parts, command).encode())
