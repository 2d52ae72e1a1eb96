"""A model's answer, collected from the events of its stream.

The SDK's own collection parses a tool's input again with each piece, and raises for input that a model may well write
(300 levels, half of a surrogate pair), which loses the whole answer. Here an input is parsed once, at its end. An input
that cannot be stored or sent back becomes ``{}`` with the reason beside it: the answer is sent back later, and the
service would refuse the whole request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import freeze, strict_loads
from dualtrack.models.cache_word import FIELD, CacheWord, cache_word, message_id
from dualtrack.models.trouble import own_words
from dualtrack.models.turn import Declined, ModelReply, Usage
from dualtrack.text import clean, tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anthropic.types import RawMessageStreamEvent, RefusalStopDetails

MAX_INPUT: Final = 100_000
"""Maximum length of a tool's input: it is stored in an item of 400 KB, and sent again with every later turn."""

UNNAMEABLE: Final = "unnameable"
"""Replaces a tool name that the service would refuse when sent back; no tool has this name."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_FIELDS: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
"""For each type of delta, its field with the piece, and the field of the block that the piece belongs to."""

_WORD: Final = re.compile(r"[a-z0-9_]{1,40}")
"""A category of the service's policy."""


@dataclass(slots=True)
class Reading:
    """The answer to a ``request`` so far. ``stop_reason`` is None until the service reports it. ``is_late``: its time
    was up; ``message`` and ``cache`` as in `ModelReply`."""

    request: Mapping[str, Any]
    stop_reason: str | None = None
    declined: Declined | None = None
    is_late: bool = False
    message: str = ""
    cache: CacheWord | None = None
    _blocks: list[dict[str, Any]] = field(default_factory=list)
    _pieces: list[dict[str, list[str]]] = field(default_factory=list)
    _usage: dict[str, int] = field(default_factory=dict)

    def take(self, event: RawMessageStreamEvent) -> str:
        """Add an event; returns its text. Raises ValueError for an event out of order."""
        if event.type == "message_start":
            self._count(event.message.usage)
            self.message = message_id(event.message) if FIELD in self.request else ""
            self.cache = cache_word(self.request, event.message)
        elif event.type == "content_block_start":
            block = event.content_block.model_dump(mode="json", exclude_none=True)
            self._blocks.append(block)
            self._pieces.append({})
            return clean(block["text"]) if _is_text(block) else ""
        elif event.type == "content_block_delta":
            return self._add(event.index, event.delta)
        elif event.type == "message_delta":
            self.stop_reason = event.delta.stop_reason or self.stop_reason
            self._count(event.usage)
            if self.stop_reason == "refusal":
                self.declined = _declined(event.delta.stop_details)
        return ""

    def decline(self, said: str) -> None:
        """The service has broken the answer off for its content; ``said``: its own words."""
        self.stop_reason, self.declined = "refusal", Declined("", said)

    @property
    def usage(self) -> Usage:
        """The tokens that the service has reported so far."""
        return Usage(
            input_tokens=self._usage.get("input_tokens", 0),
            output_tokens=self._usage.get("output_tokens", 0),
            cache_read_tokens=self._usage.get("cache_read_input_tokens", 0),
            cache_write_tokens=self._usage.get("cache_creation_input_tokens", 0),
        )

    def reply(self) -> ModelReply:
        """The complete answer."""
        broken: dict[str, str] = {}
        blocks = [
            _block(block, {name: "".join(parts) for name, parts in pieces.items()}, broken)
            for block, pieces in zip(self._blocks, self._pieces, strict=True)
        ]
        kept = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
        return ModelReply(
            freeze(kept),
            str(self.stop_reason),
            self.usage,
            freeze(broken),
            self._cut(broken),
            self.declined,
            is_late=self.is_late,
            message=self.message,
            cache=self.cache,
        )

    def _cut(self, broken: dict[str, str]) -> str:
        """The id of the tool use within which a limit came: the last block, without a whole input."""
        last = self._blocks[-1] if self._blocks and self.stop_reason == "max_tokens" else {}
        if last.get("type") != "tool_use":
            return ""
        is_whole = bool(last["input"]) or "".join(self._pieces[-1].get("input", ()))
        return "" if is_whole and last["id"] not in broken else str(last["id"])

    def cut(self) -> None:
        """End the answer here, as ``max_tokens`` would have; what it has cost so far is estimated by what has come."""
        self.stop_reason, self.is_late = "max_tokens", True
        written = sum(len(part) for pieces in self._pieces for parts in pieces.values() for part in parts)
        self._usage["output_tokens"] = max(self._usage.get("output_tokens", 0), tokens_of(written))

    def _add(self, index: int, delta: Any) -> str:
        if not 0 <= index < len(self._blocks):
            raise ValueError("a piece of a block that has not begun")
        if delta.type not in _FIELDS:
            return ""
        source, target = _FIELDS[delta.type]
        piece = str(getattr(delta, source))
        self._pieces[index].setdefault(target, []).append(piece)
        return clean(piece) if target == "text" else ""

    def _count(self, usage: Any) -> None:
        """Figures are totals; a missing one is unchanged. Some gateways leave all of them out."""
        counts = usage.model_dump(exclude_none=True) if usage is not None else {}
        self._usage |= {name: figure for name, figure in counts.items() if isinstance(figure, int)}


def _is_text(block: dict[str, Any]) -> bool:
    """Whether a block is text, or one of an unknown kind that has a text: some gateways name their own."""
    return isinstance(block.get("text"), str)


def _declined(details: RefusalStopDetails | None) -> Declined:
    category, said = (details.category or "", details.explanation or "") if details else ("", "")
    return Declined(category if _WORD.fullmatch(category) else "", own_words(said) if said else "")


def thought_in(event: RawMessageStreamEvent) -> str:
    """The piece of readable thinking that an event brings; empty if it brings none."""
    if event.type == "content_block_delta" and event.delta.type == "thinking_delta":
        return clean(event.delta.thinking)
    return ""


def _block(block: dict[str, Any], pieces: dict[str, str], broken: dict[str, str]) -> dict[str, Any]:
    """A block as it must be sent back: unchanged unless the service would refuse it."""
    written = pieces.pop("input", "")
    whole = block | {name: clean(block.get(name, "") + text) for name, text in pieces.items()}
    if "input" not in block:
        is_named_otherwise = _is_text(whole) and whole["type"] != "text"
        return {"type": "text", "text": whole["text"]} if is_named_otherwise else whole
    arguments, problem = _input(written) if written else (block["input"], "")
    if problem and "id" in block:
        broken[block["id"]] = problem
    name = block["name"] if _NAME.fullmatch(block["name"]) else UNNAMEABLE
    return whole | {"name": name, "input": arguments}


def _input(written: str) -> tuple[dict[str, Any], str]:
    try:
        arguments = strict_loads(written, MAX_INPUT)
    except ValueError as error:
        return {}, f"bad arguments: {error}."
    return (arguments, "") if isinstance(arguments, dict) else ({}, "bad arguments: they are not an object.")
