"""Credits over HTTP on the deployed stack: many starts at once, tools that cannot be paid, the operator's view."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
from dualtrack.credits.account import AccountChange
from dualtrack.credits.audit import audit
from dualtrack.storage.dynamo import to_wire
from dualtrack.storage.ledger import account_item, with_account

from tests.clients.stack_client import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.credits.account import Account

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root

DAY = 50
"""The free plan's credits a day."""


def leave(root: Root, person: Person, available: int) -> None:
    """Use up the day's credits except ``available``, as an earlier chat would."""
    ledger = root.stores().ledger

    def hold(account: Account) -> AccountChange:
        decision = account.hold("ch_earlier", DAY - available, time.time())
        assert isinstance(decision, AccountChange)
        return decision

    def settle(account: Account) -> AccountChange:
        return account.settle("ch_earlier", DAY, time.time())

    with_account(ledger, person.id, hold, ledger.commit)
    with_account(ledger, person.id, settle, ledger.commit)
    assert person.credits()["available"] == available


def answered(person: Person, message: str, key: str) -> httpx.Response:
    """The answer, asked for again by a client whose gateway gave up, or that is told to try again, under one key."""
    while (answer := person.post(message, key=key)).status_code in (503, 504):
        pass
    return answer


def test_of_fifty_chats_started_at_once_with_20_credits_four_run(
    root: Root, ann: Person, script: Script
) -> None:
    leave(root, ann, 20)
    for _ in range(4):
        script.says("Yes.")
    key = uuid.uuid4().hex
    with ThreadPoolExecutor(50) as pool:
        answers = list(
            pool.map(lambda number: answered(ann, script.question(str(number)), f"{key}-{number}"), range(50))
        )
    assert Counter(answer.status_code for answer in answers) == {202: 4, 402: 46}
    refused: dict[str, Any] = next(answer.json()["error"] for answer in answers if answer.status_code == 402)
    assert refused["code"] == "insufficient_credits"
    assert (refused["required"], refused["available"] < 5) == (5, True)
    assert set(refused["upgrade"]) == {"message", "plans", "packs"}
    assert f"dualtrack credits grant {ann.id} 500" in refused["upgrade"]["message"]
    for answer in answers:
        if answer.status_code == 202:
            assert ann.finish(answer.json()["chat_id"])["status"] == "done"
    balance = ann.credits()
    assert (balance["available"], balance["held"], balance["daily"]["used"]) == (0, 0, DAY)
    ledger = root.stores().ledger
    assert audit(ledger.load(ann.id), ledger.movements(ann.id)) == ()


def test_a_tool_that_cannot_be_paid_is_not_run_and_the_next_call_is_the_last(
    root: Root, ann: Person, script: Script
) -> None:
    leave(root, ann, 6)
    script.asks(("kit_echo", {"text": "a"}))
    script.says("Without the tool I cannot tell.")
    chat_id = ann.start(script.question())["chat_id"]
    events = ann.events(chat_id)
    chat = ann.chat(chat_id)
    assert (chat["status"], chat["stop"], chat["credits_used"], chat["turns"]) == (
        "done",
        "insufficient_credits",
        5,
        2,
    )
    short = [event.data for event in events if event.data.get("code") == "insufficient_credits"]
    assert [(refusal["required"], refusal["available"]) for refusal in short] == [(2, 1)]
    assert [call["is_error"] for call in chat["tool_calls"]] == [True]
    assert [event.data["final"] for event in events if event.kind == "turn"] == [False, True]
    last = script.requests()[-1]
    assert last["tool_choice"] == {"type": "none"}
    assert last["tools"] == script.requests()[0]["tools"]
    assert ann.credits()["available"] == 1


def test_what_fits_runs_and_the_rest_is_refused_in_call_order(
    root: Root, ann: Person, script: Script
) -> None:
    leave(root, ann, 8)
    script.asks(("kit_echo", {"text": "first"}), ("kit_echo", {"text": "second"}))
    script.says("One of two.")
    chat = ann.ask(script.question())
    assert [call["is_error"] for call in chat["tool_calls"]] == [False, True]
    assert (chat["stop"], chat["credits_used"]) == ("complete", 7)


def test_only_operators_grant_and_change_plans_and_a_grant_counts_once(
    root: Root, someone: Callable[[], Person]
) -> None:
    ann = someone()
    operator = root.stack.token("operator", admin=True)
    with httpx.Client(
        base_url=root.stack.url, headers={"Authorization": f"Bearer {operator.token}"}, trust_env=False
    ) as admin:
        users = f"/v1/admin/users/{ann.id}"
        assert ann.http.get(f"{users}/credits").status_code == 403
        grant = {"credits": 500, "reason": "a pack", "grant_id": "payment-1"}
        for _ in range(2):
            assert admin.post(f"{users}/grants", json=grant).json()["pack"] == {"remaining": 500}
        assert admin.put(f"{users}/plan", json={"plan": "pro"}).json()["monthly"]["limit"] == 3_000
    balance = ann.credits()
    assert (balance["plan"], balance["available"]) == ("pro", 650)
    entries = ann.get("/v1/credits/ledger")["entries"]
    assert [(entry["kind"], entry["amount"], entry["available_after"]) for entry in entries] == [
        ("plan", 0, 650),
        ("grant", 500, 550),
    ]


def test_an_operator_audits_a_user_of_the_local_stack(root: Root, ann: Person, script: Script) -> None:
    script.asks(("kit_echo", {"text": "a"}))
    script.says("Done.")
    ann.ask(script.question())
    completed = _audit(root, ann)
    assert (completed.returncode, completed.stdout) == (
        0,
        f"User {ann.id}, lines of the ledger: 3. The account is what they add up to.\n",
    ), completed.stderr
    ledger = root.stores().ledger
    account = ledger.load(ann.id)
    ledger.client.put_item(TableName=ledger.table, Item=to_wire(account_item(replace(account, used_day=0))))
    completed = _audit(root, ann)
    assert completed.returncode == 4
    assert f"used today: the account says 0, its ledger {account.used_day}" in completed.stdout
    ledger.client.put_item(TableName=ledger.table, Item=to_wire(account_item(account)))


def _audit(root: Root, person: Person) -> subprocess.CompletedProcess[str]:
    command = ["credits", "audit", person.id, "--state-dir", str(root.state_dir)]
    return subprocess.run(
        [sys.executable, "-m", "dualtrack_stack.cli.main", *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
