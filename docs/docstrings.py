"""Doctests in docstrings are examples, with or without a heading that says so."""

import re
from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Puts the heading that griffe looks for before the first doctest of a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and "Examples\n---" not in obj.docstring.value:
            obj.docstring.value = re.sub(r"(\A|\n\n)(?=>>> )", r"\1Examples\n--------\n", obj.docstring.value, count=1)
