"""A chat has begun with the first byte of the model's answer; before it a cancelled one is free, but not without end
(CONTRACT 8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.chat_view import chat_json
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.chat_times import LEAST_CALL_SECONDS
from dualtrack.credits.account import FREE_CANCEL, FREE_CANCELS, FREE_CANCELS_SECONDS, TOO_MANY_CANCELS
from dualtrack.credits.aws_cost import PRICES
from dualtrack.errors import Superseded
from dualtrack.events import turn_begins
from dualtrack.models.protocol import ignore
from dualtrack.models.receipt_data import Heard
from dualtrack.models.turn import Usage
from dualtrack.storage.chats import ChatStore

from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dualtrack.models.protocol import Model
    from dualtrack.models.turn import FirstByte, ModelReply
    from dualtrack.storage.chats import Chat

HEARD = Heard(1, 1, "claude-haiku-5-5", usage=Usage(100, 1))


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        new_world.stores.ledger.grant("ann", "g", 1_000, "x", new_world.clock())
        yield new_world


def cancel(world: World, chat: Chat) -> Chat:
    executions: Any = world.executions
    ended = cancel_chat(world.stores, executions, world.load(chat))
    assert chat_faults(world.stores, ended) == []
    return ended


def receipt(world: World, chat: Chat) -> Any:
    return receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())


@dataclass(frozen=True)
class Stopped:
    """A model whose chat is cancelled once something of its answer is stored."""

    model: Model
    stored: Callable[[], bool]
    stop: Callable[[], object]

    def stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float = LEAST_CALL_SECONDS,
        on_first: Callable[[FirstByte], None] = ignore,
        on_thought: Callable[[str], None] = ignore,
    ) -> ModelReply:
        def then_stop(text: str) -> None:
            on_text(text)
            while not self.stored():
                pass
            self.stop()

        return self.model.stream(request, then_stop, seconds, on_first, on_thought)


def stop_in_mid_answer(world: World, chat: Chat) -> Chat:
    """Cancel the chat when its first text is an event."""

    def stored() -> bool:
        return any(event.event == "delta" for event in world.stores.log(chat).events())

    model: Any = Stopped(world.claude, stored, lambda: cancel(world, chat))
    outcome = world.take_turn(ref_of(chat), serve=lambda _: model)
    assert outcome["next"] == "failed"
    return world.load(chat)


def test_a_chat_that_is_cancelled_in_mid_answer_counts_its_prompt_and_its_text(world: World) -> None:
    world.model.script.add({"match": "turn", "text": "It is a long answer. " * 400, "chunk": 4_000})
    chat = stop_in_mid_answer(world, world.start("What is it?"))
    assert (chat.status, chat.credits_used, chat.turn) == ("cancelled", 5, 0)
    assert chat.model == world.model_name
    assert chat.heard is not None
    assert chat.usage["input_tokens"] == chat.heard.usage.input_tokens > 100
    assert chat.usage["output_tokens"] >= 1_000
    body = receipt(world, chat)
    assert body["differences"] == []
    assert body["model"] == world.model_name
    (line,) = [line for line in body["lines"] if line["kind"] == "model"]
    assert (line["estimated"], line["usage"]["fresh"]) == (True, chat.usage["input_tokens"])
    assert line["usage"]["output"] == chat.usage["output_tokens"]
    assert line["dollars"] > 0
    assert account_faults(world.stores, "ann", [chat]) == []


def test_a_model_that_only_thinks_has_begun(world: World) -> None:
    """No text came, and the call costs what any call does."""
    chat = world.start("What is it?")
    world.stores.log(chat).append([turn_begins(1, 15, final=False)])
    world.stores.chats.hear(chat, HEARD)
    assert cancel(world, chat).credits_used == 5


def test_fifteen_chats_cancelled_at_once_are_not_all_free(world: World) -> None:
    chats = [cancel(world, world.start(f"Question {number}")) for number in range(15)]
    assert [chat.credits_used for chat in chats] == [0] * FREE_CANCELS + [5] * 5
    ends = [line for line in world.stores.ledger.movements("ann") if line.kind in ("release", "settle")]
    assert [line.reason for line in ends] == [FREE_CANCEL] * FREE_CANCELS + [TOO_MANY_CANCELS] * 5
    assert account_faults(world.stores, "ann", chats) == []
    assert all(receipt(world, chat)["differences"] == [] for chat in chats)
    assert len(world.stores.ledger.load("ann").free_cancels) == FREE_CANCELS
    world.clock.sleep(FREE_CANCELS_SECONDS)
    assert cancel(world, world.start("An hour later")).credits_used == 0


def test_another_user_and_a_failed_chat_do_not_count(world: World) -> None:
    for number in range(FREE_CANCELS):
        world.abort(world.start(f"Question {number}"))
        cancel(world, world.start("Never mind", user=f"user-{number}"))
    assert cancel(world, world.start("Never mind")).credits_used == 0


def test_the_first_byte_between_the_look_and_the_end_is_charged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end holds only for what was seen: it is decided again."""
    chat = world.start("What is it?")
    world.stores.log(chat).append([turn_begins(1, 15, final=False)])
    end_action = ChatStore.end_action

    def late(self: ChatStore, before: Chat, after: Chat) -> Any:
        if before.heard is None:
            self.hear(before, HEARD)
        return end_action(self, before, after)

    monkeypatch.setattr(ChatStore, "end_action", late)
    ended = cancel(world, chat)
    assert (ended.status, ended.credits_used, ended.usage["input_tokens"]) == ("cancelled", 5, 100)
    assert receipt(world, ended)["differences"] == []


