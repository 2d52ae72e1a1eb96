"""The offline model behind a meter: the content of every request, and what the service charged for it, on the wire.

It sees only requests, not the code that made them. Bodies are measured and dropped, so that thousands fit in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.text import cautious_tokens, estimate_tokens
from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.local.offline_model import wire
from dualtrack_stack.local.offline_model.script import Script, kind_of
from dualtrack_stack.local.offline_model.server import create_app
from dualtrack_stack.local.offline_model.service import Settings
from dualtrack_stack.local.offline_model.tokens import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack_stack.local.offline_model.script import Kind
    from starlette.types import Message, Receive, Send

MEDIA_TOKENS: Final[Mapping[str, int]] = MappingProxyType({"image": 2_100, "document": 9_000})
"""Cautious estimates: 30 % over an image that is not scaled down (the service's page on vision); three pages of a PDF.
"""

_HEAD: Final = 100


@dataclass(frozen=True, slots=True)
class Sent:
    """A block of the messages: role, identity, length. ``head`` is the beginning of its text."""

    role: str
    key: str
    tokens: int
    head: str


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the model and its outcome.

    ``at``: `time.monotonic` of its arrival. Its input in ``cautious`` tokens, as used for budgets, and as the service
    ``counted`` it. ``usage``: as reported. ``refused``: the error's message, if it was refused.
    """

    at: float
    kind: Kind | Literal["digest"]
    blocks: tuple[Sent, ...]
    cautious: int
    counted: int
    size: int
    media: int
    usage: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    refused: str = ""

    @property
    def output_tokens(self) -> int:
        """Tokens of the answer."""
        return self.usage.get("output_tokens", 0)

    def asks(self, marker: str) -> bool:
        """Whether the messages contain a query that begins with this marker."""
        return any(f"] {marker}" in block.head for block in self.blocks)


def measured(body: Mapping[str, Any], at: float = 0.0, size: int = 0) -> Call:
    """What a request contains, measured from its body."""
    blocks = [(message["role"], block) for message in body["messages"] for block in _listed(message)]
    parts = [*_texts(body.get("system") or ()), *map(_dumped, body.get("tools") or ())]
    tokens = sum(map(cautious_tokens, parts)) + sum(_cautious(block) for _, block in blocks)
    request = wire.Request.model_validate(body)
    return Call(
        at,
        _kind(request),
        tuple(_sent(role, block) for role, block in blocks),
        tokens,
        count(request),
        size or len(_dumped(body)),
        sum(map(_media, (block for _, block in blocks))),
    )


def _kind(request: wire.Request) -> Kind | Literal["digest"]:
    """The request's kind; a digest is requested like a summary, without tools, by a system prompt that names it."""
    kind = kind_of(request)
    named = any("digest" in block.text.lower() for block in request.system)
    return "digest" if kind == "summary" and named and not request.tools else kind


def _listed(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _texts(system: Any) -> list[str]:
    return [system] if isinstance(system, str) else [block["text"] for block in system]


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _inner(block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = block.get("content") or [] if block["type"] == "tool_result" else []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _cautious(block: Mapping[str, Any]) -> int:
    kind = block["type"]
    if kind == "tool_result":
        return sum(map(_cautious, _inner(block)))
    if kind in MEDIA_TOKENS:
        return MEDIA_TOKENS[kind]
    return cautious_tokens(str(block.get("text") or block.get("thinking") or _dumped(block)))


def _media(block: Mapping[str, Any]) -> int:
    return sum(map(_media, _inner(block))) if _inner(block) else block["type"] in MEDIA_TOKENS


def _sent(role: str, block: Mapping[str, Any]) -> Sent:
    plain = _dumped(_unmarked(block))
    texts = [str(part["text"]) for part in (block, *_inner(block)) if part.get("type") == "text"]
    said = "\n".join(texts)
    key = hashlib.sha256(plain.encode()).hexdigest()[:16]
    return Sent(role, key, estimate_tokens(said or plain), said[:_HEAD])


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(entry) for name, entry in value.items() if name != "cache_control"}
    return [_unmarked(entry) for entry in value] if isinstance(value, list) else value


@dataclass
class MeteredModel:
    """A running server: its address, its script, the calls it had. ``summary_seconds``: delay before each summary."""

    script: Script
    url: str = ""
    summary_seconds: float = 0.0
    calls: list[Call] = field(default_factory=list)
    first_turn: Mapping[str, Any] = field(default_factory=dict)
    """The first turn's whole body."""


@contextlib.contextmanager
def serve_metered_model() -> Iterator[MeteredModel]:
    """The offline model, in a thread, under its own rules and a script; it answers without delay."""
    model = MeteredModel(Script())
    app = create_app(Settings(chunk=200, chunk_delay=0.0), model.script)

    async def meter(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/v1/messages":
            await app(scope, receive, send)
            return
        raw = await _whole(receive)
        index = len(model.calls)
        arrived = _arrived(model, raw)
        model.calls.extend(arrived)
        if any(call.kind == "summary" for call in arrived):
            await asyncio.sleep(model.summary_seconds)
        answer = bytearray()

        async def keeping(message: Message) -> None:
            answer.extend(message.get("body", b""))
            if arrived and "body" in message and not message.get("more_body"):
                model.calls[index] = _answered(arrived[0], bytes(answer))
            await send(message)

        await app(scope, _again(raw, receive), keeping)

    with serve_in_thread(meter) as model.url:
        yield model


def _arrived(model: MeteredModel, raw: bytes) -> tuple[Call, ...]:
    """The call as received; empty for an invalid body, which the app refuses."""
    at = time.monotonic()
    try:
        body = json.loads(raw)
        call = measured(body, at, len(raw))
    except (ValueError, KeyError, TypeError):
        return ()
    if call.kind == "turn" and not model.first_turn:
        model.first_turn = body
    return (call,)


async def _whole(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body.extend(message.get("body", b""))
        if not message.get("more_body"):
            return bytes(body)


def _again(raw: bytes, receive: Receive) -> Receive:
    """Replay the body, then pass on what follows."""
    waiting: list[Message] = [{"type": "http.request", "body": raw, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def _answered(call: Call, answer: bytes) -> Call:
    usage: dict[str, int] = {}
    refused = ""
    for event in _messages(answer):
        if event.get("type") == "error":
            refused = str(event["error"]["message"])
        reported = event.get("usage") or event.get("message", {}).get("usage") or {}
        usage |= {name: value for name, value in reported.items() if isinstance(value, int)}
    return replace(call, usage=MappingProxyType(usage), refused=refused)


def _messages(answer: bytes) -> Iterator[dict[str, Any]]:
    """The JSON of an answer, or of each event of a stream."""
    for line in answer.decode(errors="replace").splitlines():
        text = line.removeprefix("data: ")
        if text.startswith("{"):
            with contextlib.suppress(ValueError):
                yield json.loads(text)
