"""The Messages API apart from HTTP: which requests it accepts, what it answers, and the state behind both.

`server` serves it on the loopback interface; `dualtrack_stack.local.testing` calls it within the process.
"""

from __future__ import annotations

import json
import math
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dualtrack.models.prices import OFFLINE
from pydantic import ValidationError

from . import notes, rules, signing, sse, tokens, wire
from . import reply as replies
from .classifier import MAGIC, declined
from .models import limits_of
from .refusal import RefusalError
from .remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .reply import Reply
    from .script import Script, ScriptedResponse

MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 128
"""Nesting of a body, the limit of serde_json. The API's own is not documented; common limits are 128 and more."""
_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie"})
_ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Settings:
    """``chunk`` characters a text delta, ``chunk_delay`` seconds before each.

    ``control`` switches the control routes on; ``declined``: words that no request may have; ``cache_minimum`` and
    ``context_window`` (tokens) replace the models' own.
    """

    chunk: int = 20
    chunk_delay: float = 0.015
    control: bool = False
    declined: tuple[str, ...] = (MAGIC,)
    cache_minimum: int | None = None
    context_window: int | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as received. ``headers`` without the key; ``refused`` is the reason if it was refused."""

    path: str
    headers: dict[str, str]
    body: Any
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A reply with what the wire adds: its id, the usage of its request, and what is said of the cache."""

    reply: Reply
    message_id: str
    usage: tokens.Usage
    diagnostics: dict[str, Any] | None = None

    def message(self) -> dict[str, Any]:
        """As a request without ``stream`` gets it."""
        return sse.message(self.reply, self.message_id, OFFLINE, self.usage, self.diagnostics)

    def events(self, chunk: int) -> Iterator[sse.Event]:
        """As a stream. ``chunk``: characters a text delta."""
        return sse.events(self.reply, self.message_id, OFFLINE, self.usage, chunk, self.diagnostics)


@dataclass
class State:
    """The service's state: the script, the requests, the prompt cache, the paused turns, the requests that it was asked
    to remember."""

    settings: Settings
    script: Script
    cache: tokens.PromptCache
    recorded: list[Recorded] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    remembered: Remembered = field(default_factory=Remembered)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, entry: Recorded) -> None:
        """Keep a request, if there are control routes to read it."""
        if self.settings.control:
            with self.lock:
                self.recorded.append(entry)

    def accepted(self, path: str, headers: Mapping[str, str], raw: bytes) -> wire.Request:
        """The request, checked as the real API checks it; `RefusalError` otherwise. It is recorded either way."""
        kept = {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}
        body: Any = None
        try:
            _check_headers(headers)
            body = parsed(raw)
            request = _validated(body)
            rules.check(request, self.is_paused)
            _check_fits(request, self.settings.context_window)
        except RefusalError as refusal:
            self.record(Recorded(path, kept, body, refusal.message))
            raise
        self.record(Recorded(path, kept, body))
        return request

    def scripted(self, request: wire.Request) -> ScriptedResponse | None:
        """The script's response, if the classifier lets the request pass."""
        return None if declined(request, self.settings.declined) else self.script.take(request)

    def deliver(self, request: wire.Request, scripted: ScriptedResponse | None) -> Delivery:
        """The scripted message, else that of the rules; the request is in the prompt cache then. A request that the
        classifier declines has a refusal in its place."""
        refused = None if scripted else declined(request, self.settings.declined)
        said = replies.stopped(request, _said(request, scripted)) if scripted else replies.decide(request)
        response = refused or said
        reply = replace(response, content=signing.bind(request, response.content))
        if reply.stop_reason == "pause_turn":
            self.paused.add(_fingerprint(_as_sent_back(reply.content)))
        message_id = replies.fresh_id("msg")
        diagnostics = self.remembered.compared(request, message_id)
        return Delivery(reply, message_id, self.cache.use(request), diagnostics)

    def is_paused(self, message: wire.AssistantMessage) -> bool:
        """Whether an assistant message is one that this server ended with ``pause_turn``."""
        return _fingerprint([block.model_dump(mode="json") for block in message.content]) in self.paused

    def reset(self) -> None:
        """As freshly started."""
        self.script.clear()
        self.cache.clear()
        self.remembered.clear()
        with self.lock:
            self.recorded.clear()
            self.paused.clear()


def _as_sent_back(content: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    sent_back = wire.AssistantMessage.model_validate({"role": "assistant", "content": list(content)})
    return [block.model_dump(mode="json") for block in sent_back.content]


def _fingerprint(blocks: Iterable[dict[str, Any]]) -> str:
    """The compared parts of an assistant message that is sent back: its content, not its breakpoints or nulls."""
    kept = [
        {key: value for key, value in block.items() if key != "cache_control" and value is not None}
        for block in blocks
    ]
    return json.dumps(kept, sort_keys=True)


def _check_headers(headers: Mapping[str, str]) -> None:
    bearer = headers.get("authorization", "")
    key = bearer.removeprefix("Bearer ") if bearer.startswith("Bearer ") else headers.get("x-api-key", "")
    if not key.strip():
        raise RefusalError(
            "authentication: a key is required (Authorization: Bearer, or x-api-key)", status=401
        )
    if not headers.get("anthropic-version"):
        raise RefusalError("anthropic-version: header is required")
    if not headers.get("content-type", "").startswith("application/json"):
        raise RefusalError("content-type: must be application/json")


def parsed(raw: bytes) -> Any:
    """The JSON of a body. Raises `RefusalError`."""
    if len(raw) > MAX_BODY_BYTES:
        raise RefusalError("Request exceeds the maximum size", status=413)
    try:
        body = json.loads(raw, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
        _check_depth(body, MAX_DEPTH)
        # Lone surrogates pass Python's parser, but cannot be encoded.
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise RefusalError("The request body is not valid JSON") from None
    return body


def _finite(text: str) -> float:
    """JSON has no NaN, and no number may exceed a double."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def _check_depth(value: Any, levels: int) -> None:
    if not levels:
        raise ValueError("nested too deep")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in inner:
        _check_depth(child, levels - 1)


def _validated(body: Any) -> wire.Request:
    try:
        return wire.Request.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(_shown_path(first["loc"]))
        raise RefusalError(f"{path}: {first['msg']}" if path else first["msg"]) from None


def _shown_path(location: tuple[int | str, ...]) -> list[str]:
    """``messages.0.content.1``: pydantic adds the role, the discriminator of messages."""
    if location[:1] == ("messages",):
        location = (*location[:2], *location[3:]) if location[2:3] and location[2] in _ROLES else location
    return [str(part) for part in location]


def _check_fits(request: wire.Request, context_window: int | None) -> None:
    window = limits_of(request.model).context_window if context_window is None else context_window
    total = tokens.count(request)
    if total > window:
        raise RefusalError(f"prompt is too long: {total} tokens > {window} maximum")


def _said(request: wire.Request, scripted: ScriptedResponse) -> replies.Reply:
    reply = scripted.reply()
    if not scripted.notes:
        return reply
    *before, last = reply.content
    return replace(
        reply, content=(*before, {**last, "text": last["text"] + notes.behind(request, last["text"])})
    )
