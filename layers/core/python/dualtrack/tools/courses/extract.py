"""The text of a PDF or DOCX, read in a separate process, so that a hostile file exhausts only that process.

`extracted` starts ``python -m dualtrack.tools.courses.extract pdf|docx``, which reads the file from standard input and
writes the text to standard output. If it refuses the file, it writes the reason and exits with code 3.
"""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Final

from dualtrack.extras import how_to_install
from dualtrack.runtime.environment import for_a_child
from dualtrack.tools.courses.values import DocumentRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS: Final = 60
MEMORY: Final = 1_500_000_000
"""Bytes of address space; a PDF of 1,000 pages needs a fifth of it."""

MAX_UNPACKED: Final = 100_000_000
"""Maximum unpacked bytes of a DOCX; the file has at most 20 MB."""

MAX_TEXT: Final = 5_100_000
"""Characters after which reading stops; `documents.MAX_CHARACTERS` is the maximum that is accepted."""

_REFUSED: Final = 3


def extracted(kind: str, data: bytes) -> str:
    """The text of a file. Raises `DocumentRefused`."""
    command = [sys.executable, "-m", "dualtrack.tools.courses.extract", kind]
    modules = os.pathsep.join(path for path in sys.path if path)
    environment = {"PYTHONPATH": modules, "PYTHONUTF8": "1", **for_a_child()}
    try:
        done = subprocess.run(  # noqa: S603 - our own program, the file on its input
            command, input=data, capture_output=True, env=environment, timeout=2 * SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise DocumentRefused(f"takes longer than {SECONDS} seconds to read") from error
    if done.returncode == _REFUSED:
        raise DocumentRefused(done.stdout.decode())
    if done.returncode:
        raise DocumentRefused(f"cannot be read as {kind.upper()} within the limits of memory and time")
    return done.stdout.decode()


def main(kind: str) -> int:
    """Read standard input within the limits. Returns the exit code."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    data = sys.stdin.buffer.read()
    try:
        parts = _pdf(data) if kind == "pdf" else _docx(data)
        sys.stdout.buffer.write(_joined(parts).encode("utf-8", "replace"))
    except DocumentRefused as reason:
        sys.stdout.buffer.write(str(reason).encode())
        return _REFUSED
    except ModuleNotFoundError:  # the layer always has it
        sys.stdout.buffer.write(f"needs the extra `documents`: {how_to_install('documents')}".encode())
        return _REFUSED
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
