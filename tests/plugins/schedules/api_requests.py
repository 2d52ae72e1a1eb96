"""What requests about schedules are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack.plugins.schedules.bodies import ScheduleBody, ScheduleChangeBody, TimesBody

if TYPE_CHECKING:
    from tests.clients.api_client import Api

BODIES: Final[dict[type, dict[str, Any]]] = {
    TimesBody: {"cron": "0 8 * * *", "timezone": "Europe/Berlin"},
    ScheduleBody: {"message": "Hello.", "rate": "1 hour", "timezone": "Europe/Berlin"},
    ScheduleChangeBody: {"paused": True},
}


def made(api: Api) -> dict[str, str]:
    """A schedule of the user's."""
    answer = api.call("POST", "/v1/schedules", BODIES[ScheduleBody])
    assert answer.status == 201, answer
    return {"schedule_id": answer.json["schedule_id"]}
