"""What a person is asked to approve, as it is: no character hides, moves or turns what stands beside it. Pure.

One rule for page and terminal, and for what other clients are told: ``page/js/visible.js`` and ``reading.js`` have the
same `HIDDEN` and the same lengths (tests/unit/test_visible.py). Letters that look alike stay, as do combining marks:
they are seen.
"""

from __future__ import annotations

import json
import re
from typing import Final

HIDDEN: Final = (
    "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
    "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ud800-\\udfff\\ufe00-\\ufe0f\\ufeff\\uffa0"
    "\\ufff0-\\ufffb\\U00013430-\\U0001343f\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
"""Ranges of characters without a glyph: controls but tab and line feed, direction marks, zero-width characters,
fillers, variation selectors, tags, lone surrogates."""

LONGEST: Final = 2_000
BEGINNING: Final = 1_500
END: Final = 400
"""Characters of a text that is shown whole, and of the parts of a longer one."""
MOST_LINES: Final = 20
BEGINNING_LINES: Final = 14
END_LINES: Final = 5
"""The same in lines."""

SIGN: Final = re.compile(f"[{HIDDEN}]")


def visible(text: object) -> str:
    """The text with what hides, moves or turns something shown by its number: ``\\u202e``, ``\\U000e0041``."""
    return SIGN.sub(_number, str(text).replace("\r\n", "\n"))


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def as_json(value: object, indent: int | None = None) -> str:
    """JSON in which each hidden character is written as JSON's own escape, so that it can be edited and sent."""
    text = json.dumps(value, default=dict, indent=indent, ensure_ascii=False)
    return SIGN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def parts(text: str) -> tuple[str, int, str]:
    """The beginning of a text, the number of characters left out behind it, and the end; the whole text if it is
    short."""
    lines = text.split("\n")
    if len(text) <= LONGEST and len(lines) <= MOST_LINES:
        return text, 0, ""
    begin = "\n".join(lines[:BEGINNING_LINES])[:BEGINNING]
    end = "\n".join(lines[-END_LINES:])[-END:]
    left = len(text) - len(begin) - len(end)
    return (begin, left, end) if left > 0 else (text, 0, "")


def on_a_line(text: object, length: int) -> str:
    """The visible text on one line; of a long one the beginning and the end, with the number of characters between."""
    flat = " ".join(visible(text).split())
    if len(flat) <= length:
        return flat
    note = f" … {len(flat) - length:,} more characters … "
    end = max(0, (length - len(note)) // 3)
    begin = max(1, length - len(note) - end)
    return f"{flat[:begin]}{note}{flat[len(flat) - end :]}"
