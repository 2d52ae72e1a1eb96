"""The routes' declarations: one for each operation, and what follows from them."""

from __future__ import annotations

from collections import Counter

from dualtrack.api.route import EVENTS_PATH, Route
from dualtrack.api.table import ROUTES


def test_no_operation_is_declared_twice() -> None:
    assert {
        operation: times
        for operation, times in Counter((r.method, r.path) for r in ROUTES).items()
        if times > 1
    } == {}


def test_everything_but_the_event_stream_is_served_by_api() -> None:
    assert [route.path for route in ROUTES if not route.serve] == [EVENTS_PATH]


def test_refusals_follow_from_the_declaration() -> None:
    always = {"internal", "unavailable", "timeout"}
    known = always | {"unauthorized", "rate_limited", "forbidden", "invalid_request"}
    assert Route("get", "/x", "X", access="open").refusals == always
    assert Route("get", "/x", "X").refusals == known
    assert Route("get", "/x/{id}", "X", access="admin").refusals == known | {"not_found"}
    assert Route("get", "/x", "X", refused=("conversation_busy",)).refusals == known | {"conversation_busy"}
