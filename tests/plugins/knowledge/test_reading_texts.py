"""Texts, tables as text, pages of the web, mail and books."""

from __future__ import annotations

import csv
from email.message import EmailMessage

import pytest

from tests.plugins.knowledge.office_files import packed, reading, text_in

_PAGE = """<!doctype html><title>A page</title><nav>Home</nav><script>x()</script><style>p{}</style>
<h1>Pumps</h1><p>First <b>bold</b> text.<br>Second line.</p>
<ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>
<pre><code class="language-sh">run  it
now</code></pre>
<table><tr><th>Part<th>Price</tr><tr><td rowspan=2>Valve<td>2</tr><tr><td>3</tr></table>
<p style="display: none">secret</p><img alt="a pump" src=x>"""


def test_a_page_of_the_web_is_what_it_shows() -> None:
    document = reading("a.html", _PAGE.encode())
    assert document.title == "A page"
    assert [(block.kind, block.header, block.text) for block in document.blocks] == [
        ("text", "", "First bold text.\nSecond line."),
        ("list", "", "- one\n  - inner\n- two"),
        ("code", "", "```sh\nrun  it\nnow\n```"),
        ("table", "Part | Price", "Valve | 2\nValve | 3"),
        ("text", "", "[a pump]"),
    ]
    assert {block.headings for block in document.blocks} == {("Pumps",)}
    assert document.left_out == (("hidden passages", 1), ("menus", 1), ("pictures", 1))


def test_tables_that_only_arrange_are_read_through() -> None:
    page = "<table><tr><td><h2>Left</h2>text</td><td><table><tr><th>a<th>b<tr><td>1<td>2</table></td></tr></table>"
    blocks = reading("a.html", page.encode()).blocks
    assert [(block.headings, block.kind, block.text) for block in blocks] == [
        (("Left",), "text", "text"),
        (("Left",), "table", "1 | 2"),
    ]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ('<meta charset="shift_jis"><p>日本語'.encode("shift_jis"), "日本語"),
        ('<?xml version="1.0" encoding="iso-8859-2"?><html><body><p>žluť'.encode("iso-8859-2"), "žluť"),
        ("\ufeff<p>ä".encode("utf-16"), "ä"),
    ],
)
def test_a_page_says_its_encoding(data: bytes, text: str) -> None:
    assert text_in(reading("a.html", data)) == text


def test_markdown_keeps_its_words() -> None:
    source = (
        "---\ntitle: 'The manual'\n---\n# Start\n\nA *word*.\n\n- a\n  - b\n\n```py\nx = 1\n```\n\n"
        "| k | v |\n|---|---|\n| 1 | 2 |\n\n## Next {#next}\n\n![p](x.png) <!-- not seen -->\n"
    )
    document = reading("a.md", source.encode())
    assert document.title == "The manual"
    assert [(block.headings, block.kind, block.header, block.text) for block in document.blocks[1:]] == [
        (("Start",), "text", "", "A *word*."),
        (("Start",), "list", "", "- a\n  - b"),
        (("Start",), "code", "", "```py\nx = 1\n```"),
        (("Start",), "table", "k | v", "1 | 2"),
        (("Start", "Next"), "text", "", "![p](x.png) <!-- not seen -->"),
    ]
    assert document.left_out == (("pictures", 1),)


def test_a_long_markdown_is_parsed_in_portions_and_a_fence_in_none_of_two() -> None:
    long = "word " * 120_000
    source = f"# A\n\n{long}\n\n```\n# no heading\n{long}\n# nor this\n```\n\n# B\n\nend"
    blocks = reading("a.md", source.encode()).blocks
    assert [block.headings for block in blocks] == [("A",), ("A",), ("B",)]


def test_underlined_lines_of_a_text_are_headings() -> None:
    blocks = reading("a.txt", b"Manual\n======\n\nText.\n\nPart one\n--------\nMore.\n").blocks
    assert [(block.headings, block.text) for block in blocks] == [
        (("Manual",), "Text."),
        (("Manual", "Part one"), "More."),
    ]


