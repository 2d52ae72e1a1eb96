"""What is sent goes on from what was sent before, by the word of the model's service."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.chat.agent import AgentDeployment
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.models.cache_word import CacheWord
from dualtrack.profiles import all_profiles, with_utility
from dualtrack.tool_values import ToolResult
from dualtrack_stack.cli.explain_commands import text_of

from tests.drivers.invariants import chat_faults, turns_of
from tests.drivers.world import World, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

LOOK: Final = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
SAME: Final = CacheWord()


@pytest.fixture
def found() -> list[str]:
    """What the tool finds."""
    return ["The port is 8443. " * 70]


@pytest.fixture
def world(found: list[str]) -> Iterator[World]:
    with make_world(retrieve_documentation=lambda _: ToolResult(found[0])) as made:
        made.stores.ledger.grant("ann", "g", 100_000, "test", made.clock())
        yield made


def ask(world: World, conversation_id: str = "", rounds: int = 0, **more: Any) -> Chat:
    """A query with so many rounds of tools."""
    for _ in range(rounds):
        world.model.script.add({"match": "turn", "content": [LOOK, LOOK]})
    world.model.script.add({"match": "turn", "text": "It is 8443."})
    return world.ask("Which port?", conversation_id=conversation_id, **more)


def words(world: World, *chats: Chat) -> list[list[CacheWord | None]]:
    """What the service said of each turn of these chats."""
    for chat in chats:
        assert chat_faults(world.stores, chat) == []
    return [[turn.made.cache for turn in turns_of(world.stores, chat)] for chat in chats]


def test_an_ordinary_conversation_misses_nothing(world: World) -> None:
    """Every turn goes on from the one before; a query from the one before, unless that is sent as summaries now."""
    first = ask(world)
    second = ask(world, first.conversation_id, rounds=2)
    third = ask(world, first.conversation_id)
    fourth = ask(world, first.conversation_id)
    assert words(world, first, second, third, fourth) == [[None], [SAME, SAME, SAME], [None], [SAME]]


def test_a_query_that_is_sent_whole_goes_on_across_its_tools(world: World, found: list[str]) -> None:
    found[0] = "The port is 8443."
    first = ask(world, rounds=1)
    second = ask(world, first.conversation_id, rounds=1)
    third = ask(world, first.conversation_id)
    assert words(world, first, second, third) == [[None, SAME], [SAME, SAME], [SAME]]


def test_another_system_text_is_told(world: World) -> None:
    first = ask(world)
    profiles = with_utility()
    changed = {**profiles, "assistant": replace(profiles["assistant"], system="Another text.")}
    world.model.script.add({"match": "turn", "text": "It is 8443."})
    chat = world.start("Which port?", conversation_id=first.conversation_id)
    deployed = AgentDeployment(world.model_name, world.thinking, profiles=changed)
    assert world.take_turn(ref_of(chat), deployed=deployed)["next"] == "answered"
    chat = world.load(chat)
    (turn,) = turns_of(world.stores, chat)
    assert turn.made.cache is not None
    assert turn.made.cache.reason == "system_changed"
    assert turn.made.cache.tokens > 0
    receipt = receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())
    (line,) = (line for line in receipt["lines"] if line["kind"] == "model")
    assert line["cache_miss"] == {"reason": "system_changed", "tokens": turn.made.cache.tokens}
    said = f"the cache: another system text than before: about {turn.made.cache.tokens:,} tokens"
    assert said in "\n".join(text_of(receipt))


def test_the_last_call_of_a_chat_is_apart_and_what_follows_goes_on_from_the_one_before_it(
    world: World, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages are cached apart, so it is not compared, and nothing is compared with it."""
    found[0] = "The port is 8443."
    profile = replace(all_profiles()["assistant"], max_turns=2)
    monkeypatch.setitem(all_profiles(), "assistant", profile)
    first = ask(world, rounds=2)
    assert first.stop == "max_turns"
    second = ask(world, first.conversation_id)
    assert words(world, first, second) == [[None, SAME, None], [SAME]]


def test_what_stands_in_a_request_for_its_query_alone_is_not_compared(world: World) -> None:
    """A program's instructions are not sent again."""
    first = ask(world, instructions="Be brief.")
    second = ask(world, first.conversation_id)
    assert words(world, first, second) == [[None], [None]]


def test_a_fork_goes_on_from_what_its_parent_sent(world: World) -> None:
    first = ask(world)
    second = ask(world, first.conversation_id)
    fork = fork_conversation(world.stores, "ann", first.conversation_id, 2)
    third = ask(world, fork.conversation_id)
    assert words(world, first, second, third) == [[None], [SAME], [SAME]]


def test_a_service_that_has_forgotten_the_message_misses_nothing(world: World) -> None:
    first = ask(world)
    world.model.reset()
    second = ask(world, first.conversation_id)
    assert words(world, second) == [[CacheWord("previous_message_not_found")]]


def test_who_is_not_asked_is_sent_nothing(world: World) -> None:
    quiet = replace(world.claude)  # type: ignore[type-var]
    quiet.asks_about_cache = False  # type: ignore[attr-defined]
    silent = replace(world, claude=quiet)
    first = ask(silent, rounds=1)
    second = ask(silent, first.conversation_id)
    assert words(world, first, second) == [[None, None], [None]]
    assert not any("diagnostics" in request.body for request in world.model.requests)
    asked = ask(world, first.conversation_id)
    assert words(world, asked) == [[None]]
