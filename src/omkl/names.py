"""Names of the features that columns become."""

from collections.abc import Collection, Container

CALENDAR = tuple(f"{cycle} {part}" for cycle in ("day", "week", "year") for part in ("sin", "cos"))
MADE = (" missing", " other", *(f":{part}" for part in CALENDAR))  # ends of names of features made of a column


def own_feature(name: str, columns: Container[str]) -> str:
    """The feature with the name of a column, in quotes if one made of another column may have that name.

    >>> own_feature("age missing", ["age missing"]), own_feature("age missing", ["age missing", "age"])
    ('age missing', "'age missing'")
    >>> own_feature("a=b", ["a=b"]), own_feature("a=b", ["a=b", "a"])
    ('a=b', "'a=b'")
    """
    others = [name.removesuffix(end) for end in MADE if name.endswith(end)]
    others += [name[:k] for k, character in enumerate(name) if character == "="]
    others += [name[1:-1]] if name[:1] in ("'", '"') else []
    return repr(name) if any(other in columns for other in others) else name


def own_feature_before(name: str) -> str:
    """The same as earlier versions had it, whose files do not say it."""
    return repr(name) if "=" in name or name.endswith(MADE) or name[:1] in ("'", '"') else name


def clash(names: Collection[str]) -> bool:
    """Whether a column is called what a feature made of another one may be called."""
    return any(own_feature(name, names) != name for name in names)
