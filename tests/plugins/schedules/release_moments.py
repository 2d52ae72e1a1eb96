"""What a release stores of schedules, and what reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.plugins.schedules.store import Schedule, ScheduleRun, Times, new_schedule_id, schedules_of

from tests.drivers.crash_world import API_KEY, USER

if TYPE_CHECKING:
    from dualtrack.storage.stores import Stores

    from tests.drivers.crash_world import World


def store(world: World) -> None:
    """A schedule of the key that has run, was refused, and waits for its conversation."""
    now = int(world.clock())
    times = Times(cron="0 8 * * 1-5", timezone="Europe/Berlin", since=now)
    chat = world.chats()[0]
    asked, profile = "What is new?", "assistant"
    schedule = Schedule(
        new_schedule_id(),
        USER,
        USER,
        asked,
        times,
        now,
        now + 3_600,
        "morning",
        profile,
        chat.conversation_id,
        API_KEY,
    )
    waiting = replace(
        schedule, waiting=now, waiting_for="conversation_busy", refusals=1, why="insufficient_credits"
    )
    runs = (ScheduleRun(now - 60, refused="insufficient_credits"), ScheduleRun(now - 120, chat.chat_id))
    schedules_of(world.look()).create(waiting.ran(*runs))


def read(stores: Stores) -> None:
    """Those of the moments' user."""
    schedules_of(stores).of(USER)
