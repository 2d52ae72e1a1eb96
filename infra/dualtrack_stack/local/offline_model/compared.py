"""The two things that a question asks to compare."""

from __future__ import annotations

import re

_END = r"(?=[?!;\n]|\.(?:\s|\Z)|\Z)"
_SIDE = r"[^\s?!;\n][^?!;\n]{0,120}?"
_PAIR = (
    re.compile(
        rf"\bcompare (?:the )?(?:courses? )?(?P<first>{_SIDE}) (?:and|with|to|versus|vs\.?) (?:the )?(?P<second>{_SIDE}){_END}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\bdifferences? between (?:the )?(?:courses? )?(?P<first>{_SIDE}) and (?:the )?(?P<second>{_SIDE}){_END}",
        re.IGNORECASE,
    ),
)


def sides(question: str) -> tuple[str, ...]:
    """Both, as they are written; empty if the question compares no two things."""
    for pattern in _PAIR:
        if match := pattern.search(question):
            return tuple(match[name].strip(" \"“”'`,.") for name in ("first", "second"))
    return ()
