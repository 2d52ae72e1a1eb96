"""The body of a chat completion → what it asks for (CONTRACT 10). Pure; what a client sends is untrusted and large, so
everything takes linear time. Fields that are not named here are ignored, as OpenAI's sampling parameters are.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.attached_files import File, decoded_file, within_limit
from dualtrack.errors import ApiError, invalid_request
from dualtrack.media import VIEWABLE
from dualtrack.message_files import MAX_FILES, MESSAGE_CHARACTERS, is_text_type
from dualtrack.openai.client_tools import declared_tools, past_call
from dualtrack.openai.exchanges import Exchange
from dualtrack.openai.output_format import output_schema
from dualtrack.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.frozen import JsonObject
    from dualtrack.openai.client_tools import ResentCall
    from dualtrack.tools.client_tools import ClientTools

    ChatMessage = Mapping[str, Any]

INSTRUCTION_CHARACTERS: Final = 8_000

_PROGRAM: Final = ("system", "developer")
_RESULTS: Final = ("tool", "function")
_ROLES: Final = (*_PROGRAM, "user", "assistant", *_RESULTS)
_BETWEEN: Final = "\n\n"
_SHORTEST_ID: Final = 10
"""Characters of an id that tells conversations apart."""
_DATA_URL: Final = re.compile(r"data:([^;,]{1,200})((?:;[^;,]{1,200}){0,5});base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request: the user's newest message (empty for files alone) with its files, what the client's program says to
    it, and the exchanges before it, which are resent. ``with_usage``: a stream ends with the usage. ``tools``,
    ``output``: those of the client, and the JSON Schema of the answer. ``results``: the calls that the client was asked
    for last, with what came of them; the message began their chat, and is not asked again. ``foreign_id``: the client's
    own id of the conversation, empty if it sends none."""

    model: str
    message: str
    files: tuple[File, ...] = ()
    instructions: str = ""
    exchanges: tuple[Exchange, ...] = ()
    is_streamed: bool = False
    with_usage: bool = False
    tools: ClientTools = ()
    output: JsonObject | None = None
    results: tuple[ResentCall, ...] = ()
    is_task: bool = False
    """Whether it is one of the small tasks of `dualtrack.openai.utility`."""
    foreign_id: str = ""


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
    asked, answered = _asked(said)
    results = _calls(_newest_calls(answered))
    if answered and not any(call.result is not None and call.chat_id for call in results):
        raise invalid_request(
            "messages: the last one must be the user's, or the result of a call that an answer asked for."
        )
    message, files = (_BETWEEN.join(_texts(asked)), ()) if results else _question(asked)
    options = body.get("stream_options")
    return Prompt(
        model=_named(body),
        message=message,
        files=within_limit(files),
        instructions=_instructions(message for message in messages if message["role"] in _PROGRAM),
        exchanges=_exchanges(said[: len(said) - len(asked) - len(answered)]),
        is_streamed=body.get("stream") is True,
        with_usage=isinstance(options, dict) and options.get("include_usage") is True,
        tools=declared_tools(body.get("tools"), body.get("tool_choice")),
        output=output_schema(body.get("response_format"), "response_format"),
        results=results,
    )


def _asked(said: Sequence[ChatMessage]) -> tuple[Sequence[ChatMessage], Sequence[ChatMessage]]:
    """The user's newest messages, and what follows them: the answer's turns so far, each with its tools' results."""
    end = next((n for n in range(len(said), 0, -1) if said[n - 1]["role"] == "user"), 0)
    first = next((n for n in range(end, 0, -1) if said[n - 1]["role"] != "user"), 0)
    return said[first:end], said[end:]


def _question(asked: Sequence[ChatMessage]) -> tuple[str, tuple[File, ...]]:
    """The user's newest message and its files. Raises 400."""
    contents = [_content(message, is_asked=True) for message in asked]
    message = _BETWEEN.join(text for text, _ in contents if text)
    files = tuple(file for _, sent in contents for file in sent)
    if not message and not files:
        raise invalid_request("messages: the last one is empty.")
    if len(message) > MESSAGE_CHARACTERS:
        raise invalid_request(
            f"messages: the last one has {len(message):,} characters; {MESSAGE_CHARACTERS:,} are taken. Send a long"
            " text as a file."
        )
    if len(files) > MAX_FILES:
        raise invalid_request(f"messages: the last one has {len(files)} files; {MAX_FILES} are taken.")
    return message, files


