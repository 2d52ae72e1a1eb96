"""PDF: pages, forms, the outline, running lines."""

from __future__ import annotations

import pytest
from dualtrack.plugins.knowledge.documents import DocumentRefused

from tests.plugins.knowledge.office_files import pages, reading, text_in

_NAME = "<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/TU(Full name)/V(Ada Lovelace)/Rect[50 500 200 520]>>"
_MEMBER = (
    "<</Type/Annot/Subtype/Widget/FT/Btn/T(member)/V/Yes/AS/Yes/Rect[50 400 60 410]"
    "/AP<</N<</Yes<<>>/Off<<>>>>>>>>"
)


def test_pages_have_their_numbers() -> None:
    blocks = reading("a.pdf", pages("first page", "second page")).blocks
    assert [(block.page, block.text) for block in blocks] == [(1, "first page"), (2, "second page")]


def test_values_of_a_form_are_read() -> None:
    fields = "<</Fields[7 0 R 8 0 R]/DA(/F 12 Tf)>>"
    data = pages(
        "Application",
        catalogue="/AcroForm 6 0 R",
        on_page="/Annots[7 0 R 8 0 R]",
        extra=(fields, _NAME, _MEMBER),
    )
    assert text_in(reading("a.pdf", data)) == "Application\nFull name: Ada Lovelace\nmember: ☒"


def test_the_outline_gives_the_headings_at_their_places() -> None:
    outline = (
        "<</Type/Outlines/First 7 0 R/Last 7 0 R/Count 1>>",
        "<</Title(Terms)/Parent 6 0 R/Dest[4 0 R/XYZ 0 700 0]>>",
    )
    data = pages("before it\n1 Terms\nbelow it", catalogue="/Outlines 6 0 R", extra=outline)
    blocks = reading("a.pdf", data).blocks
    assert [(block.headings, block.text) for block in blocks] == [((), "before it"), (("Terms",), "below it")]


def test_lines_at_the_edge_of_every_page_are_left_out_and_counted() -> None:
    texts = [f"Handbook 2026\ntext number {word}\nPage {at} of 6" for at, word in enumerate("abcdef")]
    document = reading("a.pdf", pages(*texts))
    assert [block.text for block in document.blocks] == [f"text number {word}" for word in "abcdef"]
    assert document.left_out == (("running headers and footers", 12),)


def test_pages_without_text_are_counted_and_a_file_of_them_is_refused() -> None:
    assert reading("a.pdf", pages("text", "")).left_out == (("pages without text", 1),)
    with pytest.raises(DocumentRefused, match="OCR"):
        reading("a.pdf", pages("", ""))


def test_a_broken_pdf_is_refused() -> None:
    with pytest.raises(DocumentRefused, match="damaged"):
        reading("a.pdf", b"%PDF-1.7\nnothing of the kind")


def test_rows_of_figures_at_the_edges_of_pages_are_kept() -> None:
    texts = [f"{at}1204 9{at}8 77{at}1\n3{at}3 4{at}4 5{at}5" for at in range(6)]
    assert text_in(reading("a.pdf", pages(*texts))) == "\n\n".join(texts)
    assert len(reading("a.pdf", pages(*(f"page {at} of all" for at in range(9)))).blocks) == 9
