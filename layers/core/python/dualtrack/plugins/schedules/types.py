"""The answers about schedules, in the form of `dualtrack.answers`; loaded for their documentation alone."""

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from dualtrack.answers import Time
from dualtrack.plugins.schedules.store import ScheduleStatus
from dualtrack.vocabulary import ChatStatus


class ScheduledRun(TypedDict):
    """What became of a due time of a schedule."""

    due_at: Annotated[Time, "The due time"]
    status: Annotated[
        Literal["started", "missed", "refused"], "`missed`: a later time came before it could run"
    ]
    chat_id: Annotated[str | None, "The chat that was started"]
    error: Annotated[str | None, "The error code of a refusal"]
    conversation_id: NotRequired[
        Annotated[str | None, "The conversation that the chat is in; null if it was deleted"]
    ]
    chat_status: NotRequired[Annotated[ChatStatus | None, "The chat's status now; null if it was deleted"]]
    credits: NotRequired[Annotated[int | None, "What the chat was charged so far"]]


class Schedule(TypedDict):
    """A message that becomes a chat at its due times."""

    schedule_id: Annotated[str, "Its id"]
    name: Annotated[str, "Its name"]
    message: Annotated[str, "What is asked"]
    profile: Annotated[str, "The agent; empty: that of the conversation"]
    conversation_id: Annotated[str | None, "The conversation that it continues; null: a new one each time"]
    cron: Annotated[str | None, "Minute, hour, day, month, weekday"]
    rate: Annotated[str | None, "How often"]
    at: Annotated[str | None, "The one time at which it is due"]
    timezone: Annotated[str, "Of `cron`, and of `at` without an offset"]
    status: Annotated[
        ScheduleStatus, "`paused`: by its user, or after three refusals; `ended`: never due again"
    ]
    error: Annotated[
        str | None, "The error code of the latest refusal, if there was none since that was not refused"
    ]
    next: Annotated[Sequence[Time], "Its next due times, at most three"]
    created_at: Annotated[Time, "When it was made"]
    key_id: Annotated[str | None, "The API key that made it, under which it runs; null: none"]
    runs: Annotated[Sequence[ScheduledRun], "The newest first, at most 20"]


class DueTimes(TypedDict):
    """When a schedule would be due."""

    next: Annotated[Sequence[Time], "Its next due times, at most three, with the offset of its time zone"]


class Schedules(TypedDict):
    """The schedules of a user."""

    schedules: Annotated[Sequence[Schedule], "The oldest first"]
