"""What the ledger costs in DynamoDB units, and many starts at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from dualtrack.credits.account import AccountChange
from dualtrack.credits.audit import audit
from dualtrack.storage import dynamo
from dualtrack.storage.ledger import Ledger, with_account

from bench.credit_cost import CHATS, measure
from tests.drivers.credit_tables import dynamodb_client, make_ledger, rows

NOW = 1_795_262_400.0


def test_the_credits_share_of_a_chat_with_two_tools_is_at_most_15_write_units() -> None:
    units = measure()
    assert set(units) == set(CHATS)
    plain, two = units["no tools"], units["two tools, one turn"]
    assert (plain.writes, two.writes) == (9, 13)  # two and three movements of 4, and the index once
    assert all(cost.writes <= 15 for name, cost in units.items() if "two turns" not in name)
    assert (plain.reads, two.reads) == (2, 3)


def test_of_fifty_concurrent_starts_with_20_credits_four_succeed() -> None:
    with dynamodb_client() as client:
        ledger = make_ledger(client)
        with_account(ledger, "ann", lambda account: account.hold("spent", 30, NOW), ledger.commit)
        with_account(ledger, "ann", lambda account: account.settle("spent", 30, NOW), ledger.commit)

        def start(number: int) -> bool:
            decision = with_account(
                ledger, "ann", lambda account: account.hold(f"chat {number}", 5, NOW), ledger.commit
            )
            return isinstance(decision, AccountChange)

        with ThreadPoolExecutor(50) as pool:
            started = list(pool.map(start, range(50)))
        account = ledger.load("ann")
        assert sum(started) == 4
        assert (account.available(NOW), account.held(NOW)) == (0, 20)
        assert sorted(account.holds) == sorted(f"chat {n}" for n, won in enumerate(started) if won)
        assert audit(account, ledger.movements("ann")) == ()


def test_an_account_is_a_quarter_of_a_kilobyte() -> None:
    with dynamodb_client() as client:
        ledger: Ledger = make_ledger(client)
        with_account(ledger, "ann", lambda account: account.hold("ch_1", 5, NOW), ledger.commit)
        (account,) = [
            item for item in map(dynamo.from_wire, rows(client, ledger.table)) if item["sk"] == "account"
        ]
        assert sum(len(key) + len(str(value)) for key, value in account.items()) < 256
