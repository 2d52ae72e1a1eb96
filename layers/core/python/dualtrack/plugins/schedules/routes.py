"""/v1/schedules: messages that become chats at their due times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api.route import Created, NoContent, Ok, Route
from dualtrack.api.routes.chats import permit_chat
from dualtrack.plugins.schedules import bodies, manage
from dualtrack.plugins.schedules.store import MOST_RUNS, schedules_of

if TYPE_CHECKING:
    from dualtrack.api.request import Request
    from dualtrack.plugins.schedules import types
    from dualtrack.plugins.schedules.store import Schedule

SCHEDULES: Final = "/v1/schedules"
SCHEDULE: Final = f"{SCHEDULES}/{{schedule_id}}"

_SHOWN: Final = 1
"""Runs of each schedule of a list whose chats are looked up."""


@Route(
    "post",
    SCHEDULES,
    "Make a schedule",
    bodies.ScheduleBody,
    refused=("not_found",),
    scopes=("chat",),
    description="Its message becomes a chat at each due time, under the API key that makes it, if one does. A user has "
    "at most 20.",
)
def post_schedule(request: Request) -> Created[types.Schedule]:
    body = request.body(bodies.ScheduleBody)
    permit_chat(request, body.conversation_id, body.profile)
    return Created(_shown(request, manage.make_schedule(request.stores, request.identity, body)))


def _shown(request: Request, schedule: Schedule, runs: int = MOST_RUNS) -> types.Schedule:
    return manage.schedule_json(request.stores, schedule, runs)


@Route(
    "post",
    f"{SCHEDULES}/next",
    "Show when a schedule would be due",
    bodies.TimesBody,
    scopes=("chat",),
    description="Nothing is made. What is never due is refused in the words of making it.",
)
def post_due_times(request: Request) -> Ok[types.DueTimes]:
    return Ok(manage.due_times(request.body(bodies.TimesBody), int(request.stores.clock())))


@Route(
    "get", SCHEDULES, "List the schedules", scopes=("read", "chat"), description="With their next due times."
)
def get_schedules(request: Request) -> Ok[types.Schedules]:
    """A key that lacks `read` sees those that it has made."""
    seen = [each for each in schedules_of(request.stores).of(request.user) if _may_see(request, each)]
    body: types.Schedules = {"schedules": [_shown(request, each, _SHOWN) for each in seen]}
    return Ok(body)


@Route(
    "get",
    SCHEDULE,
    "Read a schedule",
    scopes=("read", "chat"),
    description="With its latest runs, their chats and what these were charged.",
)
def get_schedule(request: Request, schedule_id: str) -> Ok[types.Schedule]:
    return Ok(_shown(request, _visible(request, schedule_id)))


@Route(
    "patch",
    SCHEDULE,
    "Pause or resume a schedule",
    bodies.ScheduleChangeBody,
    scopes=("chat",),
    description="One that is resumed waits for its next due time. One that has ended stays so.",
)
def patch_schedule(request: Request, schedule_id: str) -> Ok[types.Schedule]:
    paused = request.body(bodies.ScheduleChangeBody).paused
    _visible(request, schedule_id)
    return Ok(
        _shown(request, manage.pause_schedule(request.stores, request.user, schedule_id, paused=paused))
    )


@Route("delete", SCHEDULE, "Delete a schedule", scopes=("chat",), description="Its chats stay.")
def delete_schedule(request: Request, schedule_id: str) -> NoContent:
    _visible(request, schedule_id)
    schedules_of(request.stores).delete(request.user, schedule_id)
    return NoContent()


def _visible(request: Request, schedule_id: str) -> Schedule:
    schedule = schedules_of(request.stores).find(request.user, schedule_id)
    request.identity.require_sight(schedule.key_id)
    return schedule


def _may_see(request: Request, schedule: Schedule) -> bool:
    key = request.identity.key
    return key is None or "read" in key.scopes or key.key_id == schedule.key_id
