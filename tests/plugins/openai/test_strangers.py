"""What other models and other clients leave in a history is read item by item, and every refusal has OpenAI's form."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack.errors import ApiError
from dualtrack.plugins.openai.fields import COMPLETION, RESPONSE, as_table, refuse_unserved
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.drivers.documents import ROOT
from tests.drivers.images import png
from tests.plugins.openai.door import Door, answers, text_of, user

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNT = {"type": "function", "function": {"name": "count_files", "parameters": {"type": "object"}}}
FLAT = {"type": "function", "name": "count_files", "parameters": {"type": "object"}}
HTTP_IMAGE = {"type": "image_url", "image_url": {"url": "https://files.example/a.png"}}
JPEG = bytes.fromhex("ffd8ffc0000b080001000101011100ffda0008010100003f0000ffd9")
OLD_PARTS: list[Any] = [
    {"type": "think", "think": "Hm."},
    {"type": "thinking", "thinking": "Hm, hm.", "text": "thought"},
    {"type": "reasoning", "text": "reasoned"},
    HTTP_IMAGE,
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "document", "source": {"type": "url", "url": "https://files.example/a.pdf"}},
    {"type": "text", "text": {"value": "Said as a value.", "annotations": []}},
    {"type": "video"},
    None,
    7,
    "As a text.",
    {"type": "text", "text": "Said."},
]


def data_url(media_type: str, data: bytes, *, is_broken: bool = False) -> str:
    text = base64.encodebytes(data).decode() if is_broken else base64.b64encode(data).decode()
    return f"data:{media_type};base64,{text}"


def respond(door: Door, key: str, sent: object, **more: Any) -> httpx.Response:
    body = {"model": "assistant", "input": sent, **more}
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{door.url}/openai/v1/responses", json=body, headers=headers, timeout=30)


def images_sent(door: Door) -> list[str]:
    """The media types of the images that the last turn's request has, in order."""
    door.machine.wait()
    messages = [one.body for one in door.world.model.requests if one.body.get("stream")][-1]["messages"]
    blocks = [block for message in messages for block in message["content"]]
    inner = [part for block in blocks if isinstance(block.get("content"), list) for part in block["content"]]
    return [part["source"]["media_type"] for part in (*blocks, *inner) if part["type"] == "image"]


