"""Credits move in the same transaction as what a step records.

account ─► decide ─► recorded(decision) ─► { events, items, account, ledger lines }
   ▲                                                       │
   └──────────────── the account has moved ────────────────┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dualtrack.credits.account import AccountChange, Cost, HoldRefusal
from dualtrack.models.cost_cap import side_nanodollars
from dualtrack.storage.ledger import with_account

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.credits.account import Account
    from dualtrack.events import Event, StoredEvent
    from dualtrack.models.receipt_data import SideCalls
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.ledger import Ledger
    from dualtrack.storage.stores import PaidStores

    StepWrites = tuple[Sequence[Event], Sequence[Write]]
    """The events of a step, and what else it writes."""


def lines_of(decision: AccountChange, chat_id: str) -> tuple[int, ...]:
    """The numbers of the chat's own ledger lines, if the decision is written."""
    first = decision.account.seq - len(decision.movements) + 1
    return tuple(
        first + offset for offset, movement in enumerate(decision.movements) if movement.chat_id == chat_id
    )


def cost_of(chat: Chat, nanodollars: int, *, is_answered: bool = True) -> Cost:
    """What the chat's turns have cost as it ends. An answered one goes on holding dollars under its key for the calls
    that come then."""
    kept = chat.costs.aside if chat.costs and is_answered else 0
    return Cost(nanodollars, chat.key_id, kept, chat.profile)


def charge_aside(
    stores: PaidStores,
    chat: Chat,
    call: SideCalls,
    write: Callable[[Sequence[Action]], None],
    kept: int = 0,
) -> None:
    """Write a call that was made after the chat's end, with what it costs the chat's key, if it has one: that goes on
    holding the 10⁻⁹ dollars ``kept``. Raises `ConditionFailed` if ``write`` does, and `Contended`."""
    if not chat.key_id:
        write(())
        return
    now, cost = stores.clock(), Cost(side_nanodollars(call), chat.key_id, kept, chat.profile)

    def commit(account: Account, charged: AccountChange) -> None:
        write(stores.ledger.actions(account, charged))

    with_account(stores.ledger, chat.payer, lambda account: account.charge(chat.chat_id, now, cost), commit)


D = TypeVar("D", bound=AccountChange | HoldRefusal)


def move_credits(
    ledger: Ledger,
    log: EventLog,
    user: str,
    decide: Callable[[Account], D],
    recorded: Callable[[AccountChange], StepWrites],
    fence: Callable[[StoredEvent], None] | None = None,
    account: Account | None = None,
) -> D:
    """Commit a decision with what ``recorded`` makes of it, and return it; or return a refusal and write nothing.

    Both functions are pure: they are called again each time that another chat of the user moves the account.
    ``account``: as it was just read. Raises
    `Lost` for a condition outside the ledger, what ``fence`` raises, `ChatClosed` and `Contended`.
    """

    def commit(account: Account, decision: AccountChange) -> None:
        events, writes = recorded(decision)
        log.append(events, [*writes, *ledger.actions(account, decision)], fence)

    return with_account(ledger, user, decide, commit, account=account)
