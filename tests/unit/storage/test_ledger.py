"""The ledger's store: what is written, what is refused, what a repeated request changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from dualtrack.credits.account import Account, AccountChange, Cost, HoldRefusal
from dualtrack.credits.audit import audit
from dualtrack.errors import ApiError, Contended
from dualtrack.storage import dynamo
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.ledger import Ledger, account_item, account_moved, with_account

from tests.drivers.credit_tables import dynamodb_client, make_ledger, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb.client import DynamoDBClient

NOW = 1795262400.0  # 2026-11-21 12:00 UTC


@pytest.fixture(scope="module")
def client() -> Iterator[DynamoDBClient]:
    with dynamodb_client() as new_client:
        yield new_client


@pytest.fixture
def ledger(client: DynamoDBClient) -> Ledger:
    return make_ledger(client)


def hold(ledger: Ledger, chat: str, amount: int = 5, user: str = "ann") -> AccountChange | HoldRefusal:
    return with_account(ledger, user, lambda account: account.hold(chat, amount, NOW), ledger.commit)


def no_pause(attempt: int) -> None:
    """Retry at once."""


def test_an_account_is_read_as_it_was_stored(ledger: Ledger) -> None:
    ledger.grant("ann", "g1", 500, "pack", NOW)
    decision = hold(ledger, "ch_1", 53)
    assert isinstance(decision, AccountChange)
    assert ledger.load("ann") == decision.account
    assert audit(ledger.load("ann"), ledger.movements("ann")) == ()


def test_a_user_without_an_account_is_on_the_default_plan_and_costs_nothing(ledger: Ledger) -> None:
    assert ledger.load("nobody") == Account("nobody")
    assert rows(ledger.client, ledger.table) == []


def test_a_decision_on_outdated_figures_is_not_written(ledger: Ledger) -> None:
    stale = ledger.load("ann")
    hold(ledger, "ch_1")
    decision = stale.hold("ch_2", 5, NOW)
    assert isinstance(decision, AccountChange)
    with pytest.raises(ConditionFailed) as lost:
        ledger.commit(stale, decision)
    assert account_moved(lost.value)
    assert list(ledger.load("ann").holds) == ["ch_1"]


def test_a_decision_is_retried_after_a_concurrent_change(ledger: Ledger) -> None:
    hold(ledger, "ch_0", 40)
    rivals = iter(["ch_a", "ch_b"])

    def commit(account: Account, decision: AccountChange) -> None:
        if rival := next(rivals, None):
            hold(ledger, rival)
        ledger.commit(account, decision)

    outcome = with_account(ledger, "ann", lambda account: account.hold("ch_c", 5, NOW), commit, no_pause)
    assert isinstance(outcome, HoldRefusal)  # the rivals took the last ten credits
    assert sorted(ledger.load("ann").holds) == ["ch_0", "ch_a", "ch_b"]


def test_after_too_many_concurrent_changes_it_fails(ledger: Ledger) -> None:
    def commit(account: Account, decision: AccountChange) -> None:
        raise ConditionFailed({"account": None, "entry": None})

    with pytest.raises(Contended):
        with_account(ledger, "ann", lambda account: account.hold("ch", 5, NOW), commit, no_pause)


def test_a_failed_condition_of_the_chat_is_left_to_the_caller(ledger: Ledger) -> None:
    def commit(account: Account, decision: AccountChange) -> None:
        raise ConditionFailed({"account": None, "chat": None})

    with pytest.raises(ConditionFailed):
        with_account(ledger, "ann", lambda account: account.hold("ch", 5, NOW), commit, no_pause)


def test_a_repeated_grant_changes_nothing(ledger: Ledger) -> None:
    first = ledger.grant("ann", "payment-7", 500, "pack", NOW)
    again = ledger.grant("ann", "payment-7", 900, "another", NOW + 60)
    assert first.pack == again.pack == ledger.load("ann").pack == 500
    assert ledger.grant("ann", "payment-8", 500, "pack", NOW).pack == 1_000
    assert ledger.grant("bob", "payment-7", 500, "pack", NOW).pack == 500


def test_a_grant_whose_response_was_lost_is_not_repeated(ledger: Ledger) -> None:
    class AnswerLost:
        """Commits, then says that it could not."""

        def __init__(self, client: Any) -> None:
            self.client, self.failures = client, 1

        def __getattr__(self, name: str) -> Any:
            return getattr(self.client, name)

        def transact_write_items(self, **request: Any) -> Any:
            answer = self.client.transact_write_items(**request)
            if self.failures:
                self.failures -= 1
                raise ClientError({"Error": {"Code": "InternalServerError"}}, "TransactWriteItems")
            return answer

    shaky = Ledger(AnswerLost(ledger.client), ledger.table)  # type: ignore[arg-type]
    assert shaky.grant("ann", "payment-7", 500, "pack", NOW).pack == 500
    assert audit(ledger.load("ann"), ledger.movements("ann")) == ()


def test_the_same_plan_again_writes_nothing(ledger: Ledger) -> None:
    assert ledger.set_plan("ann", "pro", NOW).limits.daily == 150
    before = rows(ledger.client, ledger.table)
    ledger.set_plan("ann", "pro", NOW + 1)
    assert rows(ledger.client, ledger.table) == before


@pytest.mark.parametrize(("grant_id", "amount"), [("", 5), ("g" * 256, 5), ("g", 0), ("g", -5)])
def test_an_impossible_grant_is_refused(ledger: Ledger, grant_id: str, amount: int) -> None:
    with pytest.raises(ApiError, match="grant"):
        ledger.grant("ann", grant_id, amount, "why", NOW)


def test_the_ledger_is_listed_newest_first_page_by_page(ledger: Ledger) -> None:
    ledger.grant("ann", "payment-7", 500, "Thank you", NOW)
    hold(ledger, "ch_1")
    with_account(ledger, "ann", lambda account: account.settle("ch_1", 5, NOW + 2.5), ledger.commit)
    ledger.set_plan("ann", "pro", NOW + 3)
    first = ledger.entries("ann", limit=3)
    assert first.cursor
    assert first.items == (
        {
            "entry_id": "le_000000000004",
            "at": "2026-11-21T12:00:03.000Z",
            "kind": "plan",
            "amount": 0,
            "reason": "pro",
            "available_after": 645,
        },
        {
            "entry_id": "le_000000000003",
            "at": "2026-11-21T12:00:02.500Z",
            "kind": "settle",
            "amount": 5,
            "chat_id": "ch_1",
            "available_after": 545,
        },
        {
            "entry_id": "le_000000000002",
            "at": "2026-11-21T12:00:00.000Z",
            "kind": "hold",
            "amount": 5,
            "chat_id": "ch_1",
            "available_after": 545,
        },
    )
    second = ledger.entries("ann", first.cursor, limit=3)
    assert [(entry["kind"], entry["reason"]) for entry in second.items] == [("grant", "Thank you")]
    assert second.rest == {}


def test_the_last_page_has_no_cursor_even_if_it_is_full(ledger: Ledger) -> None:
    hold(ledger, "ch_1")
    hold(ledger, "ch_2")
    assert ledger.entries("ann", limit=2).cursor == ""


@pytest.mark.parametrize("cursor", ["x", "!!!!", "MDAw", "w7x3", "é"])
def test_a_cursor_that_is_not_ours_is_refused(ledger: Ledger, cursor: str) -> None:
    with pytest.raises(ApiError, match="cursor"):
        ledger.entries("ann", cursor)


def test_users_do_not_see_each_other(ledger: Ledger) -> None:
    hold(ledger, "ch_1", user="ann")
    assert ledger.entries("an").items == ()
    assert ledger.load("an").holds == {}


def test_a_busy_account_still_fits_one_write_unit(ledger: Ledger) -> None:
    user = "0f0e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
    ledger.set_plan(user, "pro", NOW)
    for number in range(8):
        hold(ledger, f"ch_{number:032x}", user=user)
    sizes = [
        sum(len(key) + len(str(value)) for key, value in dynamo.from_wire(item).items())
        for item in rows(ledger.client, ledger.table)
    ]
    assert max(sizes) < 1_000


def test_a_movement_is_two_items_in_one_transaction(ledger: Ledger) -> None:
    account = ledger.load("ann")
    decision = account.hold("ch_1", 5, NOW)
    assert isinstance(decision, AccountChange)
    assert [(action.name, action.kind) for action in ledger.actions(account, decision)] == [
        ("account", "Put"),
        ("entry", "Put"),
    ]
    assert ledger.actions(account, account.settle("ch_1", 5, NOW)) == []


def test_an_account_in_use_is_in_the_index(ledger: Ledger) -> None:
    hold(ledger, "ch_1")
    (row,) = rows(ledger.client, ledger.table, "active")
    assert dynamo.from_wire(row)["day"] == "2026-11-21"
    assert "active" not in account_item(ledger.load("ann"), resting=True)


def test_the_newest_lines_are_read_with_whether_there_are_more(ledger: Ledger) -> None:
    account = Account("ann")
    for number in range(4):
        at = NOW + number * 86_400
        held = account.hold("ch_1", 5, at)
        assert isinstance(held, AccountChange)
        settled = held.account.settle("ch_1", 5, at, Cost(number + 1))
        ledger.commit(account, held)
        ledger.commit(held.account, settled)
        account = settled.account

    def newest(since: float, limit: int) -> tuple[list[int], bool]:
        movements, complete = ledger.newest_movements("ann", since, limit)
        return [movement.nanodollars for movement in movements], complete

    assert newest(0, 8) == ([4, 0, 3, 0, 2, 0, 1, 0], True)
    assert newest(NOW + 2 * 86_400, 8) == ([4, 0, 3, 0], True)
    assert newest(NOW + 2 * 86_400, 4) == ([4, 0, 3, 0], True)
    assert newest(0, 7) == ([4, 0, 3, 0, 2, 0, 1], False)
    assert ledger.newest_movements("nobody", 0, 3) == ((), True)
