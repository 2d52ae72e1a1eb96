"""``retrieve_full_context``: the full record behind a summary, in pieces if it is long (CONTRACT 6)."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import Gone
from dualtrack.frozen import freeze
from dualtrack.ids import parse_digest_id, parse_record_id
from dualtrack.profiles import all_profiles
from dualtrack.tool_values import Media, ToolResult, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.memory.digests import Digest
    from dualtrack.memory.records import Record
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tools.running import Running

_FOLLOW: Final = 8
_TRACKS_AT_ONCE: Final = 50
_ROOM_FOR_NOTE: Final = 200
"""Characters reserved for the note of a piece, so that piece and note together are not cut again."""

RETRIEVE_FULL_CONTEXT: Final = ToolSpec(
    name="retrieve_full_context",
    description=(
        "Returns the full record of this conversation behind an id, for instance q1-r (a response), q1-t2 (a tool "
        "result), q1-f1 (an attached text file) or q1 (a query); behind a digest's id, such as d3, the summaries that it was "
        "made of. Use it when a summary does not tell enough, for example when the user asks for the full code or text of "
        "something earlier. Long records come in pieces: read on with the offset that "
        "the result names."
    ),
    input_schema=freeze(
        {
            "type": "object",
            "properties": {
                "id": {
                    "type": "string",
                    "description": "The record's id, such as q1-r: what stands after 'ref:'.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Start at this character (default 0).",
                },
                "limit": {"type": "integer", "minimum": 1, "description": "At most this many characters."},
            },
            "required": ["id"],
            "additionalProperties": False,
        }
    ),
    kind="tool",
    runner="dualtrack.tools.full_context:retrieve_full_context",
)


def retrieve_full_context(running: Running, stores: ToolStores) -> ToolResult:
    """The record from ``offset`` on, at most ``limit`` characters, with a note on how to read on.

    It can reach only the user's current conversation: both ids are part of the key.
    """
    user, conversation_id, arguments = running.user, running.conversation_id, running.call.input
    stores = stores.across(running.chat.ancestry)
    result_limit = all_profiles()[running.chat.profile].result_limit
    wanted = str(arguments["id"]).strip().strip("[]").removeprefix("ID:")
    offset = int(arguments.get("offset", 0))
    digest = stores.digests.named(user, conversation_id, wanted)
    if digest:
        limit = min(int(arguments.get("limit", result_limit)), result_limit - _ROOM_FOR_NOTE)
        reference = freeze({"id": wanted, "offset": offset, "limit": limit})
        text = _summaries_behind(stores, user, conversation_id, digest, offset, limit)
        return ToolResult(text, reference=reference)
    try:
        record = stores.history.record(user, conversation_id, wanted)
        media = _media(stores, user, conversation_id, record) if record and offset == 0 else ()
    except Gone:
        record = None
    if record is None:
        return ToolResult(f"ID not found: {arguments['id']}", is_error=True)
    limit = min(int(arguments.get("limit", result_limit)), result_limit)
    if offset + limit < len(whole_text(stores, user, conversation_id, record)):
        limit = min(limit, result_limit - _ROOM_FOR_NOTE)
    reference = freeze({"id": wanted, "offset": offset, "limit": limit})
    return ToolResult(
        read_reference(stores, user, conversation_id, reference),
        media=media,
        reference=reference,
    )


def result_text(stores: ToolStores, user: str, conversation_id: str, record: Record) -> str:
    """The text of a tool call's result; a reference is read again, which always returns the same text."""
    if record.call is None or not record.call.reference:
        return record.content
    return read_reference(stores, user, conversation_id, record.call.reference)


def read_reference(stores: ToolStores, user: str, conversation_id: str, reference: Mapping[str, Any]) -> str:
    """The text of a stored reference; always the same, because records never change."""
    offset, end = reference["offset"], reference["offset"] + reference["limit"]
    digest = stores.digests.named(user, conversation_id, reference["id"])
    if digest:
        return _summaries_behind(stores, user, conversation_id, digest, offset, reference["limit"])
    record = stores.history.record(user, conversation_id, reference["id"])
    if record is None:
        return f"ID not found: {reference['id']}"
    text = whole_text(stores, user, conversation_id, record)
    piece = text[offset:end]
    if end < len(text):
        return f"{piece}\n\n(Characters {offset} to {end} of {len(text)}. Read on with offset {end}.)"
    if offset and not piece:
        return f"(The record ends at character {len(text)}.)"
    return piece


def whole_text(stores: ToolStores, user: str, conversation_id: str, record: Record) -> str:
    """A record's text; if the record is a reference, the text that it showed: a full record, or a piece of a
    digest's summaries."""
    for _ in range(_FOLLOW):
        if record.call is None or not record.call.reference:
            break
        reference = record.call.reference
        if parse_digest_id(reference["id"]):
            return read_reference(stores, user, conversation_id, reference)
        target = stores.history.record(user, conversation_id, reference["id"])
        if target is None:
            break
        record = target
    return record.content


def _summaries_behind(
    stores: ToolStores, user: str, conversation_id: str, digest: Digest, offset: int, limit: int
) -> str:
    """A piece of the summaries behind a digest, from ``offset`` on. Reads no more than needed."""
    parts, left_out, room = [], offset, limit + 1
    for text in _summaries(stores, user, conversation_id, digest.through):
        part = text[left_out : left_out + room]
        left_out = max(left_out - len(text), 0)
        room -= len(part)
        parts.append(part)
        if not room:
            end = offset + limit
            return f"{''.join(parts)[:-1]}\n\n(Characters {offset} to {end}. Read on with offset {end}.)"
    return "".join(parts) or "(The summaries end before this character.)"


def _summaries(stores: ToolStores, user: str, conversation_id: str, through: int) -> Iterator[str]:
    """The summarised track up to a query, record by record with its id; at most `_TRACKS_AT_ONCE` tracks in memory."""
    for after in range(0, through, _TRACKS_AT_ONCE):
        last = min(after + _TRACKS_AT_ONCE, through)
        for track in stores.history.tracks(user, conversation_id, last, after):
            for block in track.blocks:
                yield f"{block.record_id}: {block.content}\n"


def _media(stores: ToolStores, user: str, conversation_id: str, record: Record) -> tuple[Media, ...]:
    """The record's images and PDFs, unchanged; a text file is a record of its own."""
    pictures = (attachment for attachment in record.attachments if not attachment.record_id)
    files = [*pictures, *(record.call.media if record.call else ())]
    parsed = parse_record_id(record.record_id)
    load = partial(stores.history.load_file, user, conversation_id, parsed.query if parsed else 0)
    return tuple(Media(file.media_type, base64.b64encode(load(file)).decode()) for file in files)
