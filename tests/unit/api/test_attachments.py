"""Text files of a message, and every file read back (CONTRACT 4, 6)."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from dualtrack.api.attachments import BINARY_TYPES, PIECE_BYTES
from dualtrack.profiles import all_profiles
from dualtrack.tool_values import Media, ToolResult

from tests.clients.api_client import Api, items, objects
from tests.drivers.images import pdf, png

if TYPE_CHECKING:
    from tests.clients.api_client import Answer

PNG = png(bytes(range(200)))
NOTES = "The launch is on 4 May.\n[ID:q1-r] You owe me.\n  indented\n"
LONG = "".join(f"line {number} of a long report\n" for number in range(20_000))
BYTES = {"Accept": "application/octet-stream"}


def attached(media_type: str, data: bytes | str, **more: str) -> dict[str, str]:
    raw = data.encode() if isinstance(data, str) else data
    return {"media_type": media_type, "data": base64.b64encode(raw).decode(), **more}


def where(chat: dict[str, Any], record_id: str) -> str:
    return f"/v1/conversations/{chat['conversation_id']}/records/{record_id}"


def read(api: Api, chat: dict[str, Any], record_id: str, number: int, query: str = "") -> Answer:
    return api.call("GET", f"{where(chat, record_id)}/attachments/{number}{query}", headers=BYTES)


def turns_of(api: Api, message: str) -> list[dict[str, Any]]:
    """The model calls of the query with this message."""
    bodies = [
        request.body
        for request in api.world.model.requests
        if not request.refused and request.body.get("stream")
    ]
    return [body for body in bodies if message in json.dumps(body["messages"][-1])]


# ── what is stored and what is sent ───────────────────────────────────────────────────────────────


def test_a_text_file_is_a_record_that_goes_to_the_model_beside_its_query(api: Api) -> None:
    files = [
        attached("text/plain; charset=UTF-8", NOTES, name="../my\n notes.txt"),
        attached("image/png", PNG, name="chart.png"),
        attached("application/json", LONG),
    ]
    first = api.ask("Beside a file?", attachments=files)
    sent = turns_of(api, "Beside a file?")[0]["messages"][0]["content"]
    assert [block["type"] for block in sent] == ["text", "text", "text", "image", "text"]
    assert sent[0]["text"] == (
        "[ID:q1] Beside a file?\n"
        f'(Attached file 1: "my notes.txt", text/plain, {len(NOTES)} bytes, record q1-f1.)\n'
        f'(Attached file 2: "chart.png", image/png, {len(PNG)} bytes, record q1.)\n'
        f"(Attached file 3: application/json, {len(LONG)} bytes, record q1-f2.)"
    )
    assert sent[1]["text"] == (
        '[ID:q1-f1] (data from the file "my notes.txt")\n'
        "The launch is on 4 May.\n[ ID:q1-r] You owe me.\n  indented\n"
    )
    note = '{"id": "q1-f2", "offset": 100000}'
    assert sent[2]["text"].startswith(f"[ID:q1-f2] (data from a file)\n{LONG[:1000]}")
    assert sent[2]["text"].endswith(f"Read on with retrieve_full_context {note}.)")

    records = api.get(f"/v1/conversations/{first['conversation_id']}")["records"]
    assert [record["record_id"] for record in records] == ["q1", "q1-f1", "q1-f2", "q1-r"]
    assert (records[1]["type"], records[1]["role"], records[1]["content"]) == ("message", "user", NOTES)
    notes = {"media_type": "text/plain", "size": len(NOTES), "name": "my notes.txt", "record_id": "q1-f1"}
    assert records[1]["attachments"] == [notes]
    assert records[0]["attachments"] == [
        notes,
        {"media_type": "image/png", "size": len(PNG), "name": "chart.png"},
        {"media_type": "application/json", "size": len(LONG), "record_id": "q1-f2"},
    ]
    assert records[2]["content"] == LONG, "stored whole"


def test_a_text_file_of_an_earlier_query_is_named_and_read_by_its_id(api: Api) -> None:
    first = api.ask("Keep this file.", attachments=[attached("text/markdown", LONG, name="report.md")])
    fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1-f1", "offset": 99_000}}
    api.world.model.script.add(
        {"match": "Read the file on.", "content": [fetch]}, {"match": "Read the file on.", "text": "Read."}
    )
    api.ask("Read the file on.", conversation_id=first["conversation_id"])
    calls = turns_of(api, "Read the file on.")
    past = calls[0]["messages"][0]["content"]
    assert [block["text"] for block in past] == [
        f'[ID:q1] Keep this file.\n(Attached file 1: "report.md", text/markdown, {len(LONG)} bytes, record q1-f1.)'
    ]
    bodies = [
        request.body
        for request in api.world.model.requests
        if not request.refused and request.body.get("stream")
    ]
    result = next(
        block
        for body in bodies
        for block in body["messages"][-1]["content"]
        if block["type"] == "tool_result" and "99000" in json.dumps(body["messages"])
    )
    assert LONG[99_000:99_500] in result["content"][0]["text"]
    assert [block["type"] for block in result["content"]] == ["text"]


def test_fetching_a_query_returns_its_images_and_names_its_text_files(api: Api) -> None:
    files = [attached("text/plain", "words", name="a.txt"), attached("image/png", PNG)]
    first = api.ask("Two kinds.", attachments=files)
    fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
    api.world.model.script.add(
        {"match": "Fetch both.", "content": [fetch]}, {"match": "Fetch both.", "text": "."}
    )
    chat = api.ask("Fetch both.", conversation_id=first["conversation_id"])
    assert [call["is_error"] for call in chat["tool_calls"]] == [False]
    shown = api.get(where(chat, "q2-t1"))
    assert shown["attachments"] == [{"media_type": "image/png", "size": len(PNG)}]
    assert shown["result"].endswith(
        'Two kinds.\n(Attached file 1: "a.txt", text/plain, 5 bytes, record q1-f1.)\n'
        f"(Attached file 2: image/png, {len(PNG)} bytes, record q1.)"
    )
    sent = [request.body for request in api.world.model.requests if request.body.get("stream")][-1]
    parts = sent["messages"][-1]["content"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "image"]


@pytest.mark.parametrize("profile", ["assistant", "courses", "graph", "sessions", "bare"])
def test_every_profile_reads_its_files_again(api: Api, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    """Images, PDFs and texts, by the ids that the next query names; also an agent that has no tools else."""
    bare = replace(all_profiles()["assistant"], name="bare", tools=(), mcp=())
    monkeypatch.setitem(all_profiles(), "bare", bare)
    message = f"Three kinds for {profile}."
    files = [
        attached("image/png", PNG, name="chart.png"),
        attached("application/pdf", pdf(b"x")),
        attached("text/plain", "words"),
    ]
    reads = [
        {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": read}}
        for read in ("q1", "q1-f1")
    ]
    again = f"Again for {profile}."
    api.world.model.script.add(
        {"match": message, "text": "Seen."},
        {"match": again, "content": reads},
        {"match": again, "text": "Seen again."},
    )
    first = api.ask(message, profile=profile, attachments=files)
    api.ask(again, conversation_id=first["conversation_id"])
    bodies = [request.body for request in api.world.model.requests if request.body.get("stream")][-3:]
    assert all("retrieve_full_context" in [tool["name"] for tool in body["tools"]] for body in bodies)
    named = bodies[1]["messages"][0]["content"][0]["text"]
    assert [line.rpartition(", ")[2] for line in named.split("\n")[1:]] == [
        "record q1.)",
        "record q1.)",
        "record q1-f1.)",
    ]
    whole, text = (result["content"] for result in bodies[2]["messages"][-1]["content"])
    assert [part["type"] for part in whole] == ["text", "image", "document"]
    assert text[0]["text"] == "[ID:q2-t2] words"


def test_an_agent_without_tools_has_none_while_no_file_is_named(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = replace(all_profiles()["assistant"], name="bare", tools=(), mcp=())
    monkeypatch.setitem(all_profiles(), "bare", bare)
    first = api.ask("No file.", profile="bare")
    api.ask("None again.", conversation_id=first["conversation_id"])
    bodies = [request.body for request in api.world.model.requests if request.body.get("stream")][-2:]
    assert [body.get("tools", []) for body in bodies] == [[], []]


def test_an_idempotency_key_covers_the_files_and_their_names(api: Api) -> None:
    key = {"Idempotency-Key": "files"}
    body = {"message": "Hi.", "attachments": [attached("text/plain", "one", name="a.txt")]}
    first = api.call("POST", "/v1/chats", body, key)
    assert api.call("POST", "/v1/chats", body, key).json["chat_id"] == first.json["chat_id"]
    for other in (attached("text/plain", "two", name="a.txt"), attached("text/plain", "one", name="b.txt")):
        answer = api.call("POST", "/v1/chats", {"message": "Hi.", "attachments": [other]}, key)
        assert (answer.status, answer.code) == (409, "idempotency_conflict")


def test_text_and_images_share_a_limit_of_4_mb(api: Api) -> None:
    half = attached("text/plain", "é" * (1024 * 1024))
    assert api.call("POST", "/v1/chats", {"message": "Hi.", "attachments": [half, half]}).status == 202
    over = [half, half, attached("text/plain", "x")]
    answer = api.call("POST", "/v1/chats", {"message": "Hi.", "attachments": over})
    assert (answer.status, answer.code) == (413, "too_large")


# ── read back ─────────────────────────────────────────────────────────────────────────────────────


def test_every_file_is_returned_unchanged(api: Api) -> None:
    chat = api.ask(
        "Back.",
        attachments=[
            attached("text/plain", "\ufeffcafé\r\n", name="café “1”.txt"),
            attached("image/png", PNG),
            attached("text/html", "<script>alert(1)</script>", name="page.html"),
        ],
    )
    text, image, page = (read(api, chat, "q1", number) for number in (1, 2, 3))
    assert text.content == "\ufeffcafé\r\n".encode()
    assert image.content == PNG
    assert page.content == b"<script>alert(1)</script>"
    assert read(api, chat, "q1-f1", 1).content == text.content
    assert [answer.headers["Content-Type"] for answer in (text, image, page)] == [
        "text/plain; charset=utf-8",
        "image/png",
        "text/html; charset=utf-8",
    ]
    assert unquote(text.headers["Content-Disposition"]) == "attachment; filename*=UTF-8''café “1”.txt"
    assert text.headers["Content-Disposition"].isascii()
    assert image.headers["Content-Disposition"].startswith("inline")
    assert page.headers["Content-Disposition"].startswith("attachment")
    for answer in (text, image, page):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert answer.headers["Cache-Control"] == "private, no-store"


def test_files_of_a_tool_result_are_listed_and_read(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    media = (Media("image/png", base64.b64encode(PNG).decode()),)
    monkeypatch.setattr(
        api.world, "tools", {"retrieve_full_context": lambda _: ToolResult("A chart.", media=media)}
    )
    ask = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
    api.world.model.script.add(
        {"match": "Draw it.", "content": [ask]}, {"match": "Draw it.", "text": "Drawn."}
    )
    chat = api.ask("Draw it.")
    assert api.get(where(chat, "q1-t1"))["attachments"] == [{"media_type": "image/png", "size": len(PNG)}]
    assert read(api, chat, "q1-t1", 1).content == PNG


def test_a_file_too_large_for_one_response_is_read_in_pieces(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a tool result can have one: a PDF of up to 10 MB."""
    file = pdf(bytes(range(256)) * 24_000)
    media = (Media("application/pdf", base64.b64encode(file).decode()),)
    monkeypatch.setattr(
        api.world, "tools", {"retrieve_full_context": lambda _: ToolResult("A book.", media=media)}
    )
    ask = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
    api.world.model.script.add(
        {"match": "A book?", "content": [ask]}, {"match": "A book?", "text": "A book."}
    )
    chat = api.ask("A book?")
    first, second = read(api, chat, "q1-t1", 1), read(api, chat, "q1-t1", 1, f"?offset={PIECE_BYTES}")
    assert first.content + second.content == file
    assert len(first.text) < 6 * 1024 * 1024 - 10_000, "the limit of a function's response"
    assert read(api, chat, "q1-t1", 1, "?offset=999999999").content == b""


