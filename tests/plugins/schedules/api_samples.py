"""The samples of schedules in the API's documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.drivers.api_samples import Collector

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.stack_client import Person


def samples_of(clean: Callable[[str], str], ann: Person) -> dict[str, Any]:
    """Of a schedule, made, listed, paused and deleted."""
    samples = Collector(clean)
    made = {"message": "What is new?", "name": "morning", "cron": "0 8 * * 1-5", "timezone": "Europe/Berlin"}
    samples.call(ann, "POST", "/v1/schedules/next", {"cron": made["cron"], "timezone": made["timezone"]})
    where = f"/v1/schedules/{samples.call(ann, 'POST', '/v1/schedules', made).json()['schedule_id']}"
    samples.call(ann, "GET", "/v1/schedules")
    samples.call(ann, "PATCH", where, {"paused": True})
    samples.call(ann, "GET", where)
    samples.call(ann, "DELETE", where)
    return {"bodies": samples.collected()["bodies"]}
