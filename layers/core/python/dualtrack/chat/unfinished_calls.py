"""The calls that have no result when their chat ends without an answer (DESIGN 2.3).

has begun          a record that says so: whether it has had its effect is unknown
has not begun      it never will, which the end itself marks, and costs nothing

A call that begins in the same moment takes the mark first; then the end is decided anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualtrack.chat.pay_calls import price_of_free, uncharged
from dualtrack.chat.tool_results import result_events, stopped_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.events import Event
    from dualtrack.memory.records import Record
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import ToolStores


@dataclass(frozen=True, slots=True)
class UnfinishedCalls:
    """The records of those that have begun, and what the end writes; ``never``: the others; ``free``: the
    credits that the chat holds for calls that cost nothing."""

    records: tuple[Record, ...]
    writes: tuple[Write, ...]
    never: tuple[str, ...]
    free: int

    @property
    def events(self) -> list[Event]:
        """Of the records."""
        return [event for record in self.records for event in result_events(record)]


def unfinished_calls(
    stores: ToolStores, chat: Chat, turns: Sequence[RecordedTurn], records: Sequence[Record]
) -> UnfinishedCalls:
    """Those of the chat's last turn; ``records``: of its query."""
    told = {record.record_id for record in records}
    left = [call for call in (turns[-1].runnable if turns else ()) if call.id not in told]
    marks = stores.chats.marks(chat) if any(call.is_marked for call in left) else {}
    begun = [call for call in left if marks.get(call.id, not call.is_marked)]
    stopped = [stopped_result(stores, chat, turns[-1].number, call) for call in begun]
    never = [call for call in left if call not in begun]
    forestalled = [stores.chats.forestall_action(chat, call.id) for call in never if call.id not in marks]
    return UnfinishedCalls(
        tuple(record for record, _ in stopped),
        (*(write for _, writes in stopped for write in writes), *forestalled),
        tuple(call.id for call in never),
        price_of_free(turns, uncharged(records) | {call.id for call in never}),
    )