def test_old_messages_are_taken_with_what_they_have(door: Door) -> None:
    key = door.key("ann")
    history: list[Any] = [
        "junk",
        {"role": "wizard", "content": "x"},
        {"role": "user", "content": OLD_PARTS},
        {
            "role": "assistant",
            "content": OLD_PARTS,
            "tool_calls": [7, {"id": "call_1"}, {"id": "c", "function": {"name": "f", "arguments": "{"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": [HTTP_IMAGE, {"type": "text", "text": "Found."}]},
        {"role": "assistant", "content": {"odd": 1}, "tool_calls": "none"},
        user("And?"),
    ]
    answers(door, "Well.", "Well, well.")
    assert text_of(door.post(key, history)) == "Well."
    (sent,) = door.sent()
    whole = "\n".join(sent)
    assert whole.count("Said as a value.\nAs a text.\nSaid.") == 2
    assert "Found." in whole
    assert not any(text in whole for text in ("Hm", "thought", "reasoned"))
    items = [
        "junk",
        {"type": "message", "role": "user", "content": OLD_PARTS},
        {"type": "odd_item", "x": 1},
        {"type": "function_call", "call_id": 7},
        {
            "type": "message",
            "role": "assistant",
            "content": [HTTP_IMAGE, {"type": "output_text", "text": "So."}],
        },
        user("And now?"),
    ]
    made = respond(door, key, items)
    assert made.status_code == 200, made.text
    assert "So." in "\n".join(door.sent()[-1])


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (HTTP_IMAGE, "data URL"),
        ({"type": "input_audio"}, "input_audio"),
        ({"type": "text"}, "needs its text"),
        ({"type": "image_url", "image_url": {"url": data_url("image/png", b"GIF")}}, "not image/png"),
        ({"type": "image_url", "image_url": {"url": data_url("image/svg+xml", b"<svg/>")}}, "no image"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,!!"}}, "base64"),
    ],
)
def test_the_newest_message_has_to_be_understood(door: Door, part: dict[str, Any], named: str) -> None:
    key = door.key("bea")
    for response in (
        door.post(key, [user([{"type": "text", "text": "Look."}, part])]),
        respond(door, key, [user([{"type": "input_text", "text": "Look."}, part])]),
    ):
        assert response.status_code == 400
        assert named in response.json()["error"]["message"]
    assert door.conversations("bea") == []


@pytest.mark.parametrize(
    ("media_type", "data", "sent_as"),
    [
        ("image/jpg", JPEG, "image/jpeg"),
        ("image/jpeg", png(), "image/png"),
        ("IMAGE/PNG; charset=binary", png(), "image/png"),
        ("application/octet-stream", png(), "image/png"),
        ("", JPEG, "image/jpeg"),
    ],
)
def test_an_image_is_what_its_bytes_are(door: Door, media_type: str, data: bytes, sent_as: str) -> None:
    key = door.key("cy")
    answers(door, "Seen.", "Seen.")
    image = {"type": "image_url", "image_url": {"url": data_url(media_type, data, is_broken=True)}}
    assert text_of(door.post(key, [user([image])])) == "Seen."
    assert images_sent(door) == [sent_as]
    flat = {"type": "input_image", "image_url": data_url(media_type, data)}
    assert respond(door, key, [user([flat])]).status_code == 200
    assert images_sent(door) == [sent_as]


def test_images_in_the_results_of_a_clients_tool(door: Door) -> None:
    key = door.key("di")
    asks = ScriptedResponse(match="turn", content=({"type": "tool_use", "name": "count_files", "input": {}},))
    door.world.model.script.add(asks)
    answers(door, "A pixel.")
    history: list[Any] = [user("What is there?")]
    message = door.post(key, history, tools=[COUNT]).json()["choices"][0]["message"]
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "One file."},
        {"type": "image_url", "image_url": {"url": data_url("image/jpg", png())}},
    ]
    named = message["tool_calls"][0]["id"]
    history += [message, {"role": "tool", "tool_call_id": named, "content": parts}]
    assert text_of(door.post(key, history, tools=[COUNT])) == "A pixel."
    assert images_sent(door) == ["image/png"]
    assert text_of(door.post(key, history, tools=[COUNT])) == "A pixel.", "the same again changes nothing"
    parts[1]["image_url"] = {"url": data_url("image/jpeg", JPEG)}
    assert door.post(key, history, tools=[COUNT]).status_code == 409, "another image is another result"

    door.world.model.script.add(asks)
    answers(door, "Another.")
    first = respond(door, key, "What is there?", tools=[FLAT]).json()
    (called,) = first["output"]
    output = [
        {"type": "input_text", "text": "One file."},
        {"type": "input_image", "image_url": data_url("image/jpeg", JPEG)},
    ]
    result = {"type": "function_call_output", "call_id": called["call_id"], "output": output}
    second = respond(door, key, [result], previous_response_id=first["id"], tools=[FLAT])
    assert second.status_code == 200, second.text
    assert images_sent(door) == ["image/jpeg"]


def test_half_of_a_surrogate_pair_is_a_replacement_character(door: Door) -> None:
    key = door.key("ed")
    answers(door, "One.", "Two.")
    headers = {"Authorization": f"Bearer {key}", "content-type": "application/json"}
    body = {"model": "assistant", "messages": [user("a\ud800b")], "metadata": {"x": "\udfff"}}
    url = f"{door.url}/openai/v1/chat/completions"
    assert httpx.post(url, content=json.dumps(body), headers=headers, timeout=30).status_code == 200
    assert any("a\ufffdb" in block for block in door.sent()[-1])
    odd = {**body, "model": "\ud800"}
    assert httpx.post(url, content=json.dumps(odd), headers=headers).status_code == 404
    asked = {"model": "assistant", "input": "c\udc00", "metadata": {"x": "\ud800"}, "instructions": "\udfff"}
    made = httpx.post(
        f"{door.url}/openai/v1/responses", content=json.dumps(asked), headers=headers, timeout=30
    )
    assert made.json()["metadata"] == {"x": "\ufffd"}
    deep = '{"a":' * 100_000 + '"\\u0000"' + "}" * 100_000
    assert httpx.post(url, content=deep, headers=headers).status_code == 400


ANY: list[tuple[str, str, int]] = [
    ("GET", "/chat/completions", 405),
    ("DELETE", "/responses/resp_1", 405),
    ("PUT", "/models", 405),
    ("PATCH", "/nothing", 404),
    ("TRACE", "/models", 404),
    ("POST", "/embeddings", 404),
    ("GET", "/models/gpt-9", 404),
    ("GET", "/models/a/b", 404),
    ("GET", "/", 404),
]


@pytest.mark.parametrize(("method", "path", "status"), ANY)
def test_every_refusal_has_openais_form(door: Door, method: str, path: str, status: int) -> None:
    headers = {"Authorization": f"Bearer {door.key('flo')}"}
    response = httpx.request(method, f"{door.url}/openai/v1{path}", headers=headers)
    error: Mapping[str, Any] = response.json()["error"]
    assert response.status_code == status
    assert error["message"]
    assert (error["type"], error["param"]) == ("invalid_request_error", None)
    if status == 405:
        assert response.headers["allow"]


def test_a_model_by_its_name(door: Door) -> None:
    headers = {"Authorization": f"Bearer {door.key('gus')}"}
    model = httpx.get(f"{door.url}/openai/v1/models/assistant", headers=headers).json()
    assert (model["id"], model["object"]) == ("assistant", "model")
    assert httpx.get(f"{door.url}/openai/v1/models/assistant").status_code == 401


def test_what_is_too_large_and_what_breaks_off_is_said_in_openais_form(door: Door) -> None:
    key = door.key("hal")
    large = door.send(key, {"model": "assistant", "messages": [user("x" * 10_600_000)]})
    assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")
    door.world.model.script.add(ScriptedResponse(match="turn", status=400, error_message="broken"))
    lines: list[str] = []
    body = {"model": "assistant", "messages": [user("Fail?")], "stream": True}
    with pytest.raises(httpx.RemoteProtocolError), door.open(key, body) as stream:
        lines.extend(stream.iter_lines())
    (error,) = [json.loads(line[6:])["error"] for line in lines if '"error"' in line]
    assert error["type"] == "server_error"


@pytest.mark.parametrize("fields", [COMPLETION, RESPONSE])
def test_a_field_that_is_not_served_is_refused_by_its_name(fields: Any) -> None:
    for name, field in fields.items():
        if field.use == "refused":
            with pytest.raises(ApiError, match=f"^{name}: "):
                refuse_unserved({name: "something"}, fields)
            refuse_unserved(dict.fromkeys([name], field.harmless[-1]), fields)
        else:
            refuse_unserved({name: "something"}, fields)


@pytest.mark.parametrize("fields", [COMPLETION, RESPONSE])
def test_the_documents_table_is_that_of_the_code(fields: Any) -> None:
    assert as_table(fields) in (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
