"""What of a record is searched: a passage of its summary and its beginning, and windows of its whole text. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.codec import stored
from dualtrack.frozen import dumps
from dualtrack.ids import parse_record_id
from dualtrack.text import clean, neutralise, one_line
from dualtrack.tool_rules import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.memory.records import QueryTrack, Record

PASSAGE_LIMIT: Final = 1_600
"""Maximum length of a passage: the longest summary (900 characters) and as much of the record's beginning."""

RECORD_LIMIT: Final = 200_000
"""Maximum length of a record's text that is searched."""

WINDOW: Final = 1_200
_OVERLAP: Final = 100
"""So that a sentence across the end of a window stands whole in the next one."""

_INPUT_LIMIT: Final = 300
_SAME: Final = 100
"""If this many characters are equal, the summary is an extract that repeats the beginning."""

SEARCH_TOOL: Final = "search_conversation"
"""Its results repeat other records, which would then be found twice."""


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Passage:
    """What a search knows of one record. ``kind`` is shown: ``query``, ``response``, ``result of NAME``.

    ``is_cut``: the record is longer than `RECORD_LIMIT`.
    """

    record_id: str
    kind: str
    text: str
    is_cut: bool = False


def passages_of(records: Sequence[Record], track: QueryTrack | None) -> tuple[Passage, ...]:
    """The passages of a query's records, in order; ``track`` is None while its summaries are not written. Of a record's
    text `RECORD_LIMIT` + 1 characters are enough.

    Thoughts, which results and response repeat, and records that only repeat others are left out.
    """
    blocks = track.blocks if track else ()
    said = {block.ref or block.record_id: block.said for block in blocks}
    return tuple(
        Passage(
            record.record_id,
            _kind(record),
            _text(record, said.get(record.record_id, "")),
            len(record.content) > RECORD_LIMIT,
        )
        for record in records
        if _is_searched(record)
    )


def windows(passage: Passage, content: str) -> Iterator[tuple[int, str]]:
    """The windows of a record's text with their offsets; none if its passage has the whole text."""
    if len(content) <= PASSAGE_LIMIT and line_of(content) in passage.text:
        return
    end = min(len(content), RECORD_LIMIT)
    for start in range(0, max(end - _OVERLAP, 1), WINDOW - _OVERLAP):
        yield start, window_at(content[:end], start)


def window_at(content: str, offset: int) -> str:
    """The window of a record's text, on one line, with forged ids neutralised."""
    return line_of(content[offset : offset + WINDOW])


def _is_searched(record: Record) -> bool:
    parsed = parse_record_id(record.record_id)
    if parsed is None or parsed.kind == "thought":
        return False
    return record.call is None or not (record.call.reference or record.call.tool == SEARCH_TOOL)


def _kind(record: Record) -> str:
    if record.call:
        return f"result of {name_of(record.call.tool)}"
    parsed = parse_record_id(record.record_id)
    return parsed.kind if parsed else record.type


def _text(record: Record, summary: str) -> str:
    """The passage on one line, with forged ids neutralised."""
    called = f"{record.call.tool} {dumps(record.call.input)[:_INPUT_LIMIT]}" if record.call else ""
    head = line_of(record.content[:PASSAGE_LIMIT])
    summary = line_of(summary)
    if head in summary:
        head = ""
    elif head[:_SAME] in summary:
        summary = ""
    return " ".join(part for part in (line_of(called), summary, head) if part)[:PASSAGE_LIMIT]


def line_of(text: str) -> str:
    """The text on one line, with forged ids neutralised."""
    return one_line(neutralise(clean(text))).replace("[ID:", "[ ID:")
