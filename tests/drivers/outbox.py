"""What is noted to be told, without anybody who tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.storage.dynamo import delete_all, one_more, query, transact
from dualtrack.storage.outbox import COUNT, LISTENERS, NOTICE_PREFIX, key_of, notice_in, partition_of_owner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.notices import Notice
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import NoticeStores

    from tests.drivers.crash_world import World


def listen(stores: NoticeStores, owner: str) -> None:
    """The owner has a listener."""
    outbox = stores.outbox
    transact(outbox.client, [one_more("count", outbox.table, key_of(owner, COUNT), LISTENERS, 1)])


def noted(stores: NoticeStores, owner: str) -> list[Notice]:
    """The notices for an owner, by their ids."""
    outbox = stores.outbox
    items = query(outbox.client, outbox.table, partition_of_owner(owner), prefix=NOTICE_PREFIX)
    return list(map(notice_in, items))


def taken(stores: NoticeStores, owner: str) -> list[Notice]:
    """Those, which are there no more."""
    outbox, notices = stores.outbox, noted(stores, owner)
    keys = (key_of(owner, f"{NOTICE_PREFIX}{notice.message_id}") for notice in notices)
    delete_all(outbox.client, outbox.table, keys)
    return notices


class Unheard:
    """A listener of the crash matrix to whom nobody tells anything: what is noted stays noted."""

    def __init__(self, world: World) -> None:
        self._world = world

    def listen(self) -> None:
        """Be there."""
        listen(self._world.look(), self._world.user)

    def hear(self) -> None:
        """Nothing."""

    def faults(self, chats: Sequence[Chat], said: Sequence[str]) -> Iterator[str]:
        """Each end and each pause is noted once, without a text."""
        found = {notice.message_id: notice.body for notice in noted(self._world.look(), self._world.user)}
        wanted = {message for chat in chats for message in messages_of(chat)}
        for message in sorted(wanted ^ found.keys()):
            yield f"{message} {'was not noted' if message in wanted else 'has no cause'}"
        for message, body in found.items():
            yield from (f"{message} quotes {text[:20]!r}" for text in said if text in body)


def messages_of(chat: Chat) -> Iterator[str]:
    """The ids under which the chat's pauses and its end are told."""
    name = f"msg_{chat.chat_id.removeprefix('ch_')}"
    yield from (f"{name}_paused{number}" for number in range(1, chat.pauses + 1))
    if chat.status in ("done", "failed"):
        yield f"{name}_{chat.status}"
