"""Calls that only read the past back, and what an ended query adds to a full history without them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.frozen import dumps
from dualtrack.ids import parse_record_id
from dualtrack.memory.estimate import FRAME_TOKENS, tokens_of_files
from dualtrack.memory.passages import SEARCH_TOOL
from dualtrack.text import cautious_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.memory.records import Record

RETRIEVE_FULL_CONTEXT: Final = "retrieve_full_context"
"""The tool (`dualtrack.tools.retrieve_full_context`) that reads a record again."""

RECALL_TOOLS: Final = frozenset({RETRIEVE_FULL_CONTEXT, SEARCH_TOOL})
"""The tools that read the past back."""


def is_recall(tools: Iterable[str]) -> bool:
    """Whether a call that asked for these tools only read the past back."""
    asked = set(tools)
    return bool(asked) and asked <= RECALL_TOOLS


def history_tokens(records: Sequence[Record], result_limit: int) -> int:
    """What an ended query adds to a full history, by the cautious estimate: its records whole, a result as long as the
    profile sends one; without the turns that only read the past back."""
    asked: dict[int, set[str]] = {}
    for record in records:
        if record.call:
            asked.setdefault(record.turn, set()).add(record.call.tool)
    recalled = {turn for turn, tools in asked.items() if is_recall(tools)}
    return sum(_tokens(record, result_limit) for record in records if record.turn not in recalled)


def _tokens(record: Record, result_limit: int) -> int:
    files = record.attachments + (record.call.media if record.call else ())
    tokens = FRAME_TOKENS + tokens_of_files(
        [{"media_type": file.media_type} for file in files if not file.record_id]
    )
    if record.call:
        asked = cautious_tokens(dumps(record.call.input)) + 3 * FRAME_TOKENS
        return tokens + asked + cautious_tokens(record.content[:result_limit])
    parsed = parse_record_id(record.record_id)
    is_thought = parsed is not None and parsed.kind == "thought"
    said = record.content[len(record.content) - record.said :] if is_thought else record.content
    return tokens + cautious_tokens(f"[ID:{record.record_id}] {said}")
