"""The parameters of an algorithm are documented once, in its module, and appear in the docstrings of its estimators."""

import inspect


def with_parameters(docstring: str | None, *sources: type) -> str:
    """A class's docstring with a section "Parameters" made of the docstrings of `sources`, before its examples.

    The first paragraph of a source says what it is and is left out; one that begins with "Reference: " comes before the
    section.
    """
    text = inspect.cleandoc(docstring or "")
    references, listed = [], []
    for source in sources:
        part = inspect.cleandoc(source.__doc__ or "").partition("\n\n")[2]
        if part.startswith("Reference: "):
            reference, _, part = part.partition("\n\n")
            references.append(reference)
        listed.append(part)
    section = "\n".join(["Parameters", "----------", *(part for part in listed if part)])
    head, examples, tail = text.partition("Examples\n--------")
    return "\n\n".join([head.rstrip(), *references, section, f"{examples}{tail}"]).rstrip() + "\n"
