"""Images and PDFs that the model's service takes, and what is said in place of one that it would refuse.

The service refuses a whole request for one file that is not what it claims or is too large. Source of the types
and limits: the Messages API's pages on vision and PDF (5 MB an image in base64, 32 MB a request; with more than
20 images each may have 2,000 pixels a side only).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.text import preview

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.tool import Media

_SIGNATURES: Final[dict[str, tuple[bytes, ...]]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"WEBP",),
    "application/pdf": (b"%PDF-",),
}
VIEWABLE: Final = frozenset(_SIGNATURES)
"""The media types that Claude reads."""

MAX_IMAGE: Final = 5 * 1024 * 1024 // 4 * 3
"""Bytes of an image, decoded: 5 MB in base64."""

MAX_PDF: Final = 10 * 1024 * 1024

MAX_SENT: Final = 20
"""Files in one request, and in one result."""

MAX_SENT_CHARACTERS: Final = 20 * 1024 * 1024
"""Base64 in one request; 12 of its 32 MB are left to text."""

_MAX_NOTES: Final = 20


@dataclass(frozen=True, slots=True)
class Viewable:
    """A file that has passed: decoded bytes."""

    media_type: str
    data: bytes


def refusal(media_type: str, data: bytes) -> str:
    """Why the service would not take this file; empty if it would, as far as its first bytes tell."""
    if media_type not in VIEWABLE:
        return "this type cannot be shown"
    # the form of a RIFF file stands behind its length
    start = data[8:] if media_type == "image/webp" and data.startswith(b"RIFF") else data
    if not start.startswith(_SIGNATURES[media_type]):
        return f"the data is not {media_type}"
    limit = MAX_PDF if media_type == "application/pdf" else MAX_IMAGE
    return f"it has more than {limit:,} bytes" if len(data) > limit else ""


def viewable(media: Sequence[Media]) -> tuple[tuple[Viewable, ...], str]:
    """The files of a result that can be shown, and a line of text for each that cannot."""
    shown: list[Viewable] = []
    notes: list[str] = []
    for one in media:
        data = _decoded(one.data)
        problem = "the data is not base64" if data is None else refusal(one.media_type, data)
        if not problem and len(shown) == MAX_SENT:
            problem = f"a result may have {MAX_SENT} files"
        if problem:
            notes.append(
                _not_shown(one.media_type, len(one.data) // 4 * 3 if data is None else len(data), problem)
            )
        elif data is not None:
            shown.append(Viewable(one.media_type, data))
    if len(notes) > _MAX_NOTES:
        notes = [*notes[:_MAX_NOTES], f"(And {len(notes) - _MAX_NOTES} more.)"]
    return tuple(shown), "\n".join(notes)


def _not_shown(media_type: str, size: int, problem: str) -> str:
    """``(A file of type image/png, 12 bytes, could not be shown: the data is not image/png.)``"""
    return f"(A file of type {preview(media_type, 100)}, {size} bytes, could not be shown: {problem}.)"


def within_request(files: Iterable[Mapping[str, str]], sent: int, characters: int) -> int:
    """How many of these files, from the first on, still fit a request that has so many already."""
    fitting = 0
    for one in files:
        characters += len(one["data"])
        if sent + fitting == MAX_SENT or characters > MAX_SENT_CHARACTERS:
            break
        fitting += 1
    return fitting


def _decoded(data: str) -> bytes | None:
    """None for what is no base64; line breaks, as MIME has them, are none of the data."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
