"""What of a resent history is imported: the records of its newest exchanges (CONTRACT 10). Pure.

The chat that it is imported with pays 5 credits, so what is written for it is bounded. Nothing of it is sent to the
model whole: a turn sees its newest part in extracts, and reads the rest by its ids.

    the newest exchange            always, with its newest calls as far as there is room
    those before it                as long as there is room; the first that has none ends the import
    a text of more than a quarter of the room    its beginning, which says so
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.ids import query_id, response_id, tool_id
from dualtrack.memory.records import Record, ToolCallDetail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.plugins.openai.client_tools import ResentCall
    from dualtrack.plugins.openai.exchanges import Exchange

IMPORTED: Final = 100
"""How many exchanges are imported at most."""
IMPORTED_BYTES: Final = 400_000
"""Of all texts together, in UTF-8."""
IMPORTED_RECORDS: Final = 300

_TEXT_BYTES: Final = IMPORTED_BYTES // 4
_RECORD_BYTES: Final = 300
"""What a record takes besides its text."""
_NOTHING: Final = "(nothing)"
_CUT: Final = "\n(The rest was not imported.)"


def imported(exchanges: Sequence[Exchange], through: int, now: str) -> tuple[tuple[Record, ...], ...]:
    """The records of the newest exchanges, oldest first, as the queries behind number ``through``."""
    taken: list[tuple[Exchange, Sequence[ResentCall]]] = []
    room, records = IMPORTED_BYTES, IMPORTED_RECORDS
    for exchange in reversed(exchanges[-IMPORTED:]):
        room -= sum(map(_size, (exchange.user, exchange.assistant)))
        records -= 2
        if taken and (room < 0 or records < 0):
            break
        calls: list[ResentCall] = []
        for call in reversed(exchange.calls):
            size = _size(call.result or "") + len(str(call.input))
            if size > room or not records:
                break
            room, records = room - size, records - 1
            calls.insert(0, call)
        taken.append((exchange, calls))
    return tuple(
        _records(exchange, calls, number, now)
        for number, (exchange, calls) in enumerate(reversed(taken), start=through + 1)
    )


def _size(text: str) -> int:
    return min(len(text.encode()), _TEXT_BYTES) + _RECORD_BYTES


def _records(exchange: Exchange, calls: Sequence[ResentCall], number: int, now: str) -> tuple[Record, ...]:
    said, answered = _kept(exchange.user), _kept(exchange.assistant)
    return (
        Record(query_id(number), "message", "user", said, now),
        *(_call(call, tool_id(number, place), now) for place, call in enumerate(calls, 1)),
        Record(response_id(number), "message", "assistant", answered, now, 2, stop="complete"),
    )


def _call(call: ResentCall, record_id: str, now: str) -> Record:
    """What a client's tool returned, which was told to another model."""
    detail = ToolCallDetail(record_id, call.tool, call.input, is_error=False, seconds=0.0, turn=1)
    return Record(record_id, "tool_call", "user", _kept(call.result or ""), now, 1, call=detail)


def _kept(text: str) -> str:
    data = text.encode()
    if len(data) <= _TEXT_BYTES:
        return text or _NOTHING
    return data[: _TEXT_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
