"""What is noted to be told, without anybody who tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.storage.dynamo import query
from dualtrack.storage.outbox import NOTICE_PREFIX, notice_in, partition_of_owner

if TYPE_CHECKING:
    from dualtrack.notices import Notice
    from dualtrack.storage.stores import NoticeStores


def noted(stores: NoticeStores, owner: str) -> list[Notice]:
    """The notices for an owner, by their ids."""
    outbox = stores.outbox
    items = query(outbox.client, outbox.table, partition_of_owner(owner), prefix=NOTICE_PREFIX)
    return list(map(notice_in, items))
