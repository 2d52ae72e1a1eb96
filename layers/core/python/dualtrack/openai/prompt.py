"""The body of a chat completion → what it asks for (CONTRACT 10). Pure; what a client sends is untrusted and large, so
everything takes linear time. Fields that are not named here are ignored, as OpenAI's sampling parameters are.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.attached_files import File, decoded_file, within_limit
from dualtrack.errors import ApiError, invalid_request
from dualtrack.media import VIEWABLE
from dualtrack.message_files import MAX_FILES, MESSAGE_CHARACTERS, is_text_type
from dualtrack.openai.exchanges import Exchange
from dualtrack.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Message = Mapping[str, Any]

INSTRUCTION_CHARACTERS: Final = 8_000

_PROGRAM: Final = ("system", "developer")
_ROLES: Final = (*_PROGRAM, "user", "assistant", "tool", "function")
_BETWEEN: Final = "\n\n"
_DATA_URL: Final = re.compile(r"data:([^;,]{1,200})((?:;[^;,]{1,200}){0,5});base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request: the user's newest message (empty for files alone) with its files, what the client's program says to
    it, and the exchanges before it, which are resent. ``with_usage``: a stream ends with the usage."""

    model: str
    message: str
    files: tuple[File, ...] = ()
    instructions: str = ""
    exchanges: tuple[Exchange, ...] = ()
    is_streamed: bool = False
    with_usage: bool = False


def json_object(raw: bytes) -> dict[str, Any]:
    """The body. Raises 400."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise invalid_request("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise invalid_request("The body must be a JSON object.")
    return body


def prompt_of(body: Mapping[str, Any]) -> Prompt:
    """The prompt of a chat completion. Raises 400 that names the field, 413."""
    _refuse_unserved(body)
    messages = _messages(body.get("messages"))
    said = [message for message in messages if message["role"] not in _PROGRAM]
    if not said or said[-1]["role"] != "user":
        raise invalid_request("messages: the last one must be the user's.")
    first = next((n for n in range(len(said), 0, -1) if said[n - 1]["role"] != "user"), 0)
    asked = [_content(message, is_asked=True) for message in said[first:]]
    message = _BETWEEN.join(text for text, _ in asked if text)
    files = tuple(file for _, sent in asked for file in sent)
    if not message and not files:
        raise invalid_request("messages: the last one is empty.")
    if len(message) > MESSAGE_CHARACTERS:
        raise invalid_request(
            f"messages: the last one has {len(message):,} characters; {MESSAGE_CHARACTERS:,} are taken. Send a long"
            " text as a file."
        )
    if len(files) > MAX_FILES:
        raise invalid_request(f"messages: the last one has {len(files)} files; {MAX_FILES} are taken.")
    options = body.get("stream_options")
    return Prompt(
        model=_named(body),
        message=message,
        files=within_limit(files),
        instructions=_instructions(message for message in messages if message["role"] in _PROGRAM),
        exchanges=_exchanges(said[:first]),
        is_streamed=body.get("stream") is True,
        with_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )


def _refuse_unserved(body: Mapping[str, Any]) -> None:
    if body.get("n") not in (None, 1):
        raise invalid_request("n: one answer a request.")
    if (body.get("tools") or body.get("functions")) and body.get("tool_choice") != "none":
        raise invalid_request(
            "tools: the client's own tools are not taken; the model has those of its profile."
        )
    form = body.get("response_format")
    if isinstance(form, dict) and form.get("type") not in (None, "text"):
        raise invalid_request("response_format: answers are text.")


def _named(body: Mapping[str, Any]) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise invalid_request("model: name one of GET /openai/v1/models.")
    return model


def _messages(sent: object) -> Sequence[Message]:
    if not isinstance(sent, list) or not sent:
        raise invalid_request("messages: at least one is needed.")
    for index, message in enumerate(sent):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise invalid_request(f"messages.{index}.role: one of {', '.join(_ROLES)}.")
    return sent


def _instructions(messages: Iterable[Message]) -> str:
    text = _BETWEEN.join(filter(None, (_content(message)[0] for message in messages)))
    if len(text) > INSTRUCTION_CHARACTERS:
        raise invalid_request(
            f"messages: the system messages have {len(text):,} characters; {INSTRUCTION_CHARACTERS:,} are taken."
        )
    return text


def _exchanges(messages: Sequence[Message]) -> tuple[Exchange, ...]:
    """What the user said and what was answered, in turns: messages of one side that follow each other are one. What
    tools returned is left out."""
    exchanges: list[Exchange] = []
    user: list[str] = []
    assistant: list[str] = []
    for message in messages:
        if message["role"] == "user":
            if assistant:
                exchanges.append(Exchange(_BETWEEN.join(user), _BETWEEN.join(assistant)))
                user, assistant = [], []
            user.append(_content(message)[0])
        elif message["role"] == "assistant" and (text := _content(message)[0]):
            assistant.append(text)
    if assistant:
        exchanges.append(Exchange(_BETWEEN.join(user), _BETWEEN.join(assistant)))
    return tuple(exchanges)


def _content(message: Message, *, is_asked: bool = False) -> tuple[str, tuple[File, ...]]:
    """A message's text and, of the one that is asked now, its files; what else it has is ignored."""
    content = message.get("content")
    if isinstance(content, str):
        return _plain(content), ()
    if content is None:
        return "", ()
    if not isinstance(content, list):
        raise invalid_request("messages: content must be text or a list of parts.")
    texts: list[str] = []
    files: list[File] = []
    for part in content:
        if not isinstance(part, dict):
            raise invalid_request("messages: each part of a content must be an object.")
        if isinstance(text := part.get("text"), str):
            texts.append(_plain(text))
        elif (sent := _file(part)) and is_asked and len(files) <= MAX_FILES:
            files.append(decoded_file(*sent))
    return "\n".join(texts), tuple(files)


def _plain(text: str) -> str:
    return clean(text).replace("\0", "")


def _file(part: Mapping[str, Any]) -> tuple[str, str, str, str] | None:
    """The place, media type, base64 and name of a part with a file; None for another part. Both forms are taken: a
    chat completion's (``image_url``, ``file``) and a response's (``input_image``, ``input_file``)."""
    kind = part.get("type")
    if kind in ("image_url", "input_image"):
        sent, name = part.get("image_url"), ""
        url = sent.get("url") if isinstance(sent, dict) else sent
    elif kind in ("file", "input_file"):
        nested = part.get("file")
        sent = nested if isinstance(nested, dict) else part
        url, name = sent.get("file_data"), sent.get("filename")
    elif kind in ("text", "input_text", "output_text", "refusal"):
        return None
    else:
        raise invalid_request(f"messages: parts of the type {str(kind)[:40]!r} are not taken.")
    return _of_data_url(f"messages: {kind}", url, name if isinstance(name, str) else "")


def _of_data_url(place: str, url: object, name: str) -> tuple[str, str, str, str]:
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    if not isinstance(url, str) or match is None:
        raise invalid_request(f"{place}: send the file itself, as a data URL in base64; nothing is fetched.")
    media_type = match[1].lower()
    if media_type not in VIEWABLE and not is_text_type(media_type):
        raise invalid_request(f"{place}: an image (PNG, JPEG, GIF, WebP), a PDF, or UTF-8 text is taken.")
    return place, media_type, url[match.end() :], name[:1_000]


def refuse_unknown_model(model: str, models: Iterable[str]) -> None:
    """Raise 404 unless the model is one of these."""
    if model not in models:
        raise ApiError("not_found", f"There is no model {model[:100]!r}. GET /openai/v1/models lists them.")
