"""A tool that the model's service refuses: the chat goes on without it, and so do the chats after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.attached_files import File
from dualtrack.chat.refused_tools import MOST, SINGLY
from dualtrack.chat.turn_attempt import TurnCallbacks
from dualtrack.frozen import freeze
from dualtrack.tools.mcp import catalogue as module
from dualtrack.tools.mcp.catalogue import load_catalogue, store_listing
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.specs import ListedTool, specs_of

from tests.drivers.images import png
from tests.drivers.world import World, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.errors import ModelRefused
    from dualtrack.tool_values import ToolSpec

SCHEMA = freeze({"type": "object", "properties": {"q": {"type": "string"}}})


@pytest.fixture
def world() -> Iterator[World]:
    module._DECODED.clear()
    with make_world() as made:
        yield made


def listing(world: World, server: str, *tools: str) -> None:
    listed = [ListedTool(name, "", SCHEMA, hints={"readOnlyHint": True}) for name in tools]
    content = specs_of(McpServer(server, "http://x/"), listed)
    store_listing(world.stores.cache, server, content, world.clock())


def refuses(world: World, tool: str, times: int = 1) -> list[dict[str, Any]]:
    """The service refuses the first requests, naming this tool by the place that it has in them."""
    place = sent_names(world).index(tool)
    said = f"tools.{place}.custom.input_schema: a rule that nobody knows"
    return [{"match": "turn", "status": 400, "error_message": said}] * times


def sent_names(world: World) -> list[str]:
    """The tools of the last request for a turn."""
    return [tool["name"] for tool in turns_sent(world)[-1]["tools"]]


def turns_sent(world: World) -> list[dict[str, Any]]:
    return [call.body for call in world.model.requests if call.body.get("tools")]


def left_out(world: World) -> list[str]:
    catalogue = load_catalogue(world.stores.cache, world.clock())
    return [entry.name for entry in catalogue.left_out]


def known(world: World) -> None:
    """A first chat, so that the order of the tools is known."""
    assert world.ask("Hello.").status == "done"


def test_the_chat_goes_on_without_the_tool_and_later_chats_are_not_offered_it(world: World) -> None:
    listing(world, "docs", "find", "odd")
    listing(world, "kit", "go")
    known(world)
    world.model.script.add(*refuses(world, "docs_odd"), {"match": "turn", "text": "Found without it."})
    told: list[tuple[str, str]] = []

    def tell(tool: ToolSpec, error: ModelRefused) -> None:
        told.append((tool.name, error.said))

    chat = world.start("Find it.")
    world.take_turn(ref_of(chat), TurnCallbacks(tool_refused=tell))
    world.summarise(chat)
    assert world.load(chat).status == "done"
    assert "docs_odd" not in sent_names(world)
    assert {"docs_find", "kit_go"} <= set(sent_names(world))
    assert told == [
        (
            "docs_odd",
            "tools.10.custom.input_schema: a rule that nobody knows".replace("10", told[0][1].split(".")[1]),
        )
    ]
    (turn,) = world.stores.chats.load_with_turns("ann", chat.chat_id)[1]  # type: ignore[index]
    assert (turn.made.tries, turn.made.calls, turn.made.lost) == (2, 1, ())
    events = world.stores.log(ref_of(chat)).events()
    assert [event.event for event in events].count("turn") == 1
    world.ask("Again.")
    assert "docs_odd" not in sent_names(world)
    assert left_out(world) == ["odd"]


def test_a_files_chat_keeps_its_files(world: World) -> None:
    """A refusal for a tool is no reason to send the request without its files."""
    listing(world, "docs", "find", "odd")
    known(world)
    world.model.script.add(*refuses(world, "docs_odd"))
    before = len(turns_sent(world))
    chat = world.run(world.start("Look.", files=(File("image/png", png(bytes(2_000)), "chart.png"),)))
    assert chat.status == "done"
    sent = turns_sent(world)[before:]
    assert [call["messages"] == sent[0]["messages"] for call in sent] == [True, True]
    assert any(block["type"] == "image" for block in sent[1]["messages"][-1]["content"])


def test_a_retried_turn_sends_the_same(world: World) -> None:
    """The step dies behind the refusal; the listing changes meanwhile."""
    listing(world, "docs", "find", "odd")
    known(world)
    world.model.script.add(*refuses(world, "docs_odd"), {"match": "turn", "status": 503})
    chat = world.start("Find it.")
    with pytest.raises(Exception, match="ModelUnavailable"):
        world.turn(chat, 0)
    sent = turns_sent(world)[-1]
    listing(world, "docs", "find", "odd", "new")
    module._DECODED.clear()
    assert world.run(chat).status == "done"
    assert turns_sent(world)[-1]["tools"] == sent["tools"]


def test_it_comes_back_when_the_listing_changes(world: World) -> None:
    listing(world, "docs", "find", "odd")
    known(world)
    world.model.script.add(*refuses(world, "docs_odd"))
    world.ask("Find it.")
    listing(world, "docs", "find", "odd")
    world.ask("The same listing.")
    assert "docs_odd" not in sent_names(world)
    listing(world, "docs", "find", "odd", "new")
    world.ask("Another listing.")
    assert {"docs_odd", "docs_new"} <= set(sent_names(world))


def test_after_some_tools_the_whole_server_is_left_out(world: World) -> None:
    listing(world, "docs", *(f"t{n}" for n in range(20)))
    listing(world, "kit", "go")
    known(world)
    before = len(turns_sent(world))
    world.model.script.add(*refuses(world, "docs_t0", SINGLY + 1))
    assert world.ask("Find it.").status == "done"
    assert len(turns_sent(world)) == before + SINGLY + 2
    assert [name for name in sent_names(world) if name.startswith("docs_")] == []
    assert "kit_go" in sent_names(world)


def test_a_service_that_refuses_everything_ends_the_chat(world: World) -> None:
    for server in "abcdefghijkl":
        listing(world, server, "go")
    known(world)
    place = sent_names(world).index("a_go")
    before = len(turns_sent(world))
    said = {"match": "turn", "status": 400, "error_message": f"tools.{place}.custom: no"}
    world.model.script.add(*[said] * (MOST + 1))
    chat = world.ask("Find it.")
    assert (chat.status, chat.credits_used) == ("failed", 0)
    assert len(turns_sent(world)) == before + MOST + 1


@pytest.mark.parametrize(
    "said",
    [
        "tools.0.custom.name: no",
        "tools.999.custom: no",
        "messages.0: no",
        "messages.2.content.0.text: 'about tools.{place}.custom.input_schema' is too much",
    ],
)
def test_a_refusal_of_something_else_ends_the_chat(world: World, said: str) -> None:
    """Also one that quotes what somebody wrote about the place of a server's tool."""
    listing(world, "docs", "find")
    known(world)
    before, place = len(turns_sent(world)), sent_names(world).index("docs_find")
    world.model.script.add({"match": "turn", "status": 400, "error_message": said.format(place=place)})
    assert world.ask("Find it.").status == "failed"
    assert len(turns_sent(world)) == before + 1
    assert left_out(world) == []
