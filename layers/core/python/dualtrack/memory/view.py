"""What is sent: the past by the profile's policy, the running query in full (CONTRACT 6, DESIGN 2.7).

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import thaw
from dualtrack.media import within_request
from dualtrack.memory.policies import asked, dual_track, text_block, user_message
from dualtrack.memory.records import Block, QueryTrack, Record, block_of, data_of, full_tokens
from dualtrack.profiles import PLACEHOLDER
from dualtrack.text import clean, cut, estimate_tokens, neutralise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.memory.policies import Message, Policy
    from dualtrack.models.turn import Limit, ToolCall

_FINAL_NOTES: Final[Mapping[str, str]] = {
    "max_turns": (
        "(The limit of {turns} turns with tools is reached. Use no more tools: answer now, in writing, "
        "from what you have found, and say what is missing.)"
    ),
    "insufficient_credits": (
        "(The user's credits do not suffice for more tools. Answer now, in writing, from what you have "
        "found, and say what is missing.)"
    ),
    "timeout": (
        "(The time for this chat is up. Use no more tools: answer now, in writing, from what you have "
        "found, and say what is missing.)"
    ),
}
_THINKING: Final = ("thinking", "redacted_thinking")
_FILES_LEFT_OUT: Final = "(Files of this result that could not be shown here: {count}.)"
_FILES_REFUSED: Final = "(The files could not be shown: one of them is broken or too large.)"


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool call brought, as the model sees it."""

    text: str
    is_error: bool = False
    media: tuple[Mapping[str, str], ...] = ()
    """``{"media_type", "data"}``, base64."""
    note: str = ""
    """What is said of files that are not sent."""


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn of the running query: the assistant's blocks unchanged, and a result for every call."""

    content: tuple[Mapping[str, Any], ...]
    calls: tuple[ToolCall, ...]
    results: Mapping[str, Result]


@dataclass(frozen=True, slots=True)
class View:
    """All that a model call is built from. Frozen when the query starts, but for its growing turns."""

    tracks: tuple[QueryTrack, ...]
    query: Block
    attachments: tuple[Mapping[str, str], ...] = ()
    turns: tuple[PastTurn, ...] = ()
    limit: Limit = ""
    max_turns: int = 0
    result_limit: int = 100_000
    policy: Policy = dual_track
    template: str = PLACEHOLDER
    """The profile's ``query_template``."""
    without_files: bool = False
    """The model's service has refused the request, and a file may be why: say so in place of all files."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Messages for Claude, and what they cost by estimate beside the whole history."""

    messages: tuple[Message, ...]
    sent_tokens: int
    full_history_tokens: int
    files: int = 0
    """How many files go with the messages."""


def stand_in(records: tuple[Record, ...], number: int, limit: int) -> QueryTrack:
    """The full records of a query whose summaries are still missing, for one query of the view."""
    shown = tuple(record for record in records if "-a" not in record.record_id)
    blocks = tuple(replace(block_of(record), content=_standing_in(record, limit)) for record in shown)
    return QueryTrack(number, blocks, full_tokens(records), stand_in=True)


def _standing_in(record: Record, limit: int) -> str:
    text = _fitted(record.record_id, record.content, limit)
    return data_of(record.call, text) if record.call else text


def build(view: View) -> Sent:
    """The messages of a model call, with cache breakpoints, and their estimates."""
    view, files = _with_files_that_fit(view)
    past = view.policy(view.tracks, view.template)
    messages = [message for track in past for message in track]
    messages.append(user_message(_query_blocks(view)))
    for turn in view.turns:
        if turn.content:  # a pause may come before anything was said
            messages.append({"role": "assistant", "content": thaw(turn.content)})
        if turn.calls:
            messages.append(
                user_message(
                    [_tool_result(call, turn.results[call.id], view.result_limit) for call in turn.calls]
                )
            )
    if view.limit:
        _append_note(messages, _FINAL_NOTES[view.limit].format(turns=view.max_turns))
    sent = sum(_tokens(message) for message in messages)
    sent_of_past = sum(_tokens(message) for sent_as in past for message in sent_as)
    saved = sum(track.full_tokens for track in view.tracks) - sent_of_past
    _mark_breakpoints(messages, [len(sent_as) for sent_as in past])
    return Sent(tuple(messages), sent, sent + max(saved, 0), files)


