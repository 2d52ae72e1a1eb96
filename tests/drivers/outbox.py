"""What is noted to be told, without anybody who tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.storage.dynamo import delete_all, one_more, query, transact
from dualtrack.storage.outbox import COUNT, LISTENERS, NOTICE_PREFIX, key_of, notice_in, partition_of_owner

if TYPE_CHECKING:
    from dualtrack.notices import Notice
    from dualtrack.storage.stores import NoticeStores


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
