"""A spreadsheet's values as they are shown: dates by the calendar, per cent, as many decimals as their format has."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from dualtrack.plugins.knowledge.reading.office import attribute, child, children, local, number

if TYPE_CHECKING:
    from lxml import etree

_BUILT_IN: Final = {
    2: "0.00",
    4: "0.00",
    9: "0%",
    10: "0.00%",
    39: "0.00",
    40: "0.00",
    44: "0.00",
    43: "0.00",
}
_DATES: Final = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_WORDS: Final = re.compile(r'"([^"]*)"|\\(.)|_.|\*.')
_IN_BRACKETS: Final = re.compile(r"\[([^\]]*)\]")
_CURRENCY: Final = re.compile(
    r"[$€£¥₹₩₽₺₴฿₫]|\b(?:EUR|USD|CHF|GBP|JPY)\b|(?<![A-Za-z])(?:kr|zł|Kč)\.?(?![A-Za-z])"
)
_ESCAPED: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
_FIRST_DAY: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - a spreadsheet's times have no zone
_DAYS_TO_1904: Final = 1462
_LAST_DAY: Final = 2_958_465
_MAX_DECIMALS: Final = 15


class Format(NamedTuple):
    """``decimals``: None for a number that is shown as it is; ``unit``: a currency."""

    kind: Literal["number", "percent", "date"] = "number"
    decimals: int | None = None
    unit: str = ""


GENERAL: Final = Format()


def formats_of(styles: etree._Element | None) -> list[Format]:
    """By a cell's style."""
    custom = {
        number(attribute(item, "numFmtId")): attribute(item, "formatCode")
        for item in _below(child(styles, "numFmts"))
    }
    known: dict[int, Format] = {}
    found = []
    for item in _below(child(styles, "cellXfs")):
        code = number(attribute(item, "numFmtId"))
        if code not in known:
            is_date = code in _DATES and code not in custom
            known[code] = Format("date") if is_date else format_of(custom.get(code, _BUILT_IN.get(code, "")))
        found.append(known[code])
    return found


def _below(element: etree._Element | None) -> list[etree._Element]:
    return list(children(element)) if element is not None else []


def format_of(code: str) -> Format:
    """What a format's code does to a positive number."""
    section = code[:500].split(";", maxsplit=1)[0]
    said = " ".join(first or second for first, second in _WORDS.findall(section))
    brackets = " ".join(_IN_BRACKETS.findall(section))
    bare = _IN_BRACKETS.sub("", _WORDS.sub("", section)).lower()
    if bare.strip() in {"", "general", "@", "standard"}:
        return GENERAL
    if re.search(r"[ymdhs]", bare.replace("general", "")) or brackets.lower() in {
        "h",
        "hh",
        "m",
        "mm",
        "s",
        "ss",
    }:
        return Format("date")
    decimals = re.search(r"\.([0#?]+)", bare)
    places = min(len(decimals[1]), _MAX_DECIMALS) if decimals else 0
    if "%" in bare:
        return Format("percent", places)
    if "e+" in bare or "/" in bare or not re.search(r"[0#?]", bare):
        return GENERAL
    currency = _CURRENCY.search(f"{said} {brackets} {bare.upper()}")
    return Format("number", places, currency[0] if currency else "")


def shown(text: str, form: Format, *, since_1904: bool) -> str:
    """A number that a cell stores."""
    try:
        value = float(text)
    except ValueError:
        return text
    if form.kind == "date":
        return _date(value + (_DAYS_TO_1904 if since_1904 else 0), text)
    if not abs(value) < 1e300:  # nor a number that is none
        return text
    if form.kind == "percent":
        return f"{value * 100:.{form.decimals}f}%"
    plain = f"{value:.{form.decimals}f}" if form.decimals is not None else _plain(value)
    return f"{plain} {form.unit}".rstrip()


def _plain(value: float) -> str:
    """The 15 digits that a spreadsheet has; a whole number without a point."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"


def _date(days: float, text: str) -> str:
    if not 0 <= days <= _LAST_DAY:
        return text
    moment = _FIRST_DAY + timedelta(seconds=round(days * 86_400))
    time = f"{moment:%H:%M:%S}".removesuffix(":00")
    if days < 1:
        return time
    day = moment.date().isoformat()
    return day if time == "00:00" else f"{day} {time}"


def string_of(element: etree._Element) -> str:
    """A string's text with its runs, without the reading of its signs."""
    parts = []
    stack = [element]
    while stack:
        item = stack.pop()
        if local(item) == "t":
            parts.append(item.text or "")
        elif local(item) not in {"rPh", "phoneticPr"}:
            stack.extend(reversed(item))
    return unescaped("".join(parts))


def unescaped(text: str) -> str:
    """Controls are written as ``_x000D_``."""
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text) if "_x" in text else text
