"""An extension of griffe that recognises doctests in docstrings as examples."""

import re
from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Insert the heading "Examples", which griffe looks for, before the first doctest of a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and "Examples\n---" not in obj.docstring.value:
            obj.docstring.value = re.sub(r"(\A|\n\n)(?=>>> )", r"\1Examples\n--------\n", obj.docstring.value, count=1)
