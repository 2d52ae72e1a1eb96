"""The body of a chat completion → what it asks for (CONTRACT 10). Pure; what a client sends is untrusted and large, so
everything takes linear time. Which fields there are: `fields`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.attached_files import within_limit
from dualtrack.errors import ApiError, invalid_request
from dualtrack.message_files import MAX_FILES, MESSAGE_CHARACTERS
from dualtrack.plugins.openai.client_tools import declared_tools, past_call, with_result
from dualtrack.plugins.openai.contents import marks_of, read, text_of
from dualtrack.plugins.openai.exchanges import Exchange
from dualtrack.plugins.openai.fields import COMPLETION, refuse_unserved
from dualtrack.plugins.openai.output_format import output_schema
from dualtrack.plugins.openai.wanted import wanted_of
from dualtrack.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.chat.attached_files import File
    from dualtrack.frozen import JsonObject
    from dualtrack.models.wanted import Wanted
    from dualtrack.plugins.openai.client_tools import ResentCall
    from dualtrack.plugins.openai.contents import ChatMessage
    from dualtrack.tools.client_tools import ClientTools

INSTRUCTION_CHARACTERS: Final = 8_000

_PROGRAM: Final = ("system", "developer")
_RESULTS: Final = ("tool", "function")
_ROLES: Final = (*_PROGRAM, "user", "assistant", *_RESULTS)
_BETWEEN: Final = "\n\n"
_SHORTEST_ID: Final = 10
"""Characters of an id that tells conversations apart."""
_PERSON: Final = ("safety_identifier", "user")
"""The fields in which a client names the person."""


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
    """Whether it is one of the small tasks of `utility`."""
    foreign_id: str = ""
    continues: bool = False
    """Whether the history ends with the answer, which is to go on: then there is no message."""
    wanted: Wanted | None = None
    """What the request asks of its answer besides; None for nothing."""
    marks: tuple[str, ...] = ()
    """Hashes of the files as they were sent."""
    person: str = ""
    """Whom the client names in the body: histories of one person are not found for another."""


def json_object(raw: bytes) -> dict[str, Any]:
    """The body. Raises 400."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise invalid_request("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise invalid_request("The body must be a JSON object.")
    if b"\\u" not in raw:
        return body
    try:  # an escape may be half of a surrogate pair, anywhere
        whole: dict[str, Any] = json.loads(clean(json.dumps(body, ensure_ascii=False)))
    except RecursionError:
        raise invalid_request("The body is nested too deeply.") from None
    return whole


def prompt_of(body: Mapping[str, Any]) -> Prompt:
    """The prompt of a chat completion. Raises 400 that names the field, 413."""
    refuse_unserved(body, COMPLETION)
    messages = _messages(body.get("messages"))
    said = [message for message in messages if message["role"] not in _PROGRAM]
    asked, answered = _asked(said)
    results = _newest_results(_newest_calls(answered))
    continues = bool(asked) and _is_an_answer(answered)
    if answered and not continues and not any(call.result is not None and call.chat_id for call in results):
        raise invalid_request(
            "messages: the last one must be the user's, or the result of a call that an answer asked for."
        )
    if continues:
        message, files, asked, answered = "", (), (), ()
    else:
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
        continues=continues,
        wanted=wanted_of(body),
        marks=_marks(asked),
        person=next((value for name in _PERSON if isinstance(value := body.get(name), str) and value), ""),
    )


def _asked(said: Sequence[ChatMessage]) -> tuple[Sequence[ChatMessage], Sequence[ChatMessage]]:
    """The user's newest messages, and what follows them: the answer's turns so far, each with its tools' results."""
    end = next((n for n in range(len(said), 0, -1) if said[n - 1]["role"] == "user"), 0)
    first = next((n for n in range(end, 0, -1) if said[n - 1]["role"] != "user"), 0)
    return said[first:end], said[end:]


