"""What the site does beyond mkdocs.

Formulas become MathML, which browsers draw without a script or the network. Links into the source
tree lead to copies of the sources in the site, with numbered lines.
"""

import html
import re
from pathlib import Path
from typing import Any

import latex2mathml.converter
from mkdocs.structure.files import File, Files
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename

ROOT = Path(__file__).parents[1]
SOURCES = ("src/omkl/**/*.py", "src/omkl/engine/*.hpp", "src/omkl/engine/*.cpp", "examples/**/*.py")
STYLE = """<style>body{margin:1em;font-size:14px}.highlight{background:none}
@media(prefers-color-scheme:dark){html{filter:invert(1) hue-rotate(180deg);background:#fff}}
a{color:inherit;text-decoration:none}</style>"""


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Every source file as a page of its own."""
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            formatter = HtmlFormatter(
                full=True, title=name, linenos="inline", lineanchors="L", anchorlinenos=True, wrapcode=True
            )
            page = highlight(path.read_text(), get_lexer_for_filename(name), formatter)
            page = page.replace("</head>", f"{STYLE}</head>")
            page = re.sub(r'(id|name|href)="(#?)L-(\d+)"', r'\1="\2L\3"', page)
            files.append(File.generated(config, f"source/{name}.html", content=page))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links out of docs/ to a source file lead to its copy."""
    up = "../" * page.file.src_uri.count("/")
    return re.sub(
        r"\]\((?:\.\./)+((?:src/omkl|examples)/[^)#\s]+\.(?:py|hpp|cpp))(#[^)]*)?\)",
        lambda m: f"]({up}source/{m.group(1)}.html{m.group(2) or ''})",
        markdown,
    )


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as arithmatex leaves them, \\( \\) and \\[ \\], to MathML."""

    def drawn(found: re.Match[str]) -> str:
        latex = html.unescape(found.group("latex"))
        display = "block" if found.group("tag") == "div" else "inline"
        return latex2mathml.converter.convert(latex, display=display)

    return re.sub(
        r'<(?P<tag>div|span) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', drawn, content, flags=re.S
    )
