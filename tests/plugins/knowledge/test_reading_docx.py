"""DOCX as Word shows it with its changes accepted."""

from __future__ import annotations

import pytest

from tests.plugins.knowledge.office_files import STRICT, docx, paragraph, reading, run, table, text_in

_NOTE = '<w:r><w:footnoteReference w:id="2"/></w:r>'
_BOX = "<w:txbxContent>" + paragraph(run("boxed")) + "</w:txbxContent>"
_STYLES = (
    '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="berschrift1"/></w:style>'
)
_NUMBERS = (
    '<w:abstractNum w:abstractNumId="0">'
    '<w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="7"><w:abstractNumId w:val="0"/></w:num>'
)


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (f"<w:ins>{run('new ')}</w:ins>{run('text')}", "new text"),
        (f"<w:moveTo>{run('moved')}</w:moveTo><w:moveFrom>{run('away')}</w:moveFrom>", "moved"),
        (f"{run('kept')}<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>", "kept"),
        (f"<w:sdt><w:sdtPr/><w:sdtContent>{run('chosen')}</w:sdtContent></w:sdt>", "chosen"),
        (f"<w:smartTag>{run('Berlin')}</w:smartTag>", "Berlin"),
        (f"<w:fldSimple w:instr='DATE'>{run('1 May')}</w:fldSimple>", "1 May"),
        (f"<w:hyperlink r:id='r9'>{run('a link')}</w:hyperlink>", "a link"),
        ("<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath>", "a/b"),
        (f"{run('one')}<w:r><w:tab/></w:r>{run('two')}<w:r><w:br/></w:r>{run('three')}", "one\ttwo\nthree"),
        ('<w:r><w:fldChar><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r>', "☒"),
    ],
)  # fmt: skip
def test_whatever_a_run_is_wrapped_in(inner: str, expected: str) -> None:
    assert text_in(reading("a.docx", docx(paragraph(inner)))) == expected


def test_a_paragraph_whose_end_was_deleted_goes_on_in_the_next() -> None:
    body = paragraph(run("one "), properties="<w:rPr><w:del/></w:rPr>") + paragraph(run("sentence"))
    assert text_in(reading("a.docx", docx(body))) == "one sentence"


def test_notes_stand_at_their_places() -> None:
    notes = f'<w:footnote w:id="2">{paragraph(run("as of May"))}</w:footnote>'
    document = reading("a.docx", docx(paragraph(run("12 %"), _NOTE, run(" less")), footnotes=notes))
    assert text_in(document) == "12 % [as of May] less"


def test_a_text_box_is_there_once_though_it_is_stored_twice() -> None:
    both = f"<mc:AlternateContent><mc:Choice>{_BOX}</mc:Choice><mc:Fallback>{_BOX}</mc:Fallback></mc:AlternateContent>"
    document = reading("a.docx", docx(paragraph(run("before"), f"<w:r><w:drawing>{both}</w:drawing></w:r>")))
    assert text_in(document) == "before\n\nboxed"


def test_tables_are_rows_with_their_header_apart() -> None:
    cells = [
        [paragraph(run(text)) for text in row] for row in (("Item", "Price"), ("Bolt", "2 €"), ("Nut", "1 €"))
    ]
    (block,) = reading("a.docx", docx(table(*cells))).blocks
    assert (block.kind, block.header, block.text) == ("table", "Item | Price", "Bolt | 2 €\nNut | 1 €")


def test_a_table_in_a_cell_is_in_its_row() -> None:
    inner = table([paragraph(run("a")), paragraph(run("b"))], [paragraph(run("c")), paragraph(run("d"))])
    rows = ([paragraph(run("Key")), paragraph(run("Value"))], [paragraph(run("k")), inner])
    (block,) = reading("a.docx", docx(table(*rows))).blocks
    assert block.text == "k | a; b / c; d"


def test_deleted_rows_are_out_and_labels_that_span_rows_in_each() -> None:
    merged = '<w:tcPr><w:vMerge w:val="{}"/></w:tcPr>'
    rows = "".join(
        f"<w:tr>{mark}<w:tc>{first}</w:tc><w:tc>{paragraph(run(second))}</w:tc></w:tr>"
        for mark, first, second in (
            ("", paragraph(run("Kind")), "Name"),
            ("", merged.format("restart") + paragraph(run("Bolts")), "M6"),
            ("", merged.format("continue") + paragraph(), "M8"),
            ("<w:trPr><w:del/></w:trPr>", paragraph(run("Nuts")), "M10"),
        )
    )
    (block,) = reading("a.docx", docx(f"<w:tbl>{rows}</w:tbl>")).blocks
    assert block.text == "Bolts | M6\nBolts | M8"


def test_headings_are_known_by_their_style_in_any_language() -> None:
    body = (
        paragraph(run("Kapitel"), properties='<w:pStyle w:val="berschrift1"/>')
        + paragraph(run("Text"))
        + paragraph(run("Anders"), properties='<w:pStyle w:val="Own"/>')
        + paragraph(run("Mehr"))
    )
    blocks = reading("a.docx", docx(body, styles=_STYLES)).blocks
    assert [(block.headings, block.text) for block in blocks] == [
        (("Kapitel",), "Text"),
        (("Anders",), "Mehr"),
    ]


def test_lists_have_the_numbers_that_word_shows() -> None:
    at = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="7"/></w:numPr>'
    levels = (("Scope", 0), ("Parts", 1), ("Prices", 1), ("Term", 0), ("Notice", 1))
    body = "".join(paragraph(run(text), properties=at.format(level)) for text, level in levels)
    (block,) = reading("a.docx", docx(body, numbering=_NUMBERS)).blocks
    assert block.kind == "list"
    assert block.text == "1. Scope\n  1.a) Parts\n  1.b) Prices\n2. Term\n  2.a) Notice"


def test_strict_office_and_another_name_of_the_main_part() -> None:
    body = paragraph(run("strict"))
    space = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    data = docx(body, main="story/document2.xml", space=space, base=STRICT)
    assert text_in(reading("a.pdf", data)) == "strict"


def test_what_is_left_out_is_said() -> None:
    body = paragraph(
        run("seen"),
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>",
        "<w:r><w:drawing><a:pic/></w:drawing></w:r>",
        "<w:r><w:commentReference/></w:r>",
    )
    document = reading("a.docx", docx(body, header=paragraph(run("top"))))
    assert text_in(document) == "seen"
    assert document.left_out == (
        ("comments", 1),
        ("headers and footers", 1),
        ("hidden passages", 1),
        ("pictures", 1),
    )


def test_a_damaged_part_is_said_and_the_rest_is_read() -> None:
    document = reading("a.docx", docx(paragraph(run("whole")), styles="<broken"))
    assert text_in(document) == "whole"
    assert document.left_out == (("damaged parts", 1),)
