"""The container format, read and written by hand as its documentation says."""

import hashlib
import json
import pickle
import struct

import numpy as np
import pytest

from omkl.errors import ModelFileError
from omkl.persist import container
from omkl.persist.container import VERSION, Content, pack, unpack

ARRAYS = {
    "numbers": np.array([[1.5, -2.0, 0.0], [1e300, 5e-324, 7.0]]),
    "counts": np.array([3, -(2**63), 2**63 - 1]),
    "flags": np.array([True, False]),
    "nothing": np.zeros((0, 4)),
}


def by_hand(header, data=b"", version=VERSION, magic=b"OMKL\r\n\x1a\n"):
    """8 bytes magic, 4 version, 8 length of the header, header, arrays, 32 bytes BLAKE2b; little-endian."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    front = magic + struct.pack("<I", version) + struct.pack("<Q", len(text)) + text + data
    return front + hashlib.blake2b(front, digest_size=32).digest()


def header_of(*listing):
    return {"kind": "some", "body": {"a": [1, None]}, "arrays": list(listing)}


def test_a_file_is_laid_out_as_documented():
    data = b"".join(pack(Content("some", {"a": [1, None]}, ARRAYS)))
    magic, version, length = data[:8], *struct.unpack("<IQ", data[8:20])
    header, rest = json.loads(data[20 : 20 + length]), data[20 + length : -32]
    assert (magic, version) == (b"OMKL\r\n\x1a\n", VERSION)
    assert header == {"kind": "some", "body": {"a": [1, None]}, "arrays": [
        ["numbers", "float", [2, 3]], ["counts", "int", [3]], ["flags", "bool", [2]], ["nothing", "float", [0, 4]],
    ]}  # fmt: skip
    assert struct.unpack("<6d", rest[:48]) == tuple(ARRAYS["numbers"].ravel())
    assert struct.unpack("<3q", rest[48:72]) == tuple(ARRAYS["counts"])
    assert rest[72:] == b"\x01\x00"
    assert data[-32:] == hashlib.blake2b(data[:-32], digest_size=32).digest()


def test_a_file_made_by_hand_is_read():
    listing = ["numbers", "float", [2, 1]], ["counts", "int", [1]], ["flags", "bool", [3]]
    content = unpack(by_hand(header_of(*listing), struct.pack("<2dq3?", 1.5, -2.5, -7, True, False, True)))
    assert (content.kind, content.body, list(content.arrays)) == (
        "some",
        {"a": [1, None]},
        ["numbers", "counts", "flags"],
    )
    np.testing.assert_array_equal(content.arrays["numbers"], [[1.5], [-2.5]])
    np.testing.assert_array_equal(content.arrays["counts"], [-7])
    np.testing.assert_array_equal(content.arrays["flags"], [True, False, True])
    content.arrays["numbers"][0] = 3.0  # a copy that may be written to


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_layout_come_back(order):
    given = {name: np.asarray(array, order=order) for name, array in ARRAYS.items()} | {
        "every other": np.arange(9)[::2]
    }
    back = unpack(b"".join(pack(Content("some", None, given)))).arrays
    assert list(back) == list(given)
    for name, array in given.items():
        np.testing.assert_array_equal(back[name], array, strict=True)


def test_a_number_that_json_does_not_have_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack(Content("some", {"a": float("nan")}, {}))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "not an omkl model file, or cut off within its first 20 bytes"),
        (by_hand(header_of())[:19], "not an omkl model file, or cut off within its first 20 bytes"),
        (by_hand(header_of(), magic=b"OMKL\n\r\x1a\n"), "not an omkl model file"),
        (pickle.dumps({}), "a pickle, not an omkl model file; omkl.save writes one"),
        (by_hand(header_of(), version=VERSION + 1), f"format version {VERSION + 1} is newer than {VERSION}"),
        (by_hand(header_of())[:-1], "truncated or corrupted"),
        (by_hand(header_of())[:20], "truncated or corrupted"),
        (by_hand(header_of(["x", "float", [-1]])), "array x has an impossible shape"),
        (by_hand(header_of(["x", "float", [-1, -1]]), b"12345678"), "array x has an impossible shape"),
        (by_hand(header_of(["x", "float", [1.0]]), b"12345678"), "array x has an impossible shape"),
        (by_hand(header_of(["x", "float", [2]]), b"12345678"), "array x is longer than the file"),
        (
            by_hand(header_of(["x", "bool", [2]], ["y", "bool", [2]]), b"\x01\x00\x01"),
            "array y is longer than the file",
        ),
        (by_hand(header_of(["x", "float", [1]]), b"123456789"), "arrays and file differ in length"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(data, complaint):
    with pytest.raises(ModelFileError, match=complaint):
        unpack(data)


def test_a_file_of_this_or_an_earlier_version_is_read():
    for version in range(1, VERSION + 1):
        assert unpack(by_hand(header_of(), version=version)).kind == "some"


def test_every_changed_byte_is_noticed():
    data = by_hand(header_of(["x", "bool", [2]]), b"\x01\x00")
    for k in range(len(data)):
        with pytest.raises(ModelFileError):
            unpack(data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :])


def test_two_bytes_of_arrays_allow_one_more_value(monkeypatch):
    monkeypatch.setattr(container, "MOST_VALUES", 0)
    for n in (1, 30):
        values = n + 8  # what begins with a brace or bracket, or comes after a comma
        for m in (2 * values, 2 * values - 1):
            data = by_hand({"kind": "some", "body": [0] * n, "arrays": [["a", "bool", [m]]]}, bytes(m))
            if m == 2 * values:
                assert len(unpack(data).arrays["a"]) == m
            else:
                said = f"too much: {values} values in its header, at most {values - 1} with {m} bytes of arrays"
                with pytest.raises(ModelFileError, match=said):
                    unpack(data)


def test_objects_count_as_values(monkeypatch):
    monkeypatch.setattr(container, "MOST_VALUES", 0)
    with pytest.raises(ModelFileError, match="too much: 17 values"):  # three commas, a list and 13 objects
        unpack(by_hand(b'{"kind":"some","body":%s1%s,"arrays":[],"more":0}' % (b'{"a":' * 12, b"}" * 12)))


def test_eight_bytes_of_arrays_allow_one_more_array(monkeypatch):
    monkeypatch.setattr(container, "MOST_ARRAYS", 0)
    for k in (1, 5):
        for m in (8 * k, 8 * k - 1):
            listing = [["a", "bool", [m]], *([f"{i}", "int", [0]] for i in range(k - 1))]
            data = by_hand({"kind": "some", "body": None, "arrays": listing}, bytes(m))
            if m == 8 * k:
                assert len(unpack(data).arrays) == k
            else:
                with pytest.raises(ModelFileError, match=f"{k} arrays, at most {k - 1} with {m} bytes of arrays"):
                    unpack(data)
