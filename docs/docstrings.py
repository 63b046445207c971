"""An extension of griffe: estimators with their documented parameters, and doctests as examples."""

import inspect
import re
from importlib import import_module
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None:
            return
        if obj.is_class and re.match(r"omkl\.estimators\.\w+\.estimators\.", obj.path):
            # the section "Parameters" is added when the class is made, which griffe, reading the source, does not see
            made = getattr(import_module(obj.path.rpartition(".")[0]), obj.name)
            obj.docstring.value = inspect.getdoc(made) or ""
        if "Examples\n---" not in obj.docstring.value:
            # the heading that griffe looks for, before the first doctest
            obj.docstring.value = re.sub(r"(\A|\n\n)(?=>>> )", r"\1Examples\n--------\n", obj.docstring.value, count=1)
