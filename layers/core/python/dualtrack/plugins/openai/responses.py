"""A chat as a ``response`` and the events of its stream (CONTRACT 10). Pure.

Both follow from the chat's events alone: read again, they have the same ids and the same numbers. So a client goes on
behind any event, and what was streamed is what is returned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.clock import epoch_of
from dualtrack.models.failures import CALLERS
from dualtrack.plugins.openai.responses_prompt import WORK
from dualtrack.plugins.openai.transcript import AnswerText, ClientCalls, Diverged, End, FailedChat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.events import StoredEvent
    from dualtrack.frozen import JsonObject
    from dualtrack.plugins.openai.transcript import AnswerTranscript, Piece
    from dualtrack.storage.chats import Chat

    SseEvent = dict[str, Any]

_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {"max_tokens": "max_output_tokens", "context_window": "max_output_tokens", "refusal": "content_filter"}
)
"""The reasons for which OpenAI's API calls an answer incomplete; all others complete it."""

_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "previous_response_id": None,
        "instructions": None,
        "background": False,
        "metadata": {},
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "truncation": "disabled",
        "text": {"format": {"type": "text"}},
        "reasoning": None,
        "temperature": 1.0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "store": True,
        "service_tier": "default",
        "safety_identifier": None,
        "prompt_cache_key": None,
    }
)
"""The fields that clients expect and that nothing decides here."""


def response_id(chat: Chat, after: int) -> str:
    """``resp_…``: the chat's own id, and the turn behind which this answer of the chat begins, if it is not the first:
    ``resp_…_2``."""
    return f"resp_{chat.chat_id.removeprefix('ch_')}" + (f"_{after}" if after else "")


