"""Names of the features that columns become."""

from collections.abc import Collection, Container

CALENDAR = tuple(f"{cycle} {part}" for cycle in ("day", "week", "year") for part in ("sin", "cos"))
MADE = (" missing", " other", *(f":{part}" for part in CALENDAR))  # ends of names of features made of a column
ID_PARTS = ("id count of ", "id mean of ", "id fit of ", "id mean 2 of ", "id fit 2 of ")  # beginnings of others
MAX_CODES = (len(ID_PARTS) - 1) // 2
BUCKETS = 4096  # that the values of a column of many categories are hashed to


def id_features(own: str, codes: int) -> tuple[str, ...]:
    """The features of a column of many categories, whose target is described by so many numbers.

    >>> id_features("user", 1)
    ('id count of user', 'id mean of user', 'id fit of user')
    """
    return tuple(f"{part}{own}" for part in ID_PARTS[: 1 + 2 * codes])


def own_feature(name: str, columns: Container[str]) -> str:
    """The feature with the name of a column, in quotes if one made of another column may have that name.

    >>> own_feature("age missing", ["age missing"]), own_feature("age missing", ["age missing", "age"])
    ('age missing', "'age missing'")
    >>> own_feature("a=b", ["a=b"]), own_feature("a=b", ["a=b", "a"])
    ('a=b', "'a=b'")
    >>> own_feature("id mean of user", [])
    "'id mean of user'"
    """
    others = [name.removesuffix(end) for end in MADE if name.endswith(end)]
    others += [name[:k] for k, character in enumerate(name) if character == "="]
    others += [name[1:-1]] if name[:1] in ("'", '"') else []
    return repr(name) if name.startswith(ID_PARTS) or any(other in columns for other in others) else name


def own_feature_before(name: str) -> str:
    """The same as earlier versions had it, whose files do not say it."""
    return repr(name) if "=" in name or name.endswith(MADE) or name[:1] in ("'", '"') else name


def clash(names: Collection[str]) -> bool:
    """Whether a column is called what a feature made of another one may be called."""
    return any(own_feature(name, names) != name for name in names)
