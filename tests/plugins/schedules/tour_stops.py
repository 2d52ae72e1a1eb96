"""/v1/schedules, and the timer."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dualtrack.plugins.schedules.store import schedules_of

from tests.clients.stack_client import wait_for
from tests.drivers.tour import stop

if TYPE_CHECKING:
    from tests.drivers.tour import Visit

SCHEDULES = "/v1/schedules"


def _made(visit: Visit) -> dict[str, Any]:
    """A schedule of the caller's: a key that may not read sees no other."""
    client = visit.client if visit.by == "key" else visit.owner.http
    made = client.post(SCHEDULES, json={"message": "What is new?", "cron": "0 8 * * 1-5"})
    assert made.status_code == 201, made.text
    return dict(made.json())


@stop(f"POST {SCHEDULES}", "message", "name", "cron", "timezone", "profile", "conversation_id")
def a_schedule_by_the_clock(visit: Visit) -> None:
    conversation = visit.client.post("/v1/conversations", json={"profile": "small"}).json()["conversation_id"]
    body = {
        "message": "What is new?", "name": "Morning", "cron": "0 8 * * 1-5", "timezone": "Europe/Berlin",
        "profile": "small", "conversation_id": conversation,
    }  # fmt: skip
    made = visit.ask(body, status=201).json()
    shown = next(one for one in visit.owner.get(SCHEDULES)["schedules"])
    assert {name: shown[name] for name in body} == body
    assert len(made["next"]) == 3


@stop(f"POST {SCHEDULES}", "rate", "at")
def schedules_of_other_forms(visit: Visit) -> None:
    every = visit.ask({"message": "Again?", "rate": "2 hours"}).json()
    once = visit.ask({"message": "Now?", "at": "2031-01-01T08:00:00"}).json()
    assert (every["rate"], len(every["next"])) == ("2 hours", 3)
    (due,) = once["next"]
    assert due.startswith("2031-01-01T08:00:00"), due


@stop(f"POST {SCHEDULES}/next", "cron", "rate", "at", "timezone")
def due_times(visit: Visit) -> None:
    berlin = {"at": "2031-01-01T08:00:00", "timezone": "Europe/Berlin"}
    assert visit.ask(berlin).json()["next"] == ["2031-01-01T08:00:00+01:00"]
    for form in ({"cron": "0 8 * * *", "timezone": "UTC"}, {"rate": "2 hours"}):
        assert len(visit.ask(form).json()["next"]) == 3


@stop(f"GET {SCHEDULES}")
def the_schedules(visit: Visit) -> None:
    made = _made(visit)
    assert [one["schedule_id"] for one in visit.ask().json()["schedules"]] == [made["schedule_id"]]


@stop(f"GET {SCHEDULES}/{{schedule_id}}")
def a_schedule(visit: Visit) -> None:
    made = _made(visit)
    assert visit.ask(schedule_id=made["schedule_id"]).json()["message"] == made["message"]


@stop(f"PATCH {SCHEDULES}/{{schedule_id}}", "paused")
def a_schedule_is_paused(visit: Visit) -> None:
    made = _made(visit)
    visit.ask({"paused": True}, schedule_id=made["schedule_id"])
    assert visit.owner.get(f"{SCHEDULES}/{made['schedule_id']}")["status"] == "paused"


@stop(f"DELETE {SCHEDULES}/{{schedule_id}}")
def a_schedule_is_deleted(visit: Visit) -> None:
    visit.ask(schedule_id=_made(visit)["schedule_id"], status=204)
    assert visit.owner.get(SCHEDULES)["schedules"] == []


@stop("timer Schedules")
def a_schedule_that_is_due(visit: Visit) -> None:
    ann, schedules = visit.owner, schedules_of(visit.root.stores())
    body = {"message": visit.script.question(), "cron": "0 8 * * *"}
    assert ann.http.post(SCHEDULES, json=body).status_code == 201
    (made,) = schedules.of(ann.id)
    schedules.change(made, replace(made, due=int(time.time()) - 1))
    visit.script.says("Nothing is new.")
    visit.invoke()
    wait_for(lambda: schedules.of(ann.id)[0].runs)
    (run,) = schedules.of(ann.id)[0].runs
    assert visit.finish(run.chat_id)["response"] == "Nothing is new."
