"""Schedules that are due: exactly one chat for each due time, whatever happens in between (CONTRACT 8)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.identity import ApiCaller, UsedKey
from dualtrack.api.key_format import digest_of
from dualtrack.chat.delete_conversation import hide
from dualtrack.chat.erase_user import Retention, begin_erasure
from dualtrack.clock import iso
from dualtrack.credits.keys import Caps
from dualtrack.errors import ApiError
from dualtrack.plugins.schedules import run as module
from dualtrack.plugins.schedules.bodies import ScheduleBody
from dualtrack.plugins.schedules.manage import make_schedule, pause_schedule
from dualtrack.plugins.schedules.run import ScheduleReport, Starting, run_schedules
from dualtrack.plugins.schedules.store import MOST_RUNS, MOST_SCHEDULES, Schedule, schedules_of
from dualtrack.storage.keys import ApiKey

from tests.drivers.outbox import noted
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

ANN = ApiCaller("ann", "ann")
MINUTE, HOUR, DAY = 60, 3_600, 86_400


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        new_world.clock.now = float(int(new_world.clock.now) // DAY * DAY)
        yield new_world


def made(world: World, identity: ApiCaller = ANN, **body: Any) -> Schedule:
    return make_schedule(world.stores, identity, ScheduleBody(**{"message": "Anything new?", **body}))


def run(world: World, seconds: float = 0.0) -> ScheduleReport:
    """A run after so many seconds."""
    world.clock.now += seconds
    executions: Any = world.executions
    return run_schedules(world.stores, Starting(executions), lambda: True)


def read(world: World, schedule: Schedule) -> Schedule:
    return schedules_of(world.stores).find(schedule.user, schedule.schedule_id)


def outcomes(world: World, schedule: Schedule) -> list[str]:
    """Of its runs, the newest first."""
    return [run.refused or "started" for run in read(world, schedule).runs]


def chats_of(world: World) -> int:
    return sum(conversation.queries for conversation in world.stores.conversations.newest("ann"))


def finish(world: World) -> None:
    """Let all running chats end."""
    for conversation in world.stores.conversations.newest("ann"):
        if conversation.lease:
            chat = world.stores.chats.load("ann", conversation.lease)
            assert chat
            world.run(chat)


def test_each_due_time_becomes_a_chat(world: World) -> None:
    schedule = made(world, rate="1 hour")
    assert run(world, HOUR - 30) == ScheduleReport()
    for number in range(1, 4):
        assert run(world, 30 if number == 1 else HOUR) == ScheduleReport(started=1)
        assert run(world, 1) == ScheduleReport(), "once"
        assert chats_of(world) == number
        finish(world)
    assert outcomes(world, schedule) == ["started"] * 3


def test_after_downtime_the_latest_runs_and_the_others_are_missed(world: World) -> None:
    schedule = made(world, cron="*/2 * * * *")
    assert run(world, 10 * MINUTE + 30) == ScheduleReport(started=1)
    assert outcomes(world, schedule) == ["started", "missed", "missed", "missed", "missed"]
    assert chats_of(world) == 1
    finish(world)
    assert run(world, 30 * DAY) == ScheduleReport(started=1)
    assert len(read(world, schedule).runs) == MOST_RUNS, "however long it lasted"


def test_two_runs_at_once_start_one_chat(world: World) -> None:
    schedules = [made(world, rate="1 hour") for _ in range(3)]
    world.clock.now += HOUR
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: run(world), range(4)))
    assert chats_of(world) == 3
    assert [outcomes(world, each) for each in schedules] == [["started"]] * 3


@pytest.mark.parametrize("later", [30, HOUR])
def test_a_run_that_ended_before_it_noted_the_chat(
    world: World, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """The next one, in the same hour or after it, finds the chat of the due time."""
    schedule = made(world, rate="1 hour")
    with monkeypatch.context() as broken:
        broken.setattr(type(schedules_of(world.stores)), "change", _killed)
        with pytest.raises(ExceptionGroup):
            run(world, HOUR)
    finish(world)
    run(world, later)
    assert outcomes(world, schedule) == ["started"] * (1 + later // HOUR)
    assert chats_of(world) == 1 + later // HOUR
    first = read(world, schedule).runs[-1]
    assert world.stores.chats.load("ann", first.chat_id)


def _killed(*_: object) -> None:
    raise KeyError("killed")


def test_clocks_that_step_back_repeat_nothing(world: World) -> None:
    schedule = made(world, rate="1 hour")
    run(world, HOUR)
    finish(world)
    assert run(world, -HOUR) == ScheduleReport()
    assert run(world, HOUR) == ScheduleReport()
    assert outcomes(world, schedule) == ["started"]


def test_a_taken_conversation_is_waited_for_until_the_next_due_time(world: World) -> None:
    """Three times in a row pause the schedule; it is tried every minute."""
    first = world.start("Hello?")
    schedule = made(world, rate="2 minutes", conversation_id=first.conversation_id)
    assert run(world, 2 * MINUTE) == ScheduleReport(waiting=1)
    assert run(world, MINUTE) == ScheduleReport(waiting=1)
    world.run(first)
    assert run(world, 30) == ScheduleReport(started=1)
    chat = world.stores.chats.load("ann", read(world, schedule).runs[0].chat_id)
    assert chat
    assert (chat.conversation_id, chat.query) == (first.conversation_id, 2)
    assert [run(world, 2 * MINUTE) for _ in range(3)] == [ScheduleReport(waiting=1)] * 3
    assert run(world, 2 * MINUTE) == ScheduleReport(refused=1)
    assert outcomes(world, schedule) == ["missed", *["conversation_busy"] * 3, "started"]
    assert (read(world, schedule).status, read(world, schedule).why) == ("paused", "conversation_busy")
    assert run(world, DAY) == ScheduleReport()


def test_one_that_is_due_once_ends(world: World) -> None:
    schedule = made(world, at=iso(world.clock.now + HOUR))
    assert run(world, HOUR + 1) == ScheduleReport(started=1)
    assert (read(world, schedule).status, outcomes(world, schedule)) == ("ended", ["started"])
    assert run(world, DAY) == ScheduleReport()


def test_a_deleted_conversation_is_refused_and_pauses_after_three(world: World) -> None:
    first = world.ask("Hello?")
    schedule = made(world, rate="1 hour", conversation_id=first.conversation_id)
    conversation = world.stores.conversations.find("ann", first.conversation_id)
    assert conversation
    hide(world.stores, conversation)
    assert [run(world, HOUR).refused for _ in range(4)] == [1, 1, 1, 0]
    assert outcomes(world, schedule) == ["not_found"] * 3
    resumed = pause_schedule(world.stores, "ann", schedule.schedule_id, paused=False)
    assert (resumed.status, resumed.refusals) == ("active", 0)
    assert run(world, HOUR) == ScheduleReport(refused=1)


def test_without_credits_it_is_refused_until_there_are_some(world: World) -> None:
    schedule = made(world, rate="1 minute")
    while run(world, MINUTE).started:
        finish(world)
    assert outcomes(world, schedule)[0] == "insufficient_credits"
    world.stores.ledger.grant("ann", "g1", 50, "a pack", world.clock())
    assert run(world, MINUTE) == ScheduleReport(started=1)
    assert read(world, schedule).refusals == 0


def test_listeners_are_told_of_what_was_refused(world: World) -> None:
    first = world.ask("Hello?")
    schedule = made(world, rate="1 hour", conversation_id=first.conversation_id)
    stores = world.stores = replace(world.stores, outbox=replace(world.stores.outbox, tells_all=True))
    conversation = stores.conversations.find("ann", first.conversation_id)
    assert conversation
    hide(stores, conversation)
    assert run(world, HOUR) == ScheduleReport(refused=1)
    (notice,) = noted(stores, "ann")
    assert notice.type == "schedule.refused"
    assert notice.data == {
        "schedule_id": schedule.schedule_id,
        "due_at": iso(schedule.due),
        "error": "not_found",
        "status": "active",
    }


def test_a_key_s_schedule_runs_under_it_and_ends_with_it(world: World) -> None:
    stores, now = world.stores, int(world.clock.now)
    key = ApiKey("key_1", "ann", "cron", digest_of("x"), ("chat",), now)
    stores.ledger.add_key("ann", "key_1", Caps(), now, [stores.keys.create_action(key)])
    schedule = made(world, ApiCaller("ann", "ann", key=UsedKey("key_1", frozenset({"chat"}))), rate="1 hour")
    assert run(world, HOUR) == ScheduleReport(started=1)
    chat = stores.chats.load("ann", read(world, schedule).runs[0].chat_id)
    assert chat
    assert chat.key_id == "key_1"
    finish(world)
    stores.keys.forget(["key_1"])
    assert run(world, HOUR) == ScheduleReport(refused=1)
    ended = read(world, schedule)
    assert (ended.status, ended.why) == ("ended", "unauthorized")
    assert pause_schedule(stores, "ann", schedule.schedule_id, paused=False).status == "ended"


def test_one_that_cannot_be_read_does_not_delay_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(world, rate="1 hour", name="poison")
    good = made(world, rate="1 hour")
    start = module._start

    def poisoned(stores: Any, starting: Starting, schedule: Schedule) -> str:
        if schedule.name:
            raise KeyError("poison")
        return start(stores, starting, schedule)

    monkeypatch.setattr(module, "_start", poisoned)
    with pytest.raises(ExceptionGroup, match="1 of 2 schedules"):
        run(world, HOUR)
    assert outcomes(world, good) == ["started"]


def test_a_service_that_does_not_answer_is_asked_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = made(world, rate="1 hour")
    with monkeypatch.context() as down:

        def refuse(*_: object) -> str:
            raise ApiError("unavailable", "later")

        down.setattr(module, "_start", refuse)
        assert run(world, HOUR) == ScheduleReport(waiting=1)
    assert run(world, MINUTE) == ScheduleReport(started=1)
    assert outcomes(world, schedule) == ["started"]


def test_a_paused_one_makes_up_for_nothing(world: World) -> None:
    schedule = made(world, rate="1 hour")
    pause_schedule(world.stores, "ann", schedule.schedule_id, paused=True)
    assert run(world, 5 * HOUR) == ScheduleReport()
    pause_schedule(world.stores, "ann", schedule.schedule_id, paused=False)
    assert run(world) == ScheduleReport()
    assert run(world, HOUR) == ScheduleReport(started=1)
    assert outcomes(world, schedule) == ["started"]


def test_a_user_has_twenty_at_most_however_they_come(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        tries = list(pool.map(lambda _: _tried(world), range(MOST_SCHEDULES + 5)))
    assert tries.count(True) == len(schedules_of(world.stores).of("ann")) == MOST_SCHEDULES
    first = schedules_of(world.stores).of("ann")[0]
    schedules_of(world.stores).delete("ann", first.schedule_id)
    with pytest.raises(ApiError, match="no such schedule"):
        schedules_of(world.stores).delete("ann", first.schedule_id)
    assert _tried(world)
    assert not _tried(world)


def _tried(world: World) -> bool:
    try:
        made(world, rate="1 hour")
    except ApiError:
        return False
    return True


def test_nothing_runs_of_a_user_who_is_being_erased(world: World) -> None:
    made(world, rate="1 hour")
    begin_erasure(world.stores, "ann", Retention(30, 1))
    assert run(world, HOUR) == ScheduleReport(refused=1)
    assert chats_of(world) == 0


def test_what_waits_is_behind_what_was_not_tried(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules whose conversations are taken do not keep others from their time, however many there are."""
    first = world.start("Hello?")
    for _ in range(5):
        made(world, rate="5 minutes", conversation_id=first.conversation_id)
    assert run(world, 5 * MINUTE) == ScheduleReport(waiting=5)
    bob = ApiCaller("bob", "bob")
    late = made(world, bob, at=iso(world.clock.now + 20))
    monkeypatch.setattr(module, "MOST_AT_ONCE", 1)
    assert [run(world, 30) for _ in range(6)].count(ScheduleReport(started=1, complete=False)) == 1
    assert outcomes(world, late) == ["started"]


