"""PDF, page by page: its text in reading order, what is filled in or ticked in forms, its outline as headings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

import pypdfium2
from pypdfium2 import raw

from dualtrack.plugins.knowledge.documents import DocumentRefused
from dualtrack.plugins.knowledge.reading.pdf_pages import form_lines, text_of_page
from dualtrack.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_MAX_HEADINGS: Final = 20_000
_FEWEST_PAGES: Final = 4
"""Pages from which on a line that most of them begin or end with is a running header or footer."""

_EDGE: Final = 2
_DIGITS: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"\w+")


def read_pdf(data: bytes, blocks: Blocks) -> Sequence[str]:
    """Adds the pages' blocks. Returns the title in its properties. Raises `DocumentRefused`."""
    try:
        document = pypdfium2.PdfDocument(data)
        document.init_forms()
        pages = len(document)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise DocumentRefused(
            "is locked with a password: save it without one"
            if locked
            else "is damaged and cannot be opened as PDF: save or print it as PDF anew"
        ) from error
    texts = [_page(document, at, blocks) for at in range(pages)]
    if not any(text.strip() for text in texts):
        raise DocumentRefused("has no text: its pages are pictures. Run text recognition (OCR) on it first")
    blocks.leave_out("pages without text", sum(not text.strip() for text in texts))
    running = _running(texts)
    outline = _outline(document)
    for at, text in enumerate(texts):
        lines = _without(running, text.split("\n"), blocks) if running else text.split("\n")
        _add(lines, outline.get(at, ()), at + 1, blocks)
    return (document.get_metadata_dict().get("Title", ""),)


def _page(document: pypdfium2.PdfDocument, at: int, blocks: Blocks) -> str:
    """What a page says; a page that cannot be read is counted."""
    try:
        page = document[at]
    except pypdfium2.PdfiumError:
        blocks.leave_out("damaged pages")
        return ""
    text = "\n".join((text_of_page(page), *form_lines(document, page, blocks)))
    pictures = page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=2)
    blocks.leave_out("pictures", sum(1 for _ in pictures))
    page.close()
    return text


def _outline(document: pypdfium2.PdfDocument) -> Mapping[int, Sequence[tuple[int, str]]]:
    """Levels and titles by the page that they point to, counted from 0."""
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for number, item in enumerate(document.get_toc(max_depth=8)):
        if number == _MAX_HEADINGS:
            break
        target = item.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            found[page].append((item.level + 1, one_line(item.get_title())))
    return found


def _add(lines: Sequence[str], headings: Sequence[tuple[int, str]], page: int, blocks: Blocks) -> None:
    """A heading stands where its words do; one whose words are not on the page, at its beginning."""
    at = 0
    for level, title in headings:
        place = _place(lines, at, title)
        if place is not None:
            begin, end = place
            _add_text(lines[at:begin], page, blocks)
            at = end
        blocks.heading(level, title, page)
    _add_text(lines[at:], page, blocks)


def _add_text(lines: Sequence[str], page: int, blocks: Blocks) -> None:
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        blocks.text(paragraph, page)


def _place(lines: Sequence[str], begin: int, title: str) -> tuple[int, int] | None:
    """The lines that are this title and nothing else but its number."""
    wanted = _bare(title)
    for at in range(begin, len(lines) if wanted else 0):
        joined = ""
        for end in range(at, min(at + 3, len(lines))):
            joined += _bare(lines[end])
            if joined == wanted or (joined.endswith(wanted) and _is_number(joined.removesuffix(wanted))):
                return at, end + 1
            if len(joined) > len(wanted) + 12:
                break
    return None


def _is_number(text: str) -> bool:
    return len(text) <= 10 and (text.isdigit() or text in {"chapter", "section", "appendix"})


def _bare(text: str) -> str:
    return "".join(_WORD.findall(text[:1000])).casefold()


def _running(texts: Sequence[str]) -> frozenset[str]:
    """Lines at the edges of most pages, but for their numbers."""
    if len(texts) < _FEWEST_PAGES:
        return frozenset()
    seen: Counter[str] = Counter()
    for text in texts:
        lines = [line for line in text.split("\n") if line.strip()]
        seen.update({_kept_alike(line) for line in (*lines[:_EDGE], *lines[-_EDGE:])})
    return frozenset(line for line, times in seen.items() if times > max(_FEWEST_PAGES - 1, 0.6 * len(texts)))


def _kept_alike(line: str) -> str:
    """The line, without the number that changes from page to page; rows of figures are not alike."""
    numbers = _DIGITS.findall(line)
    are_pages = len(numbers) <= 2 and all(len(number) <= 4 for number in numbers)
    return _DIGITS.sub("0", one_line(line)) if are_pages else line


def _without(running: frozenset[str], lines: Sequence[str], blocks: Blocks) -> list[str]:
    filled = [at for at, line in enumerate(lines) if line.strip()]
    edges = (*filled[:_EDGE], *filled[-_EDGE:])
    gone = {at for at in edges if _kept_alike(lines[at]) in running}
    if len(gone) == len(filled):  # a page has something to say
        return list(lines)
    blocks.leave_out("running headers and footers", len(gone))
    return list(_kept(lines, gone))


def _kept(lines: Sequence[str], gone: set[int]) -> Iterator[str]:
    return (line for at, line in enumerate(lines) if at not in gone)
