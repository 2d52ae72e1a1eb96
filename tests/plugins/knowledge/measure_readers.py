"""Readers of documents compared over a folder of files: words lost, files refused, seconds, memory.

    uv run --group test python -m tests.plugins.knowledge.measure_readers FOLDER KIND [READER…]

KIND is docx, pptx, xlsx, html or pdf. Readers that are not ours need their packages (``uv run --with mammoth …``). A
file that ends its process, or takes longer than a minute, counts as refused. Words are lost that `reader_references`
finds and the reader does not; each file with a loss has a line of its own with ``DUALTRACK_EACH=1``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.plugins.knowledge.reader_references import REFERENCES, words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SECONDS: Final = 60
MEMORY: Final = 4_000_000_000


def _ours(path: Path) -> str:
    from dualtrack.plugins.knowledge.reading.child import document_of

    found = document_of(path.name, path.read_bytes(), "")
    texts = [text for block in found.blocks for text in (*block.headings, block.header, block.text)]
    return "\n".join((found.title, *texts))


def _python_docx(path: Path) -> str:
    import docx

    document = docx.Document(str(path))
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return "\n".join([*(item.text for item in document.paragraphs), *cells])


def _mammoth(path: Path) -> str:
    import mammoth  # type: ignore[import-not-found,unused-ignore]

    with path.open("rb") as file:
        return mammoth.extract_raw_text(file).value


def _docx2python(path: Path) -> str:
    from docx2python import docx2python  # type: ignore[import-not-found,unused-ignore]

    with docx2python(str(path)) as document:
        return document.text


def _markitdown(path: Path) -> str:
    from markitdown import MarkItDown  # type: ignore[import-not-found,unused-ignore]

    return MarkItDown().convert(str(path)).text_content


def _kreuzberg(path: Path) -> str:
    from kreuzberg import extract_file_sync  # type: ignore[import-not-found,unused-ignore]

    return extract_file_sync(str(path)).content


def _pandoc(path: Path) -> str:
    import pypandoc  # type: ignore[import-not-found,unused-ignore]

    return pypandoc.convert_file(str(path), "plain", extra_args=["--wrap=none", "--track-changes=accept"])


def _python_pptx(path: Path) -> str:
    import pptx  # type: ignore[import-not-found,unused-ignore]

    found: list[str] = []

    def shape_of(shape: Any) -> None:
        if shape.has_text_frame:
            found.append(shape.text_frame.text)
        if getattr(shape, "has_table", False):
            found.extend(cell.text for row in shape.table.rows for cell in row.cells)
        for inner in getattr(shape, "shapes", ()):
            shape_of(inner)

    for slide in pptx.Presentation(str(path)).slides:
        for shape in slide.shapes:
            shape_of(shape)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame:
            found.append(slide.notes_slide.notes_text_frame.text)
    return "\n".join(found)


def _openpyxl(path: Path) -> str:
    import openpyxl  # type: ignore[import-not-found,unused-ignore]

    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    return "\n".join(
        str(value)
        for sheet in book.worksheets
        for row in sheet.iter_rows(values_only=True)
        for value in row
        if value is not None
    )


def _calamine(path: Path) -> str:
    from python_calamine import CalamineWorkbook  # type: ignore[import-not-found,unused-ignore]

    book = CalamineWorkbook.from_path(str(path))
    sheets = (book.get_sheet_by_name(name) for name in book.sheet_names)
    return "\n".join(
        str(value) for sheet in sheets for row in sheet.to_python() for value in row if value != ""
    )


def _selectolax(path: Path) -> str:
    from selectolax.lexbor import LexborHTMLParser  # type: ignore[import-not-found,unused-ignore]

    tree = LexborHTMLParser(path.read_bytes())
    tree.strip_tags(["script", "style", "nav", "noscript"])
    return tree.text(separator="\n")


def _beautifulsoup(path: Path) -> str:
    from bs4 import BeautifulSoup  # type: ignore[import-not-found,unused-ignore]

    tree = BeautifulSoup(path.read_bytes(), "html.parser")
    for item in tree(["script", "style", "nav", "noscript"]):
        item.decompose()
    return tree.get_text("\n")


READERS: Final[Mapping[str, Callable[[Path], str]]] = {
    "ours": _ours,
    "python-docx": _python_docx,
    "mammoth": _mammoth,
    "docx2python": _docx2python,
    "markitdown": _markitdown,
    "kreuzberg": _kreuzberg,
    "pandoc": _pandoc,
    "python-pptx": _python_pptx,
    "openpyxl": _openpyxl,
    "python-calamine": _calamine,
    "selectolax": _selectolax,
    "beautifulsoup": _beautifulsoup,
}
OF_KIND: Final = {
    "docx": ("ours", "python-docx", "mammoth", "docx2python", "markitdown", "kreuzberg", "pandoc"),
    "pptx": ("ours", "python-pptx", "markitdown", "kreuzberg"),
    "xlsx": ("ours", "openpyxl", "python-calamine", "kreuzberg"),
    "html": ("ours", "selectolax", "beautifulsoup", "markitdown", "kreuzberg"),
    "pdf": ("ours", "kreuzberg"),
}


def _work(kind: str, reader: str, paths: list[Path]) -> None:
    """Read the files one by one, with a line of JSON for each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.setrecursionlimit(20_000)
    for path in paths:
        try:
            wanted = words(REFERENCES[kind](path))
        except Exception:  # noqa: BLE001 - a file that has no reference is not measured
            print(json.dumps({"name": path.name}), flush=True)
            continue
        began = time.perf_counter()
        signal.alarm(SECONDS)
        try:
            text = READERS[reader](path)
        except Exception as error:  # noqa: BLE001 - readers raise anything
            print(
                json.dumps({"name": path.name, "words": wanted.total(), "refused": str(error)[:80]}),
                flush=True,
            )
            continue
        finally:
            signal.alarm(0)
        lost = wanted - words([text])
        line = {"name": path.name, "words": wanted.total(), "lost": lost.total(), "some": list(lost)[:6]}
        print(json.dumps({**line, "seconds": time.perf_counter() - began}), flush=True)


