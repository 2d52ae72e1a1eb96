"""What a chat did and cost, from its stored records (CONTRACT 9)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, differences, receipt_of
from dualtrack.credits.aws_cost import PRICES
from dualtrack.errors import ModelUnavailable
from dualtrack.events import turn_begins
from dualtrack.models.prices import dollars
from dualtrack.models.turn import Usage
from dualtrack.tool_values import ToolResult, failed
from dualtrack_stack.costs import chat_lines, counted, total
from dualtrack_stack.prices import prices
from dualtrack_stack.stacks.function_specs import SPECS

from tests.drivers.invariants import account_faults
from tests.drivers.world import World, call_for_summaries, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

DEPLOYMENT: Final = Deployment(
    {name: prices()[name] for name in PRICES}, {name: spec.memory for name, spec in SPECS.items()}
)
READ: Final = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


def receipt(world: World, chat: Chat) -> Any:
    """As the API makes it."""
    return receipt_of(evidence(world.stores, chat, world.stores.ledger), DEPLOYMENT)


def lines(body: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The lines of a kind."""
    return [line for line in body["lines"] if line["kind"] == kind]


def test_a_chat_with_tools_adds_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    call_for_summaries(monkeypatch)
    world.model.script.add({"match": "turn", "content": [READ, READ]})
    world.model.script.add({"match": "turn", "text": "The answer is written out. " * 40})
    chat = world.ask("What is in the first record, and what does it mean for the plan?")
    body = receipt(world, chat)
    assert body["differences"] == []
    assert [line["turn"] for line in lines(body, "model")] == [1, 2]
    # a turn's tools run side by side, and lines are in the order of time
    assert sorted((line["id"], line["credits"], line["ran"]) for line in lines(body, "tool")) == [
        ("q1-t1", 2, True),
        ("q1-t2", 2, True),
    ]
    assert [(line["movement"], line["amount"]) for line in lines(body, "ledger")] == [
        ("hold", 5),
        ("hold", 4),
        ("settle", 9),
    ]
    assert body["totals"]["credits"] == chat.credits_used == 9
    assert len(lines(body, "summary")) == 1
    model = [*lines(body, "model"), *lines(body, "summary")]
    assert all(line["tries"] >= 1 and line["seconds"] >= 0 for line in model)
    accepted = sum(1 for request in world.model.requests if not request.refused)
    assert sum(line["tries"] for line in model) == accepted
    assert body["totals"]["model_dollars"] == pytest.approx(sum(line["dollars"] for line in model))
    assert "answer is written" not in str(body)


def test_a_result_that_says_so_costs_no_credits() -> None:
    results = iter([replace(failed("no documentation"), charged=False), ToolResult("Port 8080.")])
    ask = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
    with make_world(retrieve_documentation=lambda _: next(results)) as world:
        world.model.script.add({"match": "turn", "content": [ask]})
        chat = world.ask("Which port?")
        (call,) = lines(receipt(world, chat), "tool")
        assert (call["ran"], call["is_error"], call["credits"], chat.credits_used) == (True, True, 0, 5)
        assert account_faults(world.stores, "ann", [chat]) == []
        world.model.script.add({"match": "turn", "content": [ask]})
        again = world.ask("And now?")
        assert (again.credits_used, receipt(world, again)["differences"]) == (15, [])


def test_dollars_are_those_of_the_price_table(world: World) -> None:
    chat = world.ask("Hello, what do you know about serverless agents?")
    (line,) = lines(receipt(world, chat), "model")
    usage = line["usage"]
    counted_ = Usage(usage["fresh"], usage["output"], usage["cache_read"], usage["cache_write"])
    assert line["dollars"] == dollars(chat.model, counted_) > 0


def test_a_duplicate_line_is_reported(world: World) -> None:
    """A planted duplicate of a model call, a tool call and a movement."""
    world.model.script.add({"match": "turn", "content": [READ]})
    chat = world.ask("Read it.")
    body = receipt(world, chat)
    for kind in ("model", "tool", "ledger"):
        doubled = copy.deepcopy(body["lines"])
        doubled.append(next(line for line in doubled if line["kind"] == kind and line.get("amount", 1)))
        assert any("listed twice" in difference for difference in differences(chat, doubled)), kind
        renamed: list[Any] = [*doubled[:-1], {**doubled[-1], "id": "another"}]
        sums = differences(chat, renamed)
        assert sums or doubled[-1].get("movement") == "hold", kind


