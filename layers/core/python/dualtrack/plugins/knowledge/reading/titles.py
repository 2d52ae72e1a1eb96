"""The title of a document: as given, else from its metadata, its first heading, its file's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dualtrack.text import INVISIBLE, clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TITLE: Final = 300

_HIDDEN: Final = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_SEEN: Final = re.compile(rf"[^\s{INVISIBLE}]")
_PROGRAM: Final = re.compile(
    r"\A(?:microsoft (?:office )?(?:word|excel|powerpoint)|openoffice|libreoffice)\s*-\s*", re.IGNORECASE
)
_ENDING: Final = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")
_PLACEHOLDERS: Final = frozenset(
    (
        "untitled", "title", "no title", "document", "new document", "blank", "template", "default", "none", "null",
        "powerpoint presentation", "powerpoint-präsentation", "présentation powerpoint", "presentación de powerpoint",
        "presentazione standard di powerpoint", "apresentação do powerpoint", "presentation", "slide 1", "folie 1",
        "word document", "microsoft word document", "workbook", "book1", "sheet1", "mappe1", "document1", "dokument1",
        "unbenannt", "sans titre", "sin título", "senza titolo", "sem título", "без названия", "презентация powerpoint",
        "無題", "无标题", "無標題", "제목 없음", "タイトルなし", "powerpoint プレゼンテーション", "powerpoint 演示文稿",
        "(anonymous)", "anonymous", "(unspecified)", "contents", "table of contents", "inhaltsverzeichnis", "output", "index", "readme",
    )
)  # fmt: skip


def title_of(given: str, metadata: Iterable[str], heading: str, name: str) -> str:
    """One line of 1 to 300 characters."""
    for text in (given, *(_meant(text) for text in (*metadata, heading)), _without_ending(name), name):
        if title := on_one_line(text):
            return title
    return "Untitled"


def on_one_line(text: str) -> str:
    """The text as a title; empty if nothing of it can be seen."""
    line = one_line(_HIDDEN.sub("", clean(text[: 20 * MAX_TITLE])))
    return line[:MAX_TITLE].strip() if _SEEN.search(line) else ""


def _meant(text: str) -> str:
    """Nothing for what a program has written where nobody gave a title."""
    line = on_one_line(text)
    bare = _PROGRAM.sub("", line)
    if bare != line:  # Word's printer driver writes the file's name
        line = _ENDING.sub("", bare)
    is_path = "\\" in line or line.startswith(("/", "file:"))
    return "" if line.casefold() in _PLACEHOLDERS or is_path or _ENDING.search(line) else line


def _without_ending(name: str) -> str:
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return _ENDING.sub("", last) or last
