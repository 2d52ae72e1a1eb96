"""The scheduled reset: late, repeated, interrupted, and beside running chats."""

from __future__ import annotations

import importlib.util
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.credit_reset import ResetUnfinished, reset_accounts
from dualtrack.credits.account import Account, AccountChange
from dualtrack.credits.audit import audit
from dualtrack.storage.ledger import Ledger, with_account

from tests.drivers.credit_tables import dynamodb_client, make_ledger, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb.client import DynamoDBClient

ROOT = Path(__file__).parents[3]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


NOON = moment("2026-11-21T12:00:00Z")
MIDNIGHT = moment("2026-11-22T00:00:00Z")


@pytest.fixture(scope="module")
def client() -> Iterator[DynamoDBClient]:
    with dynamodb_client() as new_client:
        yield new_client


@pytest.fixture
def ledger(client: DynamoDBClient) -> Ledger:
    return make_ledger(client)


def use(ledger: Ledger, user: str, now: float, *, settle: bool = True) -> None:
    with_account(ledger, user, lambda account: account.hold("chat", 5, now), ledger.commit)
    if settle:
        with_account(ledger, user, lambda account: account.settle("chat", 5, now), ledger.commit)


def waiting(ledger: Ledger) -> int:
    """Accounts in the index of used ones."""
    return len(rows(ledger.client, ledger.table, "active"))


def test_a_used_account_is_brought_up_to_date_and_leaves_the_index(ledger: Ledger) -> None:
    use(ledger, "ann", NOON)
    assert reset_accounts(ledger, MIDNIGHT).reset == 1
    stored = ledger.load("ann")
    assert (stored.day, stored.used_day, stored.used_month) == ("2026-11-22", 0, 5)
    assert waiting(ledger) == 0
    assert audit(stored, ledger.movements("ann")) == ()


def test_the_first_of_a_month_ends_the_month_too(ledger: Ledger) -> None:
    use(ledger, "ann", NOON)
    reset_accounts(ledger, moment("2026-12-01T00:00:00Z"))
    assert ledger.load("ann").used_month == 0


def test_only_accounts_that_were_used_are_touched(ledger: Ledger) -> None:
    for number in range(20):
        use(ledger, f"user {number}", NOON)
    reset_accounts(ledger, MIDNIGHT)
    use(ledger, "user 3", MIDNIGHT + 60)
    assert reset_accounts(ledger, MIDNIGHT + 86_400).reset == 1


def test_a_second_run_finds_nothing_to_do(ledger: Ledger) -> None:
    use(ledger, "ann", NOON)
    reset_accounts(ledger, MIDNIGHT)
    before = rows(ledger.client, ledger.table)
    report = reset_accounts(ledger, MIDNIGHT + 1)
    assert (report.reset, report.moved, report.unfinished) == (0, 0, False)
    assert rows(ledger.client, ledger.table) == before


def test_a_late_run_does_not_touch_todays_usage(ledger: Ledger) -> None:
    use(ledger, "ann", NOON)
    use(ledger, "ann", MIDNIGHT + 3_600)
    report = reset_accounts(ledger, MIDNIGHT + 7_200)
    assert (report.reset, report.moved) == (0, 0)
    assert ledger.load("ann").used_day == 5


def test_an_interrupted_run_is_finished_by_the_next(ledger: Ledger) -> None:
    for number in range(30):
        use(ledger, f"user {number}", NOON)
    looks = iter([True, True, True, False])
    first = reset_accounts(ledger, MIDNIGHT, has_time=lambda: next(looks), page=3)
    assert first.out_of_time
    assert 0 < first.reset < 30
    second = reset_accounts(ledger, MIDNIGHT + 60, page=3)
    assert (first.reset + second.reset, second.unfinished, waiting(ledger)) == (30, False, 0)


def test_a_balance_is_the_same_before_and_after(ledger: Ledger) -> None:
    use(ledger, "ann", NOON)
    before = ledger.load("ann").balance(MIDNIGHT)
    reset_accounts(ledger, MIDNIGHT)
    assert ledger.load("ann").balance(MIDNIGHT) == before


