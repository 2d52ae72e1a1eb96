"""A scripted model: the items of a list answer the calls of a chat's turns, one each, over the API's strict wire.

Summaries and digests take no item: the offline model writes them, as extracts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import httpx2
from dualtrack.models.anthropic_sdk import Anthropic
from dualtrack.models.messages_api import Claude
from dualtrack_stack.local.offline_model import wire
from dualtrack_stack.local.offline_model.refusal import STATUS_TYPES, RefusalError, error_body
from dualtrack_stack.local.offline_model.reply import fresh_id
from dualtrack_stack.local.offline_model.script import Script, ScriptedResponse, kind_of
from dualtrack_stack.local.offline_model.service import Settings, State
from dualtrack_stack.local.offline_model.tokens import PromptCache
from dualtrack_stack.local.offline_model.transcript import texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.clock import Clock

_SHOWN: Final = 300
"""Characters of what is shown of a message."""


class ScriptError(AssertionError):
    """The script does not fit the chat: it has too few items or too many, or one that the model could not answer."""


@dataclass(frozen=True, slots=True)
class Calls:
    """A tool call of the scripted model."""

    tool: str
    input: Mapping[str, Any]

    def __str__(self) -> str:
        return f"calls({', '.join([repr(self.tool), *(f'{key}={value!r}' for key, value in self.input.items())])})"


@dataclass(frozen=True, slots=True)
class Fails:
    """An error of the model's service."""

    status: int

    def __str__(self) -> str:
        return f"fails({self.status})"


Item: TypeAlias = tuple[str | Calls, ...] | Fails
"""What answers one model call: texts and tool calls, or an error."""


def calls(tool: str, /, **input: Any) -> Calls:  # noqa: A002 - the API's name
    """The model calls a tool with this input. Several calls of one turn, and text before them, stand in a list."""
    try:
        return Calls(tool, json.loads(json.dumps(input, allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{Calls(tool, input)}: the input is no JSON: {error}.") from None


def fails(status: int = 529) -> Fails:
    """The model's service answers with this HTTP status: 429 and 529 (busy) are waited for, 500 is tried again, and 400
    ends the chat. Waits and pauses between tries take no time."""
    if status not in STATUS_TYPES:
        raise ValueError(f"fails({status}): the model's service does not answer so.")
    return Fails(status)


class Heard(Protocol):
    """What a model was sent: the ``sent`` bodies of its turns' requests in order, and the ``problem`` for which it
    could not answer one; empty if there was none."""

    sent: list[dict[str, Any]]
    problem: str


class NoScript(Script):
    """Leaves every call to the offline model's rules."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []
        self.problem = ""


class ItemsScript(Script):
    """Takes an item for each call of a turn; everything else is left to the offline model's rules."""

    def __init__(self, items: Iterable[object]) -> None:
        super().__init__()
        self._items = [_checked(item) for item in items]
        self.sent: list[dict[str, Any]] = []
        self.problem = ""

    def take(self, request: wire.Request) -> ScriptedResponse | None:
        """The response of the next item. A request that no item can answer is refused, and is the `problem`."""
        if kind_of(request) != "turn":
            return None
        with self._lock:
            if not self.problem:
                self.problem = self._misfit(request)
            if self.problem:
                return ScriptedResponse(status=400, error_message=self.problem)
            return _response(self._items.pop(0))

    @property
    def left(self) -> tuple[Item, ...]:
        """The items that nothing has asked for."""
        with self._lock:
            return tuple(self._items)

    def _misfit(self, request: wire.Request) -> str:
        """Why the next item cannot answer this request; or empty."""
        if not self._items:
            return f"The script has no item left, and the model was called once more. It was sent: {_last_message(request)}"
        item = self._items[0]
        called = [part for part in item if isinstance(part, Calls)] if isinstance(item, tuple) else []
        offered = [tool.name for tool in request.tools]
        unknown = next((call for call in called if call.tool not in offered), None)
        if unknown:
            return f"{unknown}: this agent has no such tool; it has {', '.join(offered) or 'none'}."
        if called and isinstance(request.tool_choice, wire.ToolChoiceNone):
            return f"{called[0]}: this is the last call of the chat, in which the model may call no tool."
        return ""


def _checked(item: object) -> Item:
    if isinstance(item, Fails):
        return item
    parts: Any = item if isinstance(item, (list, tuple)) else (item,)
    if not all(isinstance(part, str | Calls) for part in parts):
        raise TypeError(
            f"{item!r} is no item of a script: write a text, calls(…), a list of texts and calls, or fails(…)."
        )
    if not parts or "" in parts:
        raise TypeError(f"{item!r} is no item of a script: the model would answer nothing.")
    return tuple(parts)


def _response(item: Item) -> ScriptedResponse:
    if isinstance(item, Fails):
        return ScriptedResponse(status=item.status)
    return ScriptedResponse(content=tuple(_block(part) for part in item))


def _block(part: str | Calls) -> dict[str, Any]:
    if isinstance(part, Calls):
        return {"type": "tool_use", "name": part.tool, "input": dict(part.input)}
    return {"type": "text", "text": part}


def shown(item: Item) -> str:
    """An item as it is written."""
    if isinstance(item, Fails):
        return str(item)
    parts = [repr(part[:_SHOWN]) if isinstance(part, str) else str(part) for part in item]
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


def _last_message(request: wire.Request) -> str:
    """The last block of what was sent."""
    last = request.messages[-1].content[-1]
    text = "\n".join(texts(last.content if isinstance(last, wire.ToolResult) else (last,)))
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def connect(script: ItemsScript | NoScript, now: Clock) -> Claude:
    """A client of the offline model within this process, whose turns the script answers, if there is one."""
    model = _InProcess(State(Settings(), script, PromptCache(now)), script)
    http_client = httpx2.Client(transport=httpx2.MockTransport(model))
    return Claude(
        Anthropic(base_url="http://model.invalid", api_key="test", max_retries=0, http_client=http_client)
    )


@dataclass(frozen=True, slots=True)
class _InProcess:
    """The Messages API as a transport."""

    model: State
    script: ItemsScript | NoScript

    def __call__(self, http: httpx2.Request) -> httpx2.Response:
        try:
            request = self.model.accepted(http.url.path, http.headers, http.read())
        except RefusalError as refused:
            return _error(refused.status, refused.message)
        if kind_of(request) == "turn":
            self.script.sent.append(json.loads(http.content))
        scripted = self.model.scripted(request)
        if scripted and scripted.status != 200:
            return _error(scripted.status, scripted.error_message)
        delivery = self.model.deliver(request, scripted)
        if not request.stream:
            return httpx2.Response(200, json=delivery.message())
        events = b"".join(event.encode() for event in delivery.events(self.model.settings.chunk))
        return httpx2.Response(200, content=events, headers={"content-type": "text/event-stream"})


def _error(status: int, message: str) -> httpx2.Response:
    return httpx2.Response(status, json=error_body(status, message, fresh_id("req")))