@pytest.mark.parametrize(
    ("source", "header", "rows"),
    [
        ('Name;Note\nBolt;"a; b"\nNut;"two\nlines"\n', "Name | Note", "Bolt | a; b\nNut | two lines"),
        ("sep=|\nName|Note\nBolt|x\n", "Name | Note", "Bolt | x"),
        ("Name\tNote\r\nBolt\tx, y\r\n", "Name | Note", "Bolt | x, y"),
        ("Name,Price\nBolt,\"1,50\"\n", "Name | Price", "Bolt | 1,50"),
    ],
)  # fmt: skip
def test_cells_are_divided_by_what_divides_them(source: str, header: str, rows: str) -> None:
    (block,) = reading("a.csv", source.encode("utf-16")).blocks
    assert (block.header, block.text) == (header, rows)


def test_a_long_cell_is_read_and_the_limit_stays_everybody_elses() -> None:
    before = csv.field_size_limit()
    assert "x" * 200_000 in text_in(reading("a.csv", b"name,text\na," + b"x" * 200_000))
    assert csv.field_size_limit() == before


def _mail() -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ada <ada@example.org>"
    message["Subject"] = "Prüfung der Pumpe"
    message.set_content("plain")
    message.add_alternative("<h1>Result</h1><p>All well.</p>", subtype="html")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="a.pdf")
    return message


def test_mail_is_its_head_and_its_richest_text() -> None:
    document = reading("a.eml", _mail().as_bytes())
    assert document.title == "Prüfung der Pumpe"
    assert [(block.headings, block.text) for block in document.blocks] == [
        ((), "From: Ada <ada@example.org>\nSubject: Prüfung der Pumpe"),
        (("Result",), "All well."),
    ]
    assert document.left_out == (("attachments", 1),)


def test_mail_in_mail_is_read() -> None:
    outer = EmailMessage()
    outer["Subject"] = "Fwd"
    outer.set_content("see below")
    outer.add_attachment(_mail())
    outer_text = text_in(reading("x", outer.as_bytes().replace(b"attachment", b"inline")))
    assert "see below" in outer_text
    assert "All well." in outer_text


def test_a_book_is_read_by_its_spine() -> None:
    package = (
        "<package><metadata><title>The Book</title></metadata><manifest>"
        '<item id="a" href="a%20b.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="n" href="n.xhtml" media-type="application/xhtml+xml" properties="nav"/></manifest>'
        '<spine><itemref idref="n"/><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="in/p.opf"/></rootfiles></container>'
    pages = {
        "in/a b.xhtml": "<h1>Two</h1><p>b</p>",
        "in/b.xhtml": "<h1>One</h1><p>a</p>",
        "in/n.xhtml": "<p>list</p>",
    }
    document = reading("a.epub", packed({"META-INF/container.xml": container, "in/p.opf": package, **pages}))
    assert (document.kind, document.title) == ("epub", "The Book")
    assert [(block.headings, block.text) for block in document.blocks] == [(("One",), "a"), (("Two",), "b")]


@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        ("Für Schäden haftet der Auftragnehmer in Höhe von 12.500 €.", ["utf-8", "utf-8-sig", "cp1252"]),
        ("Договор вступает в силу в день его подписания сторонами.", ["cp1251", "koi8-r", "iso8859-5"]),
        ("本契約は、両当事者の署名日に発効し、十二か月間有効とする。", ["shift_jis", "euc_jp"]),
        ("本合同自双方签字之日起生效，有效期为十二个月。", ["gb18030"]),
        ("本合約自雙方簽署之日起生效，有效期為十二個月。", ["big5"]),
        ("본 계약은 양 당사자가 서명한 날부터 효력이 발생한다.", ["euc_kr"]),
        (
            "A contract — with 日本語 in it.\n",
            ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"],
        ),
        ("日本語の文書。\n次の行。\n" * 5, ["utf-16-le", "utf-16-be"]),
    ],
)
def test_texts_in_any_usual_encoding(text: str, encodings: list[str]) -> None:
    for encoding in encodings:
        assert text_in(reading("a.txt", text.encode(encoding))) == text.strip(), encoding
