"""Nested NamedTuples of arrays, and the memory layout that the engine reads."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import EVERY_CASE, arrays_of

from omkl.arrays import LANES, copied, is_padded, leaves, mapped, padded, padded_copy


class Pair(NamedTuple):
    first: Any
    second: Any


LEAVES = st.integers() | st.floats(allow_nan=False) | st.text() | st.none() | st.lists(st.integers(), max_size=2)
TREES = st.recursive(
    LEAVES,
    lambda parts: st.builds(Pair, parts, parts) | st.lists(parts, max_size=3).map(tuple),
    max_leaves=12,
)


@given(TREES)
def test_mapping_the_identity_gives_the_same_structure(tree: Any):
    same = mapped(lambda name, leaf: leaf, tree)
    assert same == tree
    assert type(same) is type(tree)


@given(TREES)
def test_every_leaf_is_visited_once_under_a_name_that_leads_to_it(tree: Any):
    def at(path: str) -> Any:
        value = tree
        for step in filter(None, path.split(".")):
            value = value[int(step)] if step.isdecimal() else getattr(value, step)
        return value

    visited = []
    mapped(lambda name, leaf: visited.append((name, leaf)), tree)
    assert len({name for name, _ in visited}) == len(visited) == len(leaves(tree))
    assert all(at(name) is leaf for name, leaf in visited)
    assert dict(visited) == leaves(tree)


@given(TREES)
def test_mapping_changes_leaves_and_nothing_else(tree: Any):
    counted = mapped(lambda name, leaf: name, tree)
    assert leaves(counted) == {name: name for name in leaves(tree)}


def test_leaves_have_dotted_names_in_the_order_of_the_fields():
    assert list(leaves(Pair(1, Pair(2, (3, 4))))) == ["first", "second.first", "second.second.0", "second.second.1"]
    assert leaves(5) == {"": 5}
    assert leaves(()) == {}


def test_a_copy_shares_no_array_and_is_equal():
    original = Pair(np.arange(3.0), (Pair(np.array([True]), 7), "word"))
    copy = copied(original)
    np.testing.assert_equal(leaves(copy), leaves(original))
    assert not np.shares_memory(copy.first, original.first)
    assert not np.shares_memory(copy.second[0].first, original.second[0].first)
    copy.first[0] = 9.0
    assert original.first[0] == 0.0


@EVERY_CASE
def test_the_state_of_every_algorithm_is_copied_whole(case: Any):
    online = case.online()
    state = online.state
    for name, array in arrays_of(copied(state)).items():
        original = leaves(state)[name]
        np.testing.assert_array_equal(array, original, err_msg=name)
        assert not isinstance(original, np.ndarray) or not np.shares_memory(array, original), name


@given(st.lists(st.integers(1, 20), min_size=2, max_size=4))
def test_padded_rows_start_on_cache_lines_and_end_in_zeros(shape: list[int]):
    a = padded(*shape)
    assert a.shape == tuple(shape)
    assert is_padded(a)
    assert a.ctypes.data % 64 == 0
    width = -(-shape[-1] // LANES) * LANES
    assert a.strides[-2] == 8 * width
    whole = np.lib.stride_tricks.as_strided(a, (*shape[:-1], width), a.strides)
    a[...] = 1
    assert not whole[..., shape[-1] :].any()


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda a: a[::-1], lambda a: a.astype(np.float32)])
def test_a_padded_copy_has_the_values_and_the_layout(layout: Any):
    a = layout(np.arange(15.0).reshape(3, 5))
    assert not is_padded(a)
    assert is_padded(padded_copy(a))
    np.testing.assert_array_equal(padded_copy(a), a)
