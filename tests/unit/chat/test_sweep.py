"""The sweep: a chat that fails does not delay the others."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.start_chat import start_chat
from dualtrack.chat.sweep import Swept, sweep
from dualtrack.chat_times import CHAT_SECONDS
from dualtrack.errors import TookTooLong
from dualtrack.ids import RecordId, chat_of_execution, execution_name
from dualtrack.runtime.time_limit import within
from dualtrack.storage.dynamo import put, transact, update
from dualtrack.storage.history import record_key
from dualtrack.storage.stores import Stores, build_stores

from tests.drivers.aws import aws_in_process
from tests.drivers.world import SETTINGS, FakeClock, NoExecutions, make_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

OTHERS = 50
TIME = 120.0


@pytest.fixture
def clock() -> FakeClock:
    """The stores' time."""
    return FakeClock()


@pytest.fixture
def stores(clock: FakeClock) -> Iterator[Stores]:
    """Empty stores."""
    with aws_in_process():
        dynamodb = boto3.client("dynamodb", region_name="us-east-1")
        s3 = boto3.client("s3", region_name="us-east-1")
        make_tables(dynamodb)
        s3.create_bucket(Bucket=SETTINGS.bodies_bucket)
        yield build_stores(SETTINGS, dynamodb, s3, clock)


def admitted(stores: Stores, user: str) -> Chat:
    """A chat without an execution."""
    executions: Any = NoExecutions()
    return start_chat(stores, executions, NewChat(user, "Hello?"), None)


def poison(stores: Stores, chat: Chat) -> None:
    """The chat's query cannot be read, so that no sweep can end it."""
    key = {"pk": f"CONV#{chat.user}#{chat.conversation_id}", "sk": record_key(RecordId(1))}
    transact(stores.chats.client, [put("record", stores.history.table, {**key, "meta": "{"})])


def status(stores: Stores, chat: Chat) -> str:
    """Its status now."""
    loaded = stores.chats.load(chat.user, chat.chat_id)
    assert loaded is not None
    return loaded.status


def swept(stores: Stores, executions: NoExecutions, seconds: float = TIME, one_chat: float = 15) -> Swept:
    """One sweep."""
    workflow: Any = executions
    return sweep(stores, workflow, seconds, one_chat)


def test_one_poisoned_chat_and_fifty_others(stores: Stores, clock: FakeClock) -> None:
    """All others end, whatever its position; its error is raised at the end of this sweep and the next."""
    chats = [admitted(stores, f"user-{number}") for number in range(OTHERS + 1)]
    poisoned = chats[0]
    poison(stores, poisoned)
    clock.now += CHAT_SECONDS + 1
    executions = NoExecutions()
    with pytest.raises(ExceptionGroup, match=f"1 of {OTHERS + 1} open chats"):
        swept(stores, executions)
    assert {status(stores, chat) for chat in chats[1:]} == {"failed"}
    assert status(stores, poisoned) == "running"
    with pytest.raises(ExceptionGroup, match="1 of 1 open chats"):
        swept(stores, executions)


def test_a_chat_that_an_earlier_sweep_could_not_end_comes_last(stores: Stores, clock: FakeClock) -> None:
    """Although it is the oldest; of several, the least tried comes first."""
    twice, once = admitted(stores, "twice"), admitted(stores, "once")
    poison(stores, twice)
    clock.now += CHAT_SECONDS + 1
    executions = NoExecutions()
    with pytest.raises(ExceptionGroup):
        swept(stores, executions)  # ends the other, which is not tried again
    assert executions.stopped == [execution_name(once.chat_id)]
    later = [admitted(stores, "new-1"), admitted(stores, "new-2")]
    clock.now += CHAT_SECONDS + 1
    stores.chats.count_sweep(later[0])
    executions.stopped.clear()
    mended = replace(twice, sweeps=1)
    _mend(stores, mended)
    stores.chats.count_sweep(mended)
    assert swept(stores, executions) == Swept(seen=3, ended=3)
    assert executions.stopped == [execution_name(chat.chat_id) for chat in (later[1], later[0], twice)]


def _mend(stores: Stores, chat: Chat) -> None:
    meta = '{"type":"message","role":"user","at":"2026-11-22T00:00:00.000Z","turn":0}'
    key = {"pk": f"CONV#{chat.user}#{chat.conversation_id}", "sk": record_key(RecordId(1))}
    transact(
        stores.chats.client, [put("record", stores.history.table, {**key, "meta": meta, "text": "Hello?"})]
    )


