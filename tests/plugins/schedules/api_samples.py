"""The samples of schedules in the API's documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.clients.stack_client import Person
    from tests.drivers.api_samples import Collector


def collect(samples: Collector, ann: Person) -> None:
    """A schedule, made, listed, paused and deleted."""
    made = {"message": "What is new?", "name": "morning", "cron": "0 8 * * 1-5", "timezone": "Europe/Berlin"}
    samples.call(ann, "POST", "/v1/schedules/next", {"cron": made["cron"], "timezone": made["timezone"]})
    where = f"/v1/schedules/{samples.call(ann, 'POST', '/v1/schedules', made).json()['schedule_id']}"
    samples.call(ann, "GET", "/v1/schedules")
    samples.call(ann, "PATCH", where, {"paused": True})
    samples.call(ann, "GET", where)
    samples.call(ann, "DELETE", where)
