"""What a file is, its title, and what is refused: with what to do, in a process of its own."""

from __future__ import annotations

import pytest
from dualtrack.plugins.knowledge.documents import DocumentRefused, left_out_in_words
from dualtrack.plugins.knowledge.reading import read
from dualtrack.plugins.knowledge.reading.limits import MAX_BYTES
from dualtrack.plugins.knowledge.reading.titles import title_of

from tests.plugins.knowledge.office_files import (
    docx,
    packed,
    pages,
    paragraph,
    reading,
    run,
    table,
    text_in,
    xlsx,
)

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.doc", _OLE + "WordDocument".encode("utf-16-le"), "save it as DOCX"),
        ("a.xls", _OLE + "Workbook".encode("utf-16-le"), "save it as XLSX"),
        ("a.ppt", _OLE + "PowerPoint Document".encode("utf-16-le"), "save it as PPTX"),
        ("a.docx", _OLE + "EncryptedPackage".encode("utf-16-le"), "locked with a password"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(20), "text recognition"),
        ("a.txt", b"\xff\xd8\xff\xe0" + bytes(20), "text recognition"),
        ("a.zip", packed({"a.txt": "text"}), "unpack it"),
        ("a.odt", packed({"mimetype": "application/vnd.oasis.opendocument.text"}), "save it as DOCX"),
        ("a.gz", b"\x1f\x8b\x08" + bytes(20), "unpack it"),
        ("a.rtf", b"{\\rtf1 text}", "save it as DOCX"),
        ("a.docx", docx(paragraph(run("cut")))[:-30], "cut off"),
        ("a.docx", docx("<w:p/>"), "has no text"),
        ("a.bin", bytes(range(256)) * 40, "not a text file"),
    ],
)
def test_what_is_not_taken_is_told_what_to_do(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(DocumentRefused, match=reason):
        reading(name, data)


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.xls", xlsx({"S": '<sheetData><row><c t="str"><v>x</v></c></row></sheetData>'}), "xlsx"),
        ("a.pdf", docx(paragraph(run("x"))), "docx"),
        ("a.docx", pages("x"), "pdf"),
        ("page", b"<!DOCTYPE html><p>x", "html"),
        ("message", b"From: a@b\nTo: c@d\nSubject: s\n\nx", "eml"),
        ("a.md", b"x", "markdown"),
        ("LICENSE", b"x", "txt"),
    ],
)
def test_a_kind_follows_from_bytes_and_name(name: str, data: bytes, kind: str) -> None:
    assert reading(name, data).kind == kind


@pytest.mark.parametrize(
    ("given", "metadata", "heading", "name", "title"),
    [
        ("Mine", ["Theirs"], "First", "a.pdf", "Mine"),
        ("", ["Theirs"], "First", "a.pdf", "Theirs"),
        ("", ["Microsoft Word - contract.doc"], "", "a.pdf", "contract"),
        ("", ["Untitled"], "First", "a.pdf", "First"),
        ("", ["PowerPoint Presentation"], "", "Q3 results.pptx", "Q3 results"),
        ("", ["C:\\temp\\x.doc"], "", "folder/My file.v2.docx", "My file.v2"),
        ("", ["\u202e\u200bab\ud800\n c"], "", "a", "ab\ufffd c"),
        ("\u200b", [], "", ".gitignore", ".gitignore"),
        ("x" * 400, [], "", "a", "x" * 300),
        ("", [], "", "", "Untitled"),
    ],
)
def test_titles(given: str, metadata: list[str], heading: str, name: str, title: str) -> None:
    assert title_of(given, metadata, heading, name) == title


def test_what_was_left_out_in_words() -> None:
    said = left_out_in_words(
        (("pictures", 2), ("equations", 1), ("headers and footers", 1), ("tables of contents", 1))
    )
    assert said == "2 pictures, 1 equation, 1 header and footer, 1 table of contents"


def test_a_file_is_read_in_a_process_of_its_own() -> None:
    document = read("Prices.docx", docx(paragraph(run("two \u20ac"))))
    assert (document.title, document.kind, text_in(document)) == ("Prices", "docx", "two \u20ac")


def test_entities_are_neither_expanded_nor_fetched() -> None:
    laughs = "".join(f'<!ENTITY e{at} "{f"&e{at - 1};" * 60}">' for at in range(1, 8))
    declared = f'<!DOCTYPE d [<!ENTITY e0 "ha"><!ENTITY file SYSTEM "file:///etc/passwd">{laughs}]>'
    for entity in ("e7", "file"):
        whole = docx(paragraph(run("kept"), run(f"&{entity};")))
        source = _with_main(whole, declared)
        assert text_in(read("a.docx", source)) == "kept"


def _with_main(data: bytes, declared: str) -> bytes:
    import io
    import zipfile

    parts = zipfile.ZipFile(io.BytesIO(data))
    texts = {name: parts.read(name).decode() for name in parts.namelist()}
    return packed({**texts, "word/document.xml": declared + texts["word/document.xml"]})


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.docx", docx(paragraph(run("a" * 301_000_000))), "unpacks to more than 300 MB"),
        ("a.docx", docx("<w:tbl><w:tr><w:tc>" * 10_000 + "</w:tc></w:tr></w:tbl>" * 10_000), "has no text"),
        ("a.html", b"<ul><li>" * 20_000 + b"deep", "has no text|nested too deeply"),
        ("a.txt", b"word " * 4_100_000, "more than 20,000,000 characters"),
        ("a.csv", b"a,b\n" + b"1,2\n" * 11_000_000, "more than 20,000,000 characters"),
        ("a.txt", b" " * 100, "is empty"),
        ("a.txt", bytes(MAX_BYTES + 1), "at most 100 MB"),
    ],
    ids=["bomb", "tables", "lists", "long", "rows", "empty", "large"],
)
def test_hostile_files_are_refused_in_words(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(DocumentRefused, match=reason):
        read(name, data)


def test_five_thousand_pages_and_four_hundred_tables_in_each_other_are_read() -> None:
    assert len(read("a.pdf", pages(*(f"page {at} of the book" for at in range(5_000)))).blocks) == 5_000
    nested = paragraph(run("deep"))
    for _ in range(400):
        nested = table([nested])
    assert text_in(read("a.docx", docx(nested))) == "deep"


def test_a_cell_far_away_takes_no_room() -> None:
    far = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    merged = '<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    assert text_in(read("a.xlsx", xlsx({"S": f"<sheetData>{far}</sheetData>{merged}"}))) == "1\n\n2"


def test_what_is_too_deep_for_the_parser_is_said() -> None:
    document = read("a.html", b"<p>seen</p>" + b"<div>" * 5_000 + b"deep")
    assert text_in(document) == "seen"
    assert document.left_out == (("passages that are nested too deeply", 1),)
