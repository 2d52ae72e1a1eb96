"""The bodies that the routes of schedules accept."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from dualtrack.api.models import ConversationId, OptionalProfile, RequestBody, Text
from dualtrack.plugins.schedules.due_times import CRON_CHARACTERS, ZONE_CHARACTERS

SCHEDULED_CHARACTERS: Final = 8_000
"""Of a schedule's message, which its item holds: each run writes the item again."""


class TimesBody(RequestBody):
    """When it is due, again and again, or once: `cron`, `rate` or `at`."""

    cron: Annotated[
        Text | None,
        Field(
            min_length=9,
            max_length=CRON_CHARACTERS,
            description="Minute, hour, day, month, weekday.",
            examples=["0 8 * * 1-5"],
        ),
    ] = None
    rate: Annotated[
        Text | None,
        Field(max_length=20, description="A number of minutes, hours or days.", examples=["2 hours"]),
    ] = None
    at: Annotated[
        Text | None,
        Field(max_length=40, description="A time, once.", examples=["2027-01-01T08:00:00"]),
    ] = None
    timezone: Annotated[
        Text,
        Field(
            max_length=ZONE_CHARACTERS,
            description="Of `cron`, and of `at` without an offset.",
            examples=["Europe/Berlin"],
        ),
    ] = "UTC"

    @model_validator(mode="after")
    def _is_due_in_one_way(self) -> Self:
        if sum(given is not None for given in (self.cron, self.rate, self.at)) != 1:
            raise ValueError("a schedule has either cron, rate or at")
        return self


class ScheduleBody(TimesBody):
    """A message that becomes a chat again and again, or once."""

    message: Annotated[
        Text, Field(min_length=1, max_length=SCHEDULED_CHARACTERS, description="What is asked each time.")
    ]
    name: Annotated[Text, Field(max_length=100, description="Shown wherever the schedule is listed.")] = ""
    profile: OptionalProfile = None
    conversation_id: Annotated[
        ConversationId | None,
        Field(description="The conversation to continue; by default a new one each time."),
    ] = None


class ScheduleChangeBody(RequestBody):
    """Whether the schedule waits until it is resumed. What was due meanwhile is not made up for."""

    paused: Annotated[bool, Field(description="true pauses it, false resumes it.")]
