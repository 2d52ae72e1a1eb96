"""Credits move with what a step records, in one transaction.

account ─► decide ─► what is recorded with the decision ─► { events, items, account, ledger lines }
   ▲                                                                      │
   └────────────────────── the account has moved ─────────────────────────┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dualtrack.credits.account import Decision, Refused
from dualtrack.storage.ledger import with_account

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.credits.account import Account
    from dualtrack.events import Event, StoredEvent
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import Stores

    Recorded = tuple[Sequence[Event], Sequence[Write]]
    """The events of a step, and what else it writes."""


def lines_of(decision: Decision, chat_id: str) -> tuple[int, ...]:
    """The numbers that the chat's own lines of the ledger get if the decision is written."""
    first = decision.account.seq - len(decision.movements) + 1
    return tuple(first + place for place, one in enumerate(decision.movements) if one.chat_id == chat_id)


D = TypeVar("D", bound=Decision | Refused)


def move_credits(
    stores: Stores,
    log: EventLog,
    user: str,
    decide: Callable[[Account], D],
    recorded: Callable[[Decision], Recorded],
    fence: Callable[[StoredEvent], None] | None = None,
) -> D:
    """The decision that was committed with what ``recorded`` makes of it, or the refusal; then nothing was written.

    Both functions are pure: they are called anew while other chats of the user move the account. Raises `Lost` for
    a condition outside the ledger, what ``fence`` raises, `ChatClosed` and `Contended`.
    """

    def commit(account: Account, decision: Decision) -> None:
        events, writes = recorded(decision)
        log.append(events, [*writes, *stores.ledger.actions(account, decision)], fence)

    return with_account(stores.ledger, user, decide, commit)