def _newest_calls(answered: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The last of these messages that asks for calls, with the results behind it."""
    at = next((n for n in range(len(answered), 0, -1) if answered[n - 1]["role"] == "assistant"), 1)
    return answered[at - 1 :]


def _refuse_unserved(body: Mapping[str, Any]) -> None:
    if body.get("n") not in (None, 1):
        raise invalid_request("n: one answer a request.")
    if body.get("functions"):
        raise invalid_request("functions: name them in tools.")


def _named(body: Mapping[str, Any]) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise invalid_request("model: name one of GET /openai/v1/models.")
    return model


def _messages(sent: object) -> Sequence[ChatMessage]:
    if not isinstance(sent, list) or not sent:
        raise invalid_request("messages: at least one is needed.")
    for index, message in enumerate(sent):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise invalid_request(f"messages.{index}.role: one of {', '.join(_ROLES)}.")
    return sent


def _instructions(messages: Iterable[ChatMessage]) -> str:
    text = _BETWEEN.join(_texts(messages))
    if len(text) > INSTRUCTION_CHARACTERS:
        raise invalid_request(
            f"messages: the system messages have {len(text):,} characters; {INSTRUCTION_CHARACTERS:,} are taken."
        )
    return text


def _texts(messages: Iterable[ChatMessage]) -> Iterable[str]:
    return filter(None, (_content(message)[0] for message in messages))


def _exchanges(messages: Sequence[ChatMessage]) -> tuple[Exchange, ...]:
    """What the user said and what was answered, in turns: messages of one side that follow each other are one, with the
    calls that the client ran."""
    exchanges: list[Exchange] = []
    begin = 0
    for end in range(1, len(messages) + 1):
        is_over = end == len(messages) or (
            messages[end]["role"] == "user" and messages[end - 1]["role"] != "user"
        )
        if is_over:
            exchange = _exchange(messages[begin:end])
            begin = end
            if exchange.assistant or exchange.calls:
                exchanges.append(exchange)
    return tuple(exchanges)


def _exchange(messages: Sequence[ChatMessage]) -> Exchange:
    user, assistant = (
        _BETWEEN.join(_texts(message for message in messages if message["role"] == role))
        for role in ("user", "assistant")
    )
    return Exchange(user, assistant, _calls(messages))


def _calls(messages: Iterable[ChatMessage]) -> tuple[ResentCall, ...]:
    """The calls of assistant messages in order, with the results that follow."""
    asked: dict[str, ResentCall] = {}
    answered: dict[str, ResentCall] = {}
    for message in messages:
        if message["role"] == "assistant":
            for call in _called(message):
                asked[call.call_id] = call
        elif message["role"] in _RESULTS and (call := asked.get(str(message.get("tool_call_id")))):
            answered[call.call_id] = replace(call, result=_content(message)[0])
    return tuple(answered.get(call.call_id, call) for call in asked.values())


def _called(message: ChatMessage) -> Iterable[ResentCall]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise invalid_request("messages: tool_calls must be a list.")
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise invalid_request("messages: tool_calls have a function each.")
        yield past_call(call.get("id"), function.get("name"), function.get("arguments"))


def _content(message: ChatMessage, *, is_asked: bool = False) -> tuple[str, tuple[File, ...]]:
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


def foreign_id_of(values: Iterable[str]) -> str:
    """The first of these headers' values that is an id; empty if none is. A client without an id yet sends nothing,
    ``new``, or a placeholder that nobody has filled in, all of which would join strangers' conversations."""
    ids = (value.strip() for value in values)
    return next((one for one in ids if len(one) >= _SHORTEST_ID and not set(one) & set("{}<>$")), "")


def refuse_unknown_model(model: str, models: Iterable[str]) -> None:
    """Raise 404 unless the model is one of these."""
    if model not in models:
        raise ApiError("not_found", f"There is no model {model[:100]!r}. GET /openai/v1/models lists them.")
