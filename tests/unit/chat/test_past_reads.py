"""How often a chat reads its conversation's past, and at which price; and what a read that is behind comes to."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pytest
from dualtrack.errors import Transient
from dualtrack.profiles import all_profiles
from dualtrack.tool_values import ToolResult

from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

TOOL = "retrieve_documentation"
PROSE = "The port of the service is 8080, its host is set in the file, and both may change at any time. " * 60
BREAKPOINT = ', "cache_control": {"type": "ephemeral"}'
WHOLE = "in_turn, of short results"
"""Of which nothing is shortened: their queries are sent on in their messages."""
CHEAP, DEAR = "eventually", "consistently"


@dataclass
class Watch:
    """The reads of summarised tracks, and of the messages of queries that are sent whole, by step. ``behind``: an
    eventually consistent read misses the newest of them, and every body."""

    client: Any
    step: str = ""
    behind: bool = False
    reads: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.client.meta.events.register("provide-client-params.dynamodb", self.asked)
        self.client.meta.events.register("after-call.dynamodb", self.answered)

    def asked(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        [one] = params["RequestItems"].values() if "RequestItems" in params else [params]
        context["how"] = DEAR if one.get("ConsistentRead") else CHEAP
        low = params.get("ExpressionAttributeValues", {}).get(":low", {}).get("S", "")
        context["of"] = low[:2] if low.startswith(("S#", "M#")) else ""
        if context["of"]:
            self.reads[self.step].append(f"{context['of']} {context['how']}")

    def answered(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if not self.behind or context.get("how") != CHEAP:
            return
        if context["of"]:
            parsed["Items"] = parsed["Items"][:-1]
        for name, items in parsed.get("Responses", {}).items():
            parsed["Responses"][name] = [item for item in items if not item["sk"]["S"].startswith("B#")]
        if parsed.get("Item", {}).get("sk", {}).get("S", "").startswith("B#"):
            del parsed["Item"]


@pytest.fixture(params=["in_turn", "at_once", WHOLE])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    profile, length = all_profiles()["assistant"], 200 if kind == WHOLE else 6_000
    history = replace(profile.history, summaries="at_once" if kind == "at_once" else "in_turn")
    monkeypatch.setitem(all_profiles(), "assistant", replace(profile, history=history))
    with make_world(**{TOOL: lambda running: ToolResult(f"{running.call.id}: {PROSE}"[:length])}) as made:
        made.stores.ledger.grant("ann", "g", 100_000, "test", made.clock())
        yield made


def start(world: World, conversation_id: str) -> Chat:
    """A chat whose first turn calls two tools."""
    world.model.script.add(
        {
            "match": "turn",
            "content": [{"type": "tool_use", "name": TOOL, "input": {"query": which}} for which in "ab"],
        },
        {"match": "turn", "text": "It is 8080. " * 20, "notes": True},
    )
    return world.start("Which port?", conversation_id=conversation_id)


def follow(world: World, chat: Chat, watch: Watch) -> Chat:
    """All steps of the chat, each under its name."""
    watch.step = "first turn"
    outcome = world.turn(chat, 0)
    watch.step = "tools"
    for call in outcome["calls"]:
        world.tool(chat, 1, call["id"])
    watch.step = "second turn"
    assert world.turn(chat, 1)["next"] == "answered"
    watch.step = "summarise"
    world.summarise(chat)
    watch.step = ""
    return world.load(chat)


def grown(world: World) -> str:
    """A conversation of three such chats."""
    conversation_id = ""
    for _ in range(3):
        conversation_id = world.run(start(world, conversation_id)).conversation_id
    return conversation_id


def messages_sent(world: World) -> list[str]:
    turns = [request.body for request in world.model.requests if request.body.get("stream")]
    return [json.dumps(body["messages"]) for body in turns]


def test_the_past_is_read_by_the_calls_that_send_it_and_by_no_other_step(world: World, kind: str) -> None:
    """At half the price."""
    conversation_id = grown(world)
    watch = Watch(world.stores.chats.client)
    assert follow(world, start(world, conversation_id), watch).status == "done"
    once = [f"{of} {CHEAP}" for of in (("S#", "M#") if kind == WHOLE else ("S#",))]
    assert watch.reads == {"first turn": once, "second turn": once}


def test_a_read_that_is_behind_is_made_again(world: World, kind: str) -> None:
    """Whatever an eventually consistent read misses, each turn sends the whole past, and the same."""
    conversation_id = grown(world)
    watch = Watch(world.stores.chats.client, behind=True)
    world.model.reset()
    assert follow(world, start(world, conversation_id), watch).status == "done"
    first, second = messages_sent(world)[:2]
    for number in (1, 2, 3):
        assert f"[ID:q{number}] Which port?" in first
        assert f"ref:q{number}-" in first or f"q{number}-t1: {PROSE[:80]}" in first
    uncached = [text.replace(BREAKPOINT, "") for text in (first, second)]
    assert uncached[1].startswith(uncached[0].removesuffix("}]}]"))
    for step in ("first turn", "second turn"):
        assert f"S# {DEAR}" in watch.reads[step]
        assert (f"M# {DEAR}" in watch.reads[step]) == (kind == WHOLE)


@pytest.mark.parametrize("turn", [0, 1])
def test_a_turn_that_dies_before_its_commit_is_sent_again_in_the_same_bytes(
    world: World, turn: Literal[0, 1]
) -> None:
    """Also if one of its two reads of the past was behind."""
    conversation_id = grown(world)
    client: Any = world.stores.chats.client
    watch = Watch(client)
    chat = start(world, conversation_id)
    if turn:
        for call in world.turn(chat, 0)["calls"]:
            world.tool(chat, 1, call["id"])
    world.model.reset()
    world.model.script.add({"match": "turn", "text": "It is 8080. " * 20, "notes": True, "always": True})
    killed: list[bool] = []

    def kill(params: Any, **_: Any) -> None:
        if f"TURN#{turn + 1:03d}" in str(params) and not killed:
            killed.append(True)
            raise Transient("killed")

    client.meta.events.register("provide-client-params.dynamodb.TransactWriteItems", kill)
    with pytest.raises(Transient):
        world.turn(chat, turn)
    watch.behind = True
    assert world.turn(chat, turn)["next"] == "answered"
    before, again = messages_sent(world)
    assert killed
    assert before == again
