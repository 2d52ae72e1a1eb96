"""The calls of a turn after the ledger's decision, as they are told: those that could not be paid are refused. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.credits.plans import price_calls, price_chat
from dualtrack.events import credits_now, credits_short, tool_calls_start

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dualtrack.event_data import StartedCall
    from dualtrack.events import Event
    from dualtrack.memory.records import Record
    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.tool_values import PriceClass

UNPAID: Final = "Tool execution failed: the user has too few credits for this call, so it was not run."


@dataclass(frozen=True, slots=True)
class CallPayment:
    """All calls of the turn, and those of them for which there were too few credits."""

    calls: tuple[ToolCall, ...]
    unpaid: tuple[ToolCall, ...]

    @property
    def charged(self) -> frozenset[PriceClass]:
        """The price classes of those that may run."""
        return frozenset(call.price_class for call in self.calls if call.may_run)

    def credits_event(self, after: Chat) -> Event:
        """The chat's credits, or that they were too few."""
        if not self.unpaid:
            return credits_now(0, after.held, after.credits_remaining)
        required = price_calls([self.unpaid[0].price_class], after.paid)[0]
        return credits_short(0, after.held, after.credits_remaining, required)


def price_of_free(turns: Iterable[RecordedTurn], free: Collection[str]) -> int:
    """What the chat holds for those of its calls that cost nothing."""
    calls = [call for turn in turns for call in turn.runnable]
    paid = [call.price_class for call in calls if call.id not in free]
    return price_chat([call.price_class for call in calls]) - price_chat(paid)


def never_ran(records: Iterable[Record]) -> frozenset[str]:
    """The calls that never began, by their records."""
    return frozenset(record.record_id for record in records if record.call and not record.call.ran)


def uncharged(records: Iterable[Record]) -> frozenset[str]:
    """The calls that cost nothing, by their records: those that never began, and those whose result says so."""
    return frozenset(
        record.record_id
        for record in records
        if record.call and not (record.call.ran and record.call.charged)
    )


def calls_begin(turn: int, calls: Sequence[ToolCall]) -> Event:
    """Calls of a turn begin."""
    started: list[StartedCall] = [{"id": call.id, "tool": call.tool, "input": call.input} for call in calls]
    return tool_calls_start(turn, started)


def pay_calls(calls: Sequence[ToolCall], wanted: Sequence[ToolCall], fits: Sequence[bool]) -> CallPayment:
    """The calls, of which the ``wanted`` had to be paid; ``fits``: which of these could be."""
    unpaid = tuple(call for call, fit in zip(wanted, fits, strict=True) if not fit)
    ids = {call.id for call in unpaid}
    after = tuple(replace(call, refused=UNPAID) if call.id in ids else call for call in calls)
    return CallPayment(after, unpaid)
