"""Small whole files of each type that the model can see. A PNG and a PDF may be filled to any size."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final

PNG_START: Final = b"\x89PNG\r\n\x1a\n"


def png(filling: bytes = b"", *, width: int = 1, height: int = 1, pixels: bytes = b"") -> bytes:
    """Black, with one bit a pixel; ``filling``: in a chunk that no decoder reads; ``pixels`` in place of its stream."""
    rows = zlib.compress(bytes((1 + -(-width // 8)) * height), 9)
    parts = (
        chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)),
        chunk(b"teSt", filling),
        chunk(b"IDAT", pixels or rows),
        chunk(b"IEND", b""),
    )
    return PNG_START + b"".join(parts)


def png_of(size: int) -> bytes:
    """A PNG of exactly so many bytes."""
    return png(bytes(size - len(png())))


def chunk(kind: bytes, data: bytes) -> bytes:
    """A part of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pdf(filling: bytes = b"") -> bytes:
    """The frame of a PDF, around anything."""
    return b"%PDF-1.7\n" + filling + b"\nstartxref\n0\n%%EOF\n"


GIF: Final = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
WEBP: Final = base64.b64decode("UklGRhoAAABXRUJQVlA4TA4AAAAvAAAAAAcQEf0PRET/Aw==")
JPEG: Final = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP////////////////////////////////////////////////////////////////////////////"
    "//////////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z"
)
