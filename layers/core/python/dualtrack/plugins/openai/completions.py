"""A chat as a ``chat.completion`` and its chunks (CONTRACT 10). Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.clock import epoch_of
from dualtrack.plugins.openai.transcript import AnswerText, ClientCalls, End

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.plugins.openai.transcript import AnswerTranscript, ToolWork
    from dualtrack.storage.chats import Chat, RecordedTurn

DONE: Final = b"data: [DONE]\n\n"

_FINISHED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "max_tokens": "length",
        "context_window": "length",
        "refusal": "content_filter",
        "tool_calls": "tool_calls",
    }
)
"""The reasons for which OpenAI's API has a word of its own; all others are ``stop``."""


def models_json(names: Sequence[str]) -> dict[str, Any]:
    """``GET /models``."""
    return {"object": "list", "data": list(map(model_json, names))}


def model_json(name: str) -> dict[str, Any]:
    """``GET /models/{model}``."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "dualtrack"}


@dataclass(frozen=True, slots=True)
class Completion:
    """The completion of a chat. ``model``: as it was asked for."""

    chat: Chat
    model: str

    def whole(self, transcript: AnswerTranscript, stop: str, usage: Mapping[str, Any]) -> dict[str, Any]:
        """The whole answer."""
        is_text = transcript.content or not (transcript.calls or transcript.refusal)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": transcript.content if is_text else None,
            "refusal": transcript.refusal or None,
        }
        if transcript.work:
            message["reasoning_content"] = transcript.work
        if transcript.calls:
            message["tool_calls"] = [_call(call) for call in transcript.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(stop)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage}

    def first(self) -> bytes:
        """The chunk that begins a stream."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, piece: AnswerText | ToolWork | ClientCalls) -> bytes:
        """The chunk of a piece."""
        if isinstance(piece, ClientCalls):
            calls = [{"index": index, **_call(call)} for index, call in enumerate(piece.calls)]
            return self._chunk({"tool_calls": calls})
        return self._chunk({"content" if isinstance(piece, AnswerText) else "reasoning_content": piece.text})

    def end(self, piece: End, refusal: str) -> bytes:
        """The last chunk with a choice; ``refusal``: why there is no text."""
        refused = self._chunk({"refusal": refusal}) if refusal else b""
        return refused + self._chunk({}, _finish(piece.stop))

    def usage(self, usage: Mapping[str, Any]) -> bytes:
        """The chunk with the usage, for clients that ask for it."""
        return _line({**self._head("chat.completion.chunk"), "choices": [], "usage": usage})

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _line({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.chat.chat_id}",
            "object": kind,
            "created": int(epoch_of(self.chat.created_at)),
            "model": self.model,
        }


def usage_of(chat: Chat, others: Iterable[RecordedTurn]) -> dict[str, Any]:
    """The service's own counts of the chat's turns without the ``others``, which are part of other answers."""
    counts = dict(chat.usage)
    for turn in others:
        for name in counts:
            counts[name] -= getattr(turn.usage, name, 0)
    read, written = counts.get("cache_read_tokens", 0), counts.get("cache_write_tokens", 0)
    prompt, output = counts.get("input_tokens", 0) + read + written, counts.get("output_tokens", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": read},
    }


def _call(call: Mapping[str, str]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


def error_line(body: Mapping[str, Any]) -> bytes:
    """An error within a stream, as OpenAI's clients read it."""
    return _line(body)


def _finish(stop: str) -> str:
    return _FINISHED.get(stop, "stop")


def _line(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