def _measured(kind: str, reader: str, paths: list[Path]) -> list[dict[str, Any]]:
    """In processes of their own: one that ends is followed by another for the files after the one that ended it."""
    lines: list[dict[str, Any]] = []
    while len(lines) < len(paths):
        command = [sys.executable, "-m", "tests.plugins.knowledge.measure_readers", "--work", kind, reader]
        command += [str(path) for path in paths[len(lines) :]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if len(lines) < len(paths):
            lines.append({"name": paths[len(lines)].name, "words": 0, "refused": f"exit {done.returncode}"})
    return lines


def main() -> None:
    """Print a row for each reader."""
    folder, kind, *readers = sys.argv[1:]
    paths = sorted(path for path in Path(folder).rglob(f"*.{kind}") if path.is_file())
    print(
        f"{len(paths)} files | words lost | % | files with a loss | refused (words in them) | seconds | longest"
    )
    for reader in readers or OF_KIND[kind]:
        lines = _measured(kind, reader, paths)
        read = [line for line in lines if "lost" in line]
        refused = [line for line in lines if "refused" in line]
        total = sum(line["words"] for line in read + refused)
        lost = sum(line["lost"] for line in read)
        unread = sum(line["words"] for line in refused)
        times = [line["seconds"] for line in read] or [0.0]
        print(
            f"{reader} | {lost:,} | {100 * lost / max(1, total):.2f} | {sum(line['lost'] > 0 for line in read)} | "
            f"{len(refused)} ({unread:,}) | {sum(times):.1f} | {max(times):.1f}",
            flush=True,
        )
        if os.environ.get("DUALTRACK_EACH"):
            for line in (line for line in lines if line.get("lost") or "refused" in line):
                print("   ", json.dumps(line, ensure_ascii=False))


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        _work(sys.argv[2], sys.argv[3], [Path(name) for name in sys.argv[4:]])
    else:
        main()
