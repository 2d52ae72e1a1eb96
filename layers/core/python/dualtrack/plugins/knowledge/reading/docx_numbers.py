"""The numbers of a DOCX's paragraphs as Word shows them: ``3.2``, ``(a)``, or ``-`` for a bullet."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.office import attribute, child, children, local, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lxml import etree

_PLACE: Final = re.compile(r"%([1-9])")
_ROMAN: Final = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def _roman(value: int) -> str:
    text = ""
    for worth, sign in _ROMAN:
        text += sign * (value // worth)
        value %= worth
    return text


def _letter(value: int) -> str:
    return chr(ord("a") + (value - 1) % 26) * min(1 + (value - 1) // 26, 10)


_FORMS: Final[Mapping[str, Callable[[int], str]]] = {
    "lowerLetter": _letter,
    "upperLetter": lambda value: _letter(value).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda value: _roman(value).upper(),
    "decimalZero": lambda value: f"{value:02}",
    "none": lambda value: "",  # noqa: ARG005
}
"""Other forms are shown as digits."""


class Numbers:
    """Counts through the document, so paragraphs are asked for in their order."""

    def __init__(self, root: etree._Element | None) -> None:
        items = list(children(root)) if root is not None else []
        abstract = {attribute(item, "abstractNumId"): item for item in items if local(item) == "abstractNum"}
        self._levels: dict[str, dict[int, etree._Element]] = {}
        self._lists: dict[str, str] = {}
        self._starts: dict[tuple[str, int], int] = {}
        for item in items:
            if local(item) == "num":
                number_id, of = attribute(item, "numId"), attribute(child(item, "abstractNumId"), "val")
                self._lists[number_id] = of
                self._levels[number_id] = _levels(abstract.get(of))
                for override in (part for part in children(item) if local(part) == "lvlOverride"):
                    self._override(number_id, override)
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        self._seen: set[str] = set()

    def _override(self, number_id: str, override: etree._Element) -> None:
        level = number(attribute(override, "ilvl"))
        if (defined := child(override, "lvl")) is not None:
            self._levels[number_id] = {**self._levels[number_id], level: defined}
        if (start := child(override, "startOverride")) is not None:
            self._starts[number_id, level] = number(attribute(start, "val"), 1)

    def label(self, number_id: str, level: int) -> str:
        """The next paragraph's mark; empty if it has none."""
        levels = self._levels.get(number_id, {})
        if level not in levels:
            return "-" if number_id != "0" and not levels else ""
        counts = self._counts[self._lists[number_id]]
        if number_id not in self._seen:
            self._seen.add(number_id)
            for (of, depth), start in self._starts.items():
                if of == number_id:
                    counts[depth] = start - 1
        counts[level] = counts.get(level, self._start(levels, level) - 1) + 1
        for deeper in [depth for depth in counts if depth > level]:
            del counts[deeper]
        kind = attribute(child(levels[level], "numFmt"), "val", "decimal")
        if kind == "bullet":
            return "-"
        pattern = attribute(child(levels[level], "lvlText"), "val")
        return _PLACE.sub(lambda place: self._shown(levels, counts, int(place[1]) - 1), pattern[:100]).strip()

    def _shown(self, levels: Mapping[int, etree._Element], counts: Mapping[int, int], level: int) -> str:
        value = counts.get(level, self._start(levels, level))
        form = attribute(child(levels.get(level), "numFmt"), "val", "decimal")
        return _FORMS.get(form, str)(value) if 0 < value < 100_000 else str(value)

    def _start(self, levels: Mapping[int, etree._Element], level: int) -> int:
        return number(attribute(child(levels.get(level), "start"), "val", "1"), 1)


def _levels(abstract: etree._Element | None) -> dict[int, etree._Element]:
    found = children(abstract) if abstract is not None else ()
    return {number(attribute(item, "ilvl")): item for item in found if local(item) == "lvl"}
