"""Cache diagnostics: a request with ``diagnostics`` is remembered by its answer's id, and compared with an earlier one.

The first difference is told, in the order model, system, tools, messages; where all of these go on alike but another
field differs on which the prompt depends, the service cannot tell. Breakpoints are no part of a prompt. Source: the
API's page "Cache diagnostics".
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .tokens import block_tokens, canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from . import wire

_MOST = 5_000
"""How many requests are remembered; the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    """Hashes of a request's parts, of its messages one by one."""

    model: str
    system: bytes
    tools: bytes
    messages: tuple[bytes, ...]
    others: bytes

    def difference(self, now: _Fingerprint) -> tuple[str, int]:
        """Why a request is not one that goes on from this, and from which of its messages on it is another; an empty
        reason if it does go on."""
        for reason in ("model", "system", "tools"):
            if getattr(self, reason) != getattr(now, reason):
                return f"{reason}_changed", 0
        for number, message in enumerate(self.messages):
            if message != (now.messages[number] if number < len(now.messages) else b""):
                return "messages_changed", number
        return ("", 0) if self.others == now.others else ("unavailable", 0)


@dataclass
class Remembered:
    """The requests that were to be remembered, by the ids of their answers."""

    _kept: OrderedDict[str, _Fingerprint] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def compared(self, request: wire.Request, message_id: str) -> dict[str, Any] | None:
        """Remember the request by its answer's id; the answer's ``diagnostics``, None if there is nothing to say."""
        if request.diagnostics is None:
            return None
        now, previous = _fingerprint(request), request.diagnostics.previous_message_id
        with self._lock:
            before = self._kept.get(previous) if previous else None
            self._kept[message_id] = now
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        if not previous:
            return None
        if before is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason, first = before.difference(now)
        if not reason:
            return None
        if reason == "unavailable":
            return {"cache_miss_reason": {"type": reason}}
        missed = _tokens(request, first, is_whole=reason != "messages_changed")
        return {"cache_miss_reason": {"type": reason, "cache_missed_input_tokens": missed}}


def _fingerprint(request: wire.Request) -> _Fingerprint:
    others = (request.tool_choice, request.thinking, request.output_config)
    return _Fingerprint(
        request.model,
        _hash(map(canonical, request.system)),
        _hash(map(canonical, request.tools)),
        tuple(_hash([message.role, *map(canonical, message.content)]) for message in request.messages),
        _hash(part.model_dump_json(by_alias=True) if part else "" for part in others),
    )


def _hash(texts: Iterable[str]) -> bytes:
    digest = hashlib.blake2b(digest_size=12)
    for text in texts:
        digest.update(f"\0{text}".encode())
    return digest.digest()


def _tokens(request: wire.Request, first: int, *, is_whole: bool) -> int:
    """From this message on, or all."""
    blocks = [block for message in request.messages[first:] for block in message.content]
    fixed = [*request.system, *request.tools] if is_whole else []
    return sum(map(block_tokens, [*fixed, *blocks]))
