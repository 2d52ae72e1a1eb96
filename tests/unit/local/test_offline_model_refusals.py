"""The offline model refuses what the real API refuses, in the real API's form."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import pytest
from dualtrack_stack.local.offline_model.server import OfflineModel, serve_offline_model
from dualtrack_stack.local.offline_model.service import MAX_BODY_BYTES

from tests.drivers.images import pdf, png

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADERS = {"x-api-key": "key", "anthropic-version": "2026-10-21"}
PNG = base64.b64encode(png()).decode()
WAVE = base64.b64encode(b"RIFF\0\0\0\0WAVEfmt ").decode()
PDF = base64.b64encode(pdf(b"a small one")).decode()
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
TOOL: dict[str, Any] = {"name": "look_up", "input_schema": SCHEMA}
USE = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"q": "x"}}
USE_2 = {**USE, "id": "toolu_2"}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
RESULT_2 = {**RESULT, "tool_use_id": "toolu_2"}
MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
HAIKU_5 = "claude-haiku-5-5"


CLIENT = httpx.Client(timeout=60)


@pytest.fixture(scope="module")
def model() -> Iterator[OfflineModel]:
    with serve_offline_model() as server, CLIENT:
        yield server


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(value: str = "hello", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def request(*messages: Any, **more: Any) -> dict[str, Any]:
    body = {
        "model": "claude-haiku-4-5-20251001",
        "max_tokens": 256,
        "messages": list(messages) or [user(text())],
        **more,
    }
    return {key: value for key, value in body.items() if value is not None}


def with_tools(*messages: Any, **more: Any) -> dict[str, Any]:
    return request(*messages, tools=[TOOL], **more)


def image(source: dict[str, Any]) -> dict[str, Any]:
    return {"type": "image", "source": source}


def of_type(media_type: str, data: bytes) -> dict[str, Any]:
    return image({"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()})


def document(data: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode()}
    return {"type": "document", "source": source}


def output(schema: dict[str, Any]) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "schema": schema}}


def post(model: OfflineModel, body: Any, path: str = "/v1/messages", **headers: str) -> httpx.Response:
    return CLIENT.post(f"{model.url}{path}", json=body, headers={**HEADERS, **headers})


PAIRED = (user(text()), assistant(text("look"), USE, USE_2), user(RESULT, RESULT_2, text("go on")))

ACCEPTED = {
    "a string for content": request({"role": "user", "content": "hello"}),
    "paired results, then text": with_tools(*PAIRED),
    "results in another order": with_tools(*PAIRED[:2], user(RESULT_2, RESULT)),
    "results over two user messages": with_tools(*PAIRED[:2], user(RESULT), user(RESULT_2)),
    "two user messages in a row": request(user(text()), user(text("more"))),
    "an empty tool result": with_tools(user(text()), assistant(USE), user({**RESULT, "content": ""})),
    "no content in a tool result": with_tools(
        user(text()),
        assistant(USE),
        user({"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True}),
    ),
    "media in a tool result": with_tools(
        user(text()),
        assistant(USE),
        user({**RESULT, "content": [image({"type": "base64", "media_type": "image/png", "data": PNG})]}),
    ),
    "four breakpoints": request(
        user(text(**MARK), text(**MARK)), system=[text("a", **MARK), text("b", **MARK)]
    ),
    "a PDF": request(
        user(
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            },
            text(),
        )
    ),
    "tool_choice none keeps tools": with_tools(*PAIRED, tool_choice={"type": "none"}),
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no messages": (request() | {"messages": []}, "at least one message"),
    "first message of the assistant": (request(assistant(text()), user(text())), 'must use the "user" role'),
    "unknown role": (request({"role": "tool", "content": "x"}), "messages.0"),
    "no max_tokens": (request(max_tokens=None), "max_tokens: Field required"),
    "negative max_tokens": (request(max_tokens=-1), "max_tokens"),
    "max_tokens as text": (request(max_tokens="256"), "max_tokens"),
    "more max_tokens than the model has": (request(max_tokens=64_001), "64001 > 64000"),
    "no model": (request(model=None), "model: Field required"),
    "temperature": (request(temperature=1.0), "temperature: Extra inputs"),
    "top_p": (request(top_p=0.5), "top_p: Extra inputs"),
    "top_k": (request(top_k=5), "top_k: Extra inputs"),
    "unknown field": (request(verbose=True), "verbose: Extra inputs"),
    "what dualtrack never sends": (request(top_k=1), "top_k: Extra inputs"),
    "a system message": (request(user(text()), {"role": "system", "content": "x"}), "messages.1"),
    "a source that dualtrack never sends": (
        request(user({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}})),
        "messages.0.content.0",
    ),
    "no tokens to answer with": (request(max_tokens=0), "max_tokens"),
    "unknown field of a message": (request(user(text()) | {"name": "x"}), "name: Extra inputs"),
    "unknown field of a block": (request(user(text(id="q1"))), "id: Extra inputs"),
    "unknown block type": (request(user({"type": "video", "url": "x"})), "messages.0.content.0"),
    "prefill": (request(user(text()), assistant(text("The answer is"))), "prefill"),
    "empty content": (request(user()), "non-empty content"),
    "empty string content": (request({"role": "user", "content": ""}), "non-empty content"),
    "empty text": (request(user(text(""))), "text content blocks must be non-empty"),
    "only white space": (request(user(text(" \n\t"))), "non-whitespace"),
    "empty system text": (request(system=[text("")]), "system: text content blocks must be non-empty"),
    "empty text in a tool result": (
        with_tools(user(text()), assistant(USE), user({**RESULT, "content": [text("")]})),
        "must be non-empty",
    ),
    "breakpoint on an empty block": (request(user(text("", **MARK), text())), "cache_control cannot be set"),
    "five breakpoints": (request(user(*(text(**MARK) for _ in range(5)))), "Found 5"),
    "breakpoint on thinking": (
        request(user(text()), assistant({"type": "thinking", "thinking": "x", "signature": "y", **MARK})),
        "cache_control: Extra inputs",
    ),
    "document of the assistant": (
        request(user(text()), assistant(document(pdf(b"x"))), user(text())),
        "messages.1.content.0",
    ),
    "tool name with a dot": (request(tools=[{**TOOL, "name": "look.up"}]), "should match pattern"),
    "tool name too long": (request(tools=[{**TOOL, "name": "x" * 129}]), "should match pattern"),
    "two tools of one name": (request(tools=[TOOL, TOOL]), "Tool names must be unique"),
    "tool without a schema": (request(tools=[{"name": "look_up"}]), "input_schema: Field required"),
    "tool schema not an object": (
        request(tools=[{**TOOL, "input_schema": {"type": "string"}}]),
        "should be 'object'",
    ),
    "tool with a property that is no identifier": (
        request(tools=[TOOL, {**TOOL, "name": "b", "input_schema": {**SCHEMA, "properties": {"$top": {}}}}]),
        "tools.1.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
    ),
    "too many tools": (
        request(tools=[{**TOOL, "name": f"t{number}"} for number in range(501)]),
        "tools: List should have at most 500 items",
    ),
    "tool schema with anyOf on top": (
        request(tools=[{**TOOL, "input_schema": {**SCHEMA, "anyOf": [{}]}}]),
        "at the top level",
    ),
    "tool schema that is none": (
        request(tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"q": {"type": "text"}}}}]),
        "JSON schema is invalid",
    ),
    "tool_choice of an unknown tool": (
        with_tools(tool_choice={"type": "tool", "name": "other"}),
        "not found in provided tools",
    ),
    "tool_choice without tools": (request(tool_choice={"type": "auto"}), "while providing tools"),
    "tool use without tools": (request(user(text()), assistant(USE), user(RESULT)), "must define tools"),
    "tool use without a result": (with_tools(user(text()), assistant(USE), user(text())), "toolu_1"),
    "tool use at the end": (with_tools(user(text()), assistant(USE)), "prefill"),
    "one of two without a result": (
        with_tools(user(text()), assistant(USE, USE_2), user(RESULT)),
        "immediately after: toolu_2",
    ),
    "late result": (
        with_tools(user(text()), assistant(USE), user(text()), assistant(text()), user(RESULT)),
        "immediately after: toolu_1",
    ),
    "text before the result": (
        with_tools(user(text()), assistant(USE), user(text(), RESULT)),
        "immediately after",
    ),
    "text message before the result": (
        with_tools(user(text()), assistant(USE), user(text()), user(RESULT)),
        "immediately after",
    ),
    "text between two results": (
        with_tools(user(text()), assistant(USE, USE_2), user(RESULT, text(), RESULT_2)),
        "immediately after: toolu_2",
    ),
    "result of nothing": (with_tools(user(RESULT)), "unexpected `tool_use_id`"),
    "result of another id": (
        with_tools(user(text()), assistant(USE), user(RESULT, RESULT_2)),
        "unexpected `tool_use_id`",
    ),
    "two results for one use": (
        with_tools(user(text()), assistant(USE), user(RESULT, RESULT)),
        "must have a single result",
    ),
    "two uses with one id": (
        with_tools(user(text()), assistant(USE, USE), user(RESULT)),
        "ids must be unique",
    ),
    "an id used again later": (
        with_tools(user(text()), assistant(USE), user(RESULT), assistant(USE), user(RESULT)),
        "ids must be unique",
    ),
    "id with a space": (
        with_tools(user(text()), assistant({**USE, "id": "a b"}), user(RESULT)),
        "should match pattern",
    ),
    "tool use of the user": (with_tools(user(USE)), "messages.0.content.0"),
    "tool result of the assistant": (
        with_tools(user(text()), assistant(RESULT), user(text())),
        "messages.1.content.0",
    ),
    "image of another media type": (
        request(user(image({"type": "base64", "media_type": "image/bmp", "data": PNG}))),
        "media_type",
    ),
    "image of more than 5 MB": (
        request(user(image({"type": "base64", "media_type": "image/png", "data": PNG + "A" * 5_242_880}))),
        "image exceeds 5 MB maximum",
    ),
    "sound that is called an image": (
        request(user(image({"type": "base64", "media_type": "image/webp", "data": WAVE}))),
        "messages.0.content.0.image.source.base64.data: Image does not match the provided media type image/webp",
    ),
    "more than 100 images": (
        request(user(*[image({"type": "base64", "media_type": "image/png", "data": PNG})] * 101)),
        "too many images",
    ),
    "image that is something else": (
        request(user(image({"type": "base64", "media_type": "image/jpeg", "data": PNG}))),
        "Image does not match the provided media type image/jpeg",
    ),
    "image that is no base64": (
        request(user(image({"type": "base64", "media_type": "image/png", "data": "%%%"}))),
        "invalid base64",
    ),
    "PDF that is none": (
        request(
            user(
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PNG},
                }
            )
        ),
        "messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.",
    ),
    "PDF without an end": (
        request(user(document(b"%PDF-1.7 and nothing more"))),
        "The PDF specified was not valid.",
    ),
    "image that is cut off": (request(user(of_type("image/png", png()[:-13]))), "Could not process image"),
    "image with too few pixels": (
        request(user(of_type("image/png", png(width=8, height=8, pixels=zlib.compress(b"\0\0"))))),
        "Could not process image",
    ),
    "image in a result with too many pixels a side": (
        with_tools(
            user(text()),
            assistant(USE),
            user({**RESULT, "content": [text(), of_type("image/png", png(width=8_001))]}),
        ),
        "messages.2.content.0.tool_result.content.1.image.source.base64.data: At least one of the image dimensions",
    ),
    "image too large among many": (
        request(user(*[of_type("image/png", png())] * 20, of_type("image/png", png(height=2_001)))),
        "exceed max allowed size for many-image requests: 2000 pixels",
    ),
    "forged thinking": (
        request(
            user(text()),
            assistant({"type": "thinking", "thinking": "x", "signature": "bm8="}, text()),
            user(text()),
        ),
        "Invalid `signature`",
    ),
    "adaptive thinking on a model without": (request(thinking={"type": "adaptive"}), "not supported"),
    "manual thinking on a model without": (
        request(model=HAIKU_5, thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=4096),
        "thinking",
    ),
    "open output schema": (
        request(output_config=output({"type": "object", "properties": {}})),
        "additionalProperties",
    ),
    "output schema with a bound": (
        request(
            output_config=output(
                {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"n": {"type": "integer", "minimum": 1}},
                }
            )
        ),
        "minimum are not supported",
    ),
    "old name of structured output": (request(output_format={"type": "json_schema"}), "Extra inputs"),
    "prompt too long": (request(user(text("x" * 800_004))), "> 200000 maximum"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepts(model: OfflineModel, name: str) -> None:
    answer = post(model, ACCEPTED[name])
    assert answer.status_code == 200, answer.text
    assert answer.json()["type"] == "message"


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(model: OfflineModel, name: str) -> None:
    body, reason = REFUSED[name]
    answer = post(model, body)
    assert answer.status_code == 400
    error = answer.json()
    assert error["type"] == "error"
    assert error["error"]["type"] == "invalid_request_error"
    assert reason in error["error"]["message"]
    assert error["request_id"] == answer.headers["request-id"]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "9" * 400, "9" * 9_000])
def test_a_body_with_a_number_too_large_for_a_parser_is_not_json(model: OfflineModel, number: str) -> None:
    body = json.dumps(request()).replace('"max_tokens": ', f'"x": {number}, "max_tokens": ')
    assert number in body
    answer = CLIENT.post(
        f"{model.url}/v1/messages", content=body, headers={**HEADERS, "content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        400,
        "The request body is not valid JSON",
    )


@pytest.mark.parametrize(("levels", "status"), [(100, 200), (150, 400)])
def test_a_tool_input_nested_too_deep_is_not_json(model: OfflineModel, levels: int, status: int) -> None:
    deep: dict[str, Any] = {}
    for _ in range(levels - 1):
        deep = {"a": deep}
    body = with_tools(user(text()), assistant({**USE, "input": deep}), user(RESULT))
    assert post(model, body).status_code == status


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"x-api-key": "key"}, 400, "invalid_request_error"),
        ({"anthropic-version": "2026-10-21"}, 401, "authentication_error"),
        ({"anthropic-version": "2026-10-21", "authorization": "Basic x"}, 401, "authentication_error"),
        ({**HEADERS, "content-type": "text/plain"}, 400, "invalid_request_error"),
    ],
)
def test_headers(model: OfflineModel, headers: dict[str, str], status: int, kind: str) -> None:
    answer = CLIENT.post(f"{model.url}/v1/messages", json=request(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)


@pytest.mark.parametrize("raw", [b"{", b"[1, 2]", b'"text"', b"\xff\xfe", b'{"model": "\\ud800"}'])
def test_a_body_that_is_not_a_request(model: OfflineModel, raw: bytes) -> None:
    answer = CLIENT.post(
        f"{model.url}/v1/messages", content=raw, headers={**HEADERS, "content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_body_over_32_megabytes(model: OfflineModel) -> None:
    raw = json.dumps(request(user(text("x" * MAX_BODY_BYTES)))).encode()
    answer = CLIENT.post(
        f"{model.url}/v1/messages",
        content=raw,
        headers={**HEADERS, "content-type": "application/json"},
    )
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")


def test_unknown_model_and_path(model: OfflineModel) -> None:
    assert post(model, request(model="gpt-x")).json()["error"] == {
        "type": "not_found_error",
        "message": "model: gpt-x",
    }
    assert post(model, request(), path="/v1/nothing").json()["error"]["type"] == "not_found_error"


def test_the_sdk_raises_its_own_errors(model: OfflineModel) -> None:
    with anthropic.Anthropic(api_key="key", base_url=model.url, max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError) as refused:
            client.messages.create(
                model="claude-haiku-4-5", max_tokens=10, messages=[{"role": "assistant", "content": "x"}]
            )
        assert refused.value.type == "invalid_request_error"
        with pytest.raises(anthropic.NotFoundError):
            client.messages.create(model="gpt-x", max_tokens=10, messages=[{"role": "user", "content": "x"}])
