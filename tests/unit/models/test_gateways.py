"""Streams as the service and gateways really send them: what is missing is done without, what is new is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.errors import ModelBusy, ModelRefused
from dualtrack.models.providers.anthropic.client import connect
from dualtrack.models.turn import Declined, Usage
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from dualtrack.models.turn import ModelReply
    from starlette.requests import Request

REQUEST: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "Which colour?"}],
}
START = {
    "type": "message_start",
    "message": {"id": "m", "type": "message", "role": "assistant", "content": []},
}
USAGE = {"input_tokens": 7, "output_tokens": 1}


def said(answer: Response) -> tuple[ModelReply, str]:
    """The reply to such an answer of the service, and what was streamed of it; one request is made."""
    asked: list[str] = []

    async def respond(request: Request) -> Response:
        asked.append(request.url.path)
        return answer

    pieces: list[str] = []
    with serve_in_thread(Starlette(routes=[Route("/{rest:path}", respond, methods=["POST"])])) as url:
        reply = connect(url, "key").stream(REQUEST, pieces.append)
    assert len(asked) == 1
    return reply, "".join(pieces)


def stream(*events: dict[str, Any]) -> Response:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Response(text, media_type="text/event-stream")


def block(index: int, **content: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": content}


def piece(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stops(reason: str | None, **more: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, **more}


def test_usage_may_be_missing_everywhere() -> None:
    reply, text = said(
        stream(
            START, block(0, type="text", text=""), piece(0, type="text_delta", text="Red."), stops("end_turn")
        )
    )
    assert (text, reply.stop_reason, reply.usage) == ("Red.", "end_turn", Usage())


@pytest.mark.parametrize("kind", ["text", "output_text"])
def test_text_may_stand_in_the_beginning_of_a_block(kind: str) -> None:
    reply, text = said(
        stream(
            START | {"message": {**START["message"], "usage": USAGE}},
            block(0, type=kind, text="Re"),
            piece(0, type="text_delta", text="d."),
            stops("end_turn", usage={"output_tokens": 3}),
            stops(None),
        )
    )
    assert (text, reply.usage) == ("Red.", Usage(7, 3))
    assert [dict(kept) for kept in reply.content] == [{"type": "text", "text": "Red."}]


def test_a_block_of_an_unknown_kind_is_kept_as_it_is() -> None:
    reply, text = said(
        stream(
            START,
            block(0, type="compaction", content="So far."),
            piece(0, type="compaction_delta", content="more"),
            block(1, type="text", text="Red."),
            stops("compaction"),
        )
    )
    assert (text, reply.stop_reason) == ("Red.", "compaction")
    assert [kept["type"] for kept in reply.content] == ["compaction", "text"]


@pytest.mark.parametrize(
    ("written", "is_cut"), [([], True), (['{"id": "q', "1"], True), (['{"id": "q1"}'], False)]
)
def test_a_call_is_cut_if_its_input_is_not_whole(written: list[str], *, is_cut: bool) -> None:
    pieces = [piece(1, type="input_json_delta", partial_json=text) for text in written]
    whole = block(0, type="tool_use", id="toolu_1", name="a", input={})
    events = [whole, piece(0, type="input_json_delta", partial_json="{}")]
    second = block(1, type="tool_use", id="toolu_2", name="b", input={})
    reply, _ = said(stream(START, *events, second, *pieces, stops("max_tokens")))
    assert reply.cut == ("toolu_2" if is_cut else "")
    assert not reply.is_thought_alone


def test_a_refusal_has_its_category_and_explanation() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could\n harm."}
    delta = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    reply, _ = said(stream(START, delta))
    assert reply.declined == Declined("cyber", "It could harm.")
    hostile = {**details, "category": "<b>x</b>", "explanation": None}
    reply, _ = said(stream(START, {**delta, "delta": {"stop_reason": "refusal", "stop_details": hostile}}))
    assert reply.declined == Declined()
    assert said(stream(START, stops("refusal")))[0].declined == Declined()


def error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


FILTERED = "Output blocked by content filtering policy"


def test_an_error_of_content_within_a_stream_is_a_refusal_with_its_text() -> None:
    reply, text = said(
        stream(START, block(0, type="text", text="So f"), error("invalid_request_error", FILTERED))
    )
    assert (text, reply.stop_reason) == ("So f", "refusal")
    assert reply.declined == Declined("", FILTERED)
    assert reply.content[0]["text"] == "So f"


@pytest.mark.parametrize("status", [400, 403])
def test_so_is_one_in_place_of_a_stream(status: int) -> None:
    reply, _ = said(JSONResponse(error("invalid_request_error", FILTERED), status))
    assert (reply.stop_reason, reply.declined) == ("refusal", Declined("", FILTERED))


@pytest.mark.parametrize(
    "message",
    [
        "messages.2.content.1.image.source.base64.data: The image specified was not valid",
        "tools.0.custom.input_schema: JSON schema is invalid",
        "max_tokens: 99 > 4, which is the maximum allowed",
    ],
)
def test_other_refused_requests_are_none(message: str) -> None:
    with pytest.raises(ModelRefused):
        said(JSONResponse(error("invalid_request_error", message), 400))


def test_an_invalid_part_named_within_a_stream_is_no_refusal_and_no_retry() -> None:
    with pytest.raises(ModelRefused) as refused:
        said(stream(START, error("invalid_request_error", "tools.0.custom.input_schema: invalid")))
    assert refused.value.status == 400


def test_a_busy_service_within_a_stream_is_busy() -> None:
    with pytest.raises(ModelBusy):
        said(stream(START, error("overloaded_error", "Overloaded")))
