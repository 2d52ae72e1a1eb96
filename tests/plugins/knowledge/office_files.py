"""Documents of Office and PDFs, built by hand: each has the one thing that a test is about."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.child import document_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.plugins.knowledge.documents import ReadDocument

TRANSITIONAL: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT: Final = "http://purl.oclc.org/ooxml/officeDocument/relationships"
WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_NAMES: Final = (
    f'xmlns:r="{TRANSITIONAL}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
)


def packed(parts: Mapping[str, str]) -> bytes:
    """A zip of these parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def relations(*found: tuple[str, str, str], base: str = TRANSITIONAL) -> str:
    """Ids, kinds and targets."""
    items = (
        f'<Relationship Id="{key}" Type="{base}/{kind}" Target="{target}"/>' for key, kind, target in found
    )
    return f"<Relationships>{''.join(items)}</Relationships>"


def docx(
    body: str, *, main: str = "word/document.xml", space: str = WORD, base: str = TRANSITIONAL, **parts: str
) -> bytes:
    """With further parts of the folder ``word`` by their kind: ``footnotes``, ``styles`` …"""
    folder, name = main.rsplit("/", 1)
    linked = relations(*((f"r{kind}", kind, f"{kind}.xml") for kind in parts), base=base)
    names = f'xmlns:w="{space}" {_NAMES}'
    return packed(
        {
            "_rels/.rels": relations(("r1", "officeDocument", main), base=base),
            main: f"<w:document {names}><w:body>{body}</w:body></w:document>",
            f"{folder}/_rels/{name}.rels": linked,
            **{
                f"{folder}/{kind}.xml": f"<w:{kind} {names}>{text}</w:{kind}>" for kind, text in parts.items()
            },
        }
    )


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*inner: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(inner)}</w:p>"


def table(*rows: Sequence[str]) -> str:
    """Cells are XML."""
    lines = ("".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


def pptx(*slides: str, notes: str = "") -> bytes:
    """Slides are the XML of their shapes; the notes belong to the first."""
    tree = "<p:{0} " + _NAMES + "><p:cSld><p:spTree>{1}</p:spTree></p:cSld></p:{0}>"
    ids = "".join(f'<p:sldId id="{256 + at}" r:id="r{at}"/>' for at in range(len(slides)))
    parts = {
        "_rels/.rels": relations(("r1", "officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {_NAMES}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"r{at}", "slide", f"slides/slide{at}.xml") for at in range(len(slides)))
        ),
        "ppt/slides/_rels/slide0.xml.rels": relations(("n", "notesSlide", "../notesSlides/notes.xml")),
        "ppt/notesSlides/notes.xml": tree.format("notes", notes),
    }
    return packed(
        parts | {f"ppt/slides/slide{at}.xml": tree.format("sld", text) for at, text in enumerate(slides)}
    )


def shape(*lines: str, kind: str = "") -> str:
    """A shape with paragraphs; ``kind``: of its placeholder."""
    mark = f'<p:ph type="{kind}"/>' if kind else ""
    body = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return f"<p:sp><p:nvSpPr><p:nvPr>{mark}</p:nvPr></p:nvSpPr><p:txBody>{body}</p:txBody></p:sp>"


def xlsx(
    sheets: Mapping[str, str], *, strings: Sequence[str] = (), styles: str = "", hidden: str = ""
) -> bytes:
    """Sheets are XML below ``worksheet``."""
    named = enumerate(sheets)
    states = ((at, name, ' state="hidden"' if name == hidden else "") for at, name in named)
    listed = "".join(f'<sheet name="{name}"{state} r:id="r{at}"/>' for at, name, state in states)
    links = [(f"r{at}", "worksheet", f"worksheets/{at}.xml") for at in range(len(sheets))]
    links += [("s", "sharedStrings", "strings.xml"), ("f", "styles", "styles.xml")]
    return packed(
        {
            "_rels/.rels": relations(("r1", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{SHEET}" {_NAMES}><sheets>{listed}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(*links),
            "xl/strings.xml": f'<sst xmlns="{SHEET}">{"".join(f"<si><t>{text}</t></si>" for text in strings)}</sst>',
            "xl/styles.xml": f'<styleSheet xmlns="{SHEET}">{styles}</styleSheet>',
            **{
                f"xl/worksheets/{at}.xml": f'<worksheet xmlns="{SHEET}">{text}</worksheet>'
                for at, text in enumerate(sheets.values())
            },
        }
    )


def pdf(*objects: str) -> bytes:
    """Its objects from number 1 on; the first is the catalogue."""
    data, offsets = b"%PDF-1.7\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    entries = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{entries}trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{len(data)}\n"
    return data + f"{end}%%EOF".encode()


def pages(*texts: str, catalogue: str = "", extra: Sequence[str] = (), on_page: str = "") -> bytes:
    """A PDF with a line of text a page; objects from 3 + 2 × pages on are ``extra``; 3 is the font."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(texts)))
    objects = [
        f"<</Type/Catalog/Pages 2 0 R{catalogue}>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(texts)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for at, text in enumerate(texts):
        shown = "".join(f"({line}) Tj 0 -20 Td " for line in text.split("\n"))
        stream = f"BT /F 12 Tf 50 700 Td {shown}ET"
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {5 + 2 * at} 0 R"
            f"/Resources<</Font<</F 3 0 R>>>>{on_page}>>"
        )
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
    return pdf(*objects, *extra)


def reading(name: str, data: bytes, title: str = "") -> ReadDocument:
    """As `read` does, without the process of its own."""
    return document_of(name, data, title)


def text_in(document: ReadDocument) -> str:
    """All blocks, with their headers."""
    return "\n\n".join("\n".join(filter(None, (block.header, block.text))) for block in document.blocks)
