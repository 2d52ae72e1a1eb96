"""Schedules that are due: each becomes a chat (CONTRACT 8).

    due ─► the latest due time that has come, those before it missed
         ├─ admitted                              its chat is noted, the next time is waited for
         ├─ its conversation is taken             tried again every minute until the next due time, then refused
         ├─ refused for another reason            noted; after three in a row it is paused
         └─ the service did not answer            the next minute tries again

The chat is admitted under an idempotency key of schedule and due time, and then noted: whoever tries again, after a
crash or beside this run, gets the same chat.

Users are served side by side, each with one schedule at a time; what could not run goes behind what was not tried yet.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from dualtrack.chat.cost_hold import CostSettings
from dualtrack.chat.new_chat import NewChat, Repeat
from dualtrack.chat.start_chat import start_chat
from dualtrack.clock import iso
from dualtrack.errors import ApiError, Contended
from dualtrack.notices import Notice
from dualtrack.plugins.schedules.due_times import due_after, latest_due
from dualtrack.plugins.schedules.store import MISSED, MOST_RUNS, SCHEDULE_ID, ScheduleRun, schedules_of
from dualtrack.profiles import DEFAULT_PROFILE
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.plugins.schedules.store import Schedule
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.stores import AdmissionStores

MOST_REFUSALS: Final = 3
"""In a row, after which a schedule is paused."""

ONCE_SECONDS: Final = 24 * 3600
"""How long one that is due once waits for its conversation: for as long as its chat would be recognised again."""

WORKERS: Final = 8
"""Users whose schedules are looked at side by side."""

MOST_AT_ONCE: Final = 2_000
"""Schedules of one run, more than it has time for; the others are listed again in a minute."""

_NOT_TRIED: Final = "not tried"
_TAKEN: Final = frozenset({"conversation_busy", "conversation_paused"})
_LATER: Final = frozenset({"unavailable", "timeout", "internal", "rate_limited"})
"""Refusals that say nothing about the schedule."""


@dataclass(frozen=True, slots=True)
class Starting:
    """How the chats are started: the workflow, what a chat by a key may cost, the words of a 402."""

    executions: Executions
    costs: CostSettings = field(default_factory=CostSettings)
    upgrade_message: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleReport:
    """Numbers of schedules of one run. Not ``complete`` if its time ran out before all were tried."""

    started: int = 0
    refused: int = 0
    waiting: int = 0
    complete: bool = True


def run_schedules(
    stores: AdmissionStores, starting: Starting, has_time: Callable[[], bool]
) -> ScheduleReport:
    """Start a chat for each schedule that is due, of the first `MOST_AT_ONCE`. Idempotent; two runs at once start no
    chat twice.

    A schedule that raises an error does not delay the others: its error is raised at the end.
    """
    listed = list(islice(schedules_of(stores).due(int(stores.clock())), MOST_AT_ONCE + 1))
    of_users: dict[str, list[str]] = {}
    for user, schedule_id in listed[:MOST_AT_ONCE]:
        of_users.setdefault(user, []).append(schedule_id)
    troubles: list[Exception] = []

    def run_of(user: str) -> list[str]:
        outcomes = []
        for schedule_id in of_users[user]:
            if not has_time():
                return [*outcomes, _NOT_TRIED]
            try:
                outcomes.append(_run(stores, starting, user, schedule_id))
            except Exception as error:  # noqa: BLE001 - raised below
                troubles.append(error)
        return outcomes

    with ThreadPoolExecutor(WORKERS) as pool:
        outcomes = [outcome for made in pool.map(run_of, of_users) for outcome in made]
    if troubles:
        raise ExceptionGroup(f"{len(troubles)} of {len(listed)} schedules", troubles)
    started, refused, waiting = (outcomes.count(name) for name in ("started", "refused", "waiting"))
    complete = len(listed) <= MOST_AT_ONCE and _NOT_TRIED not in outcomes
    return ScheduleReport(started, refused, waiting, complete)


def _run(stores: AdmissionStores, starting: Starting, user: str, schedule_id: str) -> str:
    schedule, now = schedules_of(stores).load(user, schedule_id), int(stores.clock())
    if schedule is None or schedule.status != "active" or schedule.due > now:
        return "gone"
    due, *earlier = latest_due(schedule.times, schedule.due, now, MOST_RUNS) or (schedule.due,)
    passed = _passed(stores, schedule, due, earlier)
    outcome, after = _tried(stores, starting, passed, now)
    after = replace(after, tried_at=now if outcome == "waiting" else 0)
    if after != schedule:
        try:
            schedules_of(stores).change(schedule, after, _notices(stores, schedule, after))
        except ConditionFailed:
            return "gone"  # another run was quicker, or its user has changed it
    return outcome


def _notices(stores: AdmissionStores, before: Schedule, after: Schedule) -> list[Action]:
    """What webhooks are told: each run that was refused since."""
    seen = {run.due for run in before.runs}
    refused = [run for run in after.runs if run.due not in seen and run.refused not in ("", MISSED)]
    if not refused or not stores.outbox.tells(after.payer):
        return []
    now = stores.clock()
    return [stores.outbox.notice_action(after.payer, _refused_notice(after, run, now)) for run in refused]


def _refused_notice(schedule: Schedule, run: ScheduleRun, now: float) -> Notice:
    """That a run of the schedule was refused, with the status that the schedule has after it."""
    data = {
        "schedule_id": schedule.schedule_id,
        "due_at": iso(run.due),
        "error": run.refused,
        "status": schedule.status,
    }
    name = f"msg_{schedule.schedule_id.removeprefix('sc_')}_{run.due}"
    return Notice(name, "schedule.refused", int(now * 1000), data, schedule.profile)


def _tried(stores: AdmissionStores, starting: Starting, schedule: Schedule, now: int) -> tuple[str, Schedule]:
    if schedule.refusals >= MOST_REFUSALS:
        return "refused", _paused(schedule.ran(ScheduleRun(schedule.due, refused=MISSED)))
    try:
        chat_id = _start(stores, starting, schedule)
    except Contended:
        return "waiting", schedule
    except ApiError as refusal:
        return _refused(schedule, refusal.code, now)
    ran = schedule.ran(ScheduleRun(schedule.due, chat_id))
    return "started", next_time(replace(ran, refusals=0, waiting=0, waiting_for="", why=""), now)


def _start(stores: AdmissionStores, starting: Starting, schedule: Schedule) -> str:
    """Admit the chat of its due time. Raises `ApiError`, `Contended`."""
    _permit(stores, schedule)
    new = NewChat(
        schedule.user,
        schedule.message,
        schedule.conversation_id,
        schedule.profile,
        payer=schedule.payer,
        key_id=schedule.key_id,
        unattended=True,
        facets={SCHEDULE_ID: schedule.schedule_id},
    )
    repeat = Repeat(_repeat_key(schedule, schedule.due), schedule.schedule_id)
    return start_chat(
        stores,
        starting.executions,
        new,
        repeat,
        costs=starting.costs,
        upgrade_message=starting.upgrade_message,
    ).chat_id


def _permit(stores: AdmissionStores, schedule: Schedule) -> None:
    """Raise 401 if the user is being erased, or the key that made the schedule is gone."""
    if stores.deletions.is_refused(schedule.user):
        raise ApiError("unauthorized", "This user was erased.")
    if not schedule.key_id:
        return
    key = next(iter(stores.keys.named([schedule.key_id])), None)
    if key is None or (key.expires_at and key.expires_at <= stores.clock()):
        raise ApiError("unauthorized", "The key that made this schedule was revoked, or has expired.")
    profile = schedule.profile or DEFAULT_PROFILE
    if key.profiles and not schedule.conversation_id and profile not in key.profiles:
        raise ApiError("forbidden", "The key that made this schedule is for other profiles.")


def _repeat_key(schedule: Schedule, due: int) -> str:
    return f"{schedule.schedule_id}@{due}"


def _passed(stores: AdmissionStores, schedule: Schedule, due: int, earlier: Sequence[int]) -> Schedule:
    """With what became of the due times before this one: the one that has waited until now is refused, and the first
    may have been admitted by a run that ended before it could note its chat."""
    if not earlier:
        return schedule
    first = stores.requests.first(schedule.user, _repeat_key(schedule, schedule.due), stores.clock())
    runs = [ScheduleRun(time, refused=MISSED) for time in earlier]
    if schedule.waiting in earlier:
        runs[earlier.index(schedule.waiting)] = ScheduleRun(schedule.waiting, refused=schedule.waiting_for)
        schedule = replace(schedule, refusals=schedule.refusals + 1, why=schedule.waiting_for)
    if first and earlier[-1] == schedule.due:
        runs[-1] = ScheduleRun(schedule.due, first.chat_id)
    return replace(schedule, due=due, waiting=0, waiting_for="").ran(*runs)


def _refused(schedule: Schedule, code: str, now: int) -> tuple[str, Schedule]:
    due = schedule.due
    if code in _LATER:
        return "waiting", schedule
    if code in _TAKEN and (schedule.times.repeats or now < due + ONCE_SECONDS):
        return "waiting", replace(schedule, waiting=due, waiting_for=code)
    ran = schedule.ran(ScheduleRun(due, refused=code))
    refused = replace(ran, refusals=schedule.refusals + 1, waiting=0, waiting_for="", why=code)
    if code == "unauthorized":
        return "refused", replace(refused, status="ended", due=0)
    if refused.refusals >= MOST_REFUSALS:
        return "refused", _paused(refused)
    return "refused", next_time(refused, now)


def _paused(schedule: Schedule) -> Schedule:
    return replace(schedule, status="paused", due=0)


def next_time(schedule: Schedule, now: int) -> Schedule:
    """The schedule with its next due time, active; ended if there is none."""
    due = next(due_after(schedule.times, now), 0)
    status = "active" if due else "ended"
    return replace(schedule, due=due, status=status)
