"""Whether an image has the parts that its format demands, and how many pixels: what every decoder needs before it looks
at them. Pure, linear, and without a decoder: a file that passes may still be one that the model's service cannot read.

    PNG   signature ─ IHDR ─ … ─ PLTE? ─ IDAT+ ─ … ─ IEND      checksums of these chunks, the start of the zlib stream
    JPEG  SOI ─ segments with SOFn ─ SOS ─ data ─ EOI
    GIF   screen ─ (extensions ─ image ─ data)+                 the trailer may be missing
    WebP  RIFF ─ VP8X? ─ VP8, VP8L or ANMF

Sources: PNG 3rd edition 5, ITU T.81 B, GIF89a, RFC 9649; the limit of pixels: the Messages API's page on vision.
"""

from __future__ import annotations

import struct
import zlib
from struct import unpack_from
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_SIDE: Final = 8_000
"""Maximum pixels of a side."""

MAX_PARTS: Final = 100_000
"""Maximum number of chunks, segments and blocks: more than 4 MB of honest ones have."""

_BIT_DEPTHS: Final = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
"""By PNG's colour type."""
_PALETTE: Final = 3
_INFLATED: Final = 65_536
_SOF: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE: Final = frozenset((0x00, 0x01, *range(0xD0, 0xD9)))
"""JPEG's markers without a segment, and the stuffed byte."""
_CUT_OFF: Final = "it is cut off"

Size = tuple[int, int]


class BrokenImage(Exception):
    """Why a file is no image of its type."""


def image_problem(media_type: str, data: bytes) -> str:
    """Why the image cannot be shown; empty if nothing speaks against it. ``data`` has the signature of its type."""
    try:
        width, height = size_of(media_type, data)
    except BrokenImage as broken:
        return f"the image is broken: {broken}"
    if max(width, height) > MAX_SIDE:
        return f"the image has {width:,} x {height:,} pixels, and a side may have {MAX_SIDE:,}"
    return ""


def size_of(media_type: str, data: bytes) -> Size:
    """Width and height in pixels. Raises `BrokenImage`."""
    try:
        size = _READERS[media_type](data)
    except (IndexError, struct.error):
        raise BrokenImage(_CUT_OFF) from None
    if not all(size):
        raise BrokenImage("it has no pixels")
    return size


# ── PNG ───────────────────────────────────────────────────────────────────────────────────────────


def _png(data: bytes) -> Size:
    at, seen = 8, set[bytes]()
    for _ in range(MAX_PARTS):
        length, kind = unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        _check_chunk(kind, body, unpack_from(">I", data, at + 8 + length)[0])
        if (kind == b"IHDR") == bool(seen):
            raise BrokenImage("its header is not its first part")
        if kind == b"IDAT":
            _check_pixels(data, body, seen)
        seen.add(kind)
        at += 12 + length
        if kind == b"IEND":
            break
    if not {b"IDAT", b"IEND"} <= seen:
        raise BrokenImage("it has no picture" if b"IEND" in seen else "it has too many parts")
    width, height = unpack_from(">II", data, 16)
    return width, height


def _check_chunk(kind: bytes, body: bytes, checksum: int) -> None:
    """Only critical chunks, which begin with a capital letter: a decoder may skip the others."""
    if kind[:1].isupper() and zlib.crc32(body, zlib.crc32(kind)) != checksum:
        raise BrokenImage("a checksum is wrong")
    if kind == b"IHDR":
        _, _, depth, colour, compression, filtering, interlaced = unpack_from(">IIBBBBB", body)
        known = depth in _BIT_DEPTHS.get(colour, ()) and interlaced < 2
        if len(body) != 13 or not known or compression or filtering:
            raise BrokenImage("its header is not a PNG's")


def _check_pixels(data: bytes, body: bytes, seen: set[bytes]) -> None:
    """The palette comes before the pixels, and their compressed stream begins like one."""
    if data[25] == _PALETTE and b"PLTE" not in seen:
        raise BrokenImage("its palette is missing")
    if b"IDAT" not in seen:
        try:
            zlib.decompressobj().decompress(body[:_INFLATED], _INFLATED)
        except zlib.error:
            raise BrokenImage("its pixels cannot be unpacked") from None


