"""Renders an HTML report from its template and its charts."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources

import jinja2
from plotly.offline import get_plotlyjs

from omkl._version import __version__
from omkl.report.charts import Choice


def render(package: str, template: str, charts: Mapping[str, Sequence[Choice]], **values: object) -> str:
    """An HTML page from a template in the folder `templates` of a package, which extends base.html.j2.

    `charts` holds the choices of each figure by its name; where there is more than one the reader can choose.
    """
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.FunctionLoader(lambda name: asset(f"{package}/templates", name)),
                                    jinja2.FunctionLoader(lambda name: asset("omkl/report", name))]),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    return environment.get_template(template).render(
        version=__version__, css=asset("omkl/report", "style.css"), js=asset("omkl/report", "script.js"),
        plotly=get_plotlyjs(), charts=in_html(charts), **values,
    )  # fmt: skip


def asset(folder: str, name: str) -> str | None:
    """The text of a file that belongs to a package; None if there is no such file."""
    root, *rest = folder.split("/")
    path = resources.files(root).joinpath(*rest, name)
    return path.read_text(encoding="utf-8") if path.is_file() else None


def in_html(value: object) -> str:
    """JSON that no HTML parser mistakes for markup."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
