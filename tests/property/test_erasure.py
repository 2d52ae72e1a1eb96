"""A user is erased in spite of any single fault, and a conversation of any length is deleted.

Every outside call of the request and of the sweeps that follow fails in every way. Afterwards nothing names or quotes
the user, another user is untouched, and the ledger keeps the amounts once. This runs a sample by
``DUALTRACK_CRASH_SEED``; all cases: ``uv run --group test python -m bench.erasure``. What an erasure does to the
steps of a running chat is in the crash matrix (meanwhile "erase").
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Final

import pytest
from dualtrack.chat.delete_conversation import WRITERS_SECONDS, delete_conversation
from dualtrack.chat.erase_user import begin_erasure
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.chat_times import CHAT_SECONDS
from dualtrack.storage.cache import StoredToken
from dualtrack.storage.chats import chat_partition
from dualtrack.storage.dynamo import to_wire

from tests.drivers.crash_world import RETENTION, Pool, World
from tests.drivers.erasure_world import SECRET, USER, Erased, Long, all_cases, run
from tests.drivers.faults import Fault, Process, Site, Trace
from tests.drivers.invariants import erasure_faults
from tests.long_forms import LONG

if TYPE_CHECKING:
    from dualtrack.storage.stores import Stores

SEED: Final = os.environ.get("DUALTRACK_CRASH_SEED", "20261121")
QUERIES: Final = 3_000


def test_nothing_is_left_and_nothing_is_written_again() -> None:
    """Without a fault; also counts the sweeps."""
    erased = Erased()
    kinds = {sk.split("#")[0] for pk, sk in erased.world.aws.table("history") if USER in pk}
    assert kinds == {"CONV", "F", "S", "B", "D", "K", "V", "WORDS"}
    assert [key for key in erased.world.aws.objects if USER in key]
    erased.run()
    assert erased.faults() == []
    # after a crash in between, the execution ends because its next step finds no chat
    assert erased.world.execution(erased.running.chat_id) == "ABORTED"
    sites = [site for site in erased.trace.sites if site.step not in ("request", "sweep 0")]
    assert {site.step for site in sites if site.operation == "batch_write_item"} <= {"sweep 1", "sweep 4"}


def test_an_overdue_chat_that_cannot_be_read_is_stopped() -> None:
    """It cannot be ended, but its conversation's lease names it."""
    erased = Erased()
    world = erased.world
    del world.aws.table("chats")[chat_partition(USER, erased.running.chat_id), "STATE"]["status"]
    world.clock.now += CHAT_SECONDS
    world.begin_erasure(Process(world.quiet, "request"))
    assert world.execution(erased.running.chat_id) == "ABORTED"


def sample() -> list[Fault]:
    """A sample with every kind of fault and half of the calls; in the short form an eighth."""
    listed = all_cases()
    random.Random(SEED).shuffle(listed)
    by_site = {fault.site: fault for fault in listed}
    by_kind = {fault.kind: fault for fault in listed}
    sites = list(by_site.values())[:: 4 if LONG else 8]
    return [*{*sites, *by_kind.values()}]


def test_whatever_goes_wrong_once() -> None:
    """One run per case."""
    cases = sample()
    outcomes = {str(fault): run(fault) for fault in cases}
    assert {name: outcome.wrong for name, outcome in outcomes.items() if outcome.wrong} == {}
    assert all(outcome.struck for outcome in outcomes.values())


def test_a_request_admitted_before_the_erasure_leaves_nothing() -> None:
    """It stores a token and starts a chat after the first sweep."""
    world = Erased().world
    world.begin_erasure(Process(world.quiet, "request"))
    world.look_at_deletions(Process(world.quiet, "sweep"))
    world.post(f"late {SECRET}")
    world.look().cache.save_token(USER, StoredToken(SECRET.encode(), 1))
    for _ in range(9):
        world.clock.now += 300
        world.look_at_deletions(Process(world.quiet, "sweep"))
    assert erasure_faults(world.look(), USER, SECRET) == []


def test_a_user_who_cannot_be_erased_does_not_block_the_others() -> None:
    """A conversation that cannot be read raises at the end of every sweep; all others are deleted."""
    erased = Erased()
    world = erased.world
    process = Process(world.quiet, "sweep")
    world.begin_erasure(process)
    begin_erasure(world.look(), "broken", RETENTION)
    table = world.aws.table("history")
    table["USER#broken", "CONV#cv_1"] = to_wire({"pk": "USER#broken", "sk": "CONV#cv_1"})
    for _ in range(9):
        with pytest.raises(ExceptionGroup, match="1 of"):
            world.look_at_deletions(process)
        world.clock.now += 300
    assert erased.faults() == []


# ── a conversation of any length ──────────────────────────────────────────────────────────────────


def dying(world: World, step: str, calls: int) -> tuple[Stores, Process]:
    """Stores of a process that dies at a batch of deletions."""
    fault = Fault(Site(step, "dynamodb", "batch_write_item", "", calls), "crash after")
    process = Process(Trace(world.aws, fault), step)
    return world.stores(process), process


def test_three_thousand_queries_interrupted_three_times() -> None:
    """A request and two sweeps die; the third continues where they stopped, the last one removes the entry."""
    long = Long(QUERIES)
    world = long.world
    counts = [long.left()]
    stores, _ = dying(world, "request", 400)
    with pytest.raises(Exception, match="request"):
        delete_conversation(stores, USER, long.conversation_id)
    counts.append(long.left())
    for number in (1, 2):
        world.clock.now += 300
        stores, process = dying(world, f"sweep {number}", 400)
        with pytest.raises(ExceptionGroup):
            sweep_deletions(stores, world.executions(process), Pool(set(), process), 120)
        counts.append(long.left())
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == len(counts), "each went on"
    process = Process(world.quiet, "sweep")
    for seconds in (300, WRITERS_SECONDS):
        world.clock.now += seconds
        sweep_deletions(world.stores(process), world.executions(process), Pool(set(), process), 600, 300)
    assert (long.left(), world.aws.table("history"), world.aws.objects) == (0, {}, {})


def test_a_deletion_that_runs_out_of_time_continues_in_the_next_sweep() -> None:
    """The conversation is hidden at once, and the user's other conversation is kept."""
    long = Long(QUERIES)
    looks = iter(range(1_000_000))
    stores = long.world.look()
    delete_conversation(stores, USER, long.conversation_id, lambda: next(looks) < 500)
    conversation = stores.conversations.find(USER, long.conversation_id)
    assert conversation is not None
    assert conversation.is_being_deleted
    assert 0 < long.left() < QUERIES * 7
