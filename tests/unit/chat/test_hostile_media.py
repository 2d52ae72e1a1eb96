"""Whatever a tool calls an image is sent or described in text, and the chat goes on (CONTRACT 7)."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.attached_files import File
from dualtrack.media import MAX_IMAGE, MAX_SENT
from dualtrack.memory.refused_files import MOST_NAMED
from dualtrack.tool_values import Media, Source, ToolResult

from tests.drivers.images import png, png_of
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.tools.running import Running

PNG = png()
CALL = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "x"}}


def media(data: bytes, media_type: str = "image/png") -> Media:
    return Media(media_type, base64.b64encode(data).decode())


@pytest.fixture
def brought() -> list[ToolResult]:
    """What the tool returns, one result per call."""
    return []


@pytest.fixture
def world(brought: list[ToolResult]) -> Iterator[World]:
    def tool(running: Running) -> ToolResult:
        return brought.pop(0)

    with make_world(retrieve_documentation=tool) as new_world:
        yield new_world


def sent(world: World) -> list[dict[str, Any]]:
    """The blocks of the tool result in the last turn that the model took."""
    (message,) = [
        request.body["messages"][-1]
        for request in world.model.requests
        if request.body.get("tools") and not request.refused and len(request.body["messages"]) == 3
    ][-1:]
    blocks: list[dict[str, Any]] = message["content"][0]["content"]
    return blocks


def ask(world: World, calls: int = 1) -> str:
    world.model.script.add({"match": "turn", "content": [CALL] * calls}, {"match": "turn", "text": "Seen."})
    return world.ask("Look.").status


def sources_of_record(world: World) -> tuple[Any, ...]:
    (conversation,) = world.stores.conversations.newest("ann")
    record = world.stores.history.record("ann", conversation.conversation_id, "q1-t1")
    assert record is not None
    assert record.call is not None
    return record.call.sources


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (media(b"<html>no image</html>"), "the data is not image/png"),
        (media(b"RIFF\0\0\0\0WAVEfmt ", "image/webp"), "the data is not image/webp"),
        (media(b"<html>", "application/pdf"), "the data is not application/pdf"),
        (media(b""), "the data is not image/png"),
        (media(b"<svg/>", "image/svg+xml"), "it is no image (PNG, JPEG, GIF, WebP) and no PDF"),
        (Media("image/png", "not base64!"), "the data is not base64"),
        (Media("image/png", "iVBORw0KGgo"), "the data is not base64"),
        (Media("image/png", "💡\ud800"), "the data is not base64"),
        (
            media(b"<svg/>", "image/png\ud800" + "x" * 9_000),
            "it is no image (PNG, JPEG, GIF, WebP) and no PDF",
        ),
        (media(png(bytes(MAX_IMAGE))), "it has more than 3,932,160 bytes"),
        (media(PNG[:-20]), "the image is broken: it is cut off"),
        (media(png(width=8_001)), "the image has 8,001 x 1 pixels, and a side may have 8,000"),
    ],
)
def test_a_file_that_the_service_would_refuse_becomes_text(
    world: World, brought: list[ToolResult], wrong: Media, reason: str
) -> None:
    brought.append(ToolResult("Here.", media=(wrong, media(PNG))))
    assert ask(world) == "done"
    text, image = sent(world)
    assert text["text"].startswith("[ID:q1-t1] Here.\n\n(A file of type ")
    assert text["text"].endswith(f"could not be shown: {reason}.)")
    assert len(text["text"]) < 300
    assert image["source"]["media_type"] == "image/png"


def test_base64_in_lines_is_base64(world: World, brought: list[ToolResult]) -> None:
    lines = base64.encodebytes(png(bytes(200))).decode()
    brought.append(ToolResult("", media=(Media("image/png", lines),)))
    assert ask(world) == "done"
    assert sent(world)[1]["source"]["data"] == lines.replace("\n", "")


def test_of_very_many_files_a_few_are_sent_and_the_rest_counted(
    world: World, brought: list[ToolResult]
) -> None:
    brought.append(ToolResult("All.", media=(media(PNG),) * 5_000))
    assert ask(world) == "done"
    text, *images = sent(world)
    assert len(images) == MAX_SENT
    assert len(text["text"]) < 3_000
    assert text["text"].endswith(f"(And {5_000 - 2 * MAX_SENT} more.)")


def test_a_request_has_the_first_files_and_says_how_many_are_left_out(
    world: World, brought: list[ToolResult]
) -> None:
    brought += [ToolResult("One.", media=(media(PNG),) * 15), ToolResult("Two.", media=(media(PNG),) * 15)]
    assert ask(world, calls=2) == "done"
    first, second, _ask = world.model.requests[1].body["messages"][-1]["content"]
    assert [block["type"] for block in first["content"]] == ["text"] + ["image"] * 15
    assert [block["type"] for block in second["content"]] == ["text"] + ["image"] * 5 + ["text"]
    assert second["content"][-1]["text"] == "(Files of this result that could not be shown here: 10.)"


def test_files_too_large_together_for_a_request_are_left_out(world: World, brought: list[ToolResult]) -> None:
    brought += [ToolResult("Big.", media=(media(png_of(MAX_IMAGE)),) * 8)]
    assert ask(world) == "done"
    assert [block["type"] for block in sent(world)] == ["text"] + ["image"] * 4 + ["text"]


def test_a_file_that_the_service_refuses_is_left_out_of_a_second_request(
    world: World, brought: list[ToolResult]
) -> None:
    """The service decodes images and PDFs completely; a refusal is not charged."""
    brought.append(ToolResult("Here.", media=(media(PNG),)))
    world.model.script.add(
        {"match": "turn", "content": [CALL]},
        {"match": "turn", "status": 400, "error_message": "Could not process image"},
        {"match": "turn", "text": "Seen."},
    )
    chat = world.ask("Look.")
    assert (chat.status, chat.credits_used) == ("done", 15)
    assert [block["type"] for block in sent(world)] == ["text", "text"]


def image_places(body: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """(message, block, part) of every image and PDF in a request's tool results."""
    return [
        (number, index, part)
        for number, message in enumerate(body["messages"])
        for index, block in enumerate(message["content"])
        if block["type"] == "tool_result"
        for part, inner in enumerate(block["content"])
        if inner["type"] in ("image", "document")
    ]


