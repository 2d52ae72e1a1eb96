"""A document as it was read: blocks in reading order, and what was left out. All frozen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

BlockKind = Literal["text", "table", "code", "list"]


class DocumentRefused(Exception):
    """Why a file is not taken, and what to do: the rest of a sentence that begins with the file's name."""


@dataclass(frozen=True, slots=True)
class Block:
    """A run of paragraphs, a table, a listing or a list, under its headings (outermost first).

    ``page`` counts from 1: a PDF's page, a presentation's slide. A table's rows are lines, their cells divided by
    `` | ``; ``header`` has its head rows in the same form, which ``text`` does not repeat. Code is in a fence, a list's
    items are lines that begin with ``-`` or a number, indented by two characters a level.
    """

    text: str
    kind: BlockKind
    headings: tuple[str, ...] = ()
    page: int | None = None
    header: str = ""


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """``kind``: ``pdf``, ``docx`` …; ``left_out``: what has no text here, in the plural, with its number."""

    title: str
    kind: str
    blocks: tuple[Block, ...]
    left_out: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that is found as one. ``text`` repeats what explains it (a table's header, the items above
    a list's, a fence's language), not its ``headings``."""

    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None


def left_out_in_words(left_out: Iterable[tuple[str, int]]) -> str:
    """``2 pictures, 1 header and footer``."""
    return ", ".join(f"{number:,} {what if number != 1 else _one(what)}" for what, number in left_out)


_PLURAL: Final = re.compile(r"s\b")


def _one(what: str) -> str:
    return _PLURAL.sub("", what, count=2 if " and " in what else 1)
