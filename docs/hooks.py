"""What the site does beyond mkdocs.

Formulas become MathML, which browsers draw without a script or the network. Links into the source
tree lead to copies of the sources in the site, with numbered lines. Pages of the repository's root
are brought in, and the help of the command line becomes a page.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import latex2mathml.converter
from mkdocs.structure.files import File, Files
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from typer.main import get_command

from omkl.cli import app

ROOT = Path(__file__).parents[1]
SOURCES = ("src/omkl/**/*.py", "src/omkl/engine/*.hpp", "src/omkl/engine/*.cpp", "examples/**/*.py")
FROM_ROOT = ("changelog", "contributing", "security")
STYLE = """<style>body{margin:1em;font-size:14px}.highlight{background:none}
@media(prefers-color-scheme:dark){html{filter:invert(1) hue-rotate(180deg);background:#fff}}
a{color:inherit;text-decoration:none}</style>"""


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Every source file as a page of its own, the pages of the root, and the command line's help."""
    for name in FROM_ROOT:
        page = (ROOT / f"{name.upper()}.md").read_text(encoding="utf-8")
        files.append(File.generated(config, f"{name}.md", content=page.replace("](docs/", "](")))
    files.append(File.generated(config, "command_line.md", content=command_line()))
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            formatter = HtmlFormatter(
                full=True, title=name, linenos="inline", lineanchors="L", anchorlinenos=True, wrapcode=True
            )
            page = highlight(path.read_text(encoding="utf-8"), get_lexer_for_filename(name), formatter)
            page = page.replace("</head>", f"{STYLE}</head>")
            page = re.sub(r'(id|name|href)="(#?)L-(\d+)"', r'\1="\2L\3"', page)
            files.append(File.generated(config, f"source/{name}.html", content=page))
    return files


def command_line() -> str:
    """What every command says with --help."""
    parts = [
        "# The command line\n\nWhat `omkl COMMAND --help` says, written from it when this site was built.",
        *(f"## {name}\n\n```\n{text}\n```" for name, text in helps(get_command(app), "omkl", None)),
    ]
    return "\n\n".join(parts) + "\n"


def helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """Name and help of a command and of all below it."""
    context = command.make_context(name, [], parent, resilient_parsing=True, max_content_width=82, terminal_width=82)
    yield context.command_path, command.get_help(context)
    for below in getattr(command, "commands", {}).values():
        yield from helps(below, below.name, context)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links out of docs/ to a source file lead to its copy; a table may follow a marker at once."""
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(r"^(<!--.*-->)$", r"\n\1\n", markdown, flags=re.MULTILINE)
    return re.sub(
        r"\]\((?:\.\./)+((?:src/omkl|examples)/[^)#\s]+\.(?:py|hpp|cpp))(#[^)]*)?\)",
        lambda m: f"]({up}source/{m.group(1)}.html{m.group(2) or ''})",
        markdown,
    )


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as arithmatex leaves them, \\( \\) and \\[ \\], to MathML; what is too wide for a phone can be moved."""

    def drawn(found: re.Match[str]) -> str:
        latex = html.unescape(found.group("latex"))
        if found.group("tag") == "span":
            return latex2mathml.converter.convert(latex, display="inline")
        return wide(latex2mathml.converter.convert(latex, display="block"))

    content = re.sub(
        r'<(?P<tag>div|span) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', drawn, content, flags=re.S
    )
    return re.sub(
        r'<img ([^>]*src="pictures/[^>]*)>',
        lambda found: wide(f'<img style="min-width:640px" {found.group(1)}>'),
        content,
    )


def wide(block: str) -> str:
    return f'<span style="display:block; overflow:auto hidden; padding:.3em 0">{block}</span>'
