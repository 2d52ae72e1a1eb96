"""What a conversation cost and what a full history would have cost, computed from the requests on the wire alone.

`Recorder` stands between the steps and the service. For the full history, `full_history` builds each of its requests
from the recorded ones and gives it to a prompt cache of the service's own (`offline_model.tokens`). Nothing of the
product's estimates, sums or prices is used.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.local.offline_model import tokens, wire
from dualtrack_stack.local.offline_model.summary import is_summary_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.frozen import JsonObject
    from dualtrack.models.protocol import Model

INPUT, OUTPUT, DEARER, LONG = 0.10e-6, 0.50e-6, 5, 100_000
"""Dollars a token of Claude Haiku 5.5, by its overview page; five times as much for prompts over 100,000 tokens."""

WRITE, READ = 1.25, 0.1
MARK: Final = {"type": "ephemeral"}
RECALL: Final = {"retrieve_full_context", "search_conversation"}


@dataclass(frozen=True, slots=True)
class Heard:
    """A call: when it was made, its body, the content of its answer, and its tokens: fresh, written, read, output."""

    at: float
    body: dict[str, Any]
    content: tuple[Mapping[str, Any], ...]
    used: tuple[int, int, int, int]

    @property
    def is_turn(self) -> bool:
        """Whether it is a call of the chat itself, not for summaries or a digest."""
        request = wire.Request.model_validate(json.loads(json.dumps(self.body)))
        return bool(self.content) and not is_summary_request(request)

    @property
    def only_recalls(self) -> bool:
        """Whether it asked for nothing but the past."""
        asked = {block["name"] for block in self.content if block["type"] == "tool_use"}
        return bool(asked) and asked <= RECALL


@dataclass
class Recorder:
    """A model that remembers its calls; ``now``: the time."""

    model: Model
    now: Callable[[], float]
    calls: list[Heard] = field(default_factory=list)

    def stream(self, request: JsonObject, *arguments: Any, **named: Any) -> Any:
        """A turn, or all summaries of a query."""
        at = self.now()
        reply = self.model.stream(request, *arguments, **named)
        self._keep(at, request, reply.usage, reply.content)
        return reply

    def complete(self, request: JsonObject, seconds: float) -> Any:
        """One summary, or a digest."""
        at = self.now()
        text, usage = self.model.complete(request, seconds)
        self._keep(at, request, usage, ())
        return text, usage

    def _keep(self, at: float, request: JsonObject, usage: Any, content: Any) -> None:
        used = (
            usage.input_tokens,
            usage.cache_write_tokens,
            usage.cache_read_tokens,
            usage.output_tokens,
        )
        self.calls.append(Heard(at, copy.deepcopy(dict(request)), content, used))


def price(fresh: int, written: int, read: int, output: int) -> float:
    """Dollars of a call."""
    factor = DEARER if fresh + written + read > LONG else 1
    return factor * (INPUT * (fresh + WRITE * written + READ * read) + OUTPUT * output)


def spent(calls: Sequence[Heard]) -> float:
    """Dollars of the calls as they were made."""
    return sum(price(*call.used) for call in calls)


class FullHistory:
    """The same conversation with every record whole, call by call."""

    def __init__(self) -> None:
        self.dollars = 0.0
        self._past: list[dict[str, Any]] = []
        self._now = 0.0
        self._cache = tokens.PromptCache(lambda: self._now)

    def ask(self, number: int, calls: Sequence[Heard], answer: str) -> None:
        """A query: its calls as they were made, and the text of its answer."""
        own: list[dict[str, Any]] = []
        for call in (heard for heard in calls if heard.is_turn):
            own = list(_without_recalls(_own(call.body["messages"], number)))
            if not call.only_recalls:
                self.dollars += self._price(call, own)
        self._past += [_plain(message) for message in own]
        self._past.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})

    def _price(self, call: Heard, own: list[dict[str, Any]]) -> float:
        """One call; its breakpoints: the end of the past, of the call before and of its own messages."""
        messages = copy.deepcopy([*self._past, *own])
        last, of_past = len(messages) - 1, len(self._past) - 1
        if "tool_choice" in call.body:
            is_marked = "cache_control" in call.body["messages"][-1]["content"][-1]
            marked = {last} if is_marked else set()
        else:
            marked = {index for index in (of_past, last - 2 if len(own) > 2 else last, last) if index >= 0}
        for index in marked:
            messages[index]["content"][-1]["cache_control"] = MARK
        body = json.loads(json.dumps({**call.body, "messages": messages}))
        self._now = call.at
        used = self._cache.use(wire.Request.model_validate(body))
        return price(used.input_tokens, used.cache_written, used.cache_read, call.used[3])


def _own(messages: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The messages of the running query, without breakpoints."""
    begins = [
        index
        for index, message in enumerate(messages)
        if message["role"] == "user"
        and str(message["content"][0].get("text", "")).startswith(f"[ID:q{number}]")
    ]
    own: list[dict[str, Any]] = copy.deepcopy(list(messages[begins[-1] :]))
    for message in own:
        for block in message["content"]:
            block.pop("cache_control", None)
    return own


def _without_recalls(own: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Without the calls that only read the past back, and their results."""
    skip = False
    for message in own:
        if message["role"] == "assistant":
            asked = {block["name"] for block in message["content"] if block["type"] == "tool_use"}
            skip = bool(asked) and asked <= RECALL
        if not skip:
            yield message
        skip = skip and message["role"] == "assistant"


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """Without thinking, which the service drops from ended queries."""
    kept = [block for block in message["content"] if block["type"] not in ("thinking", "redacted_thinking")]
    return {**message, "content": kept}