def _question(asked: Sequence[ChatMessage]) -> tuple[str, tuple[File, ...]]:
    """The user's newest message and its files. Raises 400."""
    contents = [read(message, strictly=message is asked[-1]) for message in asked]
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


def _is_an_answer(answered: Sequence[ChatMessage]) -> bool:
    """Whether the history ends with text of an answer, and asks for nothing."""
    last = answered[-1] if answered else {}
    return last.get("role") == "assistant" and not last.get("tool_calls") and bool(text_of(last))


def _newest_calls(answered: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The last of these messages that asks for calls, with the results behind it."""
    at = next((n for n in range(len(answered), 0, -1) if answered[n - 1]["role"] == "assistant"), 1)
    return answered[at - 1 :]


def _named(body: Mapping[str, Any]) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise invalid_request("model: name one of GET /openai/v1/models.")
    return model


def _messages(sent: object) -> Sequence[ChatMessage]:
    """The messages; of the older ones those that somebody has said. Raises 400."""
    if not isinstance(sent, list) or not sent:
        raise invalid_request("messages: at least one is needed.")
    if not _has_a_role(sent[-1]):
        raise invalid_request(f"messages.{len(sent) - 1}.role: one of {', '.join(_ROLES)}.")
    return [message for message in sent if _has_a_role(message)]


def _has_a_role(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") in _ROLES


def _instructions(messages: Iterable[ChatMessage]) -> str:
    text = _BETWEEN.join(_texts(messages))
    if len(text) > INSTRUCTION_CHARACTERS:
        raise invalid_request(
            f"messages: the system messages have {len(text):,} characters; {INSTRUCTION_CHARACTERS:,} are taken."
        )
    return text


def _texts(messages: Iterable[ChatMessage]) -> Iterable[str]:
    return filter(None, map(text_of, messages))


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
    return Exchange(
        user,
        assistant,
        _calls(messages),
        _marks(message for message in messages if message["role"] == "user"),
    )


def _marks(messages: Iterable[ChatMessage]) -> tuple[str, ...]:
    return tuple(mark for message in messages for mark in marks_of(message))


def _calls(messages: Iterable[ChatMessage]) -> tuple[ResentCall, ...]:
    """The calls of assistant messages in order, with the results that follow."""
    asked: dict[str, ResentCall] = {}
    for message in messages:
        if message["role"] == "assistant":
            asked |= {call.call_id: call for call in _called(message)}
        elif call := _answers(message, asked):
            asked[call.call_id] = replace(call, result=text_of(message))
    return tuple(asked.values())


def _newest_results(messages: Sequence[ChatMessage]) -> tuple[ResentCall, ...]:
    """The calls of the newest answer with their results, which may have images. Raises 400."""
    asked = {call.call_id: call for call in _calls(messages)}
    for message in messages:
        if call := _answers(message, asked):
            asked[call.call_id] = with_result(call, *read(message, strictly=True))
    return tuple(asked.values())


def _answers(message: ChatMessage, asked: Mapping[str, ResentCall]) -> ResentCall | None:
    """The call that the message brings the result of."""
    return asked.get(str(message.get("tool_call_id"))) if message["role"] in _RESULTS else None


def _called(message: ChatMessage) -> Iterable[ResentCall]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield past_call(call.get("id"), function.get("name"), function.get("arguments"))


def foreign_id_of(values: Iterable[str]) -> str:
    """The first of these headers' values that is an id; empty if none is. A client without an id yet sends nothing,
    ``new``, or a placeholder that nobody has filled in, all of which would join strangers' conversations."""
    ids = (value.strip() for value in values)
    return next((one for one in ids if len(one) >= _SHORTEST_ID and not set(one) & set("{}<>$")), "")


def refuse_unknown_model(model: str, models: Iterable[str]) -> None:
    """Raise 404 unless the model is one of these."""
    if model not in models:
        raise ApiError("not_found", f"There is no model {model[:100]!r}. GET /openai/v1/models lists them.")
