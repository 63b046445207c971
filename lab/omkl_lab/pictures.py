"""Draws the pictures of the README and of the site as SVG, from the results and the source.

Colours have medium lightness and the background is transparent, so that they are readable on light and dark
pages. `python -m omkl_lab.readme` writes the files.
"""

import ast
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

INK, FAINT, OURS, THEIRS = "#7d8590", "#7d859055", "#2f81f7", "#c26a1b"
FONT = "font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\""
LETTER, BOLD = 0.56, 0.63  # mean width of a letter relative to the font size


def svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" {FONT} font-size="13">\n<title>{escape(title)}</title>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = INK, **more: object) -> str:
    extra = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{extra}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = FAINT, extra: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{extra}/>'


def frame(x: float, y: float, width: float, height: float) -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} rx="6" fill="{OURS}18" stroke="{OURS}"/>'


def dot(x: float, y: float, radius: float, colour: str, hollow: bool = False) -> str:
    fill = "none" if hollow else colour
    where = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"'
    return f'<circle {where} fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'


# Modules


def layers(project: Path) -> list[list[str]]:
    """The import contract of pyproject.toml, from the top."""
    contract = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return [[module.strip() for module in layer.split(":")] for layer in contract["contracts"][0]["layers"]]


def purpose(project: Path, module: str) -> str:
    """The first sentence of a module's docstring."""
    home = project / "src" / "omkl" / module
    source = (home / "__init__.py" if home.is_dir() else home.with_suffix(".py")).read_text(encoding="utf-8")
    paragraph = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".").replace("`", "")


def modules(project: Path) -> str:
    """Every module of the package with its purpose, in layers; each may import only from lower layers."""
    width, left, gap, size = 860.0, 34.0, 10.0, 12.0
    parts, y = [], 6.0
    for layer in layers(project):
        wide = (width - left - 4 - gap * (len(layer) - 1)) / len(layer)
        columns = int((wide - 24) / (LETTER * size)) - (0 if len(layer) > 1 else 15)
        purposes = [textwrap.wrap(purpose(project, module), columns) for module in layer]
        lines = max(map(len, purposes))
        alone = len(layer) == 1
        tall = 16 + 16 * lines + (0 if alone else 18)
        for k, (module, words) in enumerate(zip(layer, purposes, strict=True)):
            x = left + k * (wide + gap)
            parts.append(frame(x, y, wide, tall))
            parts.append(text(x + 12, y + 21, module, colour=OURS, font_weight=600, font_size=14))
            for n, words_of_line in enumerate(words):
                at = (x + 122, y + 21 + 16 * n) if alone else (x + 12, y + 39 + 16 * n)
                parts.append(text(*at, words_of_line, font_size=size))
        y += tall + gap
    height = y
    parts += [
        line(14, 10, 14, height - 22, INK, ' stroke-width="1.5"'),
        f'<path d="M 8 {height - 24:.1f} L 14 {height - 12:.1f} L 20 {height - 24:.1f} Z" fill="{INK}"/>',
        text(0, 0, "imports point down", "middle", transform=f"translate(27 {height / 2:.1f}) rotate(-90)"),
    ]
    return svg(width, height, "The modules of omkl, from the command line down to the arrays", parts)


# The path of one sample

LANES = ("you", "estimators", "scaling", "online", "engine")
STEPS: tuple[tuple[str, str, str], ...] = (
    ("you", "estimators", "a row, then its target, unscaled"),
    ("estimators", "scaling", "checked; features in their order"),
    ("scaling", "online", "standardised"),
    ("online", "engine", "with a random number per row, one call per chunk"),
    ("engine", "engine", "the node's neighbours predict: z (z), f (4)"),
    ("engine", "engine", "their combination is the prediction (13)"),
    ("engine", "engine", "p (12), q (15), losses (5) (14) (16)"),
    ("engine", "engine", "updates: theta (17), w (18a), u (18b)"),
    ("engine", "engine", "the next node is drawn"),
    ("engine", "online", "predictions, rows learned"),
    ("online", "scaling", "unused random numbers returned"),
    ("scaling", "estimators", "in the target's units"),
    ("estimators", "you", "a prediction made before the target"),
)


def sample_path() -> str:
    """The path of one row of SFG-MKL, from the estimator to the engine and back."""
    width, first, apart, step, top, size = 880.0, 58.0, 191.0, 40.0, 34.0, 12.0
    at = {lane: first + k * apart for k, lane in enumerate(LANES)}
    height = top + step * len(STEPS) + 16
    parts = []
    for lane, x in at.items():
        wide = 104
        parts.append(frame(x - wide / 2, 4, wide, 26))
        parts.append(text(x, 22, lane, "middle", OURS, font_weight=600, font_size=14))
        parts.append(line(x, 30, x, height - 4, extra=' stroke-dasharray="3 4"'))
    for k, (start, end, words) in enumerate(STEPS):
        y = top + step * (k + 1)
        x1, x2 = at[start], at[end]
        if start == end:
            parts.append(dot(x1, y - 4, 4, THEIRS))
            parts.append(text(x1 - 14, y, words, "end", font_size=size))
            continue
        back = x2 < x1
        parts.append(line(x1, y, x2, y, INK, ' stroke-width="1.5"' + (' stroke-dasharray="6 3"' if back else "")))
        parts.append(f'<path d="M {x2:.1f} {y:.1f} l {8 if back else -8} -5 l 0 10 Z" fill="{INK}"/>')
        lines = textwrap.wrap(words, int((apart - 12) / (LETTER * size)))
        for n, part in enumerate(reversed(lines)):
            parts.append(text((x1 + x2) / 2, y - 6 - 14 * n, part, "middle", font_size=size))
    return svg(width, height, "The path of one sample through the modules", parts)


def drawings(project: Path) -> Mapping[str, str]:
    """The pictures of the library's parts, by name."""
    return {"modules.svg": modules(project), "sample_path.svg": sample_path()}
