"""The sweep: chats that nobody ends (DESIGN 2.5). Walks the sparse index of open chats.

no execution of its name       it was admitted and never started: start it
past its deadline              end the chat, then stop the execution
its execution has ended        end the chat (timeouts and crashes bypass every Catch)
its execution runs             leave it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chats import CHAT_SECONDS, OPEN_SHARDS, Chat
from dualtrack.dynamo import from_wire
from dualtrack.end_chat import TIMED_OUT, end_chat, failure_of
from dualtrack.requests import ChatRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.executions import Executions
    from dualtrack.stores import Stores

STARTING_SECONDS: Final = 20
"""A chat this young may still be about to be started by the request that admitted it."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did, in chats."""

    seen: int = 0
    started: int = 0
    ended: int = 0


def sweep(stores: Stores, executions: Executions) -> Swept:
    """Look at every open chat once. Harmless at any time and any number of times.

    A chat that makes trouble does not keep the others waiting: what it raised is raised at the end.
    """
    outcomes: list[str] = []
    troubles: list[Exception] = []
    for ref in _open_chats(stores):
        try:
            outcomes.append(_look_at(stores, executions, ref))
        except Exception as error:  # noqa: BLE001 - raised below
            troubles.append(error)
    if troubles:
        raise ExceptionGroup(f"{len(troubles)} of {len(troubles) + len(outcomes)} open chats", troubles)
    seen = [outcome for outcome in outcomes if outcome != "gone"]
    return Swept(len(seen), seen.count("started"), seen.count("ended"))


def _look_at(stores: Stores, executions: Executions, ref: ChatRef) -> str:
    chat = stores.chats.load(ref.user, ref.chat_id)
    if chat is None or chat.status not in ("running", "answered"):
        return "gone"
    return _look_after(stores, executions, chat)


def _open_chats(stores: Stores) -> Iterator[ChatRef]:
    for shard in range(OPEN_SHARDS):
        request: dict[str, Any] = {
            "TableName": stores.chats.table,
            "IndexName": "open",
            "KeyConditionExpression": "#open = :shard",
            "ExpressionAttributeNames": {"#open": "open"},
            "ExpressionAttributeValues": {":shard": {"S": f"open#{shard}"}},
        }
        for page in stores.dynamodb.get_paginator("query").paginate(**request):
            for wire in page["Items"]:
                _, user, chat_id = from_wire(wire)["pk"].split("#", 2)
                yield ChatRef(user, chat_id, "")


def _look_after(stores: Stores, executions: Executions, chat: Chat) -> str:
    now = stores.clock()
    ref = ChatRef(chat.user, chat.chat_id, chat.conversation_id)
    if now >= chat.deadline:
        # Closed first, so that the chat ends as what it is: a stopped execution is reported to `abort`,
        # which knows no more than that it was stopped. What still runs is fenced off by the closed log.
        end_chat(stores, ref, TIMED_OUT)
        executions.stop(chat.chat_id)
        return "ended"
    status = executions.status(chat.chat_id)
    if status == "RUNNING":
        return ""
    if status is not None:
        end_chat(stores, ref, failure_of({"Error": status}))
        return "ended"
    if now < chat.deadline - CHAT_SECONDS + STARTING_SECONDS:
        return ""
    executions.start(ref)
    return "started"
