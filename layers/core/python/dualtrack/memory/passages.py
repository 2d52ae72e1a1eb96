"""The searchable part of a record: a passage of its summary and its beginning. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.codec import stored
from dualtrack.frozen import dumps
from dualtrack.ids import parse_record_id
from dualtrack.text import clean, neutralise, one_line
from dualtrack.tool_rules import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.memory.records import QueryTrack, Record

PASSAGE_LIMIT: Final = 1_600
"""Maximum length of a passage: the longest summary (900 characters) and as much of the record's beginning."""

_INPUT_LIMIT: Final = 300
_SAME: Final = 100
"""If this many characters are equal, the summary is an extract that repeats the beginning."""

SEARCH_TOOL: Final = "search_conversation"
"""Its results repeat other records, which would then be found twice."""


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Passage:
    """What a search knows of one record. ``kind`` is shown: ``query``, ``response``, ``result of NAME``."""

    record_id: str
    kind: str
    text: str


def passages_of(records: Sequence[Record], track: QueryTrack | None) -> tuple[Passage, ...]:
    """The passages of a query's records, in order; ``track`` is None while its summaries are not written.

    Thoughts, which results and response repeat, and records that only repeat others are left out.
    """
    blocks = track.blocks if track else ()
    said = {block.ref or block.record_id: block.content for block in blocks}
    return tuple(
        Passage(record.record_id, _kind(record), _text(record, said.get(record.record_id, "")))
        for record in records
        if _is_searched(record)
    )


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
    head = _line(record.content[:PASSAGE_LIMIT])
    summary = _line(summary)
    if head in summary:
        head = ""
    elif head[:_SAME] in summary:
        summary = ""
    return " ".join(part for part in (_line(called), summary, head) if part)[:PASSAGE_LIMIT]


def _line(text: str) -> str:
    return one_line(neutralise(clean(text))).replace("[ID:", "[ ID:")
