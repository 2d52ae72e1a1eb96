"""The scheduled reset: brings used accounts up to date (docs/credits.md has the cost).

No balance depends on it. Days and months change when an account is read (`Account.at`), so a reset that runs late,
twice or only partly changes no balance. It updates the stored items for reports, frees dead holds, and removes idle
accounts from the index of used ones::

    first use of a day      the account enters the index under that day
    reset, nothing held     new day, usage 0, out of the index
    reset, still held       new day, stays in the index for the next reset

So the index is the list of work left: the next run resumes one that stopped, and the cost depends only on the
number of accounts in use.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.clock import day_of
from dualtrack.errors import Transient
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.storage.ledger import Ledger

PAGE: Final = 200
"""Accounts between two checks of the time left."""

WRITERS: Final = 16
"""Accounts in parallel; each needs a read, a write and the index's own write."""


class ResetUnfinished(Transient):
    """Some accounts are left. They stay in the index; a retry or the next run continues."""


@dataclass(frozen=True, slots=True)
class ResetReport:
    """Numbers of accounts of a run: ``reset`` were brought up to date; ``moved`` were used meanwhile, which has the
    same effect; ``failed`` are left to the next run (``error``: why the last of them failed).
    ``out_of_time``: the run stopped before the end of the index."""

    reset: int = 0
    moved: int = 0
    failed: int = 0
    error: str = ""
    out_of_time: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether there is work left for another run."""
        return self.out_of_time or self.failed > 0


def reset_accounts(
    ledger: Ledger,
    now: float,
    has_time: Callable[[], bool] = lambda: True,
    page: int = PAGE,
    writers: int = WRITERS,
) -> ResetReport:
    """Bring every account last used before today up to date, page by page while there is time."""
    report = ResetReport()
    with ThreadPoolExecutor(writers) as pool:
        for users in ledger.used_before(day_of(now), page):
            if not has_time():
                return replace(report, out_of_time=True)
            for outcome in pool.map(lambda user: _reset(ledger, user, now), users):
                report = outcome(report)
    return report


def _reset(ledger: Ledger, user: str, now: float) -> Callable[[ResetReport], ResetReport]:
    try:
        ledger.rest(ledger.expire(user, now), now)
    except ConditionFailed:
        return lambda report: replace(report, moved=report.moved + 1)
    except Exception as error:  # noqa: BLE001 - a broken account must not stop the others: it is counted
        why = type(error).__name__
        return lambda report: replace(report, failed=report.failed + 1, error=why)
    return lambda report: replace(report, reset=report.reset + 1)