# ── JPEG ──────────────────────────────────────────────────────────────────────────────────────────


def _jpeg(data: bytes) -> Size:
    at, size = 2, None
    for _ in range(MAX_PARTS):
        at = _next_marker(data, at)
        marker = data[at + 1]
        if marker == 0xFF:  # fill bytes
            at += 1
            continue
        if marker in _ALONE:
            at += 2
            continue
        (length,) = unpack_from(">H", data, at + 2)
        if marker in _SOF:
            height, width = unpack_from(">HH", data, at + 5)
            size = (width, height)
        at += 2 + length
        if marker == 0xDA:
            return _of_scan(data, at, size)
    raise BrokenImage("it has too many parts")


def _next_marker(data: bytes, at: int) -> int:
    """Behind bytes that belong to no segment, if there are any: some cameras write such, and decoders skip them."""
    found = data.find(b"\xff", at)
    if found < 0:
        raise BrokenImage(_CUT_OFF)
    return found


def _of_scan(data: bytes, at: int, size: Size | None) -> Size:
    if size is None:
        raise BrokenImage("it has no header")
    if data.find(b"\xff\xd9", at) < 0:
        raise BrokenImage(_CUT_OFF)
    return size


# ── GIF ───────────────────────────────────────────────────────────────────────────────────────────


def _gif(data: bytes) -> Size:
    width, height, flags = unpack_from("<HHB", data, 6)
    at, pictures, is_inside = 13 + _table(flags), 0, False
    for _ in range(MAX_PARTS):
        if is_inside:
            is_inside, at = bool(data[at]), at + 1 + data[at]
        elif pictures and (at == len(data) or data[at] == 0x3B):
            return width, height
        elif data[at] == 0x21:
            is_inside, at = True, at + 2
        elif data[at] == 0x2C:
            left, top, wide, high, flags = unpack_from("<HHHHB", data, at + 1)
            width, height = max(width, left + wide), max(height, top + high)
            pictures, is_inside, at = pictures + 1, True, at + 11 + _table(flags)
        else:
            raise BrokenImage("it has no picture" if data[at] == 0x3B else "a part is of no known kind")
    raise BrokenImage("it has too many parts")


def _table(flags: int) -> int:
    """Bytes of the colour table that the flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


# ── WebP ──────────────────────────────────────────────────────────────────────────────────────────


def _webp(data: bytes) -> Size:
    if unpack_from("<I", data, 4)[0] + 8 > len(data):
        raise BrokenImage(_CUT_OFF)
    at, canvas = 12, None
    for _ in range(MAX_PARTS):
        kind, length = unpack_from("<4sI", data, at)
        if at + 8 + length > len(data):
            raise BrokenImage(_CUT_OFF)
        if kind == b"VP8X":
            canvas = _of_24_bits(data, at + 12), _of_24_bits(data, at + 15)
        elif kind in _FRAMES:
            own = _FRAMES[kind](data, at + 8)
            return canvas or own
        at += 8 + length + length % 2
    raise BrokenImage("it has too many parts")


def _of_24_bits(data: bytes, at: int) -> int:
    low, high = unpack_from("<HB", data, at)
    return int(low + (high << 16)) + 1


def _lossy(data: bytes, at: int) -> Size:
    if data[at] & 1 or data[at + 3 : at + 6] != b"\x9d\x01\x2a":
        raise BrokenImage("its picture does not begin like one")
    width, height = unpack_from("<HH", data, at + 6)
    return width & 0x3FFF, height & 0x3FFF


def _lossless(data: bytes, at: int) -> Size:
    if data[at] != 0x2F:
        raise BrokenImage("its picture does not begin like one")
    (bits,) = unpack_from("<I", data, at + 1)
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1


def _animated(data: bytes, at: int) -> Size:
    return _of_24_bits(data, at + 6), _of_24_bits(data, at + 9)


_FRAMES: Final[Mapping[bytes, Callable[[bytes, int], Size]]] = {
    b"VP8 ": _lossy,
    b"VP8L": _lossless,
    b"ANMF": _animated,
}
_READERS: Final[Mapping[str, Callable[[bytes], Size]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
