"""Which errors count as busy, and how long is waited (CONTRACT 7)."""

from __future__ import annotations

import itertools
from email.utils import formatdate

import pytest
from dualtrack.clock import iso
from dualtrack.events import Event, StoredEvent, retrying, turn_begins
from dualtrack.models.busy import (
    FIRST_SECONDS,
    LONGEST_SECONDS,
    asked_seconds,
    busy_reason,
    seconds_to_wait,
    still_to_wait,
    waited_before,
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


def waits(draw: float, asked: float = 0.0, tries: int = 12) -> list[int]:
    """Successive waits of a chat."""
    seconds = [0]
    for _ in range(tries):
        seconds.append(seconds_to_wait(asked, seconds[-1], A_LOT, draw))
    return seconds[1:]


def test_waits_grow_to_a_limit() -> None:
    assert waits(0.0) == [2] * 12  # every random wait is the shortest
    assert waits(1.0) == [4, 8, 16, 30, 30, 30, 30, 30, 30, 30, 30, 30]
    middle = waits(0.5)
    assert all(earlier <= later for earlier, later in itertools.pairwise(middle))
    assert middle[-1] > LONGEST_SECONDS / 2


def test_two_chats_refused_at_the_same_time_retry_at_different_times() -> None:
    spread = {seconds_to_wait(0, LONGEST_SECONDS, A_LOT, step / 20) for step in range(20)}
    assert len(spread) > 10


def test_a_service_is_not_called_before_the_time_it_asks_for() -> None:
    assert min(waits(0.0, asked=40)) == 40
    assert max(waits(1.0, asked=40)) == 40 + LONGEST_SECONDS / 2
    assert seconds_to_wait(0.25, 0, A_LOT, 0.0) == 1  # whole seconds, and at least one


def test_no_wait_goes_beyond_the_chats_last_call() -> None:
    assert seconds_to_wait(3_600, 0, 100.0, 1.0) == 100
    assert seconds_to_wait(0, 30, 7.2, 1.0) == 8  # the last call begins there, so not a moment before
    assert seconds_to_wait(0, 0, 0.9, 1.0) == 0
    assert seconds_to_wait(5, 0, -60.0, 1.0) == 0
    assert seconds_to_wait(float("9" * 64), 0, FIRST_SECONDS, 0.0) == FIRST_SECONDS


def stored(event: Event) -> StoredEvent:
    return StoredEvent(7, event.event, {**event.data, "at": iso(NOW)})


def test_an_announced_wait_is_kept() -> None:
    newest = stored(retrying(3, "overloaded", 8))
    assert waited_before(newest, 3) == 8
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
    for newest in (stored(retrying(2, "overloaded", 8)), stored(turn_begins(3, 15, final=False))):
        assert waited_before(newest, 3) == still_to_wait(newest, 3, NOW) == 0
