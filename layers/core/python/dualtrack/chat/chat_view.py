"""The chat object of the API (CONTRACT 4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from dualtrack.clock import iso
from dualtrack.events import source_json
from dualtrack.ids import query_id, response_id, summary_id
from dualtrack.memory.sources import sources_of
from dualtrack.models.cost_cap import side_nanodollars
from dualtrack.models.prices import is_fictional

WITH_RESPONSE: Final = frozenset({"answered", "done", "cancelled"})
"""The statuses of a chat that has a response record (which may say that there is no answer)."""

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack import answers
    from dualtrack.frozen import Json
    from dualtrack.memory.records import QueryTrack, Record, ToolCallDetail, TrackBlock
    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.vocabulary import CallKind


def chat_json(
    chat: Chat,
    records: tuple[Record, ...],
    track: QueryTrack | None,
    paused: RecordedTurn | None = None,
    begun: Sequence[ToolCall] = (),
) -> answers.Chat:
    """The chat object from its state, the records of its query and, once written, its summarised track; ``paused``:
    the turn whose calls wait for decisions; ``begun``: its calls that have no result yet."""
    summary = _summary(chat, track) if chat.status == "done" else None
    body: answers.Chat = {
        "chat_id": chat.chat_id,
        "conversation_id": chat.conversation_id,
        "message_id": query_id(chat.query),
        "profile": chat.profile,
        "status": chat.status,
        "stop": chat.stop or None,
        "response": _response(chat, records),
        "output": _output(chat, records),
        "summary": summary.content if summary else None,
        "summary_form": summary.form if summary else None,
        "summary_made": chat.status == "done" and track is not None and not track.whole_tokens,
        "sources": [source_json(source) for source in sources_of(records)],
        "tool_calls": [
            *(_call(record.record_id, record.call) for record in records if record.call),
            *(_begun(call, chat.turn) for call in begun),
        ],
        "turns": chat.turn,
        "credits_used": chat.credits_used,
        "credits_remaining": chat.credits_remaining,
        "usage": _usage(chat.usage),
        "memory": memory_json(chat),
        "fictional": answered_offline(chat),
        "created_at": chat.created_at,
        "ended_at": chat.ended_at or None,
    }
    if chat.error:
        body["error"] = {"code": chat.error["code"], "message": chat.error["message"]}
    if chat.declined:
        body["refusal"] = {"category": chat.declined["category"] or None}
    if chat.pause and paused:
        body["pause"] = {"calls": open_calls(paused), "expires_at": iso(chat.pause.until)}
    return body


def decided_json(chat: Chat, paused: RecordedTurn | None) -> answers.DecidedChat:
    """What somebody may see of a chat who may decide on its calls and not read it."""
    body: answers.DecidedChat = {
        "chat_id": chat.chat_id,
        "conversation_id": chat.conversation_id,
        "message_id": query_id(chat.query),
        "profile": chat.profile,
        "status": chat.status,
    }
    if chat.pause and paused:
        body["pause"] = {"calls": open_calls(paused), "expires_at": iso(chat.pause.until)}
    return body


def open_calls(turn: RecordedTurn) -> list[answers.OpenCall]:
    """The calls of a turn that wait for decisions, in the model's order."""
    return [_open_call(call, call.asks) for call in turn.calls if call.asks and call.is_open]


def _open_call(call: ToolCall, kind: CallKind) -> answers.OpenCall:
    shown: answers.OpenCall = {"id": call.id, "tool": call.tool, "input": call.input, "kind": kind}
    if kind == "approval":
        shown["effect"] = call.does
    if call.allowable:
        shown["allowable"] = True
    return shown


def answered_offline(chat: Chat) -> bool:
    """Whether the offline model answers it: its tokens, and what follows from them, are fictional."""
    return chat.heard is not None and is_fictional(chat.heard.served)


def operator_text(chat: Chat, *, is_admin: bool) -> str:
    """What an operator should know about a failed chat; it names settings, so its user never sees it."""
    return (chat.error or {}).get("operator", "") if is_admin else ""


def _response(chat: Chat, records: tuple[Record, ...]) -> str | None:
    """The answer, or what a cancelled chat had written. A record without a stop reason says that there is no answer."""
    if chat.status not in WITH_RESPONSE:
        return None
    wanted = response_id(chat.query)
    return next((record.content for record in records if record.record_id == wanted and record.stop), None)


def _output(chat: Chat, records: tuple[Record, ...]) -> Json:
    response = _response(chat, records) if chat.fits else None
    return json.loads(response) if response else None


def _summary(chat: Chat, track: QueryTrack | None) -> TrackBlock | None:
    wanted = summary_id(response_id(chat.query))
    return next((block for block in (track.blocks if track else ()) if block.record_id == wanted), None)


def _usage(counts: Mapping[str, int]) -> answers.Usage:
    return {
        "input_tokens": counts.get("input_tokens", 0),
        "output_tokens": counts.get("output_tokens", 0),
        "cache_read_tokens": counts.get("cache_read_tokens", 0),
        "cache_write_tokens": counts.get("cache_write_tokens", 0),
        "summary_tokens": counts.get("summary_tokens", 0),
    }


def memory_json(chat: Chat) -> answers.Memory:
    """What memory costs beside a full history. A digest is added once it is written, after the chat's end."""
    memory, sums = chat.memory, chat.memory.sums
    fold = side_nanodollars(chat.fold) if chat.fold else 0
    return {
        "dollars": (memory.costs.own + memory.aside + fold) / 1e9,
        "full_history_dollars": memory.costs.full / 1e9,
        "conversation_dollars": (sums.costs.own + sums.aside + fold) / 1e9,
        "conversation_full_history_dollars": sums.costs.full / 1e9,
        "estimated": True,
        "beyond_window": sums.beyond_window,
        "summaries_due": chat.status == "answered" and chat.calls_for_summaries,
    }


def _begun(call: ToolCall, turn: int) -> answers.ToolCall:
    return {
        "id": call.id,
        "tool": call.tool,
        "input": call.input,
        "is_error": False,
        "status": "begun",
        "seconds": 0,
        "turn": turn,
    }


def _call(record_id: str, call: ToolCallDetail) -> answers.ToolCall:
    shown: answers.ToolCall = {
        "id": record_id,
        "tool": call.tool,
        "input": call.input,
        "is_error": call.is_error,
        "status": call.status,
        "seconds": call.seconds,
        "turn": call.turn,
    }
    if call.edited:
        shown["edited"] = True
    return shown
