"""What is looked for in every page that omkl writes."""

import html
import json
import re
from typing import Any

NASTY = "<img src=x onerror=alert(1)>"  # a name that wants to be markup


def markup(page: str) -> str:
    """What comes before the scripts; plotly.js, which is somebody else's, does not count."""
    own = max(re.split(r"<script>.{1000000,}?</script>", page, flags=re.DOTALL), key=len)
    return own.split("<script", 1)[0]


def chart_data(page: str) -> str:
    found = re.search(r'id="charts">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    return found[1]


def charts_of(page: str) -> dict[str, Any]:
    return json.loads(chart_data(page))


def assert_asks_nobody(page: str) -> None:
    """One file, with all that it needs in it."""
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)\s*=\s*(?!["']?data:)""", markup(page).replace(html.escape(NASTY), ""))
    assert "Plotly" in page


def assert_nasty_is_text(page: str) -> None:
    assert NASTY not in page
    assert html.escape(NASTY) in markup(page)
    assert not set("<>") & set(chart_data(page))
