"""What a message of OpenAI's API contains: its text, its files (CONTRACT 10). Pure.

The newest message is read strictly: what cannot be understood is refused by its name, since an answer to half of it
would mislead. Older ones come with parts of other models and other clients, and are read with what they have.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.attached_files import decoded_file
from dualtrack.errors import ApiError, invalid_request
from dualtrack.media import viewable_type
from dualtrack.message_files import is_text_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dualtrack.chat.attached_files import File

    ChatMessage = Mapping[str, Any]

_TEXTS: Final = ("text", "input_text", "output_text", None)
_IMAGES: Final = ("image_url", "input_image")
_FILES: Final = ("file", "input_file")
_REFUSAL: Final = "refusal"
_THOUGHT: Final = re.compile("think|reason", re.IGNORECASE)
"""Types of parts whose text the model has not said."""
_DATA_URL: Final = re.compile(r"data:([^;,]{0,200})((?:;[^;,]{1,200}){0,5});base64,", re.IGNORECASE)


def text_of(message: ChatMessage) -> str:
    """The text of an older message: of the parts that have one."""
    content = message.get("content")
    if isinstance(content, str):
        return plain(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(filter(None, map(_said, parts)))


def _said(part: object) -> str:
    if isinstance(part, str):
        return plain(part)
    if not isinstance(part, dict) or _THOUGHT.search(str(part.get("type"))[:100]):
        return ""
    text = part.get("text")
    text = text.get("value") if isinstance(text, dict) else text  # as assistants' threads have it
    return plain(text) if isinstance(text, str) else ""


def read(message: ChatMessage, *, strictly: bool) -> tuple[str, tuple[File, ...]]:
    """The text and the files of a message that is asked now. Raises 400 for what cannot be understood; of a message
    before the newest one, that is left out."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return plain(content or ""), ()
    if not strictly:
        return text_of(message), tuple(_readable(content if isinstance(content, list) else ()))
    if not isinstance(content, list):
        raise invalid_request("messages: content must be text or a list of parts.")
    for part in content:
        _check(part)
    return text_of(message), tuple(_file(part) for part in content if _is_file(part))


def marks_of(message: ChatMessage) -> tuple[str, ...]:
    """Short hashes of the message's files as they were sent: what tells exchanges with different files apart."""
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    urls = (str(_url_of(part)) for part in parts if _is_file(part))
    return tuple(hashlib.sha256("".join(url.split()).encode()).hexdigest()[:16] for url in urls)


def _check(part: object) -> None:
    if not isinstance(part, dict):
        raise invalid_request("messages: each part of a content must be an object.")
    kind = part.get("type")
    if kind in _TEXTS:
        if not isinstance(part.get("text"), str):
            raise invalid_request("messages: a part of text needs its text.")
    elif kind not in (*_IMAGES, *_FILES, _REFUSAL):
        raise invalid_request(f"messages: parts of the type {str(kind)[:40]!r} are not taken.")


def _is_file(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in (*_IMAGES, *_FILES)


def _readable(parts: Iterable[Any]) -> Iterator[File]:
    for part in parts:
        if _is_file(part):
            with contextlib.suppress(ApiError):
                yield _file(part)


def _file(part: Mapping[str, Any]) -> File:
    return decoded_file(*_sent_file(part))


def plain(text: str) -> str:
    """The text without NUL, which no store takes."""
    return text.replace("\0", "")


def _held(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """What has a part's file: the part itself, or the object in it."""
    held = part.get("image_url" if part.get("type") in _IMAGES else "file")
    return held if isinstance(held, dict) else part


def _url_of(part: Mapping[str, Any]) -> object:
    held = _held(part)
    if part.get("type") in _IMAGES:
        return held.get("url") if held is not part else part.get("image_url")
    return held.get("file_data")


def _sent_file(part: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """The place, media type, base64 and name of a part with a file, in both forms: a chat completion's (``image_url``,
    ``file``) and a response's (``input_image``, ``input_file``)."""
    url = _url_of(part)
    name = _held(part).get("filename") if part.get("type") in _FILES else None
    place = f"messages: {part.get('type')}"
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    if not isinstance(url, str) or match is None:
        raise invalid_request(f"{place}: send the file itself, as a data URL in base64; nothing is fetched.")
    media_type = match[1].strip().lower()
    if not is_text_type(media_type):  # an image or a PDF is what its bytes are
        media_type = viewable_type(media_type) or "application/octet-stream"
    return place, media_type, url[match.end() :], name[:1_000] if isinstance(name, str) else ""