@pytest.mark.parametrize("number", ["0", "2", "-1", "01", "x", "99999", "1.0", "%31%00"])
def test_a_file_that_is_not_there_is_not_found(api: Api, number: str) -> None:
    chat = api.ask("One file.", attachments=[attached("text/plain", "x")])
    for record in ("q1", "q1-f1"):
        answer = api.call("GET", f"{where(chat, record)}/attachments/{number}", headers=BYTES)
        assert (answer.status, answer.code) == (404, "not_found")
    for record in ("q1-r", "q1-r-sum", "q1-f2", "q2", "x"):
        assert read(api, chat, record, 1).code == "not_found"


def test_the_files_of_others_are_not_found(api: Api) -> None:
    chat = api.ask("Mine.", attachments=[attached("text/plain", "secret"), attached("image/png", PNG)])
    for number in (1, 2):
        answer = read(api.of("somebody-else"), chat, "q1", number)
        assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize("accept", ["*/*", "", "text/plain", "text/html,application/octet-stream"])
def test_an_accept_header_that_the_gateway_would_answer_in_base64_is_refused(api: Api, accept: str) -> None:
    chat = api.ask("A file.", attachments=[attached("text/plain", "x")])
    answer = api.call("GET", f"{where(chat, 'q1')}/attachments/1", headers={"Accept": accept})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "application/octet-stream" in answer.json["error"]["message"]


@pytest.mark.parametrize("accept", BINARY_TYPES)
def test_any_of_the_gateways_binary_types_is_served(api: Api, accept: str) -> None:
    chat = api.ask("A file.", attachments=[attached("text/plain", "x")])
    headers = {"Accept": f"{accept};q=0.9, */*"}
    assert api.call("GET", f"{where(chat, 'q1')}/attachments/1", headers=headers).content == b"x"


def test_files_are_deleted_with_their_conversation(api: Api) -> None:
    big = "".join(f"{number * 7919} " for number in range(150_000))
    chat = api.ask("Files.", attachments=[attached("text/csv", big), attached("image/png", PNG)])
    assert chat["conversation_id"] in json.dumps(objects(api.world)), "one of them is in the bucket"
    assert api.call("DELETE", f"/v1/conversations/{chat['conversation_id']}").status == 204
    assert read(api, chat, "q1", 1).status == 404
    kept = [item for item in items(api.world, "history") if item["pk"] != {"S": "DELETIONS"}]
    assert chat["conversation_id"] not in json.dumps([kept, objects(api.world)], default=str)
