"""Office's equations on a line: ``x=(-b±√(b^2-4ac))/(2a)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.plugins.knowledge.reading.office import attribute, child, children, local

if TYPE_CHECKING:
    from lxml import etree


def equation(element: etree._Element) -> str:
    """What an ``oMath`` says; all of its words are there, whatever it is built of."""
    return "".join(_part(item) for item in children(element))


def _part(element: etree._Element) -> str:  # noqa: PLR0911 - one line for each form
    name = local(element)
    if name in {"t", "delText"}:
        return element.text or ""
    if name in {"rPr", "ctrlPr", "del", "moveFrom"} or name.endswith("Pr"):
        return ""
    inner = {local(item): _group(equation(item)) for item in children(element)}
    if name == "f":
        return f"{inner.get('num', '')}/{inner.get('den', '')}"
    if name in {"sSup", "sSub", "sSubSup", "sPre"}:
        marks = "".join(mark + inner[key] for key, mark in (("sub", "_"), ("sup", "^")) if key in inner)
        return f"{inner.get('e', '')}{marks}"
    if name == "rad":
        return f"{inner.get('deg', '')}√{inner.get('e', '')}"
    if name == "nary":
        sign = attribute(child(element, "naryPr", "chr"), "val", "∫")
        marks = "".join(mark + inner[key] for key, mark in (("sub", "_"), ("sup", "^")) if inner.get(key))
        return f"{sign}{marks} {inner.get('e', '')}"
    if name == "d":
        opening = attribute(child(element, "dPr", "begChr"), "val", "(")
        closing = attribute(child(element, "dPr", "endChr"), "val", ")")
        return (
            opening + ", ".join(equation(item) for item in children(element) if local(item) == "e") + closing
        )
    if name in {"m", "eqArr"}:
        return "; ".join(row for item in children(element) if (row := equation(item)))
    if name == "mr":
        return ", ".join(equation(item) for item in children(element))
    return equation(element)


def _group(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"
