"""The body of a request for a response → what it asks for (CONTRACT 10). Pure.

Its items become the messages of a chat completion, so that both kinds of request are read by the same code. Past
answers may come as references to their items: the newest one names the chat that the request follows, and nothing
before it is read.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import ApiError, invalid_request, not_found
from dualtrack.plugins.openai.fields import RESPONSE, refuse_unserved
from dualtrack.plugins.openai.prompt import prompt_of
from dualtrack.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dualtrack.plugins.openai.prompt import Prompt

    InputItem = Mapping[str, Any]

WORK: Final = "dualtrack:tool_call"
"""What ``include`` names for items of the work of our own tools, and the type of these items."""

METADATA_PAIRS: Final = 16
_METADATA_KEY: Final = 64
_METADATA_VALUE: Final = 512

_RESPONSE: Final = re.compile(r"resp_([0-9a-v]{26})(?:_([1-9][0-9]{0,2}))?")
_ITEM: Final = re.compile(r"[a-z]{2,3}_([0-9a-v]{26})(?:_[0-9]{1,5}){1,2}")
_PROGRAM: Final = ("system", "developer")
_ROLES: Final = (*_PROGRAM, "user", "assistant")
_CALLS: Final = ("function_call", "function_call_output")
_PASSED_OVER: Final = re.compile(r"reasoning|compaction|[a-z_]+_call|[a-z_]+_call_output|[^:]+:.*")
"""Types of items that other models and tools have left in a history."""
_ALIKE: Final = (
    "model",
    "stream",
    "tools",
    "tool_choice",
    "user",
    "safety_identifier",
)
"""Fields that a chat completion has, too."""
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "messages": "input",
        "response_format": "text.format",
        "max_completion_tokens": "max_output_tokens",
    }
)
"""What a chat completion's fields are called here."""


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A request for a response. ``behind``: the chat that it follows; ``conversation_id``: the one that it names;
    ``echo``: what its response says again, as JSON; empty for nothing."""

    prompt: Prompt
    behind: str
    conversation_id: str
    is_background: bool
    echo: str


def chat_of_response(response_id: str) -> tuple[str, int]:
    """``resp_…_2`` → ``ch_…``, and the turn behind which the response begins. Raises 404."""
    match = _RESPONSE.fullmatch(response_id)
    if match is None:
        raise not_found("There is no such response.")
    return f"ch_{match[1]}", int(match[2] or 0)


def requested_of(body: Mapping[str, Any]) -> ResponseRequest:
    """The request. Raises 400 that names the field, 404, 413."""
    refuse_unserved(body, RESPONSE)
    previous = _text(body, "previous_response_id")
    conversation_id = _conversation(body.get("conversation"))
    if previous and conversation_id:
        raise invalid_request("conversation: not together with previous_response_id.")
    instructions = _text(body, "instructions")
    program = [{"role": "developer", "content": instructions}] if instructions else []
    said, behind = _messages(body.get("input"))
    try:
        prompt = prompt_of({**_completion(body), "messages": [*program, *said]})
    except ApiError as refusal:
        field, colon, rest = refusal.message.partition(":")
        name, dot, place = field.partition(".")
        raise ApiError(refusal.code, f"{_NAMES.get(name, name)}{dot}{place}{colon}{rest}") from None
    echo = {
        "previous_response_id": previous,
        "instructions": instructions,
        "background": body.get("background") is True,
        "metadata": _metadata(body.get("metadata")),
        "include": _included(body.get("include")),
        "text": {"format": _format(body["text"]["format"])} if prompt.output is not None else None,
        "tool_choice": _choice(body.get("tool_choice")),
        "max_output_tokens": body.get("max_output_tokens"),
    }
    kept = {name: value for name, value in echo.items() if value}
    return ResponseRequest(
        prompt,
        behind or (chat_of_response(previous)[0] if previous else ""),
        conversation_id,
        echo["background"] is True,
        clean(json.dumps(kept, ensure_ascii=False)) if kept else "",
    )


def _completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a chat completion that say the same."""
    text = body.get("text")
    taken = {name: body[name] for name in _ALIKE if name in body}
    return {
        **taken,
        "max_completion_tokens": body.get("max_output_tokens"),
        "response_format": text.get("format") if isinstance(text, dict) else None,
    }


def _messages(sent: object) -> tuple[Sequence[InputItem], str]:
    """The input as messages, and the chat that its newest reference names (empty for none): what was said before the
    reference is not read, what the program says is."""
    if isinstance(sent, str):
        return [{"role": "user", "content": sent}], ""
    if not isinstance(sent, list) or not sent:
        raise invalid_request("input: text, or at least one item.")
    _check_newest(len(sent) - 1, sent[-1])
    items = [(index, item) for index, item in enumerate(sent) if isinstance(item, dict)]
    referred = max((index for index, item in items if _kind(item) == "item_reference"), default=-1)
    read = [(index, item) for index, item in items if index > referred or item.get("role") in _PROGRAM]
    messages: list[InputItem] = []
    for is_run, group in itertools.groupby((item for _, item in read), lambda item: _kind(item) in _CALLS):
        items_alike = list(group)
        messages.extend(_run(items_alike) if is_run else filter(_is_said, items_alike))
    return _without_void(messages), _referred(referred, sent[referred]) if referred >= 0 else ""


