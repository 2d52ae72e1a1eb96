"""Making, showing, pausing and deleting schedules (CONTRACT 8)."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from dualtrack.api.conversations import find_conversation
from dualtrack.clock import iso
from dualtrack.errors import invalid_request
from dualtrack.plugins.schedules.due_times import NeverDueError, check_times, due_after, in_zone
from dualtrack.plugins.schedules.run import next_time
from dualtrack.plugins.schedules.store import MISSED, Schedule, Times, new_schedule_id, schedules_of
from dualtrack.profiles import DEFAULT_PROFILE, profile_named
from dualtrack.storage.dynamo import until_kept

if TYPE_CHECKING:
    from dualtrack.api.identity import ApiCaller
    from dualtrack.plugins.schedules import types
    from dualtrack.plugins.schedules.bodies import ScheduleBody, TimesBody
    from dualtrack.plugins.schedules.store import ScheduleRun
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import ApiStores

SHOWN_TIMES: Final = 3
"""Next due times of a schedule that are shown."""


def make_schedule(stores: ApiStores, identity: ApiCaller, body: ScheduleBody) -> Schedule:
    """A new schedule. Raises 400, 404 for a conversation that does not exist."""
    now = int(stores.clock())
    times = _times(body, now)
    _check_conversation(stores, identity.user, body)
    schedule = Schedule(
        new_schedule_id(),
        identity.user,
        identity.payer,
        body.message,
        times,
        now,
        due=0,
        name=body.name,
        profile=body.profile or "",
        conversation_id=body.conversation_id or "",
        key_id=identity.key_id,
    )
    schedule = next_time(schedule, now)
    schedules_of(stores).create(schedule)
    return schedule


def due_times(body: TimesBody, now: int) -> types.DueTimes:
    """When a schedule that is made now would be due. Raises 400."""
    times = _times(body, now)
    coming = islice(due_after(times, now), SHOWN_TIMES)
    return {"next": [in_zone(due, times.timezone) for due in coming]}


def _times(body: TimesBody, now: int) -> Times:
    times = Times(body.cron or "", body.rate or "", body.at or "", body.timezone, since=now)
    try:
        check_times(times, now)
    except NeverDueError as error:
        raise invalid_request(str(error)) from None
    return times


def _check_conversation(stores: ApiStores, user: str, body: ScheduleBody) -> None:
    """Raise 404 for a conversation that is not there, 400 for another agent than its own, or none of that name."""
    if not body.conversation_id:
        profile_named(body.profile or DEFAULT_PROFILE)
        return
    conversation = find_conversation(stores, user, body.conversation_id)
    if body.profile and body.profile != conversation.profile:
        raise invalid_request(f"This conversation's profile is {conversation.profile}.")


def pause_schedule(stores: ApiStores, user: str, schedule_id: str, *, paused: bool) -> Schedule:
    """The schedule, paused or resumed; as it is if it was so already, or has ended. Raises 404."""

    def change() -> Schedule:
        schedule = schedules_of(stores).find(user, schedule_id)
        if schedule.status == "ended" or (schedule.status == "paused") == paused:
            return schedule
        after = replace(schedule, status="paused", due=0, waiting=0, waiting_for="", refusals=0)
        if not paused:
            after = next_time(after, int(stores.clock()))
        return schedules_of(stores).change(schedule, after)

    return until_kept(change, "The schedule changed too often.")


def schedule_json(stores: ApiStores, schedule: Schedule, shown: int) -> types.Schedule:
    """The schedule as its user sees it; ``shown``: of how many of its latest runs the chat is looked up."""
    times = schedule.times
    now = int(stores.clock())
    coming = (
        islice(due_after(times, max(schedule.due - 1, now)), SHOWN_TIMES)
        if schedule.status == "active"
        else ()
    )
    return {
        "schedule_id": schedule.schedule_id,
        "name": schedule.name,
        "message": schedule.message,
        "profile": schedule.profile,
        "conversation_id": schedule.conversation_id or None,
        "cron": times.cron or None,
        "rate": times.rate or None,
        "at": times.at or None,
        "timezone": times.timezone,
        "status": schedule.status,
        "error": schedule.waiting_for or schedule.why or None,
        "next": [iso(due) for due in coming],
        "created_at": iso(schedule.created_at),
        "key_id": schedule.key_id or None,
        "runs": [
            _run_json(stores, schedule, run, is_shown=number < shown)
            for number, run in enumerate(schedule.runs)
        ],
    }


def _run_json(
    stores: ApiStores, schedule: Schedule, run: ScheduleRun, *, is_shown: bool
) -> types.ScheduledRun:
    shown: types.ScheduledRun = {
        "due_at": iso(run.due),
        "status": "started" if run.chat_id else "missed" if run.refused == MISSED else "refused",
        "chat_id": run.chat_id or None,
        "error": None if run.refused in ("", MISSED) else run.refused,
    }
    if run.chat_id and is_shown:
        chat: Chat | None = stores.chats.load(schedule.user, run.chat_id)
        shown["conversation_id"] = chat.conversation_id if chat else None
        shown["chat_status"] = chat.status if chat else None
        shown["credits"] = chat.credits_used if chat else None
    return shown
