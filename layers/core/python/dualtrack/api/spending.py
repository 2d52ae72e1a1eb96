"""What a user's chats cost, read from the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.credits.spending import MAX_LINES, first_moment, spending_view

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.storage.stores import ApiStores


def spending_of(stores: ApiStores, user: str, days: int) -> answers.Spending:
    """The spending of the last ``days`` days (UTC), today included."""
    movements, complete = stores.ledger.newest_movements(user, first_moment(stores.clock(), days), MAX_LINES)
    return spending_view(user, movements, complete=complete)
