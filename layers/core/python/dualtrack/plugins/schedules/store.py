"""Schedules, in the chats table (CONTRACT 8).

    pk USER#<user>   sk SCHEDULE#<id>   a schedule with its latest runs; in the sparse index `open`, partition
                                        `schedule#<shard>`, by its next due time, while it is active; one that
                                        waits, by when it was tried
    pk USER#<user>   sk SCHEDULES       how many there are: a limit that two requests at once keep

A schedule changes by whole values, each under the condition that its ``revision`` is still the one that was read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from dualtrack.codec import APART, TEXT, decode, encode, stored
from dualtrack.errors import ApiError, not_found
from dualtrack.ids import sortable
from dualtrack.storage.dynamo import ConditionFailed, delete, get, one_less, one_more, put, query, transact
from dualtrack.storage.open_index import listed, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.dynamo import Action, Item
    from dualtrack.storage.stores import ToolStores

ScheduleStatus = Literal["active", "paused", "ended"]
"""`ended` when it will not be due again, or its API key is gone."""

SCHEDULE_ID: Final = "schedule_id"
"""The facet of its chats and of the conversations that these begin (`dualtrack.plugin.Plugin`)."""

MOST_SCHEDULES: Final = 20
"""Of a user."""

MOST_RUNS: Final = 20
"""Of a schedule that are kept."""

MISSED: Final = "missed"
"""Instead of the code of a refusal: nothing ran at that time, and a later one was due before it could."""

_PREFIX: Final = "SCHEDULE#"
_COUNT: Final = "SCHEDULES"


@stored
@dataclass(frozen=True, slots=True)
class Times:
    """When a schedule is due (`dualtrack.chat.due_times`): a ``cron`` expression, a ``rate``, or one time, ``at``; the
    others are empty. ``since``: from when a rate counts, epoch seconds."""

    cron: str = ""
    rate: str = ""
    at: str = ""
    timezone: str = "UTC"
    since: int = 0

    @property
    def repeats(self) -> bool:
        """Whether it is due more than once."""
        return not self.at


@stored
@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """What became of a due time (epoch seconds): its chat, or the error code of the refusal, or `MISSED`."""

    due: int
    chat_id: str = ""
    refused: str = ""


@stored
@dataclass(frozen=True, slots=True)
class Schedule:
    """A message that is sent again and again. ``due``: when next, 0 for never; ``waiting``: a due time at which the
    conversation was not free, and why; ``tried_at``: when it last could not run, 0 if it could; ``refusals``: how many
    in a row; ``why``: the last refusal's code, of one that is not active. ``runs``: the newest first."""

    schedule_id: Annotated[str, APART]
    user: Annotated[str, APART]
    payer: str
    message: str
    times: Annotated[Times, TEXT]
    created_at: int
    due: int
    name: str = ""
    profile: str = ""
    conversation_id: str = ""
    key_id: str = ""
    status: ScheduleStatus = "active"
    waiting: int = 0
    waiting_for: str = ""
    tried_at: int = 0
    refusals: int = 0
    why: str = ""
    runs: Annotated[tuple[ScheduleRun, ...], TEXT] = ()
    revision: int = 0

    def ran(self, *runs: ScheduleRun) -> Self:
        """With these runs, the newest first, before those so far."""
        return replace(self, runs=(*runs, *self.runs)[:MOST_RUNS])


@dataclass(frozen=True, slots=True)
class ScheduleStore:
    """Reads and writes of schedules."""

    client: DynamoDBClient
    table: str

    def of(self, user: str) -> Sequence[Schedule]:
        """The user's, the oldest first."""
        items = query(self.client, self.table, _partition(user), prefix=_PREFIX)
        return sorted(map(_schedule_of, items), key=lambda found: (found.created_at, found.schedule_id))

    def find(self, user: str, schedule_id: str) -> Schedule:
        """Raises 404."""
        schedule = self.load(user, schedule_id)
        if schedule is None:
            raise not_found("There is no such schedule.")
        return schedule

    def load(self, user: str, schedule_id: str) -> Schedule | None:
        """The user's schedule, or None."""
        item = get(self.client, self.table, _key(user, schedule_id))
        return _schedule_of(item) if item else None

    def due(self, now: int) -> Iterator[tuple[str, str]]:
        """User and id of those that are due, the longest due first; the shards of the index are read in turn."""
        items = listed(self.client, self.table, "schedule", now)
        return ((item["pk"].removeprefix("USER#"), item["sk"].removeprefix(_PREFIX)) for item in items)

    def create(self, schedule: Schedule) -> None:
        """Raises 400 if the user has as many as there may be."""
        counted = one_more("count", self.table, _count_key(schedule.user), "schedules", MOST_SCHEDULES)
        try:
            transact(self.client, [put("schedule", self.table, _item(schedule)), counted])
        except ConditionFailed as lost:
            raise ApiError(
                "invalid_request", f"A user has at most {MOST_SCHEDULES} schedules: delete one first."
            ) from lost

    def change(self, before: Schedule, after: Schedule, also: Sequence[Action] = ()) -> Schedule:
        """Write the schedule as it is now, in one transaction with ``also``. Raises `ConditionFailed` if it has changed
        since it was read, or was deleted."""
        written = replace(after, revision=before.revision + 1)
        unchanged = (
            "revision = :revision"
            if before.revision
            else "attribute_exists(pk) AND attribute_not_exists(revision)"
        )
        values = {":revision": before.revision} if before.revision else None
        transact(self.client, [put("schedule", self.table, _item(written), unchanged, values), *also])
        return written

    def delete(self, user: str, schedule_id: str) -> None:
        """Raises 404."""
        gone = delete("schedule", self.table, _key(user, schedule_id), "attribute_exists(pk)")
        try:
            transact(self.client, [gone, one_less("count", self.table, _count_key(user), "schedules")])
        except ConditionFailed:
            raise not_found("There is no such schedule.") from None


def schedules_of(stores: ToolStores) -> ScheduleStore:
    """The store of schedules beside a function's others: they are in the table of chats."""
    return ScheduleStore(stores.chats.client, stores.chats.table)


def new_schedule_id() -> str:
    """``sc_…``, sortable by time."""
    return f"sc_{sortable()}"


def _partition(user: str) -> str:
    return f"USER#{user}"


def _count_key(user: str) -> dict[str, str]:
    return {"pk": _partition(user), "sk": _COUNT}


def _key(user: str, schedule_id: str) -> dict[str, str]:
    return {"pk": _partition(user), "sk": f"{_PREFIX}{schedule_id}"}


def _item(schedule: Schedule) -> Item:
    item = {**_key(schedule.user, schedule.schedule_id), **encode(schedule)}
    if schedule.status == "active":
        item |= {"open": partition_of("schedule", schedule.schedule_id)}
        item["deadline"] = max(schedule.due, schedule.tried_at)
    return item


def _schedule_of(item: Item) -> Schedule:
    user, schedule_id = item["pk"].removeprefix("USER#"), item["sk"].removeprefix(_PREFIX)
    return decode(Schedule, item, user=user, schedule_id=schedule_id)
