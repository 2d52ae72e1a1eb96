"""Tools that a client of OpenAI's API runs itself (CONTRACT 7, 10): what it declares, what it is asked to call, what
came of it. Pure; both of OpenAI's forms are read, a chat completion's (``function`` nested) and a response's (flat).

A call's id names its chat, so results find the chat that waits for them, whatever else the client has changed.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.attached_files import within_limit
from dualtrack.chat.decide_calls import CallDecision
from dualtrack.errors import invalid_request
from dualtrack.frozen import dumps, freeze, strict_loads
from dualtrack.message_files import is_text_type
from dualtrack.text import clean
from dualtrack.tool_check import broken_rule
from dualtrack.tool_rules import MAX_DESCRIPTION, MAX_NAME, MAX_SCHEMA, MAX_SCHEMA_DEPTH, NAME, name_of
from dualtrack.tool_values import Media, ToolResult
from dualtrack.tools.client_tools import MAX_CLIENT_TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.chat.attached_files import File
    from dualtrack.frozen import JsonObject
    from dualtrack.storage.chats import RecordedTurn
    from dualtrack.tools.client_tools import ClientTools

MAX_CALLS: Final = 50
"""Calls of one exchange that are imported."""
NOT_RUN: Final = "The client sent no result."

_CALL_ID: Final = re.compile(r"call_([0-9a-v]{26})_(q[1-9][0-9]{0,8}-t[1-9][0-9]{0,5})")
_ANY_OBJECT: Final[Mapping[str, Any]] = freeze({"type": "object", "properties": {}})
_MAX_ARGUMENTS: Final = 100_000


@dataclass(frozen=True, slots=True)
class ResentCall:
    """A call of an earlier answer as a client resends it, with what came of it."""

    call_id: str
    tool: str
    input: JsonObject
    result: str | None = None
    """None if none came."""
    media: tuple[Media, ...] = ()
    """Images and PDFs of the result."""

    @property
    def chat_id(self) -> str:
        """The chat that asked for it; empty for another service's call."""
        named = _CALL_ID.fullmatch(self.call_id)
        return f"ch_{named[1]}" if named else ""


def call_id(chat_id: str, call: str) -> str:
    """The id by which a client knows a call: ``call_01jd…_q1-t1``."""
    return f"call_{chat_id.removeprefix('ch_')}_{call}"


def declared_tools(sent: object, choice: object) -> ClientTools:
    """A request's ``tools`` in our own form; none if ``tool_choice`` says so. Raises 400, which names the field."""
    if not sent:
        return ()
    if not isinstance(sent, list):
        raise invalid_request("tools: must be a list.")
    if len(sent) > MAX_CLIENT_TOOLS:
        raise invalid_request(f"tools: at most {MAX_CLIENT_TOOLS} are taken.")
    tools = [_tool(f"tools.{place}", tool) for place, tool in enumerate(sent)]
    return () if choice == "none" else tools


def _tool(place: str, sent: object) -> dict[str, Any]:
    if not isinstance(sent, dict) or sent.get("type") != "function":
        raise invalid_request(f"{place}.type: functions are taken.")
    nested = sent.get("function")
    tool, place = (nested, f"{place}.function") if isinstance(nested, dict) else (sent, place)
    name, described, schema = tool.get("name"), tool.get("description") or "", tool.get("parameters")
    if not isinstance(name, str) or len(name) > MAX_NAME or not re.fullmatch(NAME, name):
        raise invalid_request(f"{place}.name: at most {MAX_NAME} letters, digits, _ and -.")
    if not isinstance(described, str) or len(described) > MAX_DESCRIPTION:
        raise invalid_request(f"{place}.description: a text of at most {MAX_DESCRIPTION:,} characters.")
    if schema is None:
        schema = _ANY_OBJECT
    if not isinstance(schema, dict) and schema is not _ANY_OBJECT:
        raise invalid_request(f"{place}.parameters: must be a JSON Schema, an object.")
    stored = _stored(place, schema)
    if problem := broken_rule(name, stored):
        raise invalid_request(f"{place}.{problem.replace('input_schema', 'parameters', 1)}")
    return {"name": name, "description": clean(described), "input_schema": stored}


def _stored(place: str, schema: JsonObject) -> JsonObject:
    """The schema, which every store takes."""
    try:
        checked: JsonObject = strict_loads(dumps(schema), MAX_SCHEMA, MAX_SCHEMA_DEPTH)
    except (ValueError, RecursionError) as error:
        raise invalid_request(f"{place}.parameters: {error}") from None
    return checked


def past_call(identifier: object, name: object, arguments: object) -> ResentCall:
    """A call that a client resends, cleaned. Arguments that are no JSON object are kept as a text."""
    text = arguments if isinstance(arguments, str) else ""
    try:
        parsed = strict_loads(text, _MAX_ARGUMENTS) if text else {}
    except ValueError:
        parsed = None
    given = parsed if isinstance(parsed, dict) else {"arguments": clean(text[:_MAX_ARGUMENTS])}
    return ResentCall(
        identifier if isinstance(identifier, str) else "",
        name_of(name if isinstance(name, str) else ""),
        freeze(given),
    )


def with_result(call: ResentCall, text: str, files: Iterable[File]) -> ResentCall:
    """The call with what came of it: text files are part of the text."""
    files = within_limit(tuple(files))
    texts = [file.data.decode() for file in files if is_text_type(file.media_type)]
    media = tuple(
        Media(file.media_type, base64.b64encode(file.data).decode())
        for file in files
        if not is_text_type(file.media_type)
    )
    return replace(call, result="\n".join(filter(None, (text, *texts))), media=media)


def asked_calls(chat_id: str, calls: Iterable[JsonObject]) -> list[dict[str, str]]:
    """The calls of a ``paused`` event that its client is to run: their ids, tools, and arguments as JSON."""
    return [
        {"id": call_id(chat_id, call["id"]), "name": call["tool"], "arguments": dumps(call["input"])}
        for call in calls
        if is_clients(call)
    ]


def is_clients(call: JsonObject) -> bool:
    """Whether an open call is to be run by the client."""
    return call["kind"] == "client_tool"


def decisions(calls: Iterable[ResentCall], turn: RecordedTurn) -> list[CallDecision]:
    """What results decide on the calls of a turn: those that the client should have run and has no result for were
    declined. The same results always decide the same."""
    came = {
        named[2]: ToolResult(call.result, media=call.media)
        for call in calls
        if call.result is not None and (named := _CALL_ID.fullmatch(call.call_id))
    }
    return [
        CallDecision(call.id, result=came[call.id])
        if call.id in came
        else CallDecision(call.id, approve=False, reason=NOT_RUN)
        for call in turn.calls
        if call.asks == "client_tool"
    ]


def turn_of(calls: Iterable[ResentCall], turns: Sequence[RecordedTurn]) -> RecordedTurn | None:
    """The newest turn that asked for any of these calls."""
    ids = {named[2] for call in calls if (named := _CALL_ID.fullmatch(call.call_id))}
    return next((turn for turn in reversed(turns) if any(call.id in ids for call in turn.calls)), None)
