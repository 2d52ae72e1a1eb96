"""Token figures: an estimate by length, and a prompt cache with the real one's rules.

The cache holds prefixes of (tools, system, messages) up to each breakpoint. A request reads the
longest stored prefix that ends at one of its breakpoints or at most 20 blocks before it, and writes
those up to its own breakpoints. Changing ``tool_choice``, ``thinking`` or the output's effort or form keeps the
prefixes of tools and system valid and invalidates those of messages. Source: the API's pages on prompt caching.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from . import wire
from .models import limits_of

if TYPE_CHECKING:
    from collections.abc import Callable

LOOKBACK_BLOCKS = 20
_TTL_SECONDS = {"5m": 300.0, "1h": 3_600.0}
_IMAGE_TOKENS = 1_500
_PDF_TOKENS = 3_000


def estimate(text: str) -> int:
    """Four characters a token."""
    return math.ceil(len(text) / 4)


@dataclass(frozen=True, slots=True)
class Usage:
    """Input tokens of one request: uncached, read from the cache, written to it; ``for_an_hour``: of these."""

    input_tokens: int
    cache_read: int = 0
    cache_written: int = 0
    for_an_hour: int = 0

    @property
    def total(self) -> int:
        """All input tokens."""
        return self.input_tokens + self.cache_read + self.cache_written

    def to_wire(self) -> dict[str, Any]:
        """The input half of the API's usage object."""
        return {
            "input_tokens": self.input_tokens,
            "cache_creation_input_tokens": self.cache_written,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.cache_written - self.for_an_hour,
                "ephemeral_1h_input_tokens": self.for_an_hour,
            },
        }


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The prompt up to one block: its key, its tokens, for how long it is cached if it ends with a breakpoint."""

    key: str
    tokens: int
    ttl: str


def block_tokens(block: Any) -> int:
    """The estimate of one block; a flat figure for media, since base64 says nothing about their tokens."""
    if isinstance(block, wire.Image):
        return _IMAGE_TOKENS
    if isinstance(block, wire.Document):
        return _PDF_TOKENS
    if isinstance(block, wire.ToolResult):
        return 4 + sum(block_tokens(part) for part in block.content)
    if isinstance(block, wire.Text):
        return estimate(block.text)
    return estimate(canonical(block))


def canonical(block: Any) -> str:
    """The content of a block as text, without its breakpoints."""
    return json.dumps(_without_marks(block.model_dump(mode="json", by_alias=True)), ensure_ascii=False)


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_without_marks(item) for item in value]
    return value


def _ttl(block: Any) -> str:
    """How long a block's breakpoint lasts, empty without one; one inside a tool result counts at the result's end."""
    inner = [block, *block.content] if isinstance(block, wire.ToolResult) else [block]
    marks = (getattr(part, "cache_control", None) for part in inner)
    return next((mark.ttl for mark in marks if mark), "")


def _prefixes(request: wire.Request) -> list[_Prefix]:
    digest = hashlib.sha256(request.model.encode())
    tokens = 0
    prefixes: list[_Prefix] = []

    def add(where: str, block: Any) -> None:
        nonlocal tokens
        digest.update(f"\0{where}\0{canonical(block)}".encode())
        tokens += block_tokens(block)
        prefixes.append(_Prefix(digest.hexdigest(), tokens, _ttl(block)))

    for tool in request.tools:
        add("tools", tool)
    for block in request.system:
        add("system", block)
    choice = request.tool_choice.model_dump_json() if request.tool_choice else ""
    thinking = request.thinking.model_dump_json() if request.thinking else ""
    output = request.output_config.model_dump_json(by_alias=True) if request.output_config else ""
    digest.update(f"\0{choice}\0{thinking}\0{output}".encode())
    for message in request.messages:
        tokens += 3
        for part in message.content:
            add(message.role, part)
    if request.cache_control and prefixes:
        prefixes[-1] = replace(prefixes[-1], ttl=prefixes[-1].ttl or request.cache_control.ttl)
    return prefixes


def count(request: wire.Request) -> int:
    """All input tokens of a request, by estimate."""
    prefixes = _prefixes(request)
    return prefixes[-1].tokens if prefixes else 0


class PromptCache:
    """Prefixes with their time of expiry. ``now`` gives seconds; ``minimum`` replaces the models' own."""

    def __init__(self, now: Callable[[], float], minimum: int | None = None) -> None:
        self._now = now
        self._minimum = minimum
        self._expiry: dict[str, float] = {}
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._expiry.clear()

    def use(self, request: wire.Request) -> Usage:
        """Read and write the cache for one request."""
        prefixes = _prefixes(request)
        total = prefixes[-1].tokens if prefixes else 0
        minimum = limits_of(request.model).cache_minimum if self._minimum is None else self._minimum
        marked = [
            index for index, prefix in enumerate(prefixes) if prefix.ttl and prefix.tokens >= max(minimum, 1)
        ]
        with self._lock:
            now = self._now()
            self._expiry = {key: until for key, until in self._expiry.items() if until > now}
            read = self._longest(prefixes, marked)
            self._expiry |= {prefixes[index].key: now + _TTL_SECONDS[prefixes[index].ttl] for index in marked}
        covered = max((prefixes[index].tokens for index in marked), default=0)
        long = max((prefixes[index].tokens for index in marked if prefixes[index].ttl == "1h"), default=0)
        return Usage(total - max(covered, read), read, max(covered - read, 0), max(long - read, 0))

    def _longest(self, prefixes: list[_Prefix], marked: list[int]) -> int:
        """Tokens of the longest stored prefix that a breakpoint can see."""
        for index in reversed(marked):
            for back in range(index, max(index - LOOKBACK_BLOCKS, -1), -1):
                if prefixes[back].key in self._expiry:
                    return prefixes[back].tokens
        return 0
