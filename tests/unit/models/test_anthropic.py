"""Claude's client: how errors of the service, or of a server in its place, are handled."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.errors import ModelBusy, ModelUnavailable
from dualtrack.models.providers.anthropic.client import connect
from dualtrack.models.turn import Usage
from dualtrack_stack.local.loopback import serve_in_thread
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from dualtrack.models.protocol import Model
    from starlette.requests import Request


class Colour(BaseModel):
    name: str


REQUEST: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "Which colour?"}],
}
WAYS: dict[str, Callable[[Model], object]] = {
    "stream": lambda model: model.stream(REQUEST, lambda _: None),
    "complete": lambda model: model.complete(REQUEST, 30),
    "parse": lambda model: model.parse(REQUEST, Colour, 30),
}


@contextmanager
def answering(answer: Response) -> Iterator[tuple[Model, list[str]]]:
    """A client of a server that always gives this answer, and the paths requested from it."""
    paths: list[str] = []

    async def respond(request: Request) -> Response:
        paths.append(request.url.path)
        return answer

    with serve_in_thread(Starlette(routes=[Route("/{rest:path}", respond, methods=["GET", "POST"])])) as url:
        yield connect(url, "key"), paths


@pytest.mark.parametrize("way", WAYS)
def test_the_key_is_sent_only_to_its_own_address(way: str) -> None:
    with answering(RedirectResponse("/elsewhere", status_code=307)) as (model, paths):
        with pytest.raises(ModelUnavailable):
            WAYS[way](model)
        assert paths == ["/v1/messages"]


def message(text: str, stop_reason: str = "end_turn") -> Response:
    return JSONResponse(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5",
            "content": [{"type": "text", "text": text}],
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
    )


def test_a_structured_answer_is_parsed() -> None:
    with answering(message('{"name": "red"}')) as (model, _):
        assert model.parse(REQUEST, Colour, 30) == (Colour(name="red"), Usage(10, 5))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (message('{"name": "red"}', "refusal"), "refusal"),
        (message('{"name": "r', "max_tokens"), "ValidationError"),
        (message('{"hue": 3}'), "ValidationError"),
        (message("[" * 100_000), "ValidationError"),
    ],
)
def test_a_cut_declined_or_malformed_answer_is_rejected(answer: Response, reason: str) -> None:
    with answering(answer) as (model, _), pytest.raises(ModelUnavailable, match=reason):
        model.parse(REQUEST, Colour, 30)


def error(status: int, kind: str, **headers: str) -> Response:
    body = {"type": "error", "error": {"type": kind, "message": "scripted"}}
    return JSONResponse(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("answer", "reason", "seconds"),
    [
        (error(429, "rate_limit_error", retry_after="7"), "rate_limited", 7),
        (error(529, "overloaded_error"), "overloaded", 0),
        (error(503, "api_error", retry_after="2"), "unavailable", 2),
        (error(500, "api_error", retry_after_ms="1500"), "unavailable", 1.5),
    ],
)
def test_a_busy_service_says_so(way: str, answer: Response, reason: str, seconds: float) -> None:
    with answering(answer) as (model, paths):
        with pytest.raises(ModelBusy) as raised:
            WAYS[way](model)
        assert (raised.value.reason, raised.value.seconds) == (reason, seconds)
        assert len(paths) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "answer",
    [error(500, "api_error"), error(503, "api_error"), error(504, "timeout_error"), error(408, "api_error")],
)
def test_a_transient_error_is_not_waited_for(way: str, answer: Response) -> None:
    with answering(answer) as (model, _), pytest.raises(ModelUnavailable) as raised:
        WAYS[way](model)
    assert not isinstance(raised.value, ModelBusy)


@pytest.mark.parametrize("way", WAYS)
def test_an_unreachable_service_is_not_busy(way: str) -> None:
    """A wrong address would keep its user waiting for eleven minutes."""
    with answering(message("never asked")) as (model, _):
        pass
    with pytest.raises(ModelUnavailable) as raised:
        WAYS[way](model)
    assert not isinstance(raised.value, ModelBusy)


def test_an_error_inside_a_stream_may_say_that_the_service_is_busy() -> None:
    event = 'event: error\ndata: {"type": "error", "error": {"type": "%s", "message": "scripted"}}\n\n'
    kinds = {}
    for kind in ("overloaded_error", "rate_limit_error", "api_error"):
        with answering(Response(event % kind, media_type="text/event-stream")) as (model, _):
            with pytest.raises(ModelUnavailable) as raised:
                WAYS["stream"](model)
            kinds[kind] = getattr(raised.value, "reason", "")
    assert kinds == {"overloaded_error": "overloaded", "rate_limit_error": "rate_limited", "api_error": ""}


BEGUN = (
    ("message_start", {"message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 1},
    }}),
    ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
)  # fmt: skip
PIECE = ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "word "}})


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


async def _without_end() -> AsyncIterator[bytes]:
    for kind, data in BEGUN:
        yield _event(kind, data)
    while True:
        yield _event(*PIECE)
        await asyncio.sleep(0.01)


def test_an_answer_that_takes_too_long_is_cut_where_it_is() -> None:
    """It is neither lost nor made again; its tokens are what has come, since the service says them at its end."""
    pieces: list[str] = []
    with answering(StreamingResponse(_without_end(), media_type="text/event-stream")) as (model, paths):
        reply = model.stream(REQUEST, pieces.append, 3)
    assert (reply.stop_reason, reply.is_late) == ("max_tokens", True)
    assert reply.content[0]["text"] == "".join(pieces)
    assert reply.usage == Usage(7, math.ceil(len("".join(pieces)) / 4))
    assert len(paths) == 1
