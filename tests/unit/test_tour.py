"""The tour has a stop for every door, every field and every event: one that lacks is named here.

A new one gets its stop in tests/drivers/tour_stops; tests/e2e/test_tour.py makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack_stack.doors import BY_NAME

from tests.drivers import tour_stops  # noqa: F401 - it declares the stops
from tests.drivers.tour import STOPS, fields_of, missing, sent_fields, stray

if TYPE_CHECKING:
    import pytest


def test_the_tour_lacks_no_door_and_no_field() -> None:
    assert missing() == {}


def test_no_stop_is_about_what_there_is_not() -> None:
    assert stray() == {}


def test_what_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [stop for stop in STOPS if stop.door.name != "GET /v1/pauses" and "on_pause" not in stop.fields]
    monkeypatch.setattr("tests.drivers.tour.STOPS", kept)
    assert missing() == {"GET /v1/pauses": [], "POST /v1/chats": ["on_pause"]}


def test_fields_are_those_of_the_declarations() -> None:
    assert {"message", "tools[].input_schema", "output.schema", "wait", "Idempotency-Key"} <= fields_of(
        BY_NAME["POST /v1/chats"]
    )
    sent = {"tools": [{"name": "a"}, {"b": [{"c": 1}]}], "d": None}
    assert {*sent_fields(sent)} == {"tools", "tools[].name", "tools[].b", "tools[].b[].c", "d"}
