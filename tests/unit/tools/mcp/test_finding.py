"""Tools in any number: which are sent, which are found, and what a call by way of another tool means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dualtrack.chat.agent import Agent
from dualtrack.chat.turn_request import turn_request
from dualtrack.frozen import dumps, freeze
from dualtrack.indirect_calls import FIND_TOOLS, USE_TOOL, meant
from dualtrack.models.thinking import Thinking
from dualtrack.models.turn import Gate, ModelReply, Usage, decide
from dualtrack.profiles import profile_named
from dualtrack.text import cautious_tokens
from dualtrack.tool_check import broken_rule
from dualtrack.tool_values import ToolSpec, sent_tools
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.mcp.catalogue import Catalogue
from dualtrack.tools.mcp.finding import found, found_result, searched_by
from dualtrack.tools.registry import in_house_specs, offered_tools

from tests.drivers.many_tools import TASKS, TOOLS

PROFILE = replace(profile_named("assistant"), mcp=("*",))
AGENT = Agent(PROFILE, "claude-haiku-5-5", Thinking(), ())


def of_server(server: str, number: int, words: str = "") -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(
            f"{server}_t{at}",
            f"Does thing {at}. {words}",
            freeze({"type": "object"}),
            "mcp",
            server=server,
            remote_name=f"t{at}",
            effect="reads",
        )
        for at in range(number)
    )


def offered(*tools: ToolSpec, own: int = 0) -> dict[str, ToolSpec]:
    return dict(offered_tools(PROFILE, in_house_specs(PROFILE)[:own], Catalogue("v", tools)))


@pytest.mark.parametrize(("own", "number"), [(0, 30), (3, 27)])
def test_up_to_thirty_tools_are_sent_as_they_are(own: int, number: int) -> None:
    found_all = offered(*of_server("a", number), own=own)
    assert len(sent_tools(found_all)) == 30
    assert FIND_TOOLS not in found_all


def test_one_more_leaves_the_largest_server_to_the_search() -> None:
    sent = [spec.name for spec in sent_tools(offered(*of_server("a", 26), *of_server("b", 5)))]
    assert sent == [FIND_TOOLS, USE_TOOL, *(f"b_t{at}" for at in range(5))]


def test_so_does_a_tenth_of_the_context() -> None:
    assert PROFILE.context_tokens == 95_000
    large = of_server("a", 6, "word " * 1_500)
    assert [spec.name for spec in sent_tools(offered(*large))] == [FIND_TOOLS, USE_TOOL]
    assert FIND_TOOLS not in offered(*large[:2])


def test_what_is_sent_is_short_and_the_same_for_the_same_catalogue() -> None:
    tools = offered(*TOOLS, own=3)
    request = turn_request(AGENT, tools, "", (), 1_000)
    assert cautious_tokens(dumps(request["tools"])) < 5_000
    again = turn_request(AGENT, offered(*TOOLS, own=3), "", (), 1_000)
    assert dumps(request["tools"]) == dumps(again["tools"])
    for spec in (tools[FIND_TOOLS], tools[USE_TOOL]):
        assert not broken_rule(spec.name, spec.input_schema)


def test_the_right_tool_is_among_five() -> None:
    """Of 300 tools, by what a model would search for; the queries were written before the ranking was tried."""
    hits = [name in [spec.remote_name for spec in found(query, TOOLS)] for query, name in TASKS]
    assert sum(hits) / len(hits) >= 0.95, [task for task, hit in zip(TASKS, hits, strict=True) if not hit]


def test_an_exact_name_finds_that_tool_alone_and_nothing_finds_nothing() -> None:
    assert [spec.name for spec in found(TOOLS[7].name, TOOLS)] == [TOOLS[7].name]
    assert found("xylophone", TOOLS) == ()
    nothing = found_result("xylophone", TOOLS)
    assert (nothing.charged, nothing.is_error) == (False, False)
    assert TOOLS[7].name in found_result(TOOLS[7].name, TOOLS).content


def test_a_search_is_of_the_servers_that_were_left_to_it() -> None:
    tools = offered(*of_server("a", 26), *of_server("b", 5))
    searched = searched_by(tools[FIND_TOOLS].options, tools.values())
    assert {spec.server for spec in searched} == {"a"}


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ({"tool": "a_t1", "input": {"x": 1}}, ("a_t1", {"x": 1}, "")),
        ({"tool": "a_t1", "input": '{"x": 1}'}, ("a_t1", {"x": 1}, "")),
        ({"tool": "a_t1"}, ("a_t1", {}, "")),
        ({"tool": "a_t1", "input": "x"}, (USE_TOOL, None, "input: it must be an object, the input of a_t1.")),
        (
            {"tool": "a_t1", "input": "[1]"},
            (USE_TOOL, None, "input: it must be an object, the input of a_t1."),
        ),
        ({"tool": USE_TOOL, "input": {}}, (USE_TOOL, None, "use_tool needs")),
        ({"input": {}}, (USE_TOOL, None, "use_tool needs")),
    ],
)
def test_a_call_means_the_tool_that_it_names(
    given: dict[str, object], means: tuple[str, object, str]
) -> None:
    name, arguments, problem = meant(USE_TOOL, freeze(given))
    wanted_name, wanted, said = means
    assert (name, problem.startswith(said)) == (wanted_name, True)
    assert bool(problem) == bool(said)
    assert wanted is None or dict(arguments) == wanted


def test_a_turn_records_the_tool_that_is_meant_with_its_own_gate_and_check() -> None:
    schema = freeze({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})
    writes = ToolSpec("a_pay", "Pays.", schema, "mcp", server="a", remote_name="pay", price_class="github", repeatable=False, effect="changes")  # fmt: skip
    tools = offered(*of_server("a", 40), writes)
    uses = [
        ("u1", USE_TOOL, {"tool": "a_pay", "input": {"id": 7}}),
        ("u2", USE_TOOL, {"tool": "a_pay", "input": {"id": "x"}}),
        ("u3", USE_TOOL, {"tool": "a_gone", "input": {}}),
        ("u4", "a_t3", {}),
        ("u5", FIND_TOOLS, {"query": "pay"}),
    ]
    blocks = freeze(
        [{"type": "tool_use", "id": use, "name": name, "input": given} for use, name, given in uses]
    )
    reply = ModelReply(blocks, "tool_use", Usage())
    decision = decide(
        reply,
        query=1,
        calls_before=0,
        offered=tools,
        limit="",
        invalid=invalid_arguments,
        gates=lambda spec: Gate("approval" if spec.does != "reads" else ""),
        max_tokens=100,
    )
    told = [
        (call.tool, dict(call.input), call.asks, call.price_class, bool(call.refused))
        for call in decision.calls
    ]
    assert told == [
        ("a_pay", {"id": 7}, "approval", "github", False),
        ("a_pay", {"id": "x"}, "", "github", True),
        ("a_gone", {}, "", "other", True),
        ("a_t3", {}, "", "other", False),
        (FIND_TOOLS, {"query": "pay"}, "", "other", False),
    ]
    assert [call.tool_use_id for call in decision.calls] == ["u1", "u2", "u3", "u4", "u5"]
