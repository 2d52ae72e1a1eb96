"""Arrays as one object that is used without parsing: all that grows with a corpus is an array over the object's bytes.

    8 bytes     the format
    4 bytes     length of the header
    header      JSON: what the format says, and each array's type, shape and offset
    arrays      each at a multiple of 64

Little-endian; no pickle. Whoever reads a part of such an object needs no numpy: `dualtrack.knowledge.array_layout` and
the header's ``arrays`` say where it is.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from dualtrack.codec import dump
from dualtrack.knowledge.array_layout import ALIGNED, HEADER, arrays_begin, padded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]


class BadIndex(ValueError):
    """The bytes are not an index of this format."""


def joined(magic: bytes, told: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The object, its arrays in this order."""
    listed, at = {}, 0
    for name, array in arrays.items():
        listed[name] = [array.dtype.str, list(array.shape), at]
        at += padded(array.nbytes)
    header = dump({**told, "arrays": listed}).encode()
    start = magic + struct.pack("<I", len(header)) + header
    parts = [start, b"\0" * (-len(start) % ALIGNED)]
    for array in arrays.values():
        parts += [array.tobytes(), b"\0" * (-array.nbytes % ALIGNED)]
    return b"".join(parts)


def header_of(magic: bytes, data: bytes) -> tuple[dict[str, Any], int]:
    """The header of an object, and where its arrays begin. Raises `BadIndex` for another format, ValueError and
    `struct.error` for broken bytes."""
    if not data.startswith(magic):
        raise BadIndex("not an index in this format")
    (size,) = struct.unpack_from("<I", data, len(magic))
    return json.loads(data[HEADER : HEADER + size]), arrays_begin(size)


def array_in(data: bytes, header: Mapping[str, Any], first: int, name: str) -> Array:
    """An array of an object, over its bytes."""
    kind, shape, at = header["arrays"][name]
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(data, np.dtype(kind), count, first + at).reshape(shape)
