"""Which errors count as busy, and how long is waited (CONTRACT 7)."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from dualtrack.clock import iso
from dualtrack.events import Event, StoredEvent, retrying, turn_begins
from dualtrack.models.busy import (
    LONGEST_SECONDS,
    asked_seconds,
    busy_reason,
    seconds_to_wait,
    still_to_wait,
)
from hypothesis import given
from hypothesis import strategies as some

NOW = 1_795_000_000.0
A_LOT = 10_000.0


@pytest.mark.parametrize(
    ("status", "kind", "asked", "reason"),
    [
        (429, "rate_limit_error", None, "rate_limited"),
        (529, "", None, "overloaded"),
        (502, "", None, None),
        (503, "", 3.0, "unavailable"),
        (200, "overloaded_error", None, "overloaded"),
        (500, "overloaded_error", None, "overloaded"),
        (409, "", 0.0, "unavailable"),
        (500, "api_error", None, None),
        (504, "", None, None),
        (408, "", None, None),
    ],
)
def test_reasons(status: int, kind: str, asked: float | None, reason: str | None) -> None:
    assert busy_reason(status, kind, asked) == reason


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "12", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Mon, 99 Foo 99999999 99:99:99"}, None),
        ({"retry-after": "9" * 1_000_000}, float("9" * 64)),
    ],
)
def test_the_wait_that_a_service_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_seconds(headers, NOW) == seconds


@given(some.text(max_size=80))
def test_no_header_breaks_it(text: str) -> None:
    seconds = asked_seconds({"retry-after": text}, NOW)
    assert seconds is None or seconds >= 0


def waits(draw: float, asked: float = 0.0, tries: int = 8) -> list[int]:
    """Successive waits of a chat."""
    return [seconds_to_wait(asked, number, A_LOT, draw) for number in range(1, tries + 1)]


def test_waits_double_to_a_minute() -> None:
    assert waits(0.0) == [2, 4, 8, 16, 30, 30, 30, 30]  # every random wait is the shortest
    assert waits(1.0) == [4, 8, 16, 32, 60, 60, 60, 60]
    assert seconds_to_wait(0, 10_000, A_LOT, 1.0) == LONGEST_SECONDS


@given(some.floats(0, 3), some.floats(0, 1), some.integers(1, 40))
def test_they_double_whatever_the_service_asks_for(asked: float, draw: float, tries: int) -> None:
    """A service that says "in a second" each time would else be called hundreds of times."""
    assert seconds_to_wait(asked, tries, A_LOT, draw) >= seconds_to_wait(0, tries, A_LOT, draw)


@given(some.floats(0, 500), some.floats(0, 1), some.integers(1, 40))
def test_a_retry_after_is_the_minimum_and_a_minute_the_maximum(asked: float, draw: float, tries: int) -> None:
    seconds = seconds_to_wait(asked, tries, A_LOT, draw)
    assert asked <= seconds <= max(LONGEST_SECONDS, asked * 1.1) + 1


def test_two_chats_refused_at_the_same_time_retry_at_different_times() -> None:
    spread = {seconds_to_wait(0, 5, A_LOT, step / 20) for step in range(20)}
    assert len(spread) > 10


def test_a_service_is_not_called_before_the_time_it_asks_for() -> None:
    assert min(waits(0.0, asked=40)) == 40
    assert waits(1.0, asked=40) == [42, 44, 48, 56, 60, 60, 60, 60]
    assert waits(1.0, asked=90)[-1] == 99


def test_no_wait_goes_beyond_the_chats_last_call() -> None:
    assert seconds_to_wait(0, 5, 7.2, 1.0) == 8  # the last call begins there, so not a moment before
    assert seconds_to_wait(0, 1, 0.9, 1.0) == 0
    assert seconds_to_wait(5, 1, -60.0, 1.0) == 0


def test_a_service_that_asks_for_more_is_waited_for_a_minute_longer_or_not_at_all() -> None:
    assert seconds_to_wait(150, 1, 100.0, 1.0) == 150
    assert seconds_to_wait(161, 1, 100.0, 0.0) == 0
    assert seconds_to_wait(float("9" * 64), 1, A_LOT, 0.0) == 0


def stored(event: Event) -> StoredEvent:
    return StoredEvent(7, event.event, {**event.data, "at": iso(NOW)})


def test_an_announced_wait_is_kept() -> None:
    newest = stored(retrying(3, "overloaded", 2, 8, iso(NOW + 600)))
    assert [still_to_wait(newest, 3, NOW + past) for past in (-5, 0, 2.5, 7, 7.5, 8, 60)] == [
        8,
        8,
        6,
        1,
        0,
        0,
        0,
    ]


def test_another_turns_wait_or_another_event_does_not_count() -> None:
    another = retrying(2, "overloaded", 2, 8, iso(NOW + 600))
    for newest in (stored(another), stored(turn_begins(3, 15, final=False))):
        assert still_to_wait(newest, 3, NOW) == 0