def refuses(place: str, why: str = "The image specified was not valid") -> dict[str, Any]:
    return {"match": "turn", "status": 400, "error_message": f"{place}.image.source.base64.data: {why}"}


def turns(world: World) -> list[dict[str, Any]]:
    return [dict(request.body) for request in world.model.requests if request.body.get("stream")]


def test_the_file_that_a_refusal_names_is_left_out_alone(world: World, brought: list[ToolResult]) -> None:
    """For the rest of the query: in the turns after it and in the request for the summaries, too."""
    brought += [ToolResult("One.", media=(media(PNG),) * 3), ToolResult("Two.", media=(media(PNG),) * 2)]
    world.model.script.add(
        {"match": "turn", "content": [CALL, CALL]},
        refuses("messages.2.content.0.tool_result.content.2"),
        refuses("messages.2.content.1.tool_result.content.1"),
        {"match": "turn", "content": [CALL]},
        {"match": "turn", "text": "Seen."},
    )
    brought.append(ToolResult("Three.", media=(media(PNG),)))
    chat = world.ask("Look.")
    assert (chat.status, chat.stop) == ("done", "complete")
    _, refused, again, third, last = turns(world)
    assert len(image_places(refused)) == 5
    assert image_places(again) == [place for place in image_places(refused) if place != (2, 0, 2)]
    left = [(2, 0, 1), (2, 0, 3), (2, 1, 2)]
    assert image_places(third) == left
    assert image_places(last) == [*left, (4, 0, 1)]
    note = third["messages"][2]["content"][0]["content"][2]["text"]
    assert note == "(A file of type image/png could not be shown here: the model cannot read it.)"
    assert request_before(last, 3) == request_before(third, 3)


