"""The parameters of an algorithm are documented once, in its module, and appear in the docstrings of its estimators."""

import inspect


def with_parameters(docstring: str | None, *sources: type) -> str:
    """A class's docstring with a section "Parameters" made of the docstrings of `sources`, before its examples.

    The first paragraph of a source says what it is and is left out.
    """
    text = inspect.cleandoc(docstring or "")
    listed = [inspect.cleandoc(source.__doc__ or "").partition("\n\n")[2] for source in sources]
    section = "\n".join(["Parameters", "----------", *(part for part in listed if part)])
    head, examples, tail = text.partition("Examples\n--------")
    return f"{head.rstrip()}\n\n{section}\n\n{examples}{tail}".rstrip() + "\n"
