"""The append-only event log with its fenced tail (DESIGN 2.4)."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.errors import ChatClosed, Superseded
from dualtrack.events import credits_now, delta, error, record_stored, turn_begins
from dualtrack.storage.dynamo import ConditionFailed, put_absent
from dualtrack.storage.event_log import EventLog, ReadPosition, find_position, read_events, read_on

from tests.drivers.world import make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.events import StoredEvent

PK = "CHAT#ann#ch_1"
NO_BODIES: Any = None
"""Most of these appends write none."""


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    """Tables in this process."""
    with make_world() as world:
        yield world.stores.chats.client


@pytest.fixture
def pk(request: pytest.FixtureRequest) -> str:
    """A chat of the test's own."""
    return f"CHAT#ann#{request.node.name}"


def log_of(dynamodb: Any, pk: str) -> EventLog:
    """A writer that has not read the tail yet."""
    log = EventLog(dynamodb, "chats", pk, "ch_1", lambda: 1_795_000_000.0, NO_BODIES)
    if not ids(dynamodb, pk):
        log.begin()
    return log


def ids(dynamodb: Any, pk: str) -> list[int]:
    """The ids of all events."""
    return [event.id for event in read_events(dynamodb, "chats", pk)]


def test_events_are_numbered_without_gaps(dynamodb: Any, pk: str) -> None:
    """In batches of any size; large ones are compressed."""
    log = log_of(dynamodb, pk)
    log.append([turn_begins(1, 15, final=False)])
    log.append([delta(1, "x" * 5_000), delta(1, "y"), delta(1, "z")])
    log.append([credits_now(0, 5, 45)])
    events = list(read_events(dynamodb, "chats", pk))
    assert [event.id for event in events] == [1, 2, 3, 4, 5]
    assert events[1].data["text"] == "x" * 5_000
    assert events[0].data["chat_id"] == "ch_1"
    assert events[0].data["at"].endswith("Z")


def test_a_reader_can_resume_at_any_event(dynamodb: Any, pk: str) -> None:
    """Also from the middle of a batch."""
    log = log_of(dynamodb, pk)
    for size in (1, 4, 2, 5):
        log.append([delta(1, str(number)) for number in range(size)])
    for after in range(13):
        position = find_position(dynamodb, "chats", pk, after)
        events, behind = read_on(dynamodb, "chats", pk, position)
        assert [event.id for event in events] == list(range(after + 1, 13))
        assert behind == ReadPosition(12, 12)


@pytest.mark.parametrize("after", range(16))
def test_a_resumed_reader_gets_all_later_events(dynamodb: Any, pk: str, after: int) -> None:
    """Once each and in order, wherever in a batch it resumed; even if it claims to have seen future events."""
    log = log_of(dynamodb, pk)
    log.append([delta(1, "a"), delta(1, "b"), delta(1, "c")])
    position = find_position(dynamodb, "chats", pk, after)
    got: list[int] = []
    for size in (1, 4, 2, 5):
        log.append([delta(1, str(number)) for number in range(size)])
        events, position = read_on(dynamodb, "chats", pk, position)
        got += [event.id for event in events]
    assert got == list(range(after + 1, 16))
    assert position == ReadPosition(15, 15)
    assert read_on(dynamodb, "chats", pk, position) == ([], position)


def test_a_batch_that_is_not_visible_yet_ends_the_read(dynamodb: Any, pk: str) -> None:
    """An eventually consistent read may show a later batch first; the reader waits for the earlier one."""
    log = log_of(dynamodb, pk)
    for size in (2, 3, 2):
        log.append([delta(1, str(number)) for number in range(size)])
    for after, seen in ((0, [1, 2]), (1, [2]), (3, [])):
        position = find_position(dynamodb, "chats", pk, after)
        with hidden(dynamodb, pk, 3):
            events, position = read_on(dynamodb, "chats", pk, position)
            assert [event.id for event in events] == seen
            unseen = find_position(dynamodb, "chats", pk, max(after, 2))
        for later in (position, unseen):
            rest, _ = read_on(dynamodb, "chats", pk, later)
            assert [event.id for event in rest] == list(range(max(after, 2) + 1, 8))


@contextlib.contextmanager
def hidden(dynamodb: Any, pk: str, first: int) -> Iterator[None]:
    """While the batch that begins at ``first`` is not visible."""
    key = {"pk": {"S": pk}, "sk": {"S": f"EV#{first:08d}"}}
    item = dynamodb.get_item(TableName="chats", Key=key)["Item"]
    dynamodb.delete_item(TableName="chats", Key=key)
    yield
    dynamodb.put_item(TableName="chats", Item=item)