def line(event: SseEvent) -> bytes:
    """An event as it is sent."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def failure(message: str, after: int) -> SseEvent:
    """The event before a stream breaks off. It is none of the response's, and has the number of the last one that was:
    its client goes on behind that."""
    number = max(after, 0)
    return {
        "type": "error",
        "code": "server_error",
        "message": message,
        "param": None,
        "sequence_number": number,
    }


@dataclass(slots=True)
class ResponseStream:
    """Takes a chat's events in order; returns those of its response. ``transcript``: of the same answer; ``echo``: what
    the response says again of its request.

    A pause for people ends a response as one for the client does, also if it is long over: what follows the decision is
    a response of its own. So the numbers stay what they were.
    """

    chat: Chat
    echo: Mapping[str, Any]
    transcript: AnswerTranscript
    output: list[dict[str, Any]] = field(default_factory=list)
    """The items so far."""
    over: End | FailedChat | None = None
    """How it ended."""
    _ended_at: str = ""
    """The time of the event that ended it."""
    _numbered: int = 0
    _open: int | None = None
    """The index of the message that is being written."""
    _text: str = ""
    """Its text so far."""
    _said: int = 0
    """How many characters of the answer the complete messages have."""
    _calls: dict[str, int] = field(default_factory=dict)
    """The indices of calls, by their records."""

    def begin(self) -> list[SseEvent]:
        """The events before the chat's own."""
        began = self.body({})
        return [self._event(f"response.{what}", response=began) for what in ("created", "in_progress")]

    def take(self, event: StoredEvent) -> list[SseEvent]:
        """What follows from an event; nothing once the response is over."""
        if self.over:
            return []
        transcript = self.transcript
        made = self._worked(event) if WORK in self.echo.get("include", ()) else []
        try:
            pieces = transcript.take(event, is_last=event.data.get("turn") != transcript.after)
        except Diverged:
            made += self._void()
            said = transcript.content[self._said :]
            pieces = [*([AnswerText(said)] if said else ()), *transcript.take_again(event)]
        self._ended_at = event.data.get("at", "")
        return [*made, *(each for piece in pieces for each in self._follow(piece))]

    def _follow(self, piece: Piece) -> list[SseEvent]:
        if isinstance(piece, AnswerText):
            return self._say(piece.text)
        if isinstance(piece, ClientCalls):
            return [*self._close("completed"), *(each for call in piece.calls for each in self._ask(call))]
        if not isinstance(piece, End | FailedChat):
            return []
        self.over = piece
        unfinished = [self._finished(index) for index in self._calls.values()]
        refused = self._refuse(self.transcript.refusal) if self.transcript.refusal else []
        return [*self._close(_ended_as(piece)), *refused, *unfinished]

    def take_kept(self, text: str, over: End | FailedChat, ended_at: str) -> None:
        """Take an answer as it was kept, how it ended, and when."""
        self._ended_at = ended_at
        if text:
            self._say(text)
        self._follow(over)

    def end(self, usage: Mapping[str, Any]) -> list[SseEvent]:
        """The event that ends the stream. ``usage``: as a chat completion has it."""
        status = self.status
        name = status if status in ("completed", "failed") else "incomplete"
        return [self._event(f"response.{name}", response=self.body(usage))]

    @property
    def status(self) -> str:
        """The status of the response so far."""
        over = self.over
        if isinstance(over, FailedChat):
            return "failed"
        if over is None or over.stop == "cancelled":
            return "cancelled" if over else "in_progress"
        return "incomplete" if over.stop in _REASONS else "completed"

    def body(self, usage: Mapping[str, Any]) -> dict[str, Any]:
        """The response. ``usage``: as a chat completion has it, empty before the end."""
        over, said = self.over, {**_DEFAULTS, **self.echo}
        reason = _REASONS.get(over.stop) if isinstance(over, End) else None
        return {
            "id": response_id(self.chat, self.transcript.after),
            "object": "response",
            "created_at": int(epoch_of(self.chat.created_at)),
            "completed_at": int(epoch_of(at))
            if (at := self._ended_at) and self.status == "completed"
            else None,
            "status": self.status,
            "incomplete_details": {"reason": reason} if reason else None,
            "error": {
                "code": "invalid_prompt" if over.code == CALLERS else "server_error",
                "message": over.message,
            }
            if isinstance(over, FailedChat)
            else None,
            "model": self.chat.profile,
            "conversation": {"id": self.chat.conversation_id},
            "output": [dict(item) for item in self.output],
            "usage": _usage(usage) if usage else None,
            **said,
        }

    def _event(self, kind: str, **what: Any) -> SseEvent:
        self._numbered += 1
        return {"type": kind, "sequence_number": self._numbered - 1, **what}

    def _added(self, item: dict[str, Any]) -> SseEvent:
        self.output.append(item)
        return self._event("response.output_item.added", output_index=len(self.output) - 1, item=dict(item))

    def _item_id(self, kind: str) -> str:
        """The id of the next item: the response's own, and a number."""
        named = response_id(self.chat, self.transcript.after).removeprefix("resp")
        return f"{kind}{named}_{len(self.output)}"

    def _say(self, text: str) -> list[SseEvent]:
        made: list[SseEvent] = []
        if self._open is None:
            self._open = len(self.output)
            made.append(self._added(_message(self._item_id("msg"), "", "in_progress")))
            made.append(self._part("response.content_part.added", part=_part("")))
        if text:
            self._text += text
            self.output[self._open] = _message(self.output[self._open]["id"], self._text, "in_progress")
            made.append(self._part("response.output_text.delta", delta=text, logprobs=[]))
        return made

    def _void(self) -> list[SseEvent]:
        """What was sent of the open message is not the answer: it is incomplete, and another one begins."""
        said = self._said
        made = self._close("incomplete")
        self._said = said
        return made

    def _close(self, status: str) -> list[SseEvent]:
        """The end of the open message."""
        if self._open is None:
            return []
        text, self._text = self._text, ""
        done = self.output[self._open] = _message(self.output[self._open]["id"], text, status)
        self._said += len(text)
        made = [
            self._part("response.output_text.done", text=text, logprobs=[]),
            self._part("response.content_part.done", part=_part(text)),
            self._event("response.output_item.done", output_index=self._open, item=done),
        ]
        self._open = None
        return made

    def _ask(self, call: Mapping[str, str]) -> list[SseEvent]:
        """A call that the client is to run."""
        index, given = len(self.output), call["arguments"]
        item = {
            "type": "function_call",
            "id": self._item_id("fc"),
            "call_id": call["id"],
            "name": call["name"],
        }
        place = {"item_id": item["id"], "output_index": index}
        kind = "response.function_call_arguments"
        added = self._added({**item, "arguments": "", "status": "in_progress"})
        self.output[index] = {**item, "arguments": given, "status": "completed"}
        return [
            added,
            self._event(f"{kind}.delta", **place, delta=given),
            self._event(f"{kind}.done", **place, name=call["name"], arguments=given),
            self._event("response.output_item.done", output_index=index, item=self.output[index]),
        ]

    def _refuse(self, why: str) -> list[SseEvent]:
        """A message that says why there is no JSON that fits."""
        index = self._open = len(self.output)
        added = self._added(_message(self._item_id("msg"), "", "in_progress"))
        part = {"type": "refusal", "refusal": why}
        made = [
            added,
            self._part("response.content_part.added", part={**part, "refusal": ""}),
            self._part("response.refusal.delta", delta=why),
            self._part("response.refusal.done", refusal=why),
            self._part("response.content_part.done", part=part),
        ]
        done = self.output[index] = {**self.output[index], "status": "completed", "content": [part]}
        self._open = None
        return [*made, self._event("response.output_item.done", output_index=index, item=done)]

    def _part(self, kind: str, **what: Any) -> SseEvent:
        index = self._open or 0
        place = {"item_id": self.output[index]["id"], "output_index": index, "content_index": 0}
        return self._event(kind, **place, **what)

    def _worked(self, event: StoredEvent) -> list[SseEvent]:
        """The items of our own tools' calls."""
        if event.event == "tool_calls_start":
            begun = [call for call in event.data["calls"] if call["id"] not in self._calls]
            return [*(self._close("completed") if begun else ()), *map(self._called, begun)]
        index = self._calls.get(event.data["id"]) if event.event == "tool_result" else None
        if index is None:
            return []
        self.output[index] |= {
            "status": "completed",
            "output": event.data["preview"],
            "is_error": event.data["is_error"],
        }
        del self._calls[event.data["id"]]
        return [self._event("response.output_item.done", output_index=index, item=dict(self.output[index]))]

    def _called(self, call: JsonObject) -> SseEvent:
        index = len(self.output)
        self._calls[call["id"]] = index
        arguments = json.dumps(call["input"], default=dict, ensure_ascii=False)
        item = {
            "type": WORK,
            "id": self._item_id("tc"),
            "status": "in_progress",
            "name": call["tool"],
            "arguments": arguments,
            "output": None,
            "is_error": False,
            "record_id": call["id"],
        }
        return self._added(item)

    def _finished(self, index: int) -> SseEvent:
        """A call whose result did not come."""
        self.output[index] |= {"status": "incomplete"}
        return self._event("response.output_item.done", output_index=index, item=dict(self.output[index]))


def kept_response(
    stream: ResponseStream, chat: Chat, texts: Sequence[str], usage: Mapping[str, Any]
) -> dict[str, Any]:
    """The response of a chat whose events have expired. ``stream``: one that has taken none; ``texts``: those of the
    turns."""
    whole = "\n\n".join(text for text in texts if text.strip())
    turn = chat.turn
    over = FailedChat(chat.error["code"], chat.error["message"]) if chat.error else End(chat.stop, turn)
    stream.take_kept(whole, over, chat.ended_at)
    return stream.body(usage)


def _message(item_id: str, text: str, status: str) -> dict[str, Any]:
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": status,
        "content": [_part(text)] if text else [],
    }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _ended_as(over: End | FailedChat) -> str:
    """The status of the message that ends so."""
    if isinstance(over, FailedChat) or over.stop == "cancelled" or over.stop in _REASONS:
        return "incomplete"
    return "completed"


def _usage(counted: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "input_tokens": counted["prompt_tokens"],
        "input_tokens_details": counted["prompt_tokens_details"],
        "output_tokens": counted["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counted["total_tokens"],
    }
