"""What a message may carry: the limits of its text and its files, files' names, and which of them are text (images and
PDFs: media.py).

Types, names and contents are untrusted, so every function here takes linear time.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from dualtrack.text import INVISIBLE, in_form, neutralise, one_line

MESSAGE_CHARACTERS: Final = 32_000
MAX_FILES: Final = 5
FILES_BYTES: Final = 4 * 1024 * 1024
"""Maximum decoded size of all files that a message has in itself, in bytes; and so much text of files is kept."""

UPLOADED_BYTES: Final = 50_000_000
"""Maximum size of a file that is uploaded before its message, and of all of those of a message together."""

_APPLICATIONS: Final = (
    "ecmascript",
    "graphql",
    "javascript",
    "json",
    "jsonl",
    "ndjson",
    "sql",
    "toml",
    "typescript",
    "x-httpd-php",
    "x-javascript",
    "x-ndjson",
    "x-python",
    "x-sh",
    "x-tex",
    "x-toml",
    "x-yaml",
    "xml",
    "yaml",
)
_SUBTYPE: Final = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,99}"
TEXT_TYPE_PATTERN: Final = (
    rf"text/{_SUBTYPE}|application/(?:{'|'.join(_APPLICATIONS)})|"
    r"application/[a-z0-9][a-z0-9!#$&^_.-]{0,89}\+(?:json|xml|yaml)"
)
"""Every ``text/*``, the ``application`` types of source code and data, and ``+json``, ``+xml``, ``+yaml`` (RFC 6838,
RFC 6839). SVG is excluded: its type is ``image/svg+xml``."""

_TEXT_TYPE: Final = re.compile(TEXT_TYPE_PATTERN)

MAX_NAME: Final = 100
"""Characters of a file's name that are kept."""

_MAX_SUFFIX: Final = 20
_HIDDEN: Final = re.compile(f"[{INVISIBLE}]")


def is_text_type(media_type: str) -> bool:
    """Whether files of this type are sent as text."""
    return _TEXT_TYPE.fullmatch(media_type) is not None


def as_utf8(data: bytes) -> bytes:
    """A text file's bytes in UTF-8: one whose mark says UTF-16, as programs of Windows write it, is translated; any
    other one, and one that is not what its mark says, is returned as it is."""
    name = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    try:
        return data.decode(name).encode() if name else data
    except UnicodeError:
        return data


_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def not_text(data: bytes) -> str:
    """Why these bytes are not text; empty if they are. An empty file is refused too."""
    if not data:
        return "the file is empty"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"the text is not valid UTF-8 (byte {error.start})"
    return "the file has a NUL character, so it is not text" if "\0" in text else ""


def clean_name(name: str) -> str:
    """A file's name on one line, without folders and invisible characters, at most `MAX_NAME` characters.

    The name cannot close the quotes around it on the wire, and cannot forge an id. A long name keeps its end, because
    the extension tells the type.
    """
    base = re.split(r"[/\\]", in_form("NFC", name))[-1]
    line = one_line(_HIDDEN.sub("", neutralise(one_line(base)))).replace('"', "'")
    if len(line) <= MAX_NAME:
        return line
    stem, dot, suffix = line.rpartition(".")
    end = f"{dot}{suffix}" if stem and len(suffix) <= _MAX_SUFFIX else ""
    return f"{line[: MAX_NAME - 1 - len(end)]}…{end}"
