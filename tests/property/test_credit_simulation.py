"""The ledger under crashes, duplicates, zombies, conflicts and day changes: no rule ever breaks.

One seed determines everything; a failure's message has it, and ``python -m bench.credit_simulation --seed N``
runs it again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, get_args

import pytest
from dualtrack.credits import account
from dualtrack.credits.keys import CAPS
from dualtrack.vocabulary import MovementKind

from bench.credit_engines import ENGINES, has_dynamodb_local, memory
from tests.drivers.credit_simulation import BROKEN, RuleBroken, Rules, Tally, World, worlds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

SEED = int(os.environ.get("CREDIT_SIMULATION_SEED", "2026"))
IN_ALL = 2_000


@pytest.mark.timeout(600)
def test_no_rule_breaks_in_2000_chats() -> None:
    tally = _play(IN_ALL, Rules())
    print(f"{tally.chats} chats, {tally.steps} steps, {tally.writes} writes, {dict(tally.counts)}")
    assert tally.chats == IN_ALL
    happened = {
        *("answered", "cancelled", "failed", "refused", "conflict", "throttled", "answer lost"),
        *("crash", "zombie", "duplicate", "decided anew", "overtaken"),
        *("cancelled early for 0", "cancelled early for 5"),
        *("cost more than it held", "a digest under a key", "refused: revoked"),
        *("went on", "refused to go on"),
        *(f"refused: {cap}" for cap in CAPS),
        *(f"line: {kind}" for kind in get_args(MovementKind)),
    }
    assert {name for name in happened if tally.counts[name] < 20} == set()


def test_no_rule_breaks_when_dead_holds_accumulate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A movement frees one at a time, so that others are often still stored."""
    monkeypatch.setattr(account, "EXPIRED_AT_ONCE", 1)
    assert _play(400, Rules()).counts["line: expire"] >= 20


def test_the_same_chats_leave_the_same_items_on_ministack() -> None:
    _compare("ministack", 200)


@pytest.mark.skipif(not has_dynamodb_local(), reason="DynamoDB Local is not installed: .ci/dynamodb_local.sh")
def test_the_same_chats_leave_the_same_items_on_aws_own_engine() -> None:
    _compare("dynamodb-local", 80)


def _play(in_all: int, rules: Rules) -> Tally:
    tally = Tally()
    with memory() as client:
        for seed, chats in worlds(in_all, SEED):
            tally.add(World(client, seed, chats, rules).play())
    return tally


def _compare(engine: str, chats: int) -> None:
    with ENGINES[engine]() as theirs, memory() as ours:
        for seed, size in worlds(chats, SEED):
            assert _items(theirs, seed, size) == _items(ours, seed, size), f"seed {seed!r}"


def _items(client: DynamoDBClient, seed: str, chats: int) -> object:
    """A world's items; the world has checked that the engine has exactly these."""
    world = World(client, seed, chats)
    world.play()
    return world.watcher.items


@pytest.mark.parametrize("rules", BROKEN)
def test_a_broken_rule_is_caught(rules: type[Rules]) -> None:
    with pytest.raises(RuleBroken, match=f"seed '{SEED}/"):
        _play(IN_ALL, rules())
