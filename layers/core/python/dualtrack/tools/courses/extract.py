"""The text of a PDF or DOCX, read in a separate process, so that a hostile file exhausts only that process.

`extracted` runs ``python -m dualtrack.tools.courses.extract pdf|docx`` (`dualtrack.runtime.bounded_process`).
"""

from __future__ import annotations

import io
import sys
import zipfile
from typing import TYPE_CHECKING, Final

from dualtrack.errors import TookTooLong
from dualtrack.extras import how_to_install
from dualtrack.runtime import bounded_process
from dualtrack.runtime.bounded_process import Limits
from dualtrack.tools.courses.values import DocumentRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS: Final = Limits(seconds=60, memory=1_500_000_000)
"""A PDF of 1,000 pages needs a fifth of the memory."""

MAX_UNPACKED: Final = 100_000_000
"""Maximum unpacked bytes of a DOCX; the file has at most 20 MB."""

MAX_TEXT: Final = 5_100_000
"""Characters after which reading stops; `documents.MAX_CHARACTERS` is the maximum that is accepted."""


def extracted(kind: str, data: bytes) -> str:
    """The text of a file. Raises `DocumentRefused`."""
    try:
        return bounded_process.run("dualtrack.tools.courses.extract", (kind,), data, LIMITS).decode()
    except bounded_process.Refused as reason:
        raise DocumentRefused(str(reason)) from reason
    except TookTooLong as error:
        raise DocumentRefused(f"takes longer than {LIMITS.seconds} seconds to read") from error
    except bounded_process.Failed as error:
        raise DocumentRefused(
            f"cannot be read as {kind.upper()} within the limits of memory and time"
        ) from error


def main(kind: str) -> int:
    """Read standard input within the limits. Returns the exit code."""
    bounded_process.limit_this(LIMITS)
    data = sys.stdin.buffer.read()
    try:
        parts = _pdf(data) if kind == "pdf" else _docx(data)
        sys.stdout.buffer.write(_joined(parts).encode("utf-8", "replace"))
    except DocumentRefused as reason:
        return bounded_process.refuse(str(reason))
    except ModuleNotFoundError:  # the layer always has it
        return bounded_process.refuse(f"needs the extra `documents`: {how_to_install('documents')}")
    return 0


def _joined(parts: Iterator[str]) -> str:
    kept, size = [], 0
    for part in parts:
        kept.append(part)
        size += len(part) + 1
        if size > MAX_TEXT:
            break
    return "\n".join(kept)


def _pdf(data: bytes) -> Iterator[str]:
    """Page by page. Raises `DocumentRefused`, also for pages that are images."""
    import pypdfium2  # noqa: PLC0415 - of the layer `documents`; only the process that reads documents needs it

    if b"%PDF-" not in data[:1024]:
        raise DocumentRefused("is not a PDF, although its name says so")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise DocumentRefused(
            "is locked with a password" if locked else "is damaged and cannot be read as PDF"
        ) from error
    has_text = False
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n")
        has_text = has_text or bool(text.strip())
        yield text
        page.close()
    if not has_text:
        raise DocumentRefused("has no text: its pages are images (run text recognition on it first)")


def _docx(data: bytes) -> Iterator[str]:
    """Paragraph by paragraph, those in tables too. Raises `DocumentRefused`."""
    import docx  # noqa: PLC0415 - as above
    from docx.oxml.ns import qn  # noqa: PLC0415
    from docx.text.paragraph import Paragraph  # noqa: PLC0415

    _check_archive(data)
    try:
        document = docx.Document(io.BytesIO(data))
        for element in document.element.body.iter(qn("w:p")):
            yield Paragraph(element, document._body).text
    except Exception as error:
        # python-docx raises anything for a broken part: KeyError, XMLSyntaxError, …
        raise DocumentRefused("is damaged and cannot be read as DOCX") from error


def _check_archive(data: bytes) -> None:
    """Refuse a DOCX (a zip) that unpacks to too much; zipfile never unpacks more than the size in the directory."""
    try:
        parts = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DocumentRefused("is not a DOCX, although its name says so") from error
    if "word/document.xml" not in {part.filename for part in parts}:
        raise DocumentRefused("is not a DOCX, although its name says so")
    size = sum(part.file_size for part in parts)
    if size > MAX_UNPACKED or len(parts) > 10_000:
        raise DocumentRefused(
            f"unpacks to {size / 1e6:.0f} MB in {len(parts):,} parts; at most {MAX_UNPACKED / 1e6:.0f} MB are taken"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
