"""Readers tolerate change: whatever they read may be cancelled or deleted between any two of their reads.

Every request is repeated with the change before its first call to AWS, before its second, and so on. It
answers what was there or what is there now, or 404; never a 500, and always in the documented form.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.tools import ToolResult

from tests.fakes.api_client import Answer, Api, make_api

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
    """Counts the calls of a client to AWS, and lets something happen before one of them."""

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
        """The answer to a request during which the change happens before its ``before``-th call."""
        self.before, self.change, self.names, self.watching = before, change, [], True
        try:
            return request()
        finally:
            self.watching = False


def results(running: Any) -> ToolResult:
    """Two that are stored in different places."""
    return ToolResult(IN_S3 if running.call.input["query"] == "large" else IN_THE_TABLE)


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Api, Calls]]:
    with make_api(retrieve_documentation=results) as made:
        calls = Calls()
        for client in (made.world.stores.dynamodb, made.world.stores.bodies.s3):
            client.meta.events.register("before-call", calls)
        yield made, calls


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
@pytest.mark.parametrize("target", READS.values(), ids=READS)
def test_a_change_between_any_two_reads_is_no_error(
    shared: tuple[Api, Calls], target: str, change: Callable[[Api, dict[str, str]], Callable[[], object]]
) -> None:
    base, calls = shared
    for before in range(1, MOST_CALLS):
        api = base.of(f"{change.__name__}-{target}-{before}".replace("/", "-").replace("#", "-"))
        ids = asked(api)
        where, happens = target.format(**ids), change(api, ids)
        answer = calls.during(lambda api=api, where=where: api.call("GET", where), before, happens)  # type: ignore[misc]
        assert answer.status in (200, 404), (before, calls.names, answer)
        assert answer.status == 200 or change is deleted, (before, calls.names)
        if len(calls.names) < before:
            return
    pytest.fail(f"more than {MOST_CALLS} calls: {Counter(calls.names)}")
