"""``retrieve_full_context``: the full record behind a summary, in pieces if it is long (CONTRACT 6)."""

from __future__ import annotations

import base64
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from annotated_types import Ge

from dualtrack import tool
from dualtrack.errors import Gone
from dualtrack.frozen import freeze
from dualtrack.ids import parse_record_id, response_id
from dualtrack.memory.left_out import is_declined
from dualtrack.memory.sources import sources_of
from dualtrack.tool_values import Media, ToolResult
from dualtrack.tools.full_context import read_reference, summaries_behind, whole_text
from dualtrack.tools.running import Running, ToolNeeds
from dualtrack.tools.withheld import withheld

if TYPE_CHECKING:
    from dualtrack.memory.records import Record
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tool_values import Source

_DECLINED: Final = (
    "{id} belongs to a query that the model's service declined. It is not sent again; the user can read it."
)
_LEFT_OUT: Final = "{id} is left out, since the model's service declined what followed. It is not sent again; the user can read it."
_ASKED: Final = ("query", "file")
"""The kinds of records that stay where a query's results are left out, if it had an answer."""

_ROOM_FOR_NOTE: Final = 200
"""Characters reserved for the note of a piece, so that piece and note together are not cut again."""


@tool(effect="reads")
def retrieve_full_context(
    id_: Annotated[str, "The record's id, such as q1-r. A summary names it after 'ref:'."],
    offset: Annotated[int, Ge(0), "Start at this character."] = 0,
    limit: Annotated[int | None, Ge(1), "Return at most this many characters."] = None,
    *,
    running: Running,
    needs: ToolNeeds,
) -> ToolResult:
    """Returns a record of this conversation in full, by its id: q1 (a query), q1-r (its response), q1-t2 (a tool
    result), q1-f1 (an attached text file). A query or a tool result comes with its images and PDFs. For the id of a
    digest, such as d3, it returns the summaries that the digest was made from, newest first. Use it when a summary is
    not enough, for example when the user asks for the full code or text of something earlier. Long records come in
    pieces: read on with the offset that the result names.
    """
    stores = needs.stores.across(running.chat.ancestry)
    most = needs.profiles[running.chat.profile].result_limit
    wanted = id_.strip().strip("[]").removeprefix("ID:")
    return _read(stores, running, wanted, offset, min(limit or most, most), most) or ToolResult(
        f"ID not found: {id_}", is_error=True
    )


def _read(
    stores: ToolStores, running: Running, wanted: str, offset: int, limit: int, most: int
) -> ToolResult | None:
    """The record or digest from ``offset`` on, with a note on how to read on; None if there is none.

    It can reach only the user's current conversation: both ids are part of the key.
    """
    user, conversation_id = running.user, running.conversation_id
    shorter = min(limit, most - _ROOM_FOR_NOTE)
    if digest := stores.digests.named(user, conversation_id, wanted):
        text = summaries_behind(stores, user, conversation_id, digest, offset, shorter)
        return ToolResult(text, reference=freeze({"id": wanted, "offset": offset, "limit": shorter}))
    media: tuple[Media, ...] = ()
    try:
        record = stores.history.record(user, conversation_id, wanted)
        media = _media(stores, user, conversation_id, record) if record and offset == 0 else ()
    except Gone:
        record = None
    if record is None:
        return None
    if why := _withheld(stores, running, record):
        return ToolResult(why.format(id=wanted), is_error=True)
    is_long = offset + limit < len(whole_text(stores, user, conversation_id, record))
    reference = freeze({"id": wanted, "offset": offset, "limit": shorter if is_long else limit})
    text = read_reference(stores, user, conversation_id, reference)
    sources = _sources(stores, user, conversation_id, record)
    return ToolResult(text, sources=sources, media=media, reference=reference)


def _withheld(stores: ToolStores, running: Running, record: Record) -> str:
    """Why the record is not sent again, as the service would refuse it; empty if nothing speaks against it."""
    parsed = parse_record_id(record.record_id)
    if parsed is None:
        return ""
    answer = stores.history.records(running.user, running.conversation_id, [response_id(parsed.query)])
    if is_declined(answer):
        return _DECLINED
    is_asked = parsed.kind in _ASKED and any(record.stop for record in answer)
    if is_asked or parsed.query >= running.chat.query:
        return ""
    return _LEFT_OUT if withheld(stores, running, {parsed.query}) else ""


def _sources(stores: ToolStores, user: str, conversation_id: str, record: Record) -> tuple[Source, ...]:
    """The sources of a tool's result; of a response those of its query's results."""
    parsed = parse_record_id(record.record_id)
    if parsed is None or parsed.kind != "response":
        return record.call.sources if record.call else ()
    of_query = sources_of(stores.history.query_records(user, conversation_id, parsed.query, texts=()))
    return tuple(replace(source, record_id="") for source in of_query)


def _media(stores: ToolStores, user: str, conversation_id: str, record: Record) -> tuple[Media, ...]:
    """The record's images and PDFs, unchanged; a text file is a record of its own."""
    pictures = (attachment for attachment in record.attachments if not attachment.record_id)
    files = [*pictures, *(record.call.media if record.call else ())]
    parsed = parse_record_id(record.record_id)
    load = partial(stores.history.load_file, user, conversation_id, parsed.query if parsed else 0)
    return tuple(Media(file.media_type, base64.b64encode(load(file)).decode()) for file in files)
