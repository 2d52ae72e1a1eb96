"""The credits' share of a chat's DynamoDB units: ``python -m bench.credit_cost``.

Counts the ledger's actual requests by AWS's rules: a write takes one unit per KB of item, two in a transaction; an
entry of the index that appears or leaves takes one more; a consistent read takes one per 4 KB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.credit_reset import reset_accounts
from dualtrack.credits.plans import price_chat
from dualtrack.storage import dynamo
from dualtrack.storage.ledger import Ledger, with_account

from tests.drivers.credit_tables import dynamodb_client, make_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.credits.account import Account, AccountChange
    from dualtrack.tool_values import PriceClass

WRITE_DOLLARS: Final = 0.625e-6
READ_DOLLARS: Final = 0.125e-6
"""A request unit on demand, us-east-1."""

NOON: Final = 1_795_262_400.0
USER: Final = "0f0e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

CHATS: Final[Mapping[str, Sequence[Sequence[PriceClass]]]] = MappingProxyType(
    {
        "no tools": (),
        "two tools, one turn": (("documentation", "github"),),
        "two tools, two turns": (("documentation",), ("github",)),
    }
)


@dataclass(frozen=True, slots=True)
class Units:
    """DynamoDB request units."""

    writes: float
    reads: float

    @property
    def dollars(self) -> float:
        return self.writes * WRITE_DOLLARS + self.reads * READ_DOLLARS


class Meter:
    """Counts the units of what a client sends."""

    def __init__(self, ledger: Ledger) -> None:
        self.writes = self.reads = 0.0
        self._indexed: dict[str, str | None] = {}
        events = ledger.client.meta.events
        events.register("provide-client-params.dynamodb.TransactWriteItems", self._transaction)
        events.register("provide-client-params.dynamodb.PutItem", self._put)
        events.register("after-call.dynamodb.GetItem", self._get)

    def take(self) -> Units:
        """The units since the last time."""
        taken = Units(self.writes, self.reads)
        self.writes = self.reads = 0.0
        return taken

    def _transaction(self, params: Mapping[str, Any], **_: object) -> None:
        for action in params["TransactItems"]:
            self._item(action["Put"]["Item"], factor=2)

    def _put(self, params: Mapping[str, Any], **_: object) -> None:
        self._item(params["Item"], factor=1)

    def _get(self, **_: object) -> None:
        self.reads += 1

    def _item(self, wire: Mapping[str, Any], factor: int) -> None:
        item = dynamo.from_wire(wire)
        self.writes += factor * math.ceil(size(item) / 1024)
        if item["sk"] == "account":
            self._index(item)

    def _index(self, item: Mapping[str, Any]) -> None:
        """An index entry costs a unit when it appears, leaves, or (two) changes its key."""
        old, new = self._indexed.get(item["pk"]), item["day"] if "active" in item else None
        if old != new:
            self.writes += (old is not None) + (new is not None)
        self._indexed[item["pk"]] = new


def size(item: Mapping[str, Any]) -> int:
    """Approximate bytes of an item: names and values in UTF-8, numbers and maps slightly overestimated."""
    total = 100  # the storage overhead per item, which units do not include
    for key, value in item.items():
        inner = (
            sum(len(k.encode()) + len(str(v).encode()) + 3 for k, v in value.items()) + 3
            if isinstance(value, dict)
            else len(str(value).encode())
        )
        total += len(key) + inner
    return total


def measure() -> dict[str, Units]:
    """Units of each kind of chat, as its user's first of the day."""
    measured: dict[str, Units] = {}
    for name, turns in CHATS.items():
        with dynamodb_client() as client:
            ledger = make_ledger(client)
            meter = Meter(ledger)
            _chat(ledger, turns)
            measured[name] = meter.take()
    return measured


def measure_reset() -> Units:
    """Units of bringing one used account up to date (without the query of the index)."""
    with dynamodb_client() as client:
        ledger = make_ledger(client)
        meter = Meter(ledger)
        _chat(ledger, ())
        meter.take()
        reset_accounts(ledger, NOON + 86_400)
        return meter.take()


def _chat(ledger: Ledger, turns: Sequence[Sequence[PriceClass]]) -> None:
    def move(decide: Callable[[Account], AccountChange]) -> None:
        with_account(ledger, USER, decide, ledger.commit)

    chat = "ch_0123456789abcdef0123456789abcdef"
    with_account(ledger, USER, lambda account: account.hold(chat, 5, NOON), ledger.commit)
    for calls in turns:
        move(lambda account, calls=calls: account.hold_tools(chat, calls, (), NOON + 5))  # type: ignore[misc]
    price = price_chat([call for calls in turns for call in calls])
    move(lambda account: account.settle(chat, price, NOON + 20))


def main() -> None:
    rows = {**measure(), "reset of one account": measure_reset()}
    print(f"{'':24}{'writes':>8}{'reads':>8}{'$ a million':>14}")
    for name, units in rows.items():
        print(f"{name:24}{units.writes:8.0f}{units.reads:8.0f}{units.dollars * 1e6:14.2f}")


if __name__ == "__main__":
    main()
