"""One page of a PDF: its text, and the values of the form's fields on it."""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Final

import pypdfium2
from pypdfium2 import raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_ALEFS: Final = "اأإآ"
_LIGATURE: Final = re.compile(f"[{_ALEFS}]ل")
_HYPHEN: Final = re.compile(r"[\x02\ufffe]\s*?\n(?=(\w?))")
_CHECKS: Final = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})
_VALUES: Final = frozenset(
    {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
)
_COMMENTS: Final = frozenset({raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_HIGHLIGHT, raw.FPDF_ANNOT_UNDERLINE})
_MAX_FIELDS: Final = 5_000
_MAX_VALUE: Final = 200_000


def text_of_page(page: pypdfium2.PdfPage) -> str:
    """In reading order; a word that is divided at a line's end is whole."""
    content = page.get_textpage()
    text = content.get_text_range()
    if _LIGATURE.search(text):
        text = _with_ligatures(content)
    content.close()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HYPHEN.sub(lambda hyphen: "" if hyphen[1].islower() else "-\n", text)


def _with_ligatures(content: pypdfium2.PdfTextPage) -> str:
    """The text of a page with Arabic script, character by character: the two letters of the sign lam-alef, which have
    one origin, come in the order of their sight, so the wrong one."""
    size = content.count_chars()
    signs = [raw.FPDFText_GetUnicode(content.raw, at) for at in range(size)]
    for at in range(size - 1):
        is_pair = signs[at + 1] == ord("ل") and chr(signs[at]) in _ALEFS
        if is_pair and _origin(content, at) == _origin(content, at + 1):
            signs[at], signs[at + 1] = signs[at + 1], signs[at]
    units = b"".join(
        min(sign, 0xFFFF).to_bytes(2, "little") if sign < 0x10000 else chr(sign).encode("utf-16-le")
        for sign in signs
    )
    return units.decode("utf-16-le", "replace").replace("\0", "")


def _origin(content: pypdfium2.PdfTextPage, at: int) -> tuple[float, float]:
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(content.raw, at, x, y)
    return x.value, y.value


def form_lines(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage, blocks: Blocks) -> Iterator[str]:
    """A line for each field that has a value, and what is typed on top of the page."""
    for at in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MAX_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, at)
        if not annotation:
            continue
        subtype = raw.FPDFAnnot_GetSubtype(annotation)
        if subtype == raw.FPDF_ANNOT_FREETEXT:
            yield _string(lambda *to: raw.FPDFAnnot_GetStringValue(annotation, b"Contents", *to))  # noqa: B023
        elif subtype in _COMMENTS:
            blocks.leave_out("comments", bool(raw.FPDFAnnot_HasKey(annotation, b"Contents")))
        elif subtype == raw.FPDF_ANNOT_WIDGET and document.formenv:
            yield _value(document.formenv.raw, annotation)
        raw.FPDFPage_CloseAnnot(annotation)


def _value(form: object, field: object) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, field)
    if kind in _CHECKS:
        value = "☒" if raw.FPDFAnnot_IsChecked(form, field) else ""
    elif kind in _VALUES:
        value = _string(lambda *to: raw.FPDFAnnot_GetFormFieldValue(form, field, *to))
    else:
        return ""
    if not value.strip():
        return ""
    shown = _string(lambda *to: raw.FPDFAnnot_GetFormFieldAlternateName(form, field, *to))
    name = shown or _string(lambda *to: raw.FPDFAnnot_GetFormFieldName(form, field, *to))
    return f"{name}: {value}" if name else value


def _string(call: Callable[..., int]) -> str:
    """What a function writes in UTF-16, with a NUL behind it, into a buffer of the size that it says first."""
    size = call(None, 0)
    if not 2 < size <= _MAX_VALUE:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")
