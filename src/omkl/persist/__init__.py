"""Model files: a container format that executes nothing, and a registry of codecs.

`omkl.save` and `omkl.load` are built on it; modules with something to save call `register`.
"""

from omkl.arrays import Arrays
from omkl.persist.atomic import flush_folder, write_atomically
from omkl.persist.container import Json, Later, demand
from omkl.persist.online import decode_problem, decode_progress, encode_problem, encode_progress, grouped, saving
from omkl.persist.registry import (
    Codec,
    about,
    decode_part,
    encode_part,
    from_bytes,
    load,
    read,
    read_metadata,
    register,
    save,
    to_bytes,
)
from omkl.persist.values import (
    decode_kernels,
    decode_tuple,
    encode_kernels,
    encode_tuple,
    float_array,
    item,
    plain,
    register_kernel,
    require_finite,
)

__all__ = [
    "Arrays",
    "Codec",
    "Json",
    "Later",
    "about",
    "decode_kernels",
    "decode_part",
    "decode_problem",
    "decode_progress",
    "decode_tuple",
    "demand",
    "encode_kernels",
    "encode_part",
    "encode_problem",
    "encode_progress",
    "encode_tuple",
    "float_array",
    "flush_folder",
    "from_bytes",
    "grouped",
    "item",
    "load",
    "plain",
    "read",
    "read_metadata",
    "register",
    "register_kernel",
    "require_finite",
    "save",
    "saving",
    "to_bytes",
    "write_atomically",
]
