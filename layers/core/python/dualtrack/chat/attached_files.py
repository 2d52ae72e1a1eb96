"""The files of a message: text files become records (``q3-f1``), images and PDFs bodies of the query's record."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dualtrack.errors import ApiError, invalid_request
from dualtrack.ids import file_id
from dualtrack.media import MAX_SENT_BYTES, refusal, signed_as
from dualtrack.memory.records import Attachment, Record
from dualtrack.message_files import FILES_BYTES, as_utf8, clean_name, is_text_type, not_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.storage.bodies import StoredBody
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.history import HistoryStore


@dataclass(frozen=True, slots=True)
class File:
    """A received attachment: decoded and checked bytes, and a cleaned name or none."""

    media_type: str
    data: bytes
    name: str = ""


def decoded_file(place: str, media_type: str, data: str, name: str = "") -> File:
    """A file that was sent in base64, which may have line breaks. An image or a PDF is of the type that its bytes tell,
    whatever it is called. Raises 400 with its ``place`` in the body for what is neither that nor text."""
    try:
        content = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise invalid_request(f"{place}.data: not valid base64") from None
    return checked_file(place, media_type, content, name)


def checked_file(place: str, media_type: str, content: bytes, name: str = "") -> File:
    """A file from its bytes, likewise."""
    name = clean_name(name)
    if is_text_type(media_type):
        content = as_utf8(content)
    else:
        media_type = signed_as(content) or media_type
    problem = not_text(content) if is_text_type(media_type) else refusal(media_type, content)
    if problem:
        raise invalid_request(f"{place}{f' ({name})' if name else ''}: {problem}")
    return File(media_type, content, name)


def within_limit(files: tuple[File, ...]) -> tuple[File, ...]:
    """The files of a message. Raises 413 if they exceed 4 MB in total."""
    if sum(len(file.data) for file in files) > FILES_BYTES:
        raise ApiError(
            "too_large",
            "Attachments may have at most 4 MB in total. Upload larger ones before (POST /v1/uploads).",
        )
    return files


def as_kept(files: tuple[File, ...]) -> tuple[File, ...]:
    """The files; of texts as much as 4 MB together, of the longest the beginning with a sentence about it. Raises 413
    for more images and PDFs than a model takes."""
    if sum(len(file.data) for file in files if not is_text_type(file.media_type)) > MAX_SENT_BYTES:
        raise ApiError("too_large", "Images and PDFs of a message may have at most 15 MB in total.")
    texts = [place for place, file in enumerate(files) if is_text_type(file.media_type)]
    room, kept = FILES_BYTES, list(files)
    for number, place in enumerate(sorted(texts, key=lambda place: len(files[place].data))):
        share = room // (len(texts) - number)
        kept[place] = replace(files[place], data=_beginning(files[place].data, share))
        room -= len(kept[place].data)
    return tuple(kept)


def _beginning(text: bytes, room: int) -> bytes:
    if len(text) <= room:
        return text
    note = f"\n\n(The file had {len(text):,} bytes. Only its beginning is kept.)".encode()
    return text[: room - len(note)].decode(errors="ignore").encode() + note


@dataclass(frozen=True, slots=True)
class QueryFiles:
    """All files in the query's order, and what has to be written with the query."""

    listed: tuple[Attachment, ...]
    bodies: tuple[StoredBody, ...]
    texts: tuple[Record, ...]


def attached_files(history: HistoryStore, chat: Chat, files: Sequence[File]) -> QueryFiles:
    """The files of the query that starts ``chat``."""
    pictures = [file for file in files if not is_text_type(file.media_type)]
    kept, bodies = history.files(
        chat.user, chat.conversation_id, ((file.media_type, file.data) for file in pictures)
    )
    named = iter(
        [replace(attachment, name=file.name) for attachment, file in zip(kept, pictures, strict=True)]
    )
    written = [file for file in files if is_text_type(file.media_type)]
    texts = tuple(_text_record(chat, number, file) for number, file in enumerate(written, start=1))
    numbered = iter(texts)
    listed = tuple(
        next(numbered).attachments[0] if is_text_type(file.media_type) else next(named) for file in files
    )
    return QueryFiles(listed, bodies, texts)


def _text_record(chat: Chat, number: int, file: File) -> Record:
    """The full text as a record. It lists itself as its attachment, so that one id serves to read and to download."""
    record_id = file_id(chat.query, number)
    itself = Attachment(file.media_type, len(file.data), name=file.name, record_id=record_id)
    return Record(record_id, "message", "user", file.data.decode(), chat.created_at, attachments=(itself,))
