"""The deletion of a conversation with everything that belongs to it (CONTRACT 4)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.end_chat import TIMED_OUT, Failure, end_chat
from dualtrack.errors import ApiError, not_found
from dualtrack.ids import is_conversation_id
from dualtrack.requests import ChatRef
from dualtrack.storage.bodies import object_prefix
from dualtrack.storage.dynamo import Lost, Pause, delete, put, query, to_wire, transact, update
from dualtrack.storage.history import DELETING, Conversation, conversation_key, partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import Stores

_DELETE_SECONDS: Final = 60


def delete_conversation(stores: Stores, user: str, conversation_id: str) -> None:
    """Delete it with every record, event and object; 409 while a chat runs in it.

    It is locked first and its own item goes last: a deletion that was cut short leaves something to
    delete again, never orphans.
    """
    known = is_conversation_id(conversation_id)
    found = stores.history.conversation(user, conversation_id) if known else None
    if found is None:
        raise not_found("There is no such conversation.")
    _lock(stores, found)
    for number in range(1, found.queries + 1):
        _delete_chat(stores, user, conversation_id, number)
    _delete_records(stores, user, conversation_id)
    gone = delete("conversation", stores.history.table, conversation_key(user, conversation_id))
    transact(stores.dynamodb, [gone])


def delete_leftovers(stores: Stores, user: str, conversation_id: str) -> None:
    """Remove what was written for a conversation that is not there, or is being deleted; else nothing."""
    found = stores.history.conversation(user, conversation_id)
    if found is None or found.lease == DELETING:
        _delete_records(stores, user, conversation_id)


def _delete_records(stores: Stores, user: str, conversation_id: str) -> None:
    """Every record and body of it, not the conversation itself."""
    pk = partition(user, conversation_id)
    _delete_all(stores, stores.history.table, pk)
    _delete_objects(stores, object_prefix(pk))


def _lock(stores: Stores, found: Conversation) -> None:
    now = int(stores.clock())
    if found.lease and found.lease != DELETING:
        if found.lease_until > now:
            raise ApiError("conversation_busy", "A chat is running in this conversation.")
        dead = ChatRef(found.user, found.lease, found.conversation_id)
        end_chat(stores, dead, TIMED_OUT)
    lock = update(
        "conversation",
        stores.history.table,
        conversation_key(found.user, found.conversation_id),
        "SET lease = :deleting, lease_until = :until",
        "queries = :queries AND (attribute_not_exists(lease) OR lease = :deleting)",
        {":deleting": DELETING, ":until": now + _DELETE_SECONDS, ":queries": found.queries},
    )
    try:
        transact(stores.dynamodb, [lock])
    except Lost:
        raise ApiError("conversation_busy", "A chat is running in this conversation.") from None


def _delete_chat(stores: Stores, user: str, conversation_id: str, number: int) -> None:
    chat_id = stores.history.chat_of_query(user, conversation_id, number)
    chat = stores.chats.load(user, chat_id) if chat_id else None
    if chat is None:
        return
    if chat.status == "answered":
        # Its summaries are still being written: close it first, so that nothing is written afterwards.
        end_chat(stores, ChatRef(user, chat.chat_id, conversation_id), Failure("internal", ""))
    _delete_all(stores, stores.chats.table, chat.pk, keep=_blank_end(stores, chat))


def _blank_end(stores: Stores, chat: Chat) -> str:
    """The sort key of what stays of a chat that was broken off a moment ago: the end of its log, blank.

    A tool or a model call of it may still be running. Its log stays closed until none can be, so that
    nothing is written into a conversation that is gone.
    """
    nobody_writes_after = chat.deadline + _DELETE_SECONDS
    if chat.status not in ("failed", "cancelled") or stores.clock() > nobody_writes_after:
        return ""
    table = stores.chats.table
    last = next(query(stores.dynamodb, table, chat.pk, prefix="EV#", descending=True, page_size=1), None)
    if last is None:
        return ""
    blank = {"pk": chat.pk, "sk": last["sk"], "n": last["n"], "data": "[]", "closed": True}
    transact(stores.dynamodb, [put("end", table, {**blank, "ttl": nobody_writes_after})])
    return str(last["sk"])


def _delete_all(stores: Stores, table: str, pk: str, keep: str = "") -> None:
    keys = ({"pk": pk, "sk": item["sk"]} for item in query(stores.dynamodb, table, pk) if item["sk"] != keep)
    pause = Pause()
    for batch in _batched(keys, 25):
        requests: Any = [{"DeleteRequest": {"Key": to_wire(key)}} for key in batch]
        for attempt in itertools.count():
            answer = stores.dynamodb.batch_write_item(RequestItems={table: requests})
            requests = answer["UnprocessedItems"].get(table)
            if not requests:
                break
            pause(attempt)


def _batched(items: Iterable[dict[str, str]], size: int) -> Iterator[list[dict[str, str]]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def _delete_objects(stores: Stores, prefix: str) -> None:
    s3, bucket = stores.bodies.s3, stores.bodies.bucket
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        keys: Any = [{"Key": one["Key"]} for one in page.get("Contents", [])]
        if keys:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
