"""A chat as a ``chat.completion`` and its chunks (CONTRACT 10). Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.clock import epoch_of
from dualtrack.openai.transcript import End, Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.openai.transcript import Transcript, Work
    from dualtrack.storage.chats import Chat

DONE: Final = b"data: [DONE]\n\n"

_FINISHED: Final[Mapping[str, str]] = MappingProxyType(
    {"max_tokens": "length", "context_window": "length", "refusal": "content_filter"}
)
"""The reasons for which OpenAI's API has a word of its own; all others are ``stop``."""


def models_json(names: Sequence[str]) -> dict[str, Any]:
    """``GET /models``."""
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "dualtrack"} for name in names]
    return {"object": "list", "data": listed}


@dataclass(frozen=True, slots=True)
class Completion:
    """The completion of a chat. ``model``: as it was asked for."""

    chat: Chat
    model: str

    def whole(self, transcript: Transcript, stop: str, ended: Chat) -> dict[str, Any]:
        """The whole answer; ``ended``: the chat with its usage."""
        message = {"role": "assistant", "content": transcript.content, "refusal": None}
        if transcript.work:
            message["reasoning_content"] = transcript.work
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(stop)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage_json(ended)}

    def first(self) -> bytes:
        """The chunk that begins a stream."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, piece: Text | Work | End) -> bytes:
        """The chunk of a piece."""
        if isinstance(piece, End):
            return self._chunk({}, _finish(piece.stop))
        return self._chunk({"content" if isinstance(piece, Text) else "reasoning_content": piece.text})

    def usage(self, ended: Chat) -> bytes:
        """The chunk with the usage, for clients that ask for it."""
        return _line({**self._head("chat.completion.chunk"), "choices": [], "usage": usage_json(ended)})

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


def usage_json(chat: Chat) -> dict[str, Any]:
    """The service's own counts of the chat's turns."""
    usage = chat.usage
    read, written = usage.get("cache_read_tokens", 0), usage.get("cache_write_tokens", 0)
    prompt, output = usage.get("input_tokens", 0) + read + written, usage.get("output_tokens", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": read},
    }


def error_line(body: Mapping[str, Any]) -> bytes:
    """An error within a stream, as OpenAI's clients read it."""
    return _line(body)


def _finish(stop: str) -> str:
    return _FINISHED.get(stop, "stop")


def _line(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