def test_a_byte_that_comes_after_the_end_or_for_a_recorded_turn_is_not_noted(world: World) -> None:
    chat = world.start("What is it?")
    cancel(world, chat)
    with pytest.raises(Superseded):
        world.stores.chats.hear(chat, HEARD)
    answered = world.ask("What is it?")
    with pytest.raises(Superseded):
        world.stores.chats.hear(answered, HEARD)


def test_the_offline_models_figures_are_called_fictional(world: World) -> None:
    offline = world.ask("What is it?")
    assert receipt(world, offline)["fictional"] is chat_json(offline, (), None)["fictional"] is True
    chat = world.start("And of a real one?")
    assert receipt(world, chat)["fictional"] is chat_json(chat, (), None)["fictional"] is False
    world.stores.chats.hear(chat, replace(HEARD, served="claude-haiku-5-5-20261001"))
    assert receipt(world, world.load(chat))["fictional"] is False


def test_a_waiting_chat_says_what_its_waits_took_before_and_after_it_is_answered(world: World) -> None:
    """Three states and a call of `turn` for each wait."""
    deployment = Deployment(
        dict.fromkeys(PRICES, 1.0),
        dict.fromkeys(("api", "turn", "stream", "summarise"), 1024),
    )  # fmt: skip

    def work() -> tuple[float, float]:
        body = receipt_of(evidence(world.stores, world.load(chat), world.stores.ledger), deployment)
        amounts = {line["item"]: line["amount"] for line in body["lines"] if line["kind"] == "aws"}
        turns = next(
            int(item.split(": ")[1].split(" ")[0]) for item in amounts if item.startswith("Lambda turn")
        )
        return amounts["Step Functions, states"], turns

    world.model.script.add({"match": "turn", "status": 529}, {"match": "turn", "status": 529})
    chat = world.start("What is it?")
    for _ in range(2):
        outcome = world.take_turn(ref_of(chat))
        world.clock.sleep(outcome["seconds"])
    (wait,) = [line for line in receipt(world, world.load(chat))["lines"] if line["kind"] == "wait"]
    assert (wait["turn"], wait["tries"]) == (1, 2)
    assert 2 + 4 <= wait["seconds"] <= 4 + 8
    assert work() == (2 * 3 + 1, 2)
    world.run(chat)
    assert work() == (2 * 3 + 3, 3)
    assert [line for line in receipt(world, world.load(chat))["lines"] if line["kind"] == "wait"] == [wait]
    assert chat_faults(world.stores, world.load(chat)) == []
