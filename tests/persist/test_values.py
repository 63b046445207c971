"""NamedTuples in model files: they come back as they were, and what does not fit their annotations is refused."""

import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from omkl.algorithms.schedule import Schedule
from omkl.arrays import Gappy, Index, Mask, Matrix, Vector, is_padded, leaves
from omkl.errors import ModelFileError
from omkl.kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern
from omkl.persist import decode_tuple, encode_tuple, plain
from omkl.persist.container import Content, pack, unpack


class Part(NamedTuple):
    a: Vector
    gaps: Gappy
    n: int


class Inner(NamedTuple):
    part: Part
    size: float


class Whole(NamedTuple):
    matrix: Matrix
    index: Index
    mask: Mask
    inner: Inner
    pair: tuple[Part, Part]
    steps: tuple[float, ...]
    kernels: tuple[Kernel, ...]
    schedule: Schedule  # a NamedTuple without arrays
    word: str
    flag: bool
    limit: int | None


FINITE = st.floats(allow_nan=False, allow_infinity=False)
WITH_GAPS = st.floats(allow_infinity=False)
COUNTS = st.integers(0, 2**60)
KERNELS = st.one_of(
    st.builds(kind, st.floats(0.01, 100)) for kind in (Gaussian, Laplacian, Cauchy)
) | st.builds(Matern, st.floats(0.01, 100), st.sampled_from([0.5, 1.5, 2.5]))  # fmt: skip


def arrays(dtype: Any, elements: Any, ndim: int) -> Any:
    shapes = st_numpy.array_shapes(min_dims=ndim, max_dims=ndim, min_side=0, max_side=4)
    return st_numpy.arrays(dtype, shapes, elements=elements)


PARTS = st.builds(Part, arrays(float, FINITE, 1), arrays(float, WITH_GAPS, 1), COUNTS)
WHOLES = st.builds(
    Whole,
    arrays(float, FINITE, 2),
    arrays(np.int64, st.integers(-(2**63), 2**63 - 1), 1),
    arrays(bool, st.booleans(), 1),
    st.builds(Inner, PARTS, FINITE),
    st.tuples(PARTS, PARTS),
    st.lists(FINITE, max_size=4).map(tuple),
    st.lists(KERNELS, min_size=1, max_size=4).map(tuple),
    st.builds(Schedule, FINITE, FINITE, st.booleans()),
    st.text(),
    st.booleans(),
    st.none() | COUNTS,
)


def written(value: Any, prefix: str = "") -> tuple[Any, dict[str, Any]]:
    """Body and arrays after a way through the bytes of a file."""
    arrays: dict[str, Any] = {}
    body = encode_tuple(value, arrays, prefix)
    content = unpack(b"".join(pack(Content("test", body, arrays))))
    return content.body, content.arrays


def assert_equal(a: Any, b: Any) -> None:
    """Equal in structure, types and to the last bit."""
    assert type(a) is type(b)
    one, other = leaves(a), leaves(b)
    assert one.keys() == other.keys()
    for name, leaf in one.items():
        assert type(other[name]) is type(leaf), name
        np.testing.assert_array_equal(leaf, other[name], err_msg=name, strict=isinstance(leaf, np.ndarray))


@given(WHOLES, st.sampled_from(["", "state.", "3."]))
def test_nested_tuples_come_back_as_they_were(value: Whole, prefix: str):
    body, arrays = written(value, prefix)
    assert all(name.startswith(prefix) for name in arrays)
    assert_equal(decode_tuple(Whole, body, arrays, prefix), value)


@given(WHOLES)
def test_matrices_are_padded_on_request_and_keep_their_values(value: Whole):
    body, arrays = written(value)
    padded = decode_tuple(Whole, body, arrays, pad=True)
    assert is_padded(padded.matrix) or 0 in padded.matrix.shape
    assert_equal(padded, value)


def example() -> Whole:
    part = Part(np.array([1.0, 2.0]), np.array([np.nan, 3.0]), 4)
    return Whole(
        np.eye(2), np.arange(3), np.array([True, False]), Inner(part, 0.5), (part, part), (0.1, 0.2), (Gaussian(1.0),),
        Schedule(0.1, 0.2, True), "word", False, None,
    )  # fmt: skip


ARRAYS = written(example())[1]
NAMES = sorted(ARRAYS)


def test_arrays_are_named_by_their_path():
    assert set(NAMES) == {
        "matrix", "index", "mask", "inner.part.a", "inner.part.gaps", "pair.0.a", "pair.0.gaps", "pair.1.a",
        "pair.1.gaps",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_array_that_is_missing_is_named(name: str):
    body, arrays = written(example())
    del arrays[name]
    with pytest.raises(ModelFileError, match=f"array {name} is missing"):
        decode_tuple(Whole, body, arrays)


@pytest.mark.parametrize("name", sorted(written(example())[0]))
def test_a_value_that_is_missing_is_named(name: str):
    body, arrays = written(example())
    del body[name]
    with pytest.raises(ModelFileError, match=f"{name} is missing"):
        decode_tuple(Whole, body, arrays)


@pytest.mark.parametrize("name", NAMES)
def test_an_array_of_another_type_is_refused_with_both_types(name: str):
    body, arrays = written(example())
    wanted = arrays[name].dtype
    wrong = np.int64 if wanted == np.float64 else np.float64
    arrays[name] = np.nan_to_num(arrays[name]).astype(wrong)
    with pytest.raises(ModelFileError, match=f"array {name} must hold {wanted}, got {np.dtype(wrong)}"):
        decode_tuple(Whole, body, arrays)


@pytest.mark.parametrize("name", [name for name in NAMES if ARRAYS[name].dtype == np.float64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_nan_in_an_array_with_gaps_is_accepted(name: str, value: float):
    body, arrays = written(example())
    arrays[name].flat[0] = value
    if name.endswith("gaps") and math.isnan(value):
        assert_equal(decode_tuple(Whole, body, arrays), decode_tuple(Whole, body, arrays))
        assert np.isnan(leaves(decode_tuple(Whole, body, arrays))[name][0])
    else:
        with pytest.raises(ModelFileError, match=f"array {name} is not finite"):
            decode_tuple(Whole, body, arrays)


def test_a_kernel_that_nobody_registered_is_named():
    body, arrays = written(example())
    body["kernels"] = [["Unknown", {"length_scale": 1.0}]]
    with pytest.raises(ModelFileError, match=r"kernel 'Unknown' is not known; .*register_kernel"):
        decode_tuple(Whole, body, arrays)


@given(st.none() | st.booleans() | st.integers() | FINITE | st.text())
def test_labels_and_keys_keep_their_value_and_type(value: Any):
    back = json.loads(json.dumps(plain(value)))
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize("value", [np.float64(0.5), np.int32(3), np.bool_(True), np.str_("a")])
def test_numpys_own_scalars_become_pythons(value: Any):
    assert plain(value) == value
    assert type(plain(value)) in (float, int, bool, str)


@pytest.mark.parametrize("value", [(1, 2), [1], b"bytes", object])
def test_what_is_no_label_is_refused(value: Any):
    with pytest.raises(
        ValueError, match="labels, keys and names must be finite numbers, strings or booleans to be saved, got"
    ):
        plain(value)