def _run(items: Iterable[InputItem]) -> Iterator[InputItem]:
    """Calls and their results as messages: what nothing but these parts was asked for at once. A result whose call is
    not resent stands for both."""
    calls: dict[str, InputItem] = {}
    results: list[InputItem] = []
    for item in items:
        named = item.get("call_id")
        if not isinstance(named, str):
            continue
        if item["type"] == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            calls[named] = {"id": named, "function": function}
        else:
            calls.setdefault(named, {"id": named, "function": {}})
            results.append({"role": "tool", "tool_call_id": named, "content": item.get("output")})
    yield {"role": "assistant", "content": None, "tool_calls": list(calls.values())}
    yield from results


def _kind(item: InputItem) -> object:
    return item.get("type") or ("message" if "role" in item else "item_reference" if "id" in item else None)


def _referred(index: int, item: InputItem) -> str:
    item_id = item.get("id")
    match = _ITEM.fullmatch(item_id) if isinstance(item_id, str) else None
    if match is None:
        raise not_found(f"input.{index}: there is no item {str(item_id)[:60]!r} to refer to.")
    return f"ch_{match[1]}"


def _is_said(item: InputItem) -> bool:
    return _kind(item) == "message" and item.get("role") in _ROLES


def _check_newest(index: int, item: object) -> None:
    """Raise 400 for a newest item that cannot be understood. Older ones are other models' and tools', too: what is
    neither a message nor a call is passed over."""
    if not isinstance(item, dict):
        raise invalid_request(f"input.{index}: each item must be an object.")
    kind = _kind(item)
    if kind == "message":
        if item.get("role") not in _ROLES:
            raise invalid_request(f"input.{index}.role: one of {', '.join(_ROLES)}.")
    elif kind in _CALLS:
        if not isinstance(item.get("call_id"), str):
            raise invalid_request(f"input.{index}.call_id: must be text.")
    elif kind != "item_reference" and not (isinstance(kind, str) and _PASSED_OVER.fullmatch(kind)):
        raise invalid_request(f"input.{index}.type: items of the type {str(kind)[:40]!r} are not taken.")


def _without_void(messages: Sequence[InputItem]) -> list[InputItem]:
    """The messages without answers that broke off and were given again behind themselves."""
    return [
        message
        for message, after in itertools.zip_longest(messages, messages[1:])
        if not (
            message.get("status") == "incomplete"
            and after is not None
            and message["role"] == after["role"] == "assistant"
        )
    ]


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid_request(f"{name}: must be text.")
    return value or ""


def _conversation(sent: object) -> str:
    name = sent.get("id") if isinstance(sent, dict) else sent
    if name is not None and not isinstance(name, str):
        raise invalid_request("conversation: an id, or an object with one.")
    return name or ""


def _format(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The form of the answer, checked before, without what nothing bounds."""
    name = sent.get("name")
    named = {"name": name[:_METADATA_KEY]} if isinstance(name, str) else {}
    strict = {"strict": sent["strict"]} if isinstance(sent.get("strict"), bool) else {}
    schema = {"schema": sent["schema"]} if "schema" in sent and sent["type"] == "json_schema" else {}
    return {"type": sent["type"], **named, **schema, **strict}


def _choice(sent: object) -> object:
    """The choice of a tool, checked before, without what nothing bounds."""
    if not isinstance(sent, dict):
        return sent if sent != "auto" else None
    named = {name: sent[name] for name in ("type", "name", "mode") if isinstance(sent.get(name), str)}
    tools = sent.get("tools") if isinstance(sent.get("tools"), list) else []
    chosen = [
        {"type": "function", "name": tool["name"]} for tool in tools if isinstance(tool.get("name"), str)
    ]
    return {**named, "tools": chosen} if chosen else named


def _included(sent: object) -> list[str]:
    if sent is not None and not isinstance(sent, list):
        raise invalid_request("include: a list.")
    return [WORK] if WORK in (sent or ()) else []


def _metadata(sent: object) -> dict[str, str]:
    if sent is None:
        return {}
    if not isinstance(sent, dict) or not all(isinstance(value, str) for value in sent.values()):
        raise invalid_request("metadata: an object of texts.")
    if len(sent) > METADATA_PAIRS or any(
        len(name) > _METADATA_KEY or len(value) > _METADATA_VALUE for name, value in sent.items()
    ):
        raise invalid_request(
            f"metadata: at most {METADATA_PAIRS} names of {_METADATA_KEY} characters with values of {_METADATA_VALUE}."
        )
    return sent