def test_a_call_that_was_never_recorded_is_estimated(world: World) -> None:
    """Its step died after the announcement; the turn that is recorded later counts it."""
    chat = world.start("Tell me something.")
    world.stores.log(chat).append([turn_begins(1, 15, final=False)])
    body = receipt(world, world.run(chat))
    assert body["differences"] == []
    recorded, lost = lines(body, "model")
    assert (recorded["tries"], recorded["estimated"]) in ((2, False), (1, True))
    told = {line["id"]: line for line in (recorded, lost)}
    assert told["turn-1"]["tries"] == 2
    guess = told["turn-1-lost-1"]
    assert guess["estimated"] is True
    assert sum(guess["usage"].values()) > 0
    assert body["totals"]["estimated_dollars"] >= guess["dollars"] > 0


def test_a_chat_that_fails_is_free_and_says_what_it_tried(world: World) -> None:
    world.model.script.add({"match": "turn", "content": [READ]})
    world.model.script.add({"match": "turn", "status": 500})
    chat = world.start("Try it.")
    with pytest.raises(ModelUnavailable):
        world.answer(chat)
    world.abort(chat)
    chat = world.load(chat)
    body = receipt(world, chat)
    assert (chat.status, body["totals"]["credits"], body["differences"]) == ("failed", 0, [])
    assert [line["movement"] for line in lines(body, "ledger")] == ["hold", "hold", "release"]
    assert [(line["turn"], line["estimated"]) for line in lines(body, "model")] == [(1, False), (2, True)]


def test_a_cancelled_chat_pays_for_what_had_begun(world: World) -> None:
    world.model.script.add({"match": "turn", "content": [READ]})
    chat = world.start("Begin.")
    world.turn(chat, 0)
    executions: Any = world.executions
    chat = cancel_chat(world.stores, executions, world.load(chat))
    body = receipt(world, chat)
    assert (chat.credits_used, body["totals"]["credits"], body["differences"]) == (7, 7, [])
    unread = world.start("Begin, and stop at once.")
    stopped = receipt(world, cancel_chat(world.stores, executions, unread))
    assert (stopped["totals"]["credits"], stopped["differences"]) == (0, [])


def test_summaries_of_a_step_that_died_are_estimated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    call_for_summaries(monkeypatch)
    chat = world.start("Explain it.")
    assert world.answer(chat) == "answered"
    world.abort(chat)
    body = receipt(world, world.load(chat))
    assert [line["estimated"] for line in lines(body, "summary")] == [True]
    assert body["differences"] == []


def test_the_ledger_and_the_receipts_of_many_chats_agree(world: World) -> None:
    chats: list[Chat] = []
    for number in range(3):
        world.model.script.add({"match": "turn", "content": [READ] * number} if number else {"match": "turn"})
        chats.append(
            world.ask(f"Question {number}?", conversation_id=chats[0].conversation_id if chats else "")
        )
    receipts = [receipt(world, chat) for chat in chats]
    assert [body["differences"] for body in receipts] == [[], [], []]
    moved = [line["id"] for body in receipts for line in lines(body, "ledger")]
    movements = world.stores.ledger.movements("ann")
    assert len(moved) == len(set(moved)) == len(movements)
    assert account_faults(world.stores, "ann", chats) == []


@pytest.mark.parametrize("name", ["no tools", "two tools in parallel"])
def test_the_aws_part_agrees_with_the_cost_bench(world: World, name: str) -> None:
    """The same states; read units within a tenth, write units within a fifth, but for waiting."""
    calls = sum(map(len, counted()[name].rounds))
    if calls:
        world.model.script.add({"match": "turn", "content": [READ] * calls})
    answer = "An answer that explains what was found, step by step, with code. " * 30
    world.model.script.add({"match": "turn", "text": answer})
    chat = world.ask("A question of some length about setting something up?")
    mine = {line["item"]: line for line in lines(receipt(world, chat), "aws")}
    theirs = {line.item: line for line in chat_lines(counted()[name], dict(DEPLOYMENT.megabytes))}
    for item in ("Step Functions, states", "Lambda, invocations", "API Gateway, requests", "X-Ray, traces"):
        assert mine[item]["dollars"] == pytest.approx(theirs[item].dollars), item
    flowing = counted()[name].model_calls * 2.0 / 0.13
    assert mine["DynamoDB, write units"]["amount"] == pytest.approx(
        theirs["DynamoDB, write units"].amount - flowing,
        rel=0.2,
    )
    assert mine["DynamoDB, read units"]["amount"] == pytest.approx(
        theirs["DynamoDB, read units"].amount, rel=0.1
    )
    assert total(theirs.values()) > 0
    assert all(line["estimated"] for line in mine.values())