def test_many_due_at_once_start_in_bounded_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first, one user's beside the others', each once; what is left comes in the next minute."""
    monkeypatch.setattr(module, "MOST_AT_ONCE", 30)
    everybody = [ApiCaller(name, name) for name in ("ann", "bob", "cleo", "dora")]
    schedules = [made(world, identity, rate="1 hour") for identity in everybody for _ in range(10)]
    monkeypatch.setattr(module, "_start", lambda *_: "ch_1")
    assert run(world, HOUR) == ScheduleReport(started=30, complete=False)
    assert run(world, MINUTE) == ScheduleReport(started=10)
    assert run(world, MINUTE) == ScheduleReport()
    assert [outcomes(world, each) for each in schedules] == [["started"]] * 40


def test_one_user_has_one_worker(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one of a user's twenty is being started, the others' are, too."""
    for _ in range(MOST_SCHEDULES):
        made(world, rate="1 hour")
    made(world, ApiCaller("bob", "bob"), rate="1 hour")
    bob_has_run, at_once = threading.Event(), list[str]()

    def start(stores: Any, starting: Starting, schedule: Schedule) -> str:
        if schedule.user == "bob":
            bob_has_run.set()
        else:
            assert bob_has_run.wait(20)
        at_once.append(schedule.user)
        return "ch_1"

    monkeypatch.setattr(module, "_start", start)
    assert run(world, HOUR) == ScheduleReport(started=21)
    assert at_once[0] == "bob"
