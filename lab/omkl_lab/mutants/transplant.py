"""Plants a fault in a module that is loaded already, which takes no time: for use in a fork."""

import gc
import sys
import types
from typing import Any

FAULTY = "<faulty>"  # the file name of the code of the faulty module
PLAIN = (int, float, complex, str, bytes, bool, tuple, list, dict, set, frozenset, type(None))
DECORATED = (property, classmethod, staticmethod)
CONSTRUCTORS = ("__init__", "__new__")


def transplant(name: str, source: str) -> None:
    """Every function of the loaded module gets the code of the faulty one, and every constant its value."""
    module = sys.modules[name]
    faulty = types.ModuleType(name)
    known = {attribute: vars(module).get(attribute) for attribute in ("__package__", "__file__", "__path__")}
    vars(faulty).update(known)
    exec(compile(source, FAULTY, "exec"), vars(faulty))
    everything = [thing for thing in gc.get_objects() if type(thing) is types.FunctionType]
    present = {place(each): each for each in everything if each.__code__.co_filename == module.__file__}
    for function in (each for each in everything if each.__code__.co_filename == FAULTY):
        if (old := present.get(place(function))) is not None and len(old.__code__.co_freevars) == len(
            function.__code__.co_freevars
        ):
            old.__code__ = function.__code__
            set_defaults(old, function)
    for attribute, value in vars(faulty).items():
        before = vars(module).get(attribute)
        if isinstance(value, PLAIN) and not attribute.startswith("__"):
            rebind(attribute, before, value)
        elif isinstance(value, type) and isinstance(before, type) and value.__module__ == name:
            change_class(before, value)
        elif hasattr(before, "__wrapped__") and not hasattr(value, "__wrapped__"):  # without its decorator
            rebind(attribute, before, value)


def place(function: types.FunctionType) -> tuple[str, int]:
    return function.__qualname__, function.__code__.co_firstlineno


def set_defaults(old: Any, new: Any) -> None:
    if new.__defaults__ != old.__defaults__:
        old.__defaults__ = new.__defaults__
    if new.__kwdefaults__ != old.__kwdefaults__:
        old.__kwdefaults__ = new.__kwdefaults__


def rebind(name: str, before: object, value: object) -> None:
    """The constant in every module that has imported it."""
    if type(before) is type(value) and before == value:
        return
    for path, module in list(sys.modules.items()):
        if path.partition(".")[0] == "omkl" and vars(module).get(name) is before:
            setattr(module, name, value)


def change_class(old: type, new: type) -> None:
    """Constants of the class, the defaults of its fields, and methods without their decorator."""
    for name, value in vars(new).items():
        if isinstance(value, PLAIN) and not name.startswith("__") and vars(old).get(name) != value:
            setattr(old, name, value)
        if isinstance(value, types.FunctionType) and type(vars(old).get(name)) in DECORATED:
            setattr(old, name, value)
    for name in CONSTRUCTORS:
        mine, theirs = vars(old).get(name), vars(new).get(name)
        if isinstance(mine, types.FunctionType) and isinstance(theirs, types.FunctionType):
            set_defaults(mine, theirs)
