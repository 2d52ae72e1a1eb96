"""A tool's own model calls: stored with its call, in the receipt and the ledger, and counted by the cap."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, differences, receipt_of
from dualtrack.chat.spans import spans_of
from dualtrack.models.prices import dollars
from dualtrack.models.providers.anthropic.client import connect
from dualtrack.models.turn import Usage
from dualtrack.profiles import all_profiles
from dualtrack.settings import settings_from
from dualtrack.tools.documentation import pipeline
from dualtrack.tools.documentation.dependencies import build_dependencies
from dualtrack.tools.registry import in_house_tools
from dualtrack_stack.cli.explain_commands import text_of
from starlette.responses import Response

from tests.drivers.documentation_world import PATIENT, QUESTION, RecordingLogger, needs_of, world_of_ads
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world
from tests.servers.context7 import serve_context7
from tests.servers.structured_claude import FakeClaude, serve_structured_claude
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tool_values import ToolResult
    from dualtrack.tools.running import Running

MODEL: Final = "claude-haiku-4-5"
ASK: Final = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": QUESTION}}
INSIDE: Final = ("tool_model", "embedding")


@contextmanager
def searching() -> Iterator[tuple[World, FakeClaude, FakeVoyage]]:
    """A world whose documentation search talks to loopback servers, and its model and embeddings."""

    def search(running: Running) -> ToolResult:
        return in_house_tools("search", lambda: needs)(running)

    with (
        make_world(retrieve_documentation=search) as world,
        serve_context7(world_of_ads()) as context7,
        serve_structured_claude(FakeClaude()) as claude,
        serve_voyage(FakeVoyage()) as voyage,
        pytest.MonkeyPatch.context() as patched,
    ):
        stage_settings = settings_from(
            {"CONTEXT7_BASE_URL": context7.url, "VOYAGE_BASE_URL": voyage.url, "DUALTRACK_MODEL": MODEL}
        )
        model = connect(claude.url, "sk-test")
        needs = needs_of(stage_settings, world.stores.cache, RecordingLogger(), model, "pa-test")
        deps = build_dependencies(needs, context7.api_key, PATIENT)
        patched.setattr(pipeline, "dependencies_for", lambda _: deps)
        try:
            yield world, claude, voyage
        finally:
            deps.close()


@pytest.fixture
def searched() -> Iterator[tuple[World, FakeClaude, FakeVoyage]]:
    with searching() as made:
        yield made


def receipt(world: World, chat: Chat) -> Any:
    return receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())


def test_model_calls_of_a_search_are_in_the_receipt_and_the_ledger(
    searched: tuple[World, FakeClaude, FakeVoyage],
) -> None:
    world, claude, voyage = searched
    world.model.script.add({"match": "turn", "content": [ASK]})
    chat = world.ask("How is it set up?")
    body = receipt(world, chat)
    own = {line["kind"]: line for line in body["lines"] if line["kind"] in INSIDE}
    said, embedded = own["tool_model"], own["embedding"]
    count = len(claude.requests)
    assert (said["call"], said["model"], said["calls"], said["tries"]) == ("q1-t1", MODEL, count, count)
    assert count >= 2  # understanding and ranking
    assert said["usage"] == {"fresh": 10 * count, "cache_write": 0, "cache_read": 0, "output": 5 * count}
    assert said["dollars"] == pytest.approx(dollars(MODEL, Usage(10 * count, 5 * count)))
    tokens = embedded["usage"]["fresh"]
    texts = [text for body in voyage.requests for text in body["input"]]
    assert tokens > len(texts) > 1  # the service's own count
    assert (embedded["model"], embedded["calls"]) == ("voyage-3-large", len(voyage.requests))
    assert embedded["dollars"] == pytest.approx(0.18 * tokens / 1_000_000)
    outside = sum(line["dollars"] for line in body["lines"] if line["kind"] in ("model", "summary"))
    inside = said["dollars"] + embedded["dollars"]
    assert body["totals"]["model_dollars"] == pytest.approx(outside + inside)
    assert body["differences"] == []
    assert chat_faults(world.stores, chat) == []
    assert account_faults(world.stores, "ann", [chat]) == []
    (settled,) = [movement for movement in world.stores.ledger.movements("ann") if movement.kind == "settle"]
    turns = sum(line["dollars"] for line in body["lines"] if line["kind"] == "model")
    assert settled.nanodollars == round((turns + inside) * 1e9)
    text = "\n".join(text_of(body))
    assert f"inside q1-t1, {MODEL}" in text
    assert "embeddings of q1-t1, voyage-3-large" in text


def test_a_profile_without_the_rerank_pays_for_none_whatever_is_deployed_meanwhile(
    searched: tuple[World, FakeClaude, FakeVoyage], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, claude, _ = searched
    world.model.script.add({"match": "turn", "content": [ASK]})
    deployed = all_profiles()["assistant"]
    with monkeypatch.context() as before:
        before.setitem(all_profiles(), "assistant", replace(deployed, rerank=False))
        chat = world.start("How is it set up?")
        (call,) = world.turn(chat, 0)["calls"]
    world.tool(chat, 1, call["id"])
    world.turn(chat, 1)
    world.summarise(chat)
    assert claude.asked("ranking") == []
    said = [line["calls"] for line in receipt(world, chat)["lines"] if line["kind"] == "tool_model"]
    assert said == [1], "understanding the question, which is not cached"


def test_their_spans_are_children_of_the_tools_span(searched: tuple[World, FakeClaude, FakeVoyage]) -> None:
    world, _, _ = searched
    world.model.script.add({"match": "turn", "content": [ASK]})
    request = spans_of(receipt(world, world.ask("How is it set up?")), "anthropic")
    assert request is not None
    (scope,) = request["resourceSpans"][0]["scopeSpans"]
    spans = {span["name"]: span for span in scope["spans"]}
    tool = spans["execute_tool retrieve_documentation"]
    for name, provider in ((f"chat {MODEL}", "anthropic"), ("embeddings voyage-3-large", "voyage_ai")):
        assert spans[name]["parentSpanId"] == tool["spanId"]
        attributes = {attribute["key"]: attribute["value"] for attribute in spans[name]["attributes"]}
        assert attributes["gen_ai.provider.name"] == {"stringValue": provider}
        assert int(attributes["gen_ai.usage.input_tokens"]["intValue"]) > 0
    assert tool["parentSpanId"] == spans["invoke_agent assistant"]["spanId"]


def test_a_cached_search_makes_fewer_model_calls(searched: tuple[World, FakeClaude, FakeVoyage]) -> None:
    """Its understanding and its embeddings are in the cache; a call that was not made has no line."""
    world, claude, _ = searched
    world.model.script.add({"match": "turn", "content": [ASK]}, {"match": "turn", "text": "So."})
    first = world.ask("How is it set up?")
    before = len(claude.requests)
    world.model.script.add({"match": "turn", "content": [ASK]})
    second = world.ask("And again?", conversation_id=first.conversation_id)
    kinds = {line["kind"]: line for line in receipt(world, second)["lines"] if line["kind"] in INSIDE}
    assert kinds.keys() == {"tool_model"}
    assert kinds["tool_model"]["calls"] == len(claude.requests) - before == 1  # the ranking


def test_a_duplicate_line_is_reported(searched: tuple[World, FakeClaude, FakeVoyage]) -> None:
    """A planted duplicate, with the same id and with another."""
    world, _, _ = searched
    world.model.script.add({"match": "turn", "content": [ASK]})
    chat = world.ask("How is it set up?")
    for kind in INSIDE:
        doubled = copy.deepcopy(receipt(world, chat)["lines"])
        doubled.append(next(line for line in doubled if line["kind"] == kind))
        assert any("listed twice" in difference for difference in differences(chat, doubled)), kind
        renamed: list[Any] = [*doubled[:-1], {**doubled[-1], "id": "another"}]
        assert any("listed twice" in difference for difference in differences(chat, renamed)), kind


def test_a_call_without_an_answer_is_a_try(searched: tuple[World, FakeClaude, FakeVoyage]) -> None:
    world, claude, voyage = searched
    claude.answers.append(Response(status_code=500))
    voyage.always = Response(status_code=500)
    world.model.script.add({"match": "turn", "content": [ASK]})
    body = receipt(world, world.ask("How is it set up?"))
    lines = {line["kind"]: line for line in body["lines"] if line["kind"] in INSIDE}
    said, embedded = lines["tool_model"], lines["embedding"]
    assert said["tries"] == said["calls"] + 1 == len(claude.requests)
    assert (embedded["calls"], embedded["dollars"]) == (0, 0)
    assert embedded["tries"] > 0
    assert "tries" in "\n".join(text_of(body))


def test_a_cancelled_chat_keeps_its_tools_model_calls(
    searched: tuple[World, FakeClaude, FakeVoyage],
) -> None:
    world, _, _ = searched
    world.model.script.add({"match": "turn", "content": [ASK]})
    chat = world.start("How is it set up?")
    world.turn(chat, 0)
    world.tool(chat, 1, "q1-t1")
    executions: Any = world.executions
    ended = cancel_chat(world.stores, executions, world.load(chat))
    assert {line["kind"] for line in receipt(world, ended)["lines"]} >= set(INSIDE)
    assert account_faults(world.stores, "ann", [ended]) == []


@pytest.mark.parametrize(("spent_by", "turns"), [("turns alone", 3), ("their tools too", 2)])
def test_the_cap_counts_model_calls_of_tools(
    searched: tuple[World, FakeClaude, FakeVoyage], spent_by: str, turns: int
) -> None:
    """The same cap, reached a turn earlier by a search whose calls cost as much as a turn."""
    world, claude, _ = searched
    usage = {"input_tokens": 0, "output_tokens": 1_000, "cache_creation_input_tokens": 10_000}
    each = (1.25 * 10_000 + 1_000 * 5) / 1_000_000
    last = (1.25 * 95_000 + 4_096 * 5) / 1_000_000
    if spent_by == "their tools too":
        claude.usage = {"input_tokens": 20_000, "output_tokens": 500}
    world.max_cost = 2.5 * each + last
    world.model.script.add(*[{"match": "Search.", "content": [ASK], "usage": usage}] * 4)
    world.model.script.add({"match": "Search.", "text": "So far.", "usage": usage})
    ended = world.ask("Search.")
    assert (ended.stop, ended.turn) == ("max_cost", turns)
    assert account_faults(world.stores, "ann", [ended]) == []


def test_a_record_of_an_earlier_release_has_no_model_calls(
    searched: tuple[World, FakeClaude, FakeVoyage],
) -> None:
    """And a tool call without model calls is stored as before."""
    world, _, _ = searched
    read = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
    world.model.script.add({"match": "turn", "content": [read]})
    chat = world.ask("Read it.")
    items = world.stores.chats.client.scan(TableName="history")["Items"]
    (meta,) = [item["meta"]["S"] for item in items if "#t#" in item["sk"]["S"] and "meta" in item]
    assert "asked" not in meta
    (record,) = [
        stored for stored in evidence(world.stores, chat, world.stores.ledger).records if stored.call
    ]
    assert record.call is not None
    assert record.call == replace(record.call, asked=())
