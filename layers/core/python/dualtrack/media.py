"""Images and PDFs that the model's service accepts, and the text that replaces a file that it would refuse.

The service refuses a whole request if a single file is too large, broken or not of its declared type. Source of the
types and limits: the Messages API's pages on vision and PDF (5 MB an image in base64, 8,000 pixels a side, 32 MB a
request; in a request with more than 20 images, each may have at most 2,000 pixels a side).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.image_structure import image_problem
from dualtrack.text import preview

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.tool_values import Media

_SIGNATURES: Final[dict[str, tuple[bytes, ...]]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"WEBP",),
    "application/pdf": (b"%PDF-",),
}
VIEWABLE: Final = frozenset(_SIGNATURES)
"""The media types that Claude reads."""

_SPELLED: Final = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}

MAX_IMAGE: Final = 5 * 1024 * 1024 // 4 * 3
"""Maximum size of a decoded image in bytes: 5 MB in base64."""

MAX_PDF: Final = 10 * 1024 * 1024

MAX_SENT: Final = 20
"""Maximum number of files in a request, and in a result."""

MAX_SENT_CHARACTERS: Final = 20 * 1024 * 1024
"""Base64 in one request; the other 12 of its 32 MB are for text."""

MAX_SENT_BYTES: Final = MAX_SENT_CHARACTERS // 4 * 3
"""The same, decoded."""

_MAX_NOTES: Final = 20


@dataclass(frozen=True, slots=True)
class Viewable:
    """A file that passed the checks; ``data`` is decoded."""

    media_type: str
    data: bytes


def most_bytes(media_type: str) -> int:
    """How large an image or a PDF may be."""
    return MAX_PDF if media_type == "application/pdf" else MAX_IMAGE


def refusal(media_type: str, data: bytes) -> str:
    """Why the service would refuse this file; empty if it would not, judging by its structure (of a PDF, by its first
    bytes)."""
    if media_type not in VIEWABLE:
        return "it is no image (PNG, JPEG, GIF, WebP) and no PDF"
    if signed_as(data) != media_type:
        return f"the data is not {media_type}"
    limit = most_bytes(media_type)
    if len(data) > limit:
        return f"it has more than {limit:,} bytes"
    return "" if media_type == "application/pdf" else image_problem(media_type, data)


def viewable_type(media_type: str) -> str:
    """A label of an image or a PDF as clients write it (``image/jpg``, ``image/PNG; charset=binary``) in the form that
    the service knows; empty for another type. What such a file is, its bytes tell (`signed_as`)."""
    plain = media_type.partition(";")[0].strip().lower()
    plain = _SPELLED.get(plain, plain)
    return plain if plain in VIEWABLE else ""


def signed_as(data: bytes) -> str:
    """The media type that the first bytes tell; empty if it is none of those."""
    start = (
        data[8:12] if data.startswith(b"RIFF") else data[:8]
    )  # in a RIFF file the format follows the length
    return next((kind for kind, signatures in _SIGNATURES.items() if start.startswith(signatures)), "")


def viewable(media: Sequence[Media]) -> tuple[tuple[Viewable, ...], str]:
    """The files of a result that can be shown, and a line of text for each that cannot."""
    shown: list[Viewable] = []
    notes: list[str] = []
    for file in media:
        data = _decoded(file.data)
        media_type = signed_as(data or b"") or file.media_type
        problem = "the data is not base64" if data is None else refusal(media_type, data)
        if not problem and len(shown) == MAX_SENT:
            problem = f"a result may have {MAX_SENT} files"
        if problem:
            notes.append(
                _not_shown(file.media_type, len(file.data) // 4 * 3 if data is None else len(data), problem)
            )
        elif data is not None:
            shown.append(Viewable(media_type, data))
    if len(notes) > _MAX_NOTES:
        notes = [*notes[:_MAX_NOTES], f"(And {len(notes) - _MAX_NOTES} more.)"]
    return tuple(shown), "\n".join(notes)


def _not_shown(media_type: str, size: int, problem: str) -> str:
    """``(A file of type image/png, 12 bytes, could not be shown: the data is not image/png.)``"""
    return f"(A file of type {preview(media_type, 100)}, {size} bytes, could not be shown: {problem}.)"


def within_request(files: Iterable[Mapping[str, str]], sent: int, characters: int) -> int:
    """How many of these files, in order, still fit in a request with ``sent`` files and ``characters`` of base64."""
    fitting = 0
    for file in files:
        characters += len(file["data"])
        if sent + fitting == MAX_SENT or characters > MAX_SENT_CHARACTERS:
            break
        fitting += 1
    return fitting


def _decoded(data: str) -> bytes | None:
    """The decoded bytes, or None if the text is not base64. Line breaks, as in MIME, are ignored."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
