"""Credits and the records written with them are one transaction: retried if the account moves, or not written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.move_credits import move_credits
from dualtrack.credits.account import Account, AccountChange, HoldRefusal
from dualtrack.errors import ChatClosed, Superseded
from dualtrack.events import credits_now, turn_begins
from dualtrack.memory.records import Record
from dualtrack.storage.bodies import body_of, partition
from dualtrack.storage.event_log import read_events
from dualtrack.storage.ledger import with_account

from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack.chat.move_credits import StepWrites
    from dualtrack.events import StoredEvent
    from dualtrack.storage.chats import Chat

LONG = " ".join(str(number) for number in range(2_000))
THOUGHT = Record("q1-a1", "message", "assistant", LONG, "2026-11-21T00:00:00.000Z", 1)


@pytest.fixture
def world() -> Iterator[World]:
    """Everything in this process."""
    with make_world() as world:
        yield world


@pytest.fixture
def chat(world: World) -> Chat:
    """A chat that has just been admitted."""
    return world.start("What is it?")


def thinks(world: World, chat: Chat) -> Callable[[AccountChange], StepWrites]:
    """A long thought, and an event with what is left."""

    def recorded(decision: AccountChange) -> StepWrites:
        left = decision.account.available(world.clock())
        writes = world.stores.history.record_writes(chat.user, chat.conversation_id, THOUGHT)
        return [credits_now(0, 8, left)], writes

    return recorded


def known(world: World, chat: Chat) -> Any:
    """The chat's log after its tail was read."""
    log = world.stores.log(chat)
    log.next_slot()
    return log


def has_body(world: World, chat: Chat) -> bool:
    """Whether the thought's text is stored."""
    body = body_of(partition(chat.user, chat.conversation_id), LONG.encode())
    key = {"pk": {"S": body.pk}, "sk": {"S": body.pointer}}
    return "Item" in world.stores.chats.client.get_item(TableName=world.stores.history.table, Key=key)


def bodies_put(world: World) -> list[Any]:
    """The requests that put a body into the table from now on."""
    seen: list[Any] = []

    def see(params: Any, **_: Any) -> None:
        if "z" in params["Item"]:
            seen.append(params)

    world.stores.chats.client.meta.events.register("provide-client-params.dynamodb.PutItem", see)
    return seen


def test_a_record_agrees_with_the_account_after_the_payment(world: World, chat: Chat) -> None:
    """Another chat of the user moves first: the event shows what is left after both; the body is written once."""
    ledger, now = world.stores.ledger, world.clock()
    seen: list[int] = []

    def decide(account: Account) -> AccountChange:
        seen.append(account.seq)
        if len(seen) == 1:
            with_account(ledger, "ann", lambda account: account.hold("ch_rival", 5, now), ledger.commit)
        return account.hold_tools(chat.chat_id, ["github"], paid=(), now=now)

    bodies = bodies_put(world)
    decision = move_credits(world.stores.ledger, known(world, chat), "ann", decide, thinks(world, chat))
    assert (seen, len(bodies)) == ([1, 2], 1)
    assert decision.account == ledger.load("ann")
    assert world.stores.history.record("ann", chat.conversation_id, "q1-a1") == THOUGHT
    events = read_events(world.stores.chats.client, world.stores.chats.table, chat.pk)
    assert [event.data["available"] for event in events if event.event == "credits"] == [45, 50 - 5 - 5 - 3]


def test_a_refusal_writes_nothing(world: World, chat: Chat) -> None:
    def decide(account: Account) -> AccountChange | HoldRefusal:
        return account.hold("ch_dear", 500, world.clock())

    before = world.stores.ledger.load("ann")
    refused = move_credits(world.stores.ledger, known(world, chat), "ann", decide, thinks(world, chat))
    assert isinstance(refused, HoldRefusal)
    assert world.stores.ledger.load("ann") == before
    assert not has_body(world, chat)


def test_after_a_chats_end_no_credits_move_and_no_body_is_written(world: World, chat: Chat) -> None:
    late = known(world, chat)
    world.abort(chat)
    before = world.stores.ledger.load("ann")

    def decide(account: Account) -> AccountChange:
        return account.settle(chat.chat_id, 5, world.clock())

    with pytest.raises(ChatClosed):
        move_credits(world.stores.ledger, late, "ann", decide, thinks(world, chat))
    assert world.stores.ledger.load("ann") == before
    assert not has_body(world, chat)


def test_reading_the_log_before_a_body_does_not_move_the_fence(world: World, chat: Chat) -> None:
    """An event added since the tail was read stops the writer, although the log's end was read in between."""
    late = known(world, chat)
    world.stores.log(chat).append([turn_begins(1, 15, final=False)])

    def decide(account: Account) -> AccountChange:
        return account.settle(chat.chat_id, 5, world.clock())

    def fence(event: StoredEvent) -> None:
        raise Superseded(event.event)

    with pytest.raises(Superseded, match="turn"):
        move_credits(world.stores.ledger, late, "ann", decide, thinks(world, chat), fence)
    assert chat.chat_id in world.stores.ledger.load("ann").holds
