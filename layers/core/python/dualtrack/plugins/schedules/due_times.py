"""When a schedule is due (CONTRACT 8). Pure but for the time zones, which are data.

    cron  0 8 * * 1-5    minute hour day month weekday, in a time zone
    rate  2 hours        again and again after the schedule was made
    at    2026-12-01T08:00:00

Summer time as in Debian's cron: a time that the clocks leave out is due right after it, one that they repeat is due
once, and what is due every so many minutes or hours goes on evenly.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from itertools import count, islice, takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from dualtrack.plugins.schedules.store import Times

CRON_CHARACTERS: Final = 100
ZONE_CHARACTERS: Final = 64
LONGEST_RATE: Final = 366 * 86_400
HORIZON: Final = 5 * 366 * 86_400
"""A time further away than this is none: the 30th of February never comes, nor does a time that was mistyped."""

_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
_NO_ZONE: Final = "timezone: a name such as Europe/Berlin, or UTC"
_UNSET_ZONE: Final = "Factory"
"""The database's own name for a clock that nobody has set."""
_RATE: Final = re.compile(r"([1-9][0-9]{0,5}) (minute|hour|day)s?")
_UNITS: Final = {"minute": 60, "hour": 3_600, "day": 86_400}


class NeverDueError(ValueError):
    """What was asked for is no time, or none that will come; the message says why."""


def check_times(times: Times, now: int) -> None:
    """Raise `NeverDueError` unless its zone has a name and it is due at least once after ``now``."""
    if times.timezone not in _zones():
        raise NeverDueError(_NO_ZONE)
    if next(due_after(times, now), None) is None:
        raise NeverDueError("it would never be due")


def due_after(times: Times, moment: int) -> Iterator[int]:
    """The due times later than a moment, in order. Raises `NeverDueError`."""
    if times.at:
        due = _moment(times.at, times.timezone)
        return iter([due] if moment < due <= moment + HORIZON else [])
    if times.rate:
        seconds = _seconds(times.rate)
        return count(times.since + max(1, (moment - times.since) // seconds + 1) * seconds, seconds)
    return _of_cron(times.cron, times.timezone, moment)


def in_zone(moment: int, timezone: str) -> str:
    """The moment as the time zone's clocks show it, with their offset: ``2026-12-01T08:00:00+01:00``."""
    return datetime.fromtimestamp(moment, _zone(timezone)).isoformat()


def latest_due(times: Times, first: int, now: int, most: int) -> tuple[int, ...]:
    """The due times from ``first``, itself one, to ``now``: the latest ``most``, the newest first."""
    if times.at:
        return (first,)
    if times.rate:
        seconds = _seconds(times.rate)
        newest = first + (now - first) // seconds * seconds
        return tuple(range(newest, first - 1, -seconds)[:most])
    before = _of_cron(times.cron, times.timezone, now + 1, backwards=True)
    return tuple(islice(takewhile(lambda due: due >= first, before), most))


def _of_cron(expression: str, timezone: str, moment: int, *, backwards: bool = False) -> Iterator[int]:
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - most requests need no schedule

    fields = expression.split()
    if len(fields) != 5 or len(expression) > CRON_CHARACTERS:
        raise NeverDueError("cron: five fields: minute hour day month weekday")
    try:
        times = CronSim(" ".join(fields), datetime.fromtimestamp(moment, _zone(timezone)), reverse=backwards)
    except CronSimError as error:
        raise NeverDueError(f"cron: {error}") from error
    return _epochs(times, moment)


def _epochs(times: Iterator[datetime], moment: int) -> Iterator[int]:
    for time in times:
        due = int(time.astimezone(UTC).timestamp())
        if abs(due - moment) > HORIZON:
            return
        yield due


def _seconds(rate: str) -> int:
    match = _RATE.fullmatch(rate)
    if match is None:
        raise NeverDueError("rate: a number and a unit, such as 15 minutes, 1 hour or 2 days")
    seconds = int(match[1]) * _UNITS[match[2]]
    if seconds > LONGEST_RATE:
        raise NeverDueError("rate: at most 366 days")
    return seconds


def _moment(text: str, timezone: str) -> int:
    """The moment of a text with its own offset, else in the time zone; of a time that the clocks repeat the first."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            time = time.replace(tzinfo=_zone(timezone))
        moment = time.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        if isinstance(error, NeverDueError):
            raise
        raise NeverDueError("at: a time such as 2026-12-01T08:00:00, or with its offset") from error
    return int(moment.timestamp())


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - as above

    if len(name) <= ZONE_CHARACTERS and _ZONE.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (
            ValueError,
            OSError,
            LookupError,
        ):  # a folder or a file that is no zone; ZoneInfoNotFoundError
            pass
    raise NeverDueError(_NO_ZONE)


@cache
def _zones() -> frozenset[str]:
    """The names of the IANA database. A machine's own folder has further files, which are copies of zones, count leap
    seconds, or differ from machine to machine: ``posixrules``, ``right/…``, ``localtime``."""
    from importlib.resources import files  # noqa: PLC0415 - as above

    names = (files("tzdata") / "zones").read_text(encoding="ascii").split()
    return frozenset(names) - {_UNSET_ZONE}
