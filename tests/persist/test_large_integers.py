"""Every whole number in files of GraphMKL's large experts, set to many others: refused, or harmless."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from large_states import large_states
from test_fuzz import at, places, use, with_array, with_body

import omkl
from omkl.persist import registry
from omkl.persist.container import Content, pack, unpack

EXTREMES = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 56, 63, 64, 65, 127, 128, 255, 256, 257, 511,
            512, 513, 1023, 1024, 2**16, 2**31, 2**32, 2**53, 2**62 - 1, 2**62, 2**63 - 1)  # fmt: skip


def original(model: Any) -> Content:
    return unpack(b"".join(pack(registry.encode(model))))


SOME = ("regression 1 trees in a fit", "classification 5 wide gather", "classification 5 wide factor")


def integers(content: Content) -> list[tuple[Any, ...]]:
    return [path for path in places(content.body) if type(at(content.body, path)) is int]


def around(number: int) -> set[int]:
    return {*EXTREMES, number - 1, number + 1, number - 8, number + 8, 2 * number, number // 2} - {number}


def edits(content: Content) -> Iterator[tuple[str, Content]]:
    for path in integers(content):
        for value in sorted(around(at(content.body, path))):
            yield f"{path} = {value}", with_body(content, path, value)
    for name, array in content.arrays.items():
        if array.dtype.kind in "iu" and array.size:
            span = np.iinfo(array.dtype)
            for value in (v for v in EXTREMES if span.min <= v <= span.max):
                for where in (0, array.size // 2, array.size - 1, slice(None)):
                    changed = array.copy()
                    changed.flat[where] = value
                    yield f"{name}[{where}] = {value}", with_array(content, name, changed)


def try_all(content: Content) -> tuple[int, int]:
    """How many files were refused, and how many were models that work."""
    refused = works = 0
    for what, changed in edits(content):
        try:
            found = omkl.from_bytes(b"".join(pack(changed)))
        except omkl.ModelFileError:
            refused += 1
            continue
        works += 1
        try:
            with np.errstate(all="ignore"):
                use(found)
        except Exception as error:
            raise AssertionError(what) from error
    return refused, works


@pytest.fixture(scope="module")
def originals() -> dict[str, Content]:
    return {name: original(model) for name, model in large_states()}


def check(content: Content) -> None:
    refused, works = try_all(content)
    assert refused > works > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_a_whole_number_of_large_experts_is_refused_or_harmless(name: str, originals: dict[str, Content]):
    check(originals[name])


@pytest.mark.soak
def test_whole_numbers_of_large_experts_in_every_stage_are_refused_or_harmless(originals: dict[str, Content]):
    for name, content in originals.items():
        if name not in SOME:
            check(content)