def _with_files_that_fit(view: View) -> tuple[View, int]:
    """The view with as many files as one request holds, and their number.

    The first come first: what was sent once is sent again, and the cached prefix stays.
    """
    if view.without_files:
        view = replace(view, attachments=(), turns=tuple(map(_without_thinking, view.turns)))
    count, characters = len(view.attachments), sum(len(one["data"]) for one in view.attachments)
    turns = []
    for turn in view.turns:
        results = dict(turn.results)
        for call in turn.calls:
            result = results[call.id]
            fitting = 0 if view.without_files else within_request(result.media, count, characters)
            count += fitting
            characters += sum(len(one["data"]) for one in result.media[:fitting])
            left = len(result.media) - fitting
            note = _FILES_LEFT_OUT.format(count=left) if left else ""
            results[call.id] = replace(result, media=result.media[:fitting], note=note)
        turns.append(replace(turn, results=MappingProxyType(results)))
    return replace(view, turns=tuple(turns)), count


def _without_thinking(turn: PastTurn) -> PastTurn:
    """What was thought about other messages than those that are sent now would be refused."""
    kept = (block for block in turn.content if block["type"] not in _THINKING)
    return replace(turn, content=tuple(kept))


def _query_blocks(view: View) -> list[dict[str, Any]]:
    said = [text_block(_FILES_REFUSED)] if view.without_files else []
    return [
        text_block(asked(view.query, view.template).text),
        *(_media(one) for one in view.attachments),
        *said,
    ]


def _media(one: Mapping[str, str]) -> dict[str, Any]:
    kind = "document" if one["media_type"] == "application/pdf" else "image"
    return {"type": kind, "source": {"type": "base64", "media_type": one["media_type"], "data": one["data"]}}


def _tool_result(call: ToolCall, result: Result, limit: int) -> dict[str, Any]:
    text = f"[ID:{call.id}] {neutralise(_fitted(call.id, result.text, limit))}"
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": call.tool_use_id,
        "content": [
            text_block(text),
            *(_media(one) for one in result.media),
            *([text_block(result.note)] if result.note else []),
        ],
    }
    return block | {"is_error": True} if result.is_error else block


def _fitted(record_id: str, text: str, limit: int) -> str:
    """The text as far as the profile lets one record go, with a note how to read on."""
    note = (
        f"\n\n(Cut after {limit} of {len(text)} characters. Read on with retrieve_full_context "
        f'{{"id": "{record_id}", "offset": {limit}}}.)'
    )
    return clean(cut(text, limit, note))


def _append_note(messages: list[Message], note: str) -> None:
    if messages[-1]["role"] == "user":
        messages[-1]["content"].append(text_block(note))
    else:
        messages.append(user_message([text_block(note)]))


def _tokens(message: Message) -> int:
    return sum(_block_tokens(block) for block in message["content"])


def _block_tokens(block: Mapping[str, Any]) -> int:
    """Text by its length; media by a flat figure, since base64 says nothing about it."""
    kind = block["type"]
    if kind == "text":
        return estimate_tokens(block["text"])
    if kind == "tool_result":
        return sum(_block_tokens(part) for part in block["content"])
    if kind in ("image", "document"):
        return 1_500
    return estimate_tokens(str(block))


def _mark_breakpoints(messages: list[Message], track_lengths: list[int]) -> None:
    """Cache breakpoints: end of the previous track, end of the track, last block (and the system's)."""
    ends = {len(messages) - 1}
    total = sum(track_lengths)
    if total:
        ends.add(total - 1)
    if len(track_lengths) > 1:
        ends.add(total - track_lengths[-1] - 1)
    for place in ends:
        block = messages[place]["content"][-1]
        if block["type"] not in _THINKING:
            block["cache_control"] = {"type": "ephemeral"}
