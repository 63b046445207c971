"""Hooks of the documentation site, which mkdocs calls while it builds the pages.

Formulas are converted to MathML, which browsers render without scripts or network. The site contains copies of
the source files with line numbers, and links to source files are redirected to them. The Markdown files in the
repository's root and the help texts of the command line are added as pages.
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

from omkl import __version__
from omkl.cli import app

ROOT = Path(__file__).parents[1]
SOURCES = (
    "src/omkl/**/*.py",
    "src/omkl/engine/**/*.hpp",
    "src/omkl/engine/**/*.cpp",
    "lab/omkl_lab/**/*.py",
    "examples/**/*.py",
    "tests/algorithms/*.py",
)
FROM_ROOT = ("changelog", "contributing", "security")
STYLE = """<style>body{margin:1em;font-size:14px}.highlight{background:none}
@media(prefers-color-scheme:dark){html{filter:invert(1) hue-rotate(180deg);background:#fff}}
a{color:inherit;text-decoration:none}</style>"""


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages of the repository's root, the help of the command line, and a page for each source file."""
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
    """The page with the help text of every command."""
    parts = [
        "# Command-line options\n\nThe output of `omkl COMMAND --help` for every command.",
        *(f"## {name}\n\n```\n{text}\n```" for name, text in help_texts(get_command(app), "omkl", None)),
    ]
    return "\n\n".join(parts) + "\n"


def help_texts(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """Name and help text of a command and of all its subcommands."""
    context = command.make_context(name, [], parent, resilient_parsing=True, max_content_width=82, terminal_width=82)
    yield context.command_path, command.get_help(context)
    for subcommand in getattr(command, "commands", {}).values():
        yield from help_texts(subcommand, subcommand.name, context)


def on_config(config: Any) -> Any:
    """Show the version beside the name of the site."""
    config.site_name = f"{config.site_name} {__version__}"
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Redirect links to source files, separate markers from tables, and give equations short anchors.

    The words by which people look for a page are added to the search index as tags.
    """
    page.meta.setdefault("tags", config.extra["search_words"].get(page.file.src_uri, []))
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(r"^(<!--.*-->)$", r"\n\1\n", markdown, flags=re.MULTILINE)
    if page.file.src_uri == "equations.md":  # [(15)](equations.md#eq-15) stays valid when the title changes
        markdown = re.sub(r"^(## \((\w+)\) .*)$", r"\1 { #eq-\2 }", markdown, flags=re.MULTILINE)
    return re.sub(
        r"\]\((?:\.\./)+((?:src/omkl|lab/omkl_lab|examples|tests/algorithms)/[^)#\s]+\.(?:py|hpp|cpp))(#[^)]*)?\)",
        lambda m: f"]({up}source/{m.group(1)}.html{m.group(2) or ''})",
        markdown,
    )


def on_page_content(content: str, **_: Any) -> str:
    """Convert formulas, which arithmatex marks by \\( \\) and \\[ \\], to MathML, and make wide elements scroll."""

    def to_mathml(found: re.Match[str]) -> str:
        latex = html.unescape(found.group("latex"))
        if found.group("tag") == "span":
            return latex2mathml.converter.convert(latex, display="inline")
        return scrollable(latex2mathml.converter.convert(latex, display="block"))

    content = re.sub(
        r'<(?P<tag>div|span) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', to_mathml, content, flags=re.S
    )
    return re.sub(
        r'<img ([^>]*src="pictures/[^>]*)>',
        lambda found: scrollable(f'<img style="min-width:640px" {found.group(1)}>'),
        content,
    )


def scrollable(block: str) -> str:
    """Let an element that is wider than the page scroll horizontally."""
    return f'<span style="display:block; overflow:auto hidden; padding:.3em 0">{block}</span>'
