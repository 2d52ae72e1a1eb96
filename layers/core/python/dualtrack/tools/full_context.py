"""The texts behind ids: of records, of references to them, of digests; in pieces if they are long (CONTRACT 6)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from dualtrack.ids import digest_id, parse_digest_id
from dualtrack.memory.left_out import as_sent
from dualtrack.memory.records import files_named
from dualtrack.storage.history import MOST_QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.memory.digests import Digest
    from dualtrack.memory.records import Record
    from dualtrack.storage.stores import ToolStores

_FOLLOW: Final = 8
_TRACKS_AT_ONCE: Final = 50
_BEFORE: Final = "(Newest first. The digest before is {id}, ref:{ref}.)\n"


def result_text(stores: ToolStores, user: str, conversation_id: str, record: Record) -> str:
    """The text of a tool call's result; a reference is read again, which always returns the same text."""
    if record.call is None or not record.call.reference:
        return record.content
    return read_reference(stores, user, conversation_id, record.call.reference)


def read_reference(stores: ToolStores, user: str, conversation_id: str, reference: Mapping[str, Any]) -> str:
    """The text of a stored reference; always the same, because records never change: but for what the
    model's service has made a later query leave out."""
    offset, end = reference["offset"], reference["offset"] + reference["limit"]
    digest = stores.digests.named(user, conversation_id, reference["id"])
    if digest:
        return summaries_behind(stores, user, conversation_id, digest, offset, reference["limit"])
    record = stores.history.record(user, conversation_id, reference["id"])
    if record is None:
        return f"ID not found: {reference['id']}"
    text = whole_text(stores, user, conversation_id, record)
    piece = text[offset:end]
    if end < len(text):
        return f"{piece}\n\n(Characters {offset} to {end} of {len(text)}. Read on with offset {end}.)"
    if offset and not piece:
        return f"(The offset is past the end of the record, which has {len(text)} characters.)"
    return piece


def whole_text(stores: ToolStores, user: str, conversation_id: str, record: Record) -> str:
    """A record's text, with the names and ids of its files; if the record is a reference, the text that it showed: a
    full record, or a piece of a digest's summaries."""
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
    return record.content + files_named(record)


def summaries_behind(
    stores: ToolStores, user: str, conversation_id: str, digest: Digest, offset: int, limit: int
) -> str:
    """A piece of the summaries behind a digest, newest query first, from ``offset`` on. Reads no more than needed."""
    parts, left_out, room = [], offset, limit + 1
    before = stores.digests.find(user, conversation_id, digest.number - 1) if digest.number > 1 else None
    head = _BEFORE.format(id=digest_id(before.number), ref=before.ref) if before else ""
    for text in itertools.chain([head], _summaries(stores, user, conversation_id, digest.through)):
        part = text[left_out : left_out + room]
        left_out = max(left_out - len(text), 0)
        room -= len(part)
        parts.append(part)
        if not room:
            end = offset + limit
            return f"{''.join(parts)[:-1]}\n\n(Characters {offset} to {end}. Read on with offset {end}.)"
    return "".join(parts) or "(The offset is past the end of the summaries.)"


def _summaries(stores: ToolStores, user: str, conversation_id: str, through: int) -> Iterator[str]:
    """The summarised track up to a query, record by record with its id, the newest query first; at most
    `_TRACKS_AT_ONCE` tracks in memory."""
    for last in range(through, 0, -_TRACKS_AT_ONCE):
        after = max(last - _TRACKS_AT_ONCE, 0)
        tracks = stores.history.tracks(user, conversation_id, last, after)
        out = stores.history.withheld(user, conversation_id, range(after + 1, last + 1), MOST_QUERIES)
        for track in reversed(as_sent(tracks, *out)):
            for block in track.blocks:
                yield f"{block.record_id}: {block.said}\n"
