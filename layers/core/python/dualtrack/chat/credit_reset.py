"""The scheduled reset: brings the accounts that were used up to date (docs/credits.md has the cost).

Nothing depends on it. Days and months turn when an account is read (`Account.at`), so a reset that
runs late, twice or half changes no balance; it makes the stored items true for reports, frees dead
holds, and takes accounts at rest out of the index of used ones::

    first use of a day      the account stands in the index under that day
    reset, nothing held     day turned, usage 0, out of the index
    reset, still held       day turned, stays: the next reset looks again

So the index itself is the list of what is left to do: a run that stopped is resumed by the next one,
and its cost is that of the accounts in use, however many there are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.clock import day_of
from dualtrack.errors import Transient
from dualtrack.storage.dynamo import Lost

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.storage.ledger import Ledger

PAGE: Final = 200
"""Accounts between two looks at the time left."""

WRITERS: Final = 16
"""Accounts in work at once; each takes a read, a write and the index's own write."""


class ResetUnfinished(Transient):
    """Something is left to do. It stays in the index; a retry or the next run goes on with it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did, in accounts: ``reset`` brought up to date; ``moved`` were used meanwhile, which
    did the same; ``failed`` are left to the next run (``error``: why the last of them failed).
    ``out_of_time``: it stopped before the end of the index."""

    reset: int = 0
    moved: int = 0
    failed: int = 0
    error: str = ""
    out_of_time: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether another run has something to do."""
        return self.out_of_time or self.failed > 0


def reset_accounts(
    ledger: Ledger,
    now: float,
    has_time: Callable[[], bool] = lambda: True,
    page: int = PAGE,
    writers: int = WRITERS,
) -> Report:
    """Bring up to date every account last used before today, page by page while there is time."""
    report = Report()
    with ThreadPoolExecutor(writers) as pool:
        for users in ledger.used_before(day_of(now), page):
            if not has_time():
                return replace(report, out_of_time=True)
            for outcome in pool.map(lambda user: _reset(ledger, user, now), users):
                report = outcome(report)
    return report


def _reset(ledger: Ledger, user: str, now: float) -> Callable[[Report], Report]:
    try:
        ledger.rest(ledger.expire(user, now), now)
    except Lost:
        return lambda report: replace(report, moved=report.moved + 1)
    except Exception as error:  # noqa: BLE001 - one broken account must not stop the others: counted
        why = type(error).__name__
        return lambda report: replace(report, failed=report.failed + 1, error=why)
    return lambda report: replace(report, reset=report.reset + 1)
