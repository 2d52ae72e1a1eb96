"""The question about the service's cache: who is asked, what is read of the answer, and that no call fails by it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.errors import ModelRefused
from dualtrack.models.cache_word import CacheWord, asking
from dualtrack.models.providers.anthropic.client import connect, is_asked
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from dualtrack.models.turn import ModelReply
    from starlette.requests import Request

REQUEST: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "Which colour?"}],
}
MESSAGE: dict[str, Any] = {
    "id": "msg_2", "type": "message", "role": "assistant", "model": "claude-haiku-5-5", "content": [],
    "usage": {"input_tokens": 7, "output_tokens": 1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("address", "setting", "asked"),
    [
        ("https://api.anthropic.com", "own", True),
        ("https://api.anthropic.com/", "own", True),
        ("https://api.anthropic.com", "off", False),
        ("https://gateway.example/api.anthropic.com", "own", False),
        ("https://api.anthropic.com.example", "own", False),
        ("https://gateway.example", "on", True),
    ],
)
def test_only_its_own_address_is_asked_unless_a_setting_says_otherwise(
    address: str, setting: str, asked: bool
) -> None:
    assert is_asked(address, setting) is asked


def answered(start: dict[str, Any], request: dict[str, Any]) -> ModelReply:
    """The reply of a service that is asked and begins with this."""
    events = [
        {"type": "message_start", "message": MESSAGE | start},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    ]
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    async def respond(_: Request) -> Response:
        return Response(text, media_type="text/event-stream")

    with serve_in_thread(Starlette(routes=[Route("/v1/messages", respond, methods=["POST"])])) as url:
        return connect(url, "key", asks_about_cache=True).stream(request, lambda _: None)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({}, CacheWord()),
        ({"diagnostics": None}, CacheWord()),
        ({"diagnostics": {"cache_miss_reason": None}}, None),  # too early to say
        (
            {
                "diagnostics": {
                    "cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 41_850}
                }
            },
            CacheWord("tools_changed", 41_850),
        ),
        ({"diagnostics": {"cache_miss_reason": {"type": "unavailable"}}}, CacheWord("unavailable")),
        ({"diagnostics": {"cache_miss_reason": {"type": "a_new_reason"}}}, CacheWord("a_new_reason")),
        ({"diagnostics": {"cache_miss_reason": {"type": "Not a word!"}}}, None),
        ({"diagnostics": {"cache_miss_reason": {"type": 5, "cache_missed_input_tokens": "many"}}}, None),
        ({"diagnostics": {"cache_miss_reason": "tools_changed"}}, None),
        ({"diagnostics": "tools_changed"}, None),
        ({"diagnostics": []}, None),
    ],
)
def test_what_the_service_says_of_a_message_before(said: dict[str, Any], word: CacheWord | None) -> None:
    reply = answered(said, {**REQUEST, **asking("msg_1")})
    assert (reply.cache, reply.message, reply.stop_reason) == (word, "msg_2", "end_turn")


def test_nothing_is_said_where_nothing_came_before() -> None:
    assert answered({"diagnostics": None}, {**REQUEST, **asking("")}).cache is None


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, 5, None, "msg_ä"])
def test_an_id_that_cannot_be_sent_back_is_none(name: object) -> None:
    assert answered({"id": name}, {**REQUEST, **asking("")}).message == ""


def test_a_service_that_refuses_the_question_is_asked_no_more_and_answers() -> None:
    """The refused request costs nothing, and the chat goes on; what is refused otherwise is refused."""
    bodies: list[dict[str, Any]] = []

    async def respond(request: Request) -> Response:
        bodies.append(await request.json())
        if "diagnostics" in bodies[-1]:
            error = {
                "type": "invalid_request_error",
                "message": "diagnostics: Extra inputs are not permitted",
            }
            return JSONResponse({"type": "error", "error": error}, 400)
        if bodies[-1]["max_tokens"] < 9:
            error = {"type": "invalid_request_error", "message": "max_tokens: no"}
            return JSONResponse({"type": "error", "error": error}, 400)
        events = [
            {"type": "message_start", "message": MESSAGE},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return Response(text, media_type="text/event-stream")

    asked = {**REQUEST, **asking("msg_1")}
    with serve_in_thread(Starlette(routes=[Route("/v1/messages", respond, methods=["POST"])])) as url:
        model = connect(url, "key", asks_about_cache=True)
        replies = [model.stream(asked, lambda _: None) for _ in range(2)]
        with pytest.raises(ModelRefused):
            model.stream({**asked, "max_tokens": 1}, lambda _: None)
    assert [(reply.cache, reply.message) for reply in replies] == [(None, ""), (None, "")]
    assert ["diagnostics" in body for body in bodies] == [True, False, False, False]
