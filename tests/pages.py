"""Checks that hold for every HTML report."""

import html
import json
import re
from typing import Any

NASTY = "<img src=x onerror=alert(1)>"  # a name that would be markup if it were not escaped


def markup(page: str) -> str:
    """What comes before the scripts, without plotly.js."""
    own = max(re.split(r"<script>.{1000000,}?</script>", page, flags=re.DOTALL), key=len)
    return own.split("<script", 1)[0]


def chart_data(page: str) -> str:
    found = re.search(r'id="charts">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    return found[1]


def charts_of(page: str) -> dict[str, Any]:
    return json.loads(chart_data(page))


def assert_self_contained(page: str) -> None:
    """One file that needs no other."""
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)\s*=\s*(?!["']?data:)""", markup(page).replace(html.escape(NASTY), ""))
    assert "Plotly" in page


def assert_markup_is_escaped(page: str) -> None:
    assert NASTY not in page
    assert html.escape(NASTY) in markup(page)
    assert not set("<>") & set(chart_data(page))
