"""Signatures of thinking blocks: a block that was changed on its way back is refused, as by the real API.

A signature is valid only after the exact prompt of the block, as from generation 5 on: tools, system and messages
before it. So a client that sends thinking back must only append to a conversation.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Any

from . import wire
from .tokens import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Not a secret: it only makes signatures of this model recognisable across restarts of the local stack.
_CONTEXT = b"dualtrack offline model: thinking"


def bind(request: wire.Request, content: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The blocks of an answer with their thinking signed over the request and the blocks before it."""
    prompt = _Prompt(request)
    for message in request.messages:
        for part in message.content:
            prompt.add(message.role, part)
    blocks = [dict(block) for block in content]
    last = max((index for index, block in enumerate(blocks) if block["type"] == "thinking"), default=-1)
    for block in blocks[: last + 1]:
        if block["type"] == "thinking" and not block.get("signature"):
            block["signature"] = prompt.sign(block["thinking"])
        prompt.add("assistant", _as_sent_back(block))
    return tuple(blocks)


def valid(request: wire.Request) -> Iterator[bool]:
    """For each thinking block, whether this model made it and nothing before it has changed since."""
    prompt = _Prompt(request)
    for message in request.messages:
        for part in message.content:
            if isinstance(part, wire.Thinking):
                yield hmac.compare_digest(part.signature, prompt.sign(part.thinking))
            prompt.add(message.role, part)


def _as_sent_back(block: dict[str, Any]) -> Any:
    return wire.AssistantMessage.model_validate({"role": "assistant", "content": [block]}).content[0]


class _Prompt:
    """All that precedes a block: tools and system, then what is added."""

    def __init__(self, request: wire.Request) -> None:
        self._digest = hmac.new(_CONTEXT, digestmod=hashlib.sha256)
        for tool in request.tools:
            self.add("tools", tool)
        for block in request.system:
            self.add("system", block)

    def add(self, where: str, block: Any) -> None:
        self._digest.update(f"\0{where}\0{canonical(block)}".encode())

    def sign(self, thinking: str) -> str:
        """A signature of the thinking as shown, so that it cannot be replaced."""
        digest = self._digest.copy()
        digest.update(f"\0thinking\0{thinking}".encode())
        return base64.b64encode(b"behind:" + digest.digest()).decode()