def test_a_taken_slot_is_noticed_and_shown_to_the_fence(dynamodb: Any, pk: str) -> None:
    """The writer sees the events added in between, and may stop."""
    first, second = log_of(dynamodb, pk), log_of(dynamodb, pk)
    first.append([delta(1, "a")])
    second.append([turn_begins(1, 15, final=False)])
    met: list[str] = []

    def fence(event: StoredEvent) -> None:
        met.append(event.event)
        raise Superseded(event.event)

    with pytest.raises(Superseded):
        first.append([delta(1, "zombie")], fence=fence)
    assert met == ["turn"]
    assert ids(dynamodb, pk) == [1, 2]


def test_without_a_fence_the_append_moves_on(dynamodb: Any, pk: str) -> None:
    """Nothing is lost and nothing duplicated."""
    first, second = log_of(dynamodb, pk), log_of(dynamodb, pk)
    first.append([delta(1, "a")])
    second.append([delta(1, "b"), delta(1, "c")])
    first.append([delta(1, "d")])
    assert [event.data["text"] for event in read_events(dynamodb, "chats", pk)] == ["a", "b", "c", "d"]


def test_the_terminal_event_closes_the_log(dynamodb: Any, pk: str) -> None:
    """It stops every late writer, whatever tail it knows."""
    zombie = log_of(dynamodb, pk)
    zombie.append([delta(1, "a")])
    log_of(dynamodb, pk).append([error("internal", "…")])
    for late in (zombie, log_of(dynamodb, pk)):
        with pytest.raises(ChatClosed):
            late.append([delta(1, "late")])
    assert ids(dynamodb, pk) == [1, 2]


def test_events_and_their_record_are_one_transaction(dynamodb: Any, pk: str) -> None:
    """If the record exists, it was appended before: neither it nor its events are written twice."""
    log = log_of(dynamodb, pk)
    action = put_absent("record", "history", {"pk": pk, "sk": "F#1"})
    log.append([record_stored("q1", "user", "message")], [action])
    with pytest.raises(ConditionFailed) as lost:
        log_of(dynamodb, pk).append([record_stored("q1", "user", "message")], [action])
    assert list(lost.value.items) == ["record"]
    assert ids(dynamodb, pk) == [1]


def test_parallel_writers_leave_no_gap_and_no_duplicate(
    dynamodb: Any, pk: str, request: pytest.FixtureRequest
) -> None:
    """Eight writers, 64 appends; the threads take turns after every few instructions."""
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    shuffled = random.Random(7)
    sizes = [[shuffled.randint(1, 3) for _ in range(8)] for _ in range(8)]

    def write(writer: int) -> None:
        log = EventLog(dynamodb, "chats", pk, "ch_1", lambda: 0.0, NO_BODIES)
        log.begin()
        for step, size in enumerate(sizes[writer]):
            log.append([delta(writer, f"{step}.{number}") for number in range(size)])

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = list(read_events(dynamodb, "chats", pk))
    assert [event.id for event in events] == list(range(1, sum(map(sum, sizes)) + 1))
    for writer in range(8):
        texts = [event.data["text"] for event in events if event.data["turn"] == writer]
        assert texts == [
            f"{step}.{number}" for step, size in enumerate(sizes[writer]) for number in range(size)
        ]


def test_nothing_is_appended_to_a_deleted_log(dynamodb: Any, pk: str) -> None:
    """A tool that returns after its conversation was deleted writes nothing."""
    late = EventLog(dynamodb, "chats", pk, "ch_1", lambda: 0.0, NO_BODIES)
    with pytest.raises(ChatClosed):
        late.append([delta(1, "late")])
    assert ids(dynamodb, pk) == []


def test_an_append_whose_response_was_lost_is_not_repeated(dynamodb: Any, pk: str) -> None:
    """botocore sends the request again, and the batch already exists."""

    class SentTwice:
        """The first response to every write is lost."""

        def __getattr__(self, name: str) -> Any:
            def call(**request: Any) -> Any:
                if name in ("put_item", "transact_write_items"):
                    getattr(dynamodb, name)(**request)
                return getattr(dynamodb, name)(**request)

            return call

    log = EventLog(SentTwice(), "chats", pk, "ch_1", lambda: 0.0, NO_BODIES)  # type: ignore[arg-type]
    log.begin()
    record = put_absent("record", "history", {"pk": pk, "sk": "F#1"})
    log.append([record_stored("q1", "user", "message")], [record])
    log.append([delta(1, "a")])
    log.append([delta(1, "b")])
    assert ids(dynamodb, pk) == [1, 2, 3]
