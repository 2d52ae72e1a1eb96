"""What the API refuses in images and PDFs, and how it names the block: `messages.4.content.1.image.source.base64`.

A PNG is unpacked as a decoder does it. Of the other formats, and of a PDF, the frame alone is looked at.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from typing import TYPE_CHECKING

from dualtrack.image_structure import BrokenImage, size_of
from dualtrack.media import signed_as

from . import wire
from .refusal import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_IMAGES = 100
MAX_IMAGE_CHARACTERS = 5 * 1024 * 1024
MAX_SIDE = 8_000
MANY_IMAGES = 20
MAX_SIDE_OF_MANY = 2_000

_PIECE = 1 << 20
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Of a pixel, by PNG's colour type."""


def check_media(request: wire.Request) -> None:
    """Raise `RefusalError` for the first image or PDF that is none."""
    blocks = tuple(_media(request))
    images = sum(isinstance(block, wire.Image) for _, block in blocks)
    if images > MAX_IMAGES:
        raise RefusalError(f"messages: too many images: {images} > {MAX_IMAGES}")
    for path, block in blocks:
        if isinstance(block.source, wire.Base64Image):
            _check_image(f"{path}.image.source.base64", block.source, are_many=images > MANY_IMAGES)
        else:
            _check_pdf(f"{path}.pdf.source.base64", block.source)


def _media(request: wire.Request) -> Iterator[tuple[str, wire.Image | wire.Document]]:
    """Every image and document with its path."""
    for number, message in enumerate(request.messages):
        for index, block in enumerate(message.content):
            path = f"messages.{number}.content.{index}"
            inner = block.content if isinstance(block, wire.ToolResult) else ()
            parts = ((f"{path}.tool_result.content.{part}", each) for part, each in enumerate(inner))
            for place, each in ((path, block), *parts):
                if isinstance(each, wire.Image | wire.Document):
                    yield place, each


def _check_image(path: str, source: wire.Base64Image, *, are_many: bool) -> None:
    characters = len(source.data)
    if characters > MAX_IMAGE_CHARACTERS:
        raise RefusalError(
            f"{path}: image exceeds 5 MB maximum: {characters} bytes > {MAX_IMAGE_CHARACTERS} bytes"
        )
    data = _decoded(path, source.data)
    if signed_as(data) != source.media_type:
        raise RefusalError(f"{path}.data: Image does not match the provided media type {source.media_type}")
    try:
        sides = size_of(source.media_type, data)
        if source.media_type == "image/png":
            _unpack(data)
    except (BrokenImage, zlib.error):
        raise RefusalError("Could not process image") from None
    if max(sides) > (MAX_SIDE_OF_MANY if are_many else MAX_SIDE):
        limit = f" for many-image requests: {MAX_SIDE_OF_MANY}" if are_many else f": {MAX_SIDE}"
        raise RefusalError(
            f"{path}.data: At least one of the image dimensions exceed max allowed size{limit} pixels"
        )


def _check_pdf(path: str, source: wire.Base64Pdf) -> None:
    data = _decoded(path, source.data)
    if not data.startswith(b"%PDF-") or b"startxref" not in data[-1024:]:
        raise RefusalError(f"{path}.data: The PDF specified was not valid.")


def _decoded(path: str, data: str) -> bytes:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise RefusalError(f"{path}: invalid base64 data") from None
    if not decoded:
        raise RefusalError(f"{path}: data must be non-empty")
    return decoded


def _unpack(data: bytes) -> None:
    """Raise `BrokenImage` or `zlib.error` unless all pixels of a PNG are there."""
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    wanted = 0 if interlaced else height * (1 + -(-width * depth * _CHANNELS[colour] // 8))
    stream, unpacked = zlib.decompressobj(), 0
    for piece in _pixels(data):
        left = piece
        while left:
            unpacked += len(stream.decompress(left, _PIECE))
            left = stream.unconsumed_tail
    if not stream.eof or unpacked < wanted:
        raise BrokenImage("pixels are missing")


def _pixels(data: bytes) -> Iterator[bytes]:
    at = 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IDAT":
            yield data[at + 8 : at + 8 + length]
        at += 12 + length