def request_before(body: Mapping[str, Any], messages: int) -> str:
    """The first messages, without cache marks."""
    return json.dumps(body["messages"][:messages]).replace(', "cache_control": {"type": "ephemeral"}', "")


def test_a_broken_pdf_of_a_query_is_left_out_beside_a_good_image(world: World) -> None:
    """The model's service alone reads a PDF; it names the one that it cannot read."""
    files = (File("text/plain", b"Notes."), File("image/png", PNG), File("application/pdf", b"%PDF-1.7 cut"))
    chat = world.run(world.start("Look.", files=files))
    assert (chat.status, chat.stop) == ("done", "complete")
    refused, answered = turns(world)
    assert [block["type"] for block in refused["messages"][0]["content"]] == [
        "text",
        "text",
        "image",
        "document",
    ]
    *_, image, note = answered["messages"][0]["content"]
    assert image["type"] == "image"
    assert note["text"].startswith("(A file of type application/pdf could not be shown here")


def test_thinking_stays_if_the_file_is_newer_and_goes_if_it_is_older(
    world: World, brought: list[ToolResult]
) -> None:
    """The service refuses thinking over messages that were changed."""
    thought = {"type": "thinking", "thinking": "Hm."}
    brought += [ToolResult("One.", media=(media(PNG),)), ToolResult("Two.", media=(media(PNG),))]
    world.model.script.add(
        {"match": "turn", "content": [thought, CALL]},
        refuses("messages.2.content.0.tool_result.content.1"),
        {"match": "turn", "content": [thought, CALL]},
        refuses("messages.0.content.1"),
        {"match": "turn", "text": "Seen."},
    )
    haiku = replace(world, model_name="claude-haiku-5-5")
    chat = haiku.run(haiku.start("Look.", files=(File("image/png", PNG),)))
    assert (chat.status, chat.stop) == ("done", "complete")
    kept = [_thoughts(body) for body in turns(world)]
    assert kept == [0, 1, 1, 2, 0]


def _thoughts(body: Mapping[str, Any]) -> int:
    blocks = (block for message in body["messages"] for block in message["content"])
    return sum(block["type"] == "thinking" for block in blocks)


def test_after_five_named_files_all_are_left_out(world: World, brought: list[ToolResult]) -> None:
    """Each costs a request; a tool may return twenty."""
    brought.append(ToolResult("Many.", media=(media(PNG),) * MAX_SENT))
    world.model.script.add(
        {"match": "turn", "content": [CALL]},
        *[refuses(f"messages.2.content.0.tool_result.content.{part}") for part in range(1, 21)][
            : MOST_NAMED + 1
        ],
        {"match": "turn", "text": "Seen."},
    )
    assert world.ask("Look.").status == "done"
    assert [len(image_places(body)) for body in turns(world)] == [0, 20, 19, 18, 17, 16, 15, 0]


@pytest.mark.parametrize(
    "place", ["messages.9.content.0", "messages.0.content.0", "messages.2.content.0.tool_result.content.0"]
)
def test_a_name_that_is_no_file_of_ours_leaves_all_out(
    world: World, brought: list[ToolResult], place: str
) -> None:
    brought.append(ToolResult("Here.", media=(media(PNG), media(PNG))))
    world.model.script.add(
        {"match": "turn", "content": [CALL]}, refuses(place), {"match": "turn", "text": "Seen."}
    )
    assert world.ask("Look.").status == "done"
    assert [len(image_places(body)) for body in turns(world)] == [0, 2, 0]


def test_a_refusal_that_no_file_explains_is_final(world: World) -> None:
    world.model.script.add({"match": "turn", "status": 400})
    assert world.answer(world.start("Hi.")) == "failed"


def test_sources_are_limited_in_number_and_length(world: World, brought: list[ToolResult]) -> None:
    bad = Source("t" * 100_000 + "\ud800", "https://x.test/" + "u" * 100_000)
    brought.append(ToolResult("Here.", sources=(Source("\ud800", "https://x.test/\udc00"), *[bad] * 5_000)))
    assert ask(world) == "done"
    sources = sources_of_record(world)
    assert len(sources) == 50
    assert max(len(str(source)) for source in sources) < 400
