"""Presentations and spreadsheets."""

from __future__ import annotations

import pytest
from dualtrack.plugins.knowledge.reading.xlsx_values import format_of, shown

from tests.plugins.knowledge.office_files import pptx, reading, shape, text_in, xlsx

_GROUP = f"<p:grpSp>{shape('grouped')}</p:grpSp>"
_TABLE = (
    "<p:graphicFrame><a:tbl>"
    + "".join(
        f"<a:tr>{''.join(f'<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>' for text in row)}</a:tr>"
        for row in (("Year", "Sales"), ("2025", "7"))
    )
    + "</a:tbl></p:graphicFrame>"
)


def test_slides_are_sections_with_their_notes_tables_and_groups() -> None:
    first = shape("Our year", kind="title") + shape("Good", "Better", kind="body") + _GROUP + _TABLE
    document = reading("a.pptx", pptx(first, shape("no title"), notes=shape("say this", kind="body")))
    assert document.title == "Our year"
    assert [
        (block.headings, block.page, block.kind, block.header, block.text) for block in document.blocks
    ] == [
        (("Our year",), 1, "list", "", "- Good\n- Better"),
        (("Our year",), 1, "text", "", "grouped"),
        (("Our year",), 1, "table", "Year | Sales", "2025 | 7"),
        (("Our year",), 1, "text", "", "say this"),
        (("Slide 2",), 2, "text", "", "no title"),
    ]


def test_a_slides_footer_and_number_are_left_out() -> None:
    document = reading(
        "a.pptx", pptx(shape("text") + shape("Company", kind="ftr") + shape("7", kind="sldNum"))
    )
    assert text_in(document) == "text"
    assert document.left_out == (("headers and footers", 2),)


def test_sheets_are_sections_and_their_values_as_shown() -> None:
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="#,##0.00\\ &quot;€&quot;"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="9"/><xf numFmtId="164"/></cellXfs>'
    )
    rows = (
        '<row r="1"><c r="A1" t="inlineStr"><is><t>Prices</t></is></c></row>'
        '<row r="3"><c r="A3" t="s"><v>0</v></c><c r="B3" t="s"><v>1</v></c><c r="D3" t="s"><v>2</v></c></row>'
        '<row r="4"><c r="A4" s="1"><v>45993</v></c><c r="B4" s="2"><v>0.19</v></c><c r="D4" s="3"><v>1234.5</v></c></row>'
        '<row r="5"><c r="A5" s="1"><v>45994.5</v></c><c r="B5" t="b"><v>1</v></c><c r="D5"><f>A1+1</f></c></row>'
    )
    sheets = {"List": f"<sheetData>{rows}</sheetData>", "Old": "<sheetData/>"}
    document = reading("a.xls", xlsx(sheets, strings=("Day", "Tax", "Sum"), styles=styles, hidden="Old"))
    assert document.kind == "xlsx"
    assert [(block.headings, block.kind, block.header, block.text) for block in document.blocks] == [
        (("List",), "text", "", "Prices"),
        (("List",), "table", "Day | Tax | Sum", "2025-12-02 | 19% | 1234.50 €\n2025-12-03 12:00 | TRUE | "),
    ]
    assert document.left_out == (("formulas without a stored value", 1), ("hidden sheets", 1))


def test_a_label_that_spans_rows_is_in_each() -> None:
    rows = "".join(
        f'<row r="{at}">'
        + "".join(f'<c r="{column}{at}" t="str"><v>{text}</v></c>' for column, text in cells)
        + "</row>"
        for at, cells in (
            (1, (("A", "Kind"), ("B", "Name"))),
            (2, (("A", "Bolts"), ("B", "M6"))),
            (3, (("B", "M8"),)),
        )
    )
    sheet = f'<sheetData>{rows}</sheetData><mergeCells><mergeCell ref="A2:A3"/></mergeCells>'
    (block,) = reading("a.xlsx", xlsx({"S": sheet})).blocks
    assert block.text == "Bolts | M6\nBolts | M8"


@pytest.mark.parametrize(
    ("code", "stored", "expected"),
    [
        ("General", "0.1", "0.1"),
        ("General", "12", "12"),
        ("", "1234567890123", "1234567890123"),
        ("0.00", "2", "2.00"),
        ("0.0%", "0.123", "12.3%"),
        ("[$$-409]#,##0.00", "5", "5.00 $"),
        ("yyyy\\-mm\\-dd", "45993", "2025-12-02"),
        ("h:mm", "0.5", "12:00"),
        ('"day" 0', "3", "3"),
        ("[Red]0", "3", "3"),
        ("0.00E+00", "12345", "12345"),
        ("General", "not a number", "not a number"),
        ("yyyy", "99999999999", "99999999999"),
    ],
)
def test_numbers_by_their_format(code: str, stored: str, expected: str) -> None:
    assert shown(stored, format_of(code), since_1904=False) == expected
