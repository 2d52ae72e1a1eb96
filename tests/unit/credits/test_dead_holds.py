"""An account with far more dead holds than one transaction can free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.credits.account import EXPIRED_AT_ONCE, HOLD_SECONDS, Account, CreditPart, Hold
from dualtrack.storage.dynamo import put, transact
from dualtrack.storage.ledger import account_item

from tests.drivers.world import make_world

if TYPE_CHECKING:
    from tests.drivers.world import World

DEAD = 300


def with_dead_holds(world: World) -> None:
    """Ann's account with a pack that dead holds have used up."""
    at = int(world.clock()) - HOLD_SECONDS - 60
    holds = {f"ch_{number}": Hold(at + number // 60, (CreditPart("", 5),)) for number in range(DEAD)}
    account = Account("ann", seq=1, day="2026-11-18", pack=5 * DEAD, holds=holds)
    transact(world.stores.chats.client, [put("account", world.stores.ledger.table, account_item(account))])


def test_the_next_chat_starts_and_a_few_chats_later_all_holds_are_expired() -> None:
    """The balance never counts them."""
    with make_world() as world:
        with_dead_holds(world)
        before = world.stores.ledger.load("ann").balance(world.clock())
        assert (before["available"], before["held"]) == (50 + 5 * DEAD, 0)
        for number in range(1, 2 + DEAD // EXPIRED_AT_ONCE):
            world.ask("Hello.")
            account = world.stores.ledger.load("ann")
            assert account.available(world.clock()) == 50 + 5 * DEAD - 5 * number
            assert len(account.holds) == max(DEAD - EXPIRED_AT_ONCE * number, 0)


def test_the_reset_frees_all_of_them() -> None:
    with make_world() as world:
        with_dead_holds(world)
        now = world.clock()
        assert world.stores.ledger.expire("ann", now).holds == {}
        assert world.stores.ledger.load("ann").available(now) == 50 + 5 * DEAD
