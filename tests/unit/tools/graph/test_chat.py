"""The profile `graph` in whole chats: tools, arguments, answers, credits and limits (PROFILES 4)."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.chat_view import chat_json
from dualtrack.profiles import all_profiles

from tests.drivers.graph import graph_tools, needs_of, sample
from tests.drivers.world import make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.memory.records import Record
    from dualtrack.tools.graph.needs import GraphNeeds

    from tests.drivers.world import World


USERS = count()


@cache
def works() -> GraphNeeds:
    return needs_of(sample())


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A world with the sample loaded; each test has a user of its own."""
    with make_world() as new_world:
        yield replace(new_world, tools=graph_tools(works()))


def asked(world: World, message: str, **more: Any) -> tuple[Any, list[Record]]:
    """The chat object, and the records of its tool calls."""
    chat = world.ask(message, **{"user": f"user-{next(USERS)}", "profile": "graph", **more})
    records = world.stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    return chat_json(chat, records, None), [record for record in records if record.call]


def calls(records: list[Record]) -> list[tuple[str, dict[str, Any]]]:
    return [(record.call.tool, dict(record.call.input)) for record in records if record.call]


def states(chat: dict[str, Any], rounds: int) -> int:
    """States of the workflow (DESIGN 2.2): each model call and its route, the Map, each tool call, Summarise."""
    return int(2 * chat["turns"] + rounds + len(chat["tool_calls"]) + 1)


def test_how_many_assets_in_biofilter_11(world: World) -> None:
    """One call, two model calls, 5 + 2 credits, 7 states, the right number."""
    before = len(world.model.requests)
    chat, records = asked(world, "How many assets in Biofilter 11?")
    sent = world.model.requests[before].body["messages"]
    arguments = {"name": "Biofilter 11", "target_label": "Asset"}
    assert calls(records) == [("count_related_by_name", arguments)]
    assert json.loads(records[0].content)["total_count"] == 23
    assert "- total_count: 23" in chat["response"]
    assert (chat["status"], chat["stop"], chat["turns"], chat["credits_used"]) == ("done", "complete", 2, 7)
    assert states(chat, rounds=1) == 7
    assert [message["role"] for message in sent] == ["user"]


def test_list_them_refers_to_the_counted_nodes(world: World) -> None:
    first, _ = asked(world, "How many assets in Biofilter 11?", user="lister")
    same = {"user": "lister", "conversation_id": first["conversation_id"]}
    chat, records = asked(world, "List them", **same)
    assert calls(records) == [("list_related_by_name", {"name": "Biofilter 11", "target_label": "Asset"})]
    assert json.loads(records[0].content)["total_count"] == 23
    assert chat["response"].count("node_id ass-") == 23
    assert "Oxygen Sensor 11" in chat["response"]


def test_find_node_then_list_related(world: World) -> None:
    called = (("find_node", {"name": "Biofilter 11"}), ("list_related", {"node_id": "loc-0034"}))
    blocks = [{"type": "tool_use", "name": name, "input": arguments} for name, arguments in called]
    world.model.script.add(*[{"content": [block], "kind": "turn"} for block in blocks])
    chat, records = asked(world, "Find Biofilter 11, then list what is in it.")
    assert calls(records) == list(called)
    assert (chat["turns"], chat["credits_used"], chat["stop"]) == (3, 9, "complete")
    assert "Biofilter 11 Valve Gallery" in chat["response"]


def test_two_tools_in_one_turn(world: World) -> None:
    chat, records = asked(world, "How many assets in Biofilter 11, and how many assets in Pump Room?")
    assert [arguments["name"] for _, arguments in calls(records)] == ["Biofilter 11", "Pump Room"]
    assert [call["turn"] for call in chat["tool_calls"]] == [1, 1]
    assert (chat["turns"], chat["credits_used"], states(chat, rounds=1)) == (2, 9, 8)
    assert [json.loads(record.content)["total_count"] for record in records] == [23, 22]
    assert "total_count 12, by_label (Asset 12)" in chat["response"]


def test_after_five_rounds_there_is_an_answer(world: World) -> None:
    block = {"type": "tool_use", "name": "get_schema", "input": {}}
    world.model.script.add(*[{"content": [block], "kind": "turn"} for _ in range(5)])
    chat, records = asked(world, "What is in this graph?")
    last = next(request.body for request in reversed(world.model.requests) if "tools" in request.body)
    assert len(records) == 5
    assert (chat["stop"], chat["turns"], chat["credits_used"]) == ("max_turns", 6, 15)
    assert last["tool_choice"] == {"type": "none"}
    assert "label Asset, count 430" in chat["response"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("count_by_label label=Asset", "- total_count: 430"),
        ('count_related_by_name name="biofilter 11" target_label=Asset', "- total_count: 23"),
        ("list_nodes label=System", "Process Air"),
        ("count_nodes name=pump", "- total_count: 75"),
        ('get_node_connections name="Biofilter 11"', "- total_count: 13"),
        ('get_node_connections name="Air Blower 12"', "direction out, type LOCATED_IN, node (node_id"),
        ('find_path from="Biofilter 11" to="Control Room"', "- length: 3"),
        ('count_breakdown name="Biofilter 11"', "Valve Gallery"),
        ("count_breakdown", "- total_count: 430"),
        ("count_by_category scope=location target_label=Asset", "name Chemical Stages, count 36"),
        ("list_categories", "- total_count: 30"),
        ("get_schema", "LOCATED_IN"),
        ('run_query query="MATCH (n:System) RETURN count(n)"', "- 8"),
        ('find_node name="Biofilter 11"', "floor 0"),
        ('count_related_by_name name="Biofiltr 11"', "Biofilter 11"),
        ('get_node_connections name="Pump Room"', "loc-0082"),
    ],
)
def test_each_tool_is_called_by_its_name_and_its_result_shown(world: World, call: str, said: str) -> None:
    chat, records = asked(world, call)
    ((picked, _),) = calls(records)
    assert picked == call.partition(" ")[0]
    assert not records[0].call or not records[0].call.is_error
    assert said in chat["response"]


@pytest.mark.parametrize("suggestion", all_profiles()["graph"].suggestions)
def test_each_suggestion_gets_a_real_answer(world: World, suggestion: str) -> None:
    chat, records = asked(world, suggestion)
    assert records
    assert not any(record.call and record.call.is_error for record in records)
    assert any(character.isdigit() for character in chat["response"])


def test_a_refused_query_is_an_error_result_and_no_failed_chat(world: World) -> None:
    block = {"type": "tool_use", "name": "run_query", "input": {"query": "MATCH (n) SET n.name = 'x'"}}
    world.model.script.add({"content": [block], "kind": "turn"})
    chat, records = asked(world, "Rename everything.")
    assert records[0].content == "Tool execution failed: only read-only queries are allowed."
    assert (chat["status"], chat["credits_used"]) == ("done", 7)


def test_a_hello_uses_no_tool(world: World) -> None:
    chat, records = asked(world, "Hello!")
    assert records == []
    assert chat["credits_used"] == 5
