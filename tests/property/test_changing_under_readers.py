"""Readers tolerate change: what they read may be cancelled or deleted between any two of their reads.

Every request is repeated with the change before its first call to AWS, before its second, and so on. It answers the old
or the new state, or 404; never a 500, and always in the documented form. The short form takes every third call.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.tool_values import ToolResult

from tests.clients.api_client import Answer, Api, items, make_api, objects
from tests.drivers.world import SETTINGS
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IN_THE_TABLE: Final = "Found in a document. " * 200
IN_S3: Final = random.Random(11).randbytes(300_000).hex()
MOST_CALLS: Final = 40

READS: Final = {
    "the chat": "/v1/chats/{chat}",
    "conversations": "/v1/conversations",
    "the full track": "/v1/conversations/{conversation}",
    "the summarised track": "/v1/conversations/{conversation}?track=summarised",
    "a query": "/v1/conversations/{conversation}/records/q1",
    "a result in the table": "/v1/conversations/{conversation}/records/q1-t1",
    "a result in S3": "/v1/conversations/{conversation}/records/q1-t2",
    "a reference": "/v1/conversations/{conversation}/records/q2-t1",
    "a response": "/v1/conversations/{conversation}/records/q2-r",
    "a summary": "/v1/conversations/{conversation}/records/q2-t1-sum",
}


@dataclass
class Calls:
    """Counts a client's calls to AWS, and runs a change before one of them."""

    before: int = 0
    change: Callable[[], object] = field(default=lambda: None)
    names: list[str] = field(default_factory=list)
    watching: bool = False

    def __call__(self, model: Any, **_: Any) -> None:
        if not self.watching:
            return
        self.names.append(model.name)
        if len(self.names) == self.before:
            self.watching = False
            self.change()
            self.watching = True

    def during(self, request: Callable[[], Answer], before: int, change: Callable[[], object]) -> Answer:
        """The answer to a request with the change before its ``before``-th call."""
        self.before, self.change, self.names, self.watching = before, change, [], True
        try:
            return request()
        finally:
            self.watching = False


def results(running: Any) -> ToolResult:
    """Two results, one stored in the table, one in S3."""
    return ToolResult(IN_S3 if running.call.input["query"] == "large" else IN_THE_TABLE)


@dataclass(frozen=True, slots=True)
class Ground:
    """The function, its calls to AWS, and a conversation that every case copies."""

    api: Api
    calls: Calls
    ids: dict[str, str]
    stored: list[tuple[str, dict[str, Any]]]
    objects: list[str]

    def copy(self, user: str) -> Api:
        """Another user with a copy of the conversation."""
        for table, item in self.stored:
            copied = {**item, "pk": _renamed(item["pk"], f"#{self.api.user}", f"#{user}")}
            if "body" in item:
                copied["body"] = _renamed(item["body"], f"s3:{self.api.user}/", f"s3:{user}/")
            self.api.world.stores.chats.client.put_item(TableName=table, Item=copied)
        s3, bucket = self.api.world.stores.bodies.s3, SETTINGS.bodies_bucket
        for key in self.objects:
            name = key.replace(self.api.user, user, 1)
            s3.copy_object(Bucket=bucket, Key=name, CopySource={"Bucket": bucket, "Key": key})
        return self.api.of(user)


def _renamed(value: dict[str, str], old: str, new: str) -> dict[str, str]:
    return {"S": value["S"].replace(old, new, 1)}


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with make_api(retrieve_documentation=results) as api:
        calls = Calls()
        for client in (api.world.stores.chats.client, api.world.stores.bodies.s3):
            client.meta.events.register("before-call", calls)
        ids = asked(api)
        tables = (SETTINGS.history_table, SETTINGS.chats_table)
        stored = [(table, item) for table in tables for item in items(api.world, table)]
        yield Ground(api, calls, ids, stored, objects(api.world))


def asked(api: Api) -> dict[str, str]:
    """A conversation with bodies in the table and in S3, and a reference to one of them."""
    search = [
        {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": size}}
        for size in ("small", "large")
    ]
    fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1-t1"}}
    api.world.model.script.add(
        {"match": "Search.", "content": search},
        {"match": "Search.", "text": "Found. " * 300},
        {"match": "Fetch.", "content": [fetch]},
        {"match": "Fetch.", "text": "Read. " * 300},
    )
    first = api.ask("Search. " * 200)
    second = api.ask("Fetch.", conversation_id=first["conversation_id"])
    return {"chat": second["chat_id"], "conversation": second["conversation_id"]}


def deleted(api: Api, ids: dict[str, str]) -> Callable[[], object]:
    return lambda: api.call("DELETE", f"/v1/conversations/{ids['conversation']}")


def cancelled(api: Api, ids: dict[str, str]) -> Callable[[], object]:
    running = api.start("And more?", conversation_id=ids["conversation"])
    ids["chat"] = running["chat_id"]
    return lambda: api.call("DELETE", f"/v1/chats/{running['chat_id']}")


@pytest.mark.parametrize("change", [deleted, cancelled])
@pytest.mark.parametrize("read", READS)
def test_a_change_between_any_two_reads_is_no_error(
    ground: Ground, read: str, change: Callable[[Api, dict[str, str]], Callable[[], object]]
) -> None:
    names: list[str] = []
    for before in range(1, MOST_CALLS, 1 if LONG else 3):
        ids = dict(ground.ids)
        api = ground.copy(f"{change.__name__}-{read}-{before}")
        happens = change(api, ids)
        calls = ground.calls
        answer = calls.during(partial(api.call, "GET", READS[read].format(**ids)), before, happens)
        assert answer.status in (200, 404), (before, calls.names, answer)
        assert answer.status == 200 or change is deleted, (before, calls.names)
        names = calls.names
        if len(names) < before:
            return
    pytest.fail(f"more than {MOST_CALLS} calls: {Counter(names)}")
