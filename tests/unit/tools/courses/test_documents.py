"""Documents as courses: the format in text, Markdown, PDF and DOCX, and every reason for a refusal."""

from __future__ import annotations

import io
import zipfile

import docx
import pypdfium2
import pytest
from dualtrack.tools.courses.documents import MAX_BYTES, parse, read_document
from dualtrack.tools.courses.values import Course, DocumentRefused, Lesson

TEXT = """Course Title: Building Boats
Course Link: https://learn.example.com/boats
Course Instructor: Dr. Ines Okafor

Lesson 0: Wood
Lesson Link: https://learn.example.com/boats/0
Oak is heavy. Cedar is light.

It floats.
Lesson 1: Glue
Epoxy holds for forty years.
"""
BOATS = Course(
    "Building Boats",
    "https://learn.example.com/boats",
    "Dr. Ines Okafor",
    (
        Lesson(0, "Wood", "https://learn.example.com/boats/0", "Oak is heavy. Cedar is light.\n\nIt floats."),
        Lesson(1, "Glue", "", "Epoxy holds for forty years."),
    ),
)


def as_docx(text: str) -> bytes:
    document = docx.Document()
    for line in text.splitlines():
        document.add_paragraph(line)
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


def as_pdf(text: str) -> bytes:
    """One page with the lines of the text."""
    shown = " T* ".join(f"({line}) Tj" for line in text.splitlines())
    stream = f"BT /F1 12 Tf 14 TL 40 780 Td {shown} ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
    ]
    body = b"%PDF-1.4\n"
    offsets = []
    for number, pdf_object in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, pdf_object)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return (
        body
        + b"xref\n0 5\n0000000000 65535 f \n%strailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
        % (
            table,
            len(body),
        )
    )


def without_breaks(course: Course) -> list[tuple[int | None, str, str, list[str]]]:
    return [(lesson.number, lesson.title, lesson.link, lesson.text.split()) for lesson in course.lessons]


def test_a_text_is_read() -> None:
    assert read_document("boats.txt", TEXT.encode()) == BOATS
    assert read_document("boats.TXT", b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()) == BOATS


def test_in_markdown_the_lines_may_be_headings() -> None:
    text = (
        TEXT.replace("Course Title", "# Course Title")
        .replace("Lesson 0", "## Lesson 0")
        .replace("Lesson 1", "**Lesson 1")
    )
    assert read_document("boats.md", text.replace("Glue", "Glue**").encode()) == BOATS


@pytest.mark.parametrize("make", [as_docx, as_pdf])
def test_pdf_and_docx_have_the_same_content(make: object) -> None:
    kind = "docx" if make is as_docx else "pdf"
    course = read_document(f"boats.{kind}", (as_docx if kind == "docx" else as_pdf)(TEXT))
    assert (course.title, course.link, course.instructor) == (BOATS.title, BOATS.link, BOATS.instructor)
    assert without_breaks(course) == without_breaks(BOATS)


def test_the_text_of_a_table_is_read() -> None:
    document = docx.Document(io.BytesIO(as_docx("Course Title: T\n\nLesson 0: A")))
    document.add_table(1, 1).cell(0, 0).text = "In a cell."
    data = io.BytesIO()
    document.save(data)
    assert read_document("t.docx", data.getvalue()).lessons[0].text == "In a cell."


def test_without_lessons_the_text_is_the_courses_and_other_lines_are_optional() -> None:
    assert parse("Course Title: Alone\n\nAll of it.") == Course(
        "Alone", "", "", (Lesson(None, "", "", "All of it."),)
    )


def test_text_before_the_first_lesson_is_the_courses() -> None:
    course = parse("Course Title: A\n\nWelcome.\n\nLesson 3: B\nText.")
    assert [(lesson.number, lesson.text) for lesson in course.lessons] == [(None, "Welcome."), (3, "Text.")]


def test_a_line_inside_the_text_changes_neither_title_nor_link() -> None:
    course = parse(
        "Course Title: A\nLesson 0: B\nText.\nCourse Title: Evil\nLesson Link: https://evil.example\n"
    )
    assert course.title == "A"
    assert course.lessons[0].link == ""
    assert "Course Title: Evil" in course.lessons[0].text


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "no link"])
def test_only_a_web_address_is_a_link(link: str) -> None:
    assert parse(f"Course Title: A\nCourse Link: {link}\n\nText.").link == ""


def zipped(parts: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return data.getvalue()


def image_pdf() -> bytes:
    document = pypdfium2.PdfDocument.new()
    document.new_page(100, 100)
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


def entity_bomb() -> bytes:
    """A DOCX with an exponential entity expansion (billion laughs)."""
    whole = zipfile.ZipFile(io.BytesIO(as_docx("Course Title: A")))
    parts = {name: whole.read(name) for name in whole.namelist()}
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    opened = b"<?xml version='1.0' encoding='UTF-8' standalone='yes'?>"
    doctype = f'<!DOCTYPE w [<!ENTITY l0 "laugh">{laughs}]>'.encode()
    document = (
        parts["word/document.xml"].split(b"?>", 1)[1].replace(b"Course Title: A", b"Course Title: &l9;")
    )
    return zipped(parts | {"word/document.xml": opened + doctype + document})


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", "Course Title: Café\n\nText.".encode("latin-1"), r"is not UTF-8 \(byte 18\)"),
        ("a.txt", b"Course Title: A\n\nText.\x00", "is not a text file"),
        ("a.txt", b"A text without a title.", "has no title"),
        ("a.txt", b"", "has no title"),
        ("a.txt", b"Course Title:   \n\nText.", "has no title"),
        ("a.txt", b"Course Title: A\n\nLesson 0: B\n", "has no text"),
        ("a.txt", b"Course Title: A\nLesson 0: B\nx\nLesson 0: C\ny", "has lesson 0 twice"),
        ("a.txt", b"x" * 50_000_000, r"has 50\.0 MB; at most 20 MB"),
        ("a.txt", b"Course Title: A\n\n" + b"x " * 3_000_000, "characters of text; at most 5,000,000"),
        ("a.exe", b"MZ", "is not one of the formats"),
        ("noending", b"Course Title: A\n\nText.", "is not one of the formats"),
        ("a.pdf", b"Course Title: A\n\nText.", "is not a PDF"),
        ("a.pdf", b"%PDF-1.4\nnothing", "is damaged"),
        ("a.pdf", image_pdf(), "its pages are images"),
        ("a.docx", b"Course Title: A\n\nText.", "is not a DOCX"),
        ("a.docx", zipped({"a.txt": b"x"}), "is not a DOCX"),
        ("a.docx", zipped({"word/document.xml": b"x"}), "is damaged"),
        ("a.docx", zipped({"word/document.xml": b"\0" * 150_000_000}), "unpacks to 150 MB"),
        ("a.docx", entity_bomb(), "."),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_a_document_is_refused_with_the_reason(name: str, data: bytes, reason: str) -> None:
    assert len(data) <= MAX_BYTES or "MB" in reason
    with pytest.raises(DocumentRefused, match=reason):
        read_document(name, data)
