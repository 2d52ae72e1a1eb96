"""Recording a tool's result: one conditional append; the first writer wins (DESIGN 2.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.clock import iso
from dualtrack.events import record_stored, tool_result
from dualtrack.frozen import dumps, freeze
from dualtrack.media import viewable
from dualtrack.memory.records import Record, ToolCallDetail
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.text import clean, preview, readable
from dualtrack.tool_values import ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dualtrack.events import Event
    from dualtrack.models.receipt_data import ToolSideCalls
    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.bodies import StoredBody, Write
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tool_values import Source

MAX_RESULT_BYTES: Final = 2_000_000
"""Maximum size of a stored result in UTF-8, including the note that it was cut (CONTRACT 6)."""

MAX_SOURCES: Final = 50
MAX_PASSAGES: Final = 20
MAX_TITLE: Final = 200
MAX_URL: Final = 1_000
"""Limits for sources, because they are part of the record's item, of events and of the chat object."""

NO_RESULT = ToolResult("Tool execution failed: the tool's process ended without a result.", is_error=True)
OUTCOME_UNKNOWN = ToolResult(
    "Tool execution failed: the call was begun, but its process ended before the result was known. It may or may "
    "not have taken effect: check before you repeat it.",
    is_error=True,
    outcome="unknown",
)
NOT_RUN = ToolResult(
    "Tool execution failed: it could not be begun, so it has not run.", is_error=True, ran=False
)
STOPPED = ToolResult("began; the chat was stopped; it may have run", is_error=True, outcome="unknown")
"""Of a call that had begun when its chat ended."""


def record_result(
    stores: ToolStores,
    chat: Chat,
    turn: int,
    call: ToolCall,
    result: ToolResult,
    seconds: float,
    asked: tuple[ToolSideCalls, ...] = (),
) -> bool:
    """Store the call's record and its events, unless the call has a record already. Returns whether they were stored.

    ``asked``: the tool's own model calls. Raises `ChatClosed` if the chat has ended.
    """
    record, files = _record(stores, chat, turn, call, result, round(seconds, 3), asked)
    stored = stores.history.record_writes(chat.user, chat.conversation_id, record)
    shown = result.preview or (result.content if not result.reference else record.content)
    try:
        stores.log(chat).append(result_events(record, readable(shown)), [*files, *stored])
    except ConditionFailed:
        return False
    return True


def result_from_outside(
    stores: ToolStores, chat: Chat, turn: int, call: ToolCall, result: ToolResult
) -> tuple[Record, list[Write]]:
    """The record of a result that came as a decision on the call of a paused chat, and its writes: the chat goes on
    with its events once every call is decided."""
    since = chat.pause.since if chat.pause else 0
    record, files = _record(stores, chat, turn, call, result, round(max(stores.clock() - since, 0), 3), ())
    return record, [*files, *stores.history.record_writes(chat.user, chat.conversation_id, record, call.id)]


def result_events(record: Record, shown: str | None = None) -> list[Event]:
    """The events of a call's record; ``shown``: what people see of it, its beginning by default."""
    call = record.call
    assert call, record.record_id
    text = record.content if shown is None else shown
    told = tool_result(record.record_id, call.tool, call.seconds, text, call.status, is_error=call.is_error)
    return [record_stored(record.record_id, "user", "tool_call"), told]


def outside_events(turn: RecordedTurn, records: Iterable[Record]) -> list[Event]:
    """The events of a turn's results that came from outside, in the calls' order."""
    by_id = {record.record_id: record for record in records}
    return [event for call in turn.calls if call.is_answered for event in result_events(by_id[call.id])]


def complete_results(stores: ToolStores, chat: Chat, turn: RecordedTurn, *, dead: bool) -> None:
    """Record results for the refused calls of a turn, and with ``dead`` for all other calls without one that wait for
    nothing."""
    for call in turn.calls:
        if (call.refused or (dead and call.may_run)) and not stores.history.has_record(
            chat.user, chat.conversation_id, call.id
        ):
            record_result(stores, chat, turn.number, call, _stand_in(stores, chat, call), 0.0)


def _stand_in(stores: ToolStores, chat: Chat, call: ToolCall) -> ToolResult:
    """The result of a call that has none. It is unknown whether a tool with side effects has had them; one that had not
    begun never will."""
    if call.refused:
        return ToolResult(call.refused, is_error=True, ran=False)
    if not call.is_marked:
        return NO_RESULT
    return NOT_RUN if stores.chats.forestall(chat, call.id) else OUTCOME_UNKNOWN


def stopped_result(stores: ToolStores, chat: Chat, turn: int, call: ToolCall) -> tuple[Record, list[Write]]:
    """The record of a call that has begun and whose chat ends, and its writes."""
    record, _ = _record(stores, chat, turn, call, STOPPED, 0.0, ())
    return record, stores.history.record_writes(chat.user, chat.conversation_id, record, call.id)


def _record(
    stores: ToolStores,
    chat: Chat,
    turn: int,
    call: ToolCall,
    result: ToolResult,
    seconds: float,
    asked: tuple[ToolSideCalls, ...],
) -> tuple[Record, tuple[StoredBody, ...]]:
    """The call's record, and the bodies of its files."""
    viewed, not_shown = viewable(result.media)
    brought = ((file.media_type, file.data) for file in viewed)
    media, files = stores.history.files(chat.user, chat.conversation_id, brought)
    reference = freeze(result.reference) if result.reference else None
    content = result.content if reference is None else _reference_text(result)
    record = Record(
        record_id=call.id,
        type="tool_call",
        role="user",
        content=kept(readable("\n\n".join(part for part in (_edited(call), content, not_shown) if part))),
        created_at=iso(stores.clock()),
        turn=turn,
        call=ToolCallDetail(
            tool_use_id=call.tool_use_id,
            tool=call.tool,
            input=call.input,
            is_error=result.is_error,
            seconds=seconds,
            turn=turn,
            sources=_sources(result, is_shifted=call.is_edited),
            media=media,
            reference=reference,
            asked=asked,
            edited=call.is_edited,
            outcome="declined" if call.is_refused_by_somebody else result.outcome,
            ran=result.ran,
            charged=result.charged,
        ),
    )
    return record, files


def _edited(call: ToolCall) -> str:
    """What the model is told of a call that ran with another input than its own."""
    return (
        f"(The user changed the input of this call. It ran with {dumps(call.input)})"
        if call.is_edited
        else ""
    )


def _sources(result: ToolResult, *, is_shifted: bool) -> tuple[Source, ...]:
    """The first sources, with short titles. A long URL is left out, because a truncated one would be wrong; so are the
    places of passages in a text that does not stand where it stood (``is_shifted``)."""
    return tuple(
        replace(
            source,
            title=preview(clean(source.title), MAX_TITLE),
            url=clean(source.url) if len(source.url) <= MAX_URL else "",
            passages=() if is_shifted or "\0" in result.content else source.passages[:MAX_PASSAGES],
        )
        for source in result.sources[:MAX_SOURCES]
    )


def kept(text: str) -> str:
    """The text to store: at most 2 MB of UTF-8, with a note if it was cut."""
    size = len(text.encode())
    if size <= MAX_RESULT_BYTES:
        return text
    note = f"\n\n(The result had {size:,} bytes. Only its beginning is kept.)"
    return text.encode()[: MAX_RESULT_BYTES - len(note)].decode(errors="ignore") + note


def _reference_text(result: ToolResult) -> str:
    """What is stored instead of a copy."""
    reference = result.reference
    end = reference["offset"] + reference["limit"]
    return f"(The record {reference['id']} was read, from character {reference['offset']} to {end} at most.)"
