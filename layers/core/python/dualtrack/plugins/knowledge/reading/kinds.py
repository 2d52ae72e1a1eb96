"""What kind of document a file is, by its bytes first and then by its name."""

from __future__ import annotations

import re
from typing import Final

from dualtrack.plugins.knowledge.documents import DocumentRefused

_ENDINGS: Final = {
    "md": "markdown", "markdown": "markdown", "mdown": "markdown", "mkd": "markdown", "mdx": "markdown",
    "qmd": "markdown", "rmd": "markdown", "csv": "csv", "tsv": "csv", "tab": "csv", "htm": "html", "html": "html",
    "xhtml": "html", "xht": "html", "eml": "eml", "mht": "eml", "mhtml": "eml",
}  # fmt: skip

_OTHERS: Final = (
    (b"{\\rtf", "is an RTF: save it as DOCX or PDF"),
    (b"\x89PNG\r\n\x1a\n", "is a picture: run text recognition on it, and save it as PDF with text"),
    (b"\xff\xd8\xff", "is a picture: run text recognition on it, and save it as PDF with text"),
    (b"GIF8", "is a picture: run text recognition on it, and save it as PDF with text"),
    (b"II*\x00", "is a picture: run text recognition on it, and save it as PDF with text"),
    (b"MM\x00*", "is a picture: run text recognition on it, and save it as PDF with text"),
    (b"BM", "is a picture: run text recognition on it, and save it as PDF with text"),
    (b"%!PS", "is a PostScript file: save it as PDF"),
    (b"\x1f\x8b", "is an archive: unpack it, and add the documents in it"),
    (b"7z\xbc\xaf'\x1c", "is an archive: unpack it, and add the documents in it"),
    (b"Rar!\x1a\x07", "is an archive: unpack it, and add the documents in it"),
    (b"BZh", "is an archive: unpack it, and add the documents in it"),
    (b"\xfd7zXZ\x00", "is an archive: unpack it, and add the documents in it"),
    (b"(\xb5/\xfd", "is an archive: unpack it, and add the documents in it"),
    (b"\x7fELF", "is a program, not a document"),
    (b"MZ", "is a program, not a document"),
    (b"ID3", "is a sound file: transcribe it, and add the text"),
    (b"OggS", "is a sound or video file: transcribe it, and add the text"),
    (b"SQLite format 3\x00", "is a database: export its tables as CSV"),
)
"""Beginnings of files that are not taken, with what to do."""

_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS: Final = (
    ("EncryptedPackage", "is locked with a password: save it without one"),
    ("WordDocument", "is a document of Word 97 to 2003 (.doc): save it as DOCX"),
    ("Workbook", "is a spreadsheet of Excel 97 to 2003 (.xls): save it as XLSX"),
    ("Book", "is a spreadsheet of Excel 5 (.xls): save it as XLSX"),
    ("PowerPoint Document", "is a presentation of PowerPoint 97 to 2003 (.ppt): save it as PPTX"),
    ("__properties_version1.0", "is a message of Outlook (.msg): save it as EML, or as PDF"),
)
_HTML: Final = re.compile(
    rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,2000}?-->\s*)*(?:<!doctype html|<html[\s>]|<head[\s>]|<body[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_MAIL: Final = re.compile(
    rb"(?:from \S[^\n]*\n)?(?:[A-Za-z][A-Za-z0-9-]{1,60}:[^\n]*\n(?:[ \t][^\n]*\n)*){3}", re.IGNORECASE
)
_MAIL_FIELDS: Final = re.compile(
    rb"^(?:from|received|return-path|mime-version|message-id|delivered-to):", re.IGNORECASE | re.MULTILINE
)


def kind_of(name: str, data: bytes) -> str:
    """``pdf``, ``zip`` (`packed` knows of what), ``html``, ``markdown``, ``csv``, ``eml`` or ``txt``.

    Raises `DocumentRefused` for what is none of them, with what to do.
    """
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    if b"%PDF-" in data[:1024]:
        return "pdf"
    if data[:4] in {b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"}:
        return "zip"
    if data.startswith(_OLE):
        raise DocumentRefused(_of_ole(data))
    for beginning, reason in _OTHERS:
        if data.startswith(beginning) and (len(beginning) > 3 or b"\x00" in data[:4096]):
            raise DocumentRefused(reason)
    if data[4:12] in {b"ftypisom", b"ftypmp42", b"ftypM4A ", b"ftypqt  ", b"ftypheic", b"ftypavif"} or (
        data.startswith(b"RIFF") and data[8:12] in {b"WEBP", b"WAVE", b"AVI "}
    ):
        raise DocumentRefused("is a picture, sound or video: add its text (recognised or transcribed)")
    if data[257:262] == b"ustar":
        raise DocumentRefused("is an archive: unpack it, and add the documents in it")
    return _of_text(ending, data)


def _of_ole(data: bytes) -> str:
    for stream, reason in _OLE_STREAMS:
        if stream.encode("utf-16-le") in data:
            return reason
    return "is a file of an old Office program: save it as DOCX, XLSX or PPTX"


def _of_text(ending: str, data: bytes) -> str:
    head = data[:4096].removeprefix(b"\xef\xbb\xbf")
    if head[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\x00" in head[:64]:
        head = head.replace(b"\x00", b"")
        head = head.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff")
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if _HTML.match(head):
        return "html"
    if (fields := _MAIL.match(head)) and _MAIL_FIELDS.search(fields[0]):
        return "eml"
    return "txt"