def test_a_chat_over_midnight_keeps_its_hold(ledger: Ledger) -> None:
    use(ledger, "ann", MIDNIGHT - 1, settle=False)
    reset_accounts(ledger, MIDNIGHT)
    assert ledger.load("ann").held(MIDNIGHT) == 5
    assert waiting(ledger) == 1
    with_account(ledger, "ann", lambda account: account.settle("chat", 5, MIDNIGHT + 9), ledger.commit)
    account = ledger.load("ann")
    assert (account.used_day, account.used_month) == (0, 5)
    reset_accounts(ledger, MIDNIGHT + 86_400)
    assert waiting(ledger) == 0


def test_an_abandoned_hold_is_freed_with_a_line_in_the_ledger(ledger: Ledger) -> None:
    use(ledger, "ann", NOON, settle=False)
    reset_accounts(ledger, MIDNIGHT)
    assert ledger.load("ann").holds == {}
    assert [line.kind for line in ledger.movements("ann")] == ["hold", "expire"]


def test_a_movement_decided_before_the_reset_and_written_after_it_is_kept(ledger: Ledger) -> None:
    use(ledger, "ann", NOON)
    account = ledger.load("ann")
    decision = account.hold("next", 5, MIDNIGHT + 1)
    assert isinstance(decision, AccountChange)
    reset_accounts(ledger, MIDNIGHT)
    ledger.commit(account, decision)
    after = ledger.load("ann")
    assert after.available(MIDNIGHT + 2) == 45
    assert waiting(ledger) == 1
    assert audit(after, ledger.movements("ann")) == ()


def test_an_account_used_while_the_reset_reads_it_is_left_alone(ledger: Ledger) -> None:
    use(ledger, "ann", NOON)

    class Racing(Ledger):
        """A chat starts right after the reset has read the account."""

        def expire(self, user: str, now: float) -> Account:
            account = Ledger.expire(self, user, now)
            use(ledger, user, now, settle=False)
            return account

    report = reset_accounts(Racing(ledger.client, ledger.table), MIDNIGHT)
    assert (report.reset, report.moved) == (0, 1)
    assert ledger.load("ann").held(MIDNIGHT) == 5


def test_one_broken_account_does_not_stop_the_others(ledger: Ledger) -> None:
    for user in ("ann", "bob", "cy"):
        use(ledger, user, NOON)
    broken = {"pk": {"S": "user#bob"}, "sk": {"S": "account"}}
    ledger.client.update_item(
        TableName=ledger.table,
        Key=broken,
        UpdateExpression="SET holds = :text",
        ExpressionAttributeValues={":text": {"S": "?"}},
    )
    report = reset_accounts(ledger, MIDNIGHT)
    assert (report.reset, report.failed, report.unfinished) == (2, 1, True)


# ── the function ──────────────────────────────────────────────────────────────────────────────


class Context:
    """What Lambda tells a function about its invocation."""

    function_name = "credit_reset"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:credit_reset"
    aws_request_id = "6f0a3c52"

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def get_remaining_time_in_millis(self) -> int:
        return self._milliseconds


@pytest.fixture
def handler(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CREDITS_TABLE", ledger.table)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "credit_reset")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "dualtrack")
    path = ROOT / "functions" / "credit_reset" / "handler.py"
    spec = importlib.util.spec_from_file_location("credit_reset_handler", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, spec.name, module)
    spec.loader.exec_module(module)
    return module.handler


def event() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "events" / "credit_reset.json").read_text())
    return loaded


def test_the_function_resets_what_was_used_before_today(ledger: Ledger, handler: Any) -> None:
    use(ledger, "ann", NOON - 86_400 * 365)
    assert handler(event(), Context(300_000)) == {"reset": 1, "moved": 0}
    assert waiting(ledger) == 0


def test_the_function_fails_when_its_time_is_up_so_that_it_is_run_again(ledger: Ledger, handler: Any) -> None:
    use(ledger, "ann", NOON - 86_400 * 365)
    with pytest.raises(ResetUnfinished):
        handler(event(), Context(1_000))
    assert waiting(ledger) == 1
