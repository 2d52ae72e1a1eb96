"""When schedules are due: cron in time zones, rates, one time; forwards and backwards."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice, takewhile

import pytest
from dualtrack.plugins.schedules.due_times import NeverDueError, check_times, due_after, latest_due
from dualtrack.plugins.schedules.store import Times

DAY = 86_400
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago")


def epoch(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def told(times: Times, after: str, most: int) -> list[str]:
    """The next due times in UTC, without date's year and seconds."""
    found = islice(due_after(times, epoch(after)), most)
    return [datetime.fromtimestamp(due, UTC).strftime("%m-%d %H:%M") for due in found]


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 8 * * *", "2026-03-27T12:00", ["03-28 07:00", "03-29 06:00", "03-30 06:00"]),
        # 02:30 is left out on 29 March: it is due as soon as the clocks have gone on
        ("30 2 * * *", "2026-03-27T12:00", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        # and is repeated on 25 October: it is due once
        ("30 2 * * *", "2026-10-23T12:00", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
        # what is due every half hour goes on evenly through the repeated hour
        ("*/30 * * * *", "2026-10-24T23:40", ["10-25 00:00", "10-25 00:30", "10-25 01:00", "10-25 01:30"]),
        ("0 9 * * 1-5", "2026-11-20T12:00", ["11-23 08:00", "11-24 08:00"]),
        ("0 0 29 2 *", "2026-11-20T12:00", ["02-28 23:00"]),
    ],
)
def test_cron_follows_the_clocks_of_its_zone(cron: str, after: str, expected: list[str]) -> None:
    assert told(Times(cron=cron, timezone="Europe/Berlin"), after, len(expected)) == expected


def test_a_rate_counts_from_when_the_schedule_was_made() -> None:
    times = Times(rate="90 minutes", since=epoch("2026-11-23T10:07"))
    assert told(times, "2026-11-23T10:07", 2) == ["11-23 11:37", "11-23 13:07"]
    assert told(times, "2026-11-23T11:37", 1) == ["11-23 13:07"]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-12-01T08:00:00", "12-01 07:00"),
        ("2026-12-01T08:00:00-05:00", "12-01 13:00"),
        ("2026-12-01T08:00:00Z", "12-01 08:00"),
    ],
)
def test_one_time_is_in_its_zone_unless_it_has_an_offset(at: str, expected: str) -> None:
    times = Times(at=at, timezone="Europe/Berlin")
    assert told(times, "2026-11-23T00:00", 5) == [expected]
    assert told(times, "2026-12-02T00:00", 5) == []


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "cron", ["30 2 * * *", "*/30 * * * *", "15 1-3 * * *", "0 2,3 * * 0", "30 0-4/2 * * *"]
)
@pytest.mark.parametrize(
    "start", ["2026-03-06T00:00", "2026-03-26T00:00", "2026-09-30T00:00", "2026-10-22T00:00"]
)
def test_looking_back_finds_what_was_due(cron: str, zone: str, start: str) -> None:
    times, first, last = Times(cron=cron, timezone=zone), epoch(start), epoch(start) + 9 * DAY
    forwards = list(takewhile(lambda due: due <= last, due_after(times, first)))
    assert list(reversed(latest_due(times, forwards[0], last, 1_000))) == forwards
    assert latest_due(times, forwards[0], last, 3) == tuple(reversed(forwards[-3:]))


def test_a_rate_is_looked_back_at_in_one_step() -> None:
    times = Times(rate="1 minute", since=0)
    assert latest_due(times, 60, 10**9, 2) == (10**9 - 10**9 % 60, 10**9 - 10**9 % 60 - 60)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (Times(cron="0 8 * *"), "five fields"),
        (Times(cron="0 8 * * * *"), "five fields"),
        (Times(cron="61 * * * *"), "minute"),
        (Times(cron="0 0 30 2 *"), "day"),
        (Times(cron="@daily"), "five fields"),
        (Times(cron="0 8 * * *", timezone="Europe"), "timezone"),
        (Times(cron="0 8 * * *", timezone="../../etc/passwd"), "timezone"),
        (Times(cron="0 8 * * *", timezone=""), "timezone"),
        *(
            (Times(at="2027-01-01T08:00:00", timezone=name), "timezone")
            for name in (
                "posixrules",
                "localtime",
                "Factory",
                "right/Europe/Berlin",
                "posix/UTC",
                "europe/berlin",
                "Europe/Berlin/",
            )
        ),
        (Times(cron="0 8 * * *", timezone="Nowhere/" + "x" * 50), "timezone"),
        (Times(rate="0 minutes"), "rate"),
        (Times(rate="90"), "rate"),
        (Times(rate="367 days"), "366 days"),
        (Times(at="tomorrow"), "at:"),
        (Times(at="2020-01-01T00:00:00"), "never"),
        (Times(at="9999-12-31T23:59:59"), "never"),
        (Times(at="0001-01-01T00:00:00+14:00"), "at:"),
    ],
)
def test_what_is_no_time_is_refused_with_a_reason(wrong: Times, word: str) -> None:
    with pytest.raises(NeverDueError, match=word):
        check_times(wrong, epoch("2026-11-23T00:00"))
