"""The text of bytes in any usual encoding."""

from __future__ import annotations

import codecs
import re
from typing import Final

from dualtrack.plugins.knowledge.documents import DocumentRefused

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE: Final = 200_000
_NOT_IN_TEXT: Final = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")


def decoded(data: bytes, declared: str = "") -> str:
    """The text; ``declared`` is the encoding that the file or its carrier names. Raises `DocumentRefused`."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    wide = _without_mark(data[:_SAMPLE])
    for name in (wide, "utf-8", declared):
        if name and (text := _strictly(data, name)) is not None and not _is_binary(text):
            return text
    if b"\x00" in data[:_SAMPLE]:
        raise DocumentRefused("is not a text file")
    return _guessed(data)


def _strictly(data: bytes, name: str) -> str | None:
    try:
        return data.decode(name)
    except (UnicodeError, LookupError):
        return None


def _without_mark(sample: bytes) -> str:
    """UTF-16 or UTF-32 by where the zeros are, as most texts have letters below U+0100 or spaces and line breaks."""
    if b"\x00" not in sample or len(sample) < 4:
        return ""
    zeros = [sample[at::4].count(0) / max(1, len(sample[at::4])) for at in range(4)]
    if min(zeros[:2]) > 0.9 and zeros[2] < 0.9 and zeros[3] < 0.9:
        return "utf-32-be"
    if min(zeros[2:]) > 0.9 and zeros[0] < 0.9:
        return "utf-32-le"
    return "utf-16-le" if zeros[1] + zeros[3] > zeros[0] + zeros[2] else "utf-16-be"


def _is_binary(text: str) -> bool:
    sample = text[:_SAMPLE]
    return len(_NOT_IN_TEXT.findall(sample)) > len(sample) / 200


def _guessed(data: bytes) -> str:
    from chardet import detect  # noqa: PLC0415 - only what is not Unicode needs it

    found = detect(data[:_SAMPLE])["encoding"]
    if not found:
        raise DocumentRefused(
            "is neither text nor one of the formats that are taken: save it as UTF-8 or PDF"
        )
    return data.decode(found, "replace")
