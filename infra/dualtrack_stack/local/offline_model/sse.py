"""A reply as the API streams it: the server-sent events of one message, in order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .reply import Reply
    from .tokens import Usage


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event. ``paced``: it carries text that a person watches appear."""

    name: str
    data: Mapping[str, Any]
    paced: bool = False

    def encode(self) -> bytes:
        """The event on the wire."""
        return f"event: {self.name}\ndata: {json.dumps(self.data, ensure_ascii=False)}\n\n".encode()


def output_usage(reply: Reply) -> dict[str, Any]:
    """The output half of the API's usage object, with the reply's own figures over it."""
    details = {"thinking_tokens": reply.thinking_tokens} if reply.thinking_tokens else None
    return {"output_tokens": reply.output_tokens, "output_tokens_details": details, **reply.usage}


def message(
    reply: Reply, message_id: str, model: str, usage: Usage, diagnostics: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The whole message, as a request without ``stream`` gets it. ``diagnostics``: what is said of the cache."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(reply.content),
        "stop_reason": reply.stop_reason,
        "stop_sequence": reply.stop_sequence,
        "stop_details": reply.stop_details,
        "diagnostics": diagnostics,
        "usage": {**usage.to_wire(), "service_tier": "standard", **output_usage(reply)},
    }


def events(
    reply: Reply,
    message_id: str,
    model: str,
    usage: Usage,
    chunk: int,
    diagnostics: Mapping[str, Any] | None = None,
) -> Iterator[Event]:
    """message_start, ping, the blocks, message_delta, message_stop. ``chunk``: characters a text delta."""
    start = message(reply, message_id, model, usage, diagnostics) | {
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
    }
    start["usage"] = {**start["usage"], "output_tokens": 1, "output_tokens_details": None}
    yield Event("message_start", {"type": "message_start", "message": start})
    yield Event("ping", {"type": "ping"})
    for index, block in enumerate(reply.content):
        yield from _block(index, block, chunk)
    delta = {
        "stop_reason": reply.stop_reason,
        "stop_sequence": reply.stop_sequence,
        "stop_details": reply.stop_details,
    }
    final = {**usage.to_wire(), **output_usage(reply)}
    final.pop("cache_creation")
    yield Event("message_delta", {"type": "message_delta", "delta": delta, "usage": final})
    yield Event("message_stop", {"type": "message_stop"})


_EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
}
"""The fields that are empty when a block starts; other kinds are sent whole."""


def _block(index: int, block: Mapping[str, Any], chunk: int) -> Iterator[Event]:
    start = {**block, **_EMPTY.get(block["type"], {})}
    start.pop("input_json", None)
    yield Event(
        "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
    )
    for delta in _deltas(block, chunk):
        data = {"type": "content_block_delta", "index": index, "delta": delta}
        yield Event("content_block_delta", data, paced=delta["type"] == "text_delta")
    yield Event("content_block_stop", {"type": "content_block_stop", "index": index})


def _deltas(block: Mapping[str, Any], chunk: int) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        for piece in _pieces(block["text"], chunk):
            yield {"type": "text_delta", "text": piece}
    elif block["type"] == "thinking":
        for piece in _pieces(block["thinking"], chunk):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] in ("tool_use", "server_tool_use"):
        # The API sends an empty first piece of a tool's input.
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in _pieces(
            block.get("input_json") or json.dumps(block["input"], ensure_ascii=False), chunk
        ):
            yield {"type": "input_json_delta", "partial_json": piece}


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]
