"""The files of a record: their listing and their bytes (CONTRACT 4).

Files are untrusted: a browser must never run one as our page. So a file is served with its own type, without type
sniffing, in a sandbox without scripts, and only images and PDFs may be shown inline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from dualtrack.api.route import Ok
from dualtrack.errors import Gone, invalid_request, not_found
from dualtrack.ids import parse_record_id
from dualtrack.media import VIEWABLE

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.memory.records import Attachment, Record
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.history import HistoryStore

BINARY_TYPES: Final = (*sorted(VIEWABLE), "application/octet-stream")
"""Types of which ``Accept`` must name one first: for any other, API Gateway returns base64 instead of bytes."""

PIECE_BYTES: Final = 4 * 1024 * 1024
"""Maximum bytes of a file in an answer: in base64 they fit in a function's response of 6 MB."""

_NO_FILE: Final = "There is no such file."
_HEADERS: Final = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}


def files_of(record: Record) -> tuple[Attachment, ...]:
    """The files of a query or of a tool's result, in order."""
    return record.call.media if record.call else record.attachments


def attachment_json(file: Attachment) -> answers.Attachment:
    """A file as it is listed in a record."""
    shown: answers.Attachment = {"media_type": file.media_type, "size": file.size}
    if file.name:
        shown["name"] = file.name
    if file.record_id:
        shown["record_id"] = file.record_id
    return shown


def find_attachment(
    history: HistoryStore, conversation: Conversation, record_id: str, number: str
) -> Attachment:
    """A record's file by its number from 1; 404 if there is none."""
    record = history.across(conversation.ancestry).record(
        conversation.user, conversation.conversation_id, record_id
    )
    files = files_of(record) if record else ()
    if int(number) > len(files):
        raise not_found(_NO_FILE)
    return files[int(number) - 1]


def read_attachment(
    history: HistoryStore,
    conversation: Conversation,
    record_id: str,
    file: Attachment,
    accept: str,
    offset: int,
) -> Ok[bytes]:
    """The bytes of the file from ``offset`` on, at most `PIECE_BYTES`; 400 if API Gateway would send their base64."""
    if accept.split(",", 1)[0].split(";", 1)[0].strip().lower() not in BINARY_TYPES:
        raise invalid_request("Send the header Accept: application/octet-stream to read a file.")
    try:
        history, parsed = history.across(conversation.ancestry), parse_record_id(record_id)
        query = parsed.query if parsed else 0
        data = history.load_file(conversation.user, conversation.conversation_id, query, file)
    except Gone:
        raise not_found(_NO_FILE) from None
    return Ok(data[offset : offset + PIECE_BYTES], _headers(file))


def _headers(file: Attachment) -> dict[str, str]:
    shown = file.media_type in VIEWABLE
    name = quote(file.name or "file", safe="")
    return {
        **_HEADERS,
        "Content-Type": file.media_type if shown else f"{file.media_type}; charset=utf-8",
        "Content-Disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''{name}",
    }