class Hanging(NoExecutions):
    """Step Functions does not answer for one chat until released."""

    def __init__(self, chat: Chat) -> None:
        super().__init__()
        self.hanging = chat
        self.let_go = threading.Event()

    def stop(self, name: str, cause: str) -> None:
        """Wait, if it is that chat's."""
        if chat_of_execution(name) == self.hanging.chat_id:
            self.let_go.wait(60)
        super().stop(name, cause)


def test_a_chat_has_a_time_limit(stores: Stores, clock: FakeClock) -> None:
    """A chat that takes longer is skipped, and the others are swept."""
    chats = [admitted(stores, f"user-{number}") for number in range(3)]
    clock.now += CHAT_SECONDS + 1
    executions = Hanging(chats[0])
    with pytest.raises(ExceptionGroup) as caught:
        swept(stores, executions, one_chat=0.5)
    executions.let_go.set()
    assert [type(error) for error in caught.value.exceptions] == [TookTooLong]
    assert executions.stopped[:2] == [execution_name(chat.chat_id) for chat in chats[1:3]]


def test_a_sweep_without_time_leaves_the_rest_to_the_next(stores: Stores, clock: FakeClock) -> None:
    """It says so, and begins nothing that it cannot finish."""
    chat = admitted(stores, "ann")
    clock.now += CHAT_SECONDS + 1
    executions = NoExecutions()
    assert swept(stores, executions, seconds=0) == Swept(complete=False)
    assert status(stores, chat) == "running"
    assert swept(stores, executions) == Swept(seen=1, ended=1)


def test_a_sweeps_attempt_is_recorded_even_if_the_process_dies(stores: Stores, clock: FakeClock) -> None:
    """The next sweep must not begin with the same chat again."""
    chat = admitted(stores, "ann")
    clock.now += CHAT_SECONDS + 1

    class Dies(NoExecutions):
        def stop(self, name: str, cause: str) -> None:
            raise SystemExit(name)

    with pytest.raises(SystemExit):
        swept(stores, Dies())
    loaded = stores.chats.load(chat.user, chat.chat_id)
    assert loaded is not None
    assert loaded.sweeps == 1


def test_a_chat_that_runs_is_not_written_to(stores: Stores, clock: FakeClock) -> None:
    """Looking at it costs one read."""
    chat = admitted(stores, "ann")
    clock.now += 60
    executions = NoExecutions(statuses={execution_name(chat.chat_id): "RUNNING"})
    assert swept(stores, executions) == Swept(seen=1)
    loaded = stores.chats.load(chat.user, chat.chat_id)
    assert loaded is not None
    assert loaded.sweeps == 0


def test_the_execution_that_the_chat_names_is_looked_at_started_and_stopped(
    stores: Stores, clock: FakeClock
) -> None:
    """Its second, although there was a first."""
    chat = admitted(stores, "ann")
    key = {"pk": chat.pk, "sk": "STATE"}
    change = update("chat", stores.chats.table, key, "SET execution = :second", "", {":second": 2})
    transact(stores.chats.client, [change])
    second = execution_name(chat.chat_id, 2)
    clock.now += 60
    first_ended = {execution_name(chat.chat_id): "SUCCEEDED"}
    executions = NoExecutions(statuses={**first_ended, second: "RUNNING"})
    assert swept(stores, executions) == Swept(seen=1)
    executions.statuses = first_ended
    assert swept(stores, executions) == Swept(seen=1, started=1)
    assert executions.started == [second]
    clock.now += CHAT_SECONDS
    assert swept(stores, executions) == Swept(seen=1, ended=1)
    assert executions.stopped == [second]


def test_a_deleted_chat_is_not_recreated(stores: Stores) -> None:
    """Its conversation may be deleted while the sweep looks at it."""
    chat = admitted(stores, "ann")
    stores.chats.client.delete_item(
        TableName=stores.chats.table, Key={"pk": {"S": chat.pk}, "sk": {"S": "STATE"}}
    )
    with pytest.raises(Exception, match="chat"):
        stores.chats.count_sweep(chat)
    assert stores.chats.load(chat.user, chat.chat_id) is None


def test_within_gives_back_what_the_work_returns_or_raises() -> None:
    """As in a plain call."""
    assert within(5, lambda: 3, "three") == 3
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0, "division")
