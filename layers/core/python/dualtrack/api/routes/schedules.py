"""/v1/schedules: messages that become chats at their due times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api import models, schedules
from dualtrack.api.route import Created, NoContent, Ok, Route
from dualtrack.api.routes.chats import permit_chat
from dualtrack.storage.schedules import MOST_RUNS

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request
    from dualtrack.storage.schedules import Schedule

SCHEDULES: Final = "/v1/schedules"
SCHEDULE: Final = f"{SCHEDULES}/{{schedule_id}}"

_SHOWN: Final = 1
"""Runs of each schedule of a list whose chats are looked up."""


@Route(
    "post",
    SCHEDULES,
    "Make a schedule",
    models.ScheduleBody,
    refused=("not_found",),
    scopes=("chat",),
    description="Its message becomes a chat at each due time, under the API key that makes it, if one does. A user has "
    "at most 20.",
)
def post_schedule(request: Request) -> Created[answers.Schedule]:
    body = request.body(models.ScheduleBody)
    permit_chat(request, body.conversation_id, body.profile)
    return Created(_shown(request, schedules.make_schedule(request.stores, request.identity, body)))


def _shown(request: Request, schedule: Schedule, runs: int = MOST_RUNS) -> answers.Schedule:
    return schedules.schedule_json(request.stores, schedule, runs)


@Route(
    "post",
    f"{SCHEDULES}/next",
    "Show when a schedule would be due",
    models.TimesBody,
    scopes=("chat",),
    description="Nothing is made. What is never due is refused in the words of making it.",
)
def post_due_times(request: Request) -> Ok[answers.DueTimes]:
    return Ok(schedules.due_times(request.body(models.TimesBody), int(request.stores.clock())))


@Route(
    "get", SCHEDULES, "List the schedules", scopes=("read", "chat"), description="With their next due times."
)
def get_schedules(request: Request) -> Ok[answers.Schedules]:
    """A key that lacks `read` sees those that it has made."""
    seen = [each for each in request.stores.schedules.of(request.user) if _may_see(request, each)]
    body: answers.Schedules = {"schedules": [_shown(request, each, _SHOWN) for each in seen]}
    return Ok(body)


@Route(
    "get",
    SCHEDULE,
    "Read a schedule",
    scopes=("read", "chat"),
    description="With its latest runs, their chats and what these were charged.",
)
def get_schedule(request: Request, schedule_id: str) -> Ok[answers.Schedule]:
    return Ok(_shown(request, _visible(request, schedule_id)))


@Route(
    "patch",
    SCHEDULE,
    "Pause or resume a schedule",
    models.ScheduleChangeBody,
    scopes=("chat",),
    description="One that is resumed waits for its next due time. One that has ended stays so.",
)
def patch_schedule(request: Request, schedule_id: str) -> Ok[answers.Schedule]:
    paused = request.body(models.ScheduleChangeBody).paused
    _visible(request, schedule_id)
    return Ok(
        _shown(request, schedules.pause_schedule(request.stores, request.user, schedule_id, paused=paused))
    )


@Route("delete", SCHEDULE, "Delete a schedule", scopes=("chat",), description="Its chats stay.")
def delete_schedule(request: Request, schedule_id: str) -> NoContent:
    _visible(request, schedule_id)
    request.stores.schedules.delete(request.user, schedule_id)
    return NoContent()


def _visible(request: Request, schedule_id: str) -> Schedule:
    schedule = request.stores.schedules.find(request.user, schedule_id)
    request.identity.require_sight(schedule.key_id)
    return schedule


def _may_see(request: Request, schedule: Schedule) -> bool:
    key = request.identity.key
    return key is None or "read" in key.scopes or key.key_id == schedule.key_id
