"""Webhooks, what they are to be told, and what became of it, beside the outbox (`dualtrack.storage.outbox`).

    pk HOOKS#<owner>   sk HOOK#<webhook>                    a webhook; in the sparse index `open` while something waits
                       sk DELIVERY#<webhook>#<at>#<message> what a webhook is told, and what came back; for a week
                       sk DUE#<webhook>#<due>#<at>#<message>   a delivery that waits: when it is tried next

All that a webhook waits for is one entry of the index, so a receiver that takes nothing does not make it longer, and a
slow webhook stands in a part of its own, so it is never before others. A run claims a webhook before it tells it
anything (`claimed_until`); what is added meanwhile counts ``wakes`` up, by which the end of the claim sees that there
is more.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.codec import decode, encode
from dualtrack.errors import ApiError, invalid_request, not_found
from dualtrack.plugins.webhooks.values import Delivery, Due, Webhook
from dualtrack.storage.dynamo import (
    TRANSACT_ACTIONS,
    ConditionFailed,
    batch_get,
    delete,
    delete_all,
    get,
    index_pages,
    one_less,
    one_more,
    put,
    put_absent,
    query,
    transact,
    update,
    updated,
)
from dualtrack.storage.open_index import INDEX, partition_of, partitions_of
from dualtrack.storage.outbox import (
    COUNT,
    KEPT_SECONDS,
    KEY_PREFIX,
    KIND,
    LISTENERS,
    NOTICE_PREFIX,
    key_of,
    notice_in,
    partition_of_owner,
)
from dualtrack.storage.pages import Page, cursor_of, foreign_cursor, position_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.notices import Notice
    from dualtrack.storage.dynamo import Action, Item
    from dualtrack.storage.stores import NoticeStores

MOST_WEBHOOKS: Final = 10
"""Webhooks of a user."""

MOST_WAITING: Final = 20
"""Deliveries that wait for a webhook, beyond which no test is added."""

COPY_SECONDS: Final = 300
"""Until a copy for EventBridge that failed is tried again."""

CLAIM_SECONDS: Final = 150
"""How long a run may keep a webhook: longer than the function's time."""

_READ_AT_ONCE: Final = 500
"""Entries of a shard that one pass takes."""

_LANES: Final[tuple[str, str]] = (KIND, f"{KIND}#slow")
"""The parts of the index, of webhooks that answer and of slow ones."""


@dataclass(frozen=True, slots=True)
class WebhookStore:
    """Reads, writes and write-actions."""

    client: DynamoDBClient
    table: str
    clock: Clock

    # ── of the owner ──────────────────────────────────────────────────────────────────────────────

    def of(self, owner: str) -> Sequence[Webhook]:
        """The owner's webhooks, the oldest first."""
        return [
            _webhook(item)
            for item in query(self.client, self.table, partition_of_owner(owner), prefix="HOOK#")
        ]

    def find(self, owner: str, webhook_id: str) -> Webhook:
        """Raises 404."""
        item = get(self.client, self.table, key_of(owner, _hook(webhook_id)))
        if item is None:
            raise no_such_webhook()
        return _webhook(item)

    def make(self, webhook: Webhook, also: Sequence[Action]) -> None:
        """Store a new one with ``also``. Raises 400 for one too many, `ConditionFailed` for a condition of ``also``."""
        count = one_more("count", self.table, key_of(webhook.owner, COUNT), LISTENERS, MOST_WEBHOOKS)
        new = put_absent(
            "webhook", self.table, {**key_of(webhook.owner, _hook(webhook.webhook_id)), **encode(webhook)}
        )
        try:
            transact(self.client, [count, new, *also])
        except ConditionFailed as lost:
            if "count" not in lost.items:
                raise
            raise invalid_request(f"You have {MOST_WEBHOOKS} webhooks already: delete one first.") from None

    def rotate(self, webhook: Webhook, secret: str, replaced_until: int) -> Webhook:
        """Give it a new secret. Raises `ConditionFailed` if it was rotated or deleted meanwhile."""
        values = {":secret": secret, ":before": webhook.secret, ":until": replaced_until}
        change = "SET secret = :secret, replaced = :before, replaced_until = :until"
        key = key_of(webhook.owner, _hook(webhook.webhook_id))
        return _webhook(
            updated(self.client, update("webhook", self.table, key, change, "secret = :before", values))
        )

    def remove(self, owner: str, webhook_id: str) -> None:
        """Delete a webhook and its deliveries. Raises 404."""
        gone = delete("webhook", self.table, key_of(owner, _hook(webhook_id)), "attribute_exists(pk)")
        try:
            transact(self.client, [gone, one_less("count", self.table, key_of(owner, COUNT), LISTENERS)])
        except ConditionFailed:
            raise no_such_webhook() from None
        for kind in ("DUE", "DELIVERY"):
            listed = query(
                self.client,
                self.table,
                partition_of_owner(owner),
                prefix=f"{kind}#{webhook_id}#",
                only=("ttl",),
            )
            delete_all(self.client, self.table, (key_of(owner, item["sk"]) for item in listed))

    def deliveries(self, webhook: Webhook, cursor: str, limit: int) -> Page[Delivery]:
        """A page of what the webhook was or will be told, newest first."""
        prefix = f"DELIVERY#{webhook.webhook_id}#"
        before = prefix + _position(cursor) if cursor else ""
        items = query(
            self.client, self.table, partition_of_owner(webhook.owner),
            prefix=prefix, before=before, descending=True, page_size=limit + 1,
        )  # fmt: skip
        listed = [_delivery(item) for item in itertools.islice(items, limit + 1)]
        more = len(listed) > limit
        return Page(tuple(listed[:limit]), cursor_of(listed[limit - 1].position) if more else "")

    def send(self, webhook: Webhook, notice: Notice) -> Delivery:
        """Add a delivery to one webhook. Raises 404 if it was deleted meanwhile, 429 if much waits for it already: it
        may lead to somebody who never asked for it."""
        if len(self.waiting(webhook, MOST_WAITING)) == MOST_WAITING:
            message = f"{MOST_WAITING} messages wait for this webhook already."
            raise ApiError("rate_limited", message, {"retry_after": 60})
        delivery = _new_delivery(webhook.webhook_id, notice, int(self.clock()))
        try:
            transact(self.client, [self._woken(webhook), *self._kept(webhook.owner, delivery)])
        except ConditionFailed:
            raise no_such_webhook() from None
        return delivery

    # ── of the function `deliver` ─────────────────────────────────────────────────────────────────

    def due(self, *, slow: bool = False) -> Iterator[Due]:
        """What is due now, oldest first, by shard; a bounded part of it. ``slow``: the slow webhooks, else the others
        and all notices."""
        before = ("deadline", int(self.clock()) + 1)
        for part in partitions_of(_LANES[slow]):
            pages = index_pages(self.client, self.table, INDEX, part, before=before, page_size=_READ_AT_ONCE)
            for item in next(pages, []):
                yield Due(item["pk"].removeprefix(KEY_PREFIX), item["sk"])

    def notices(self, dues: Iterable[Due]) -> list[Notice]:
        """Notices of the outbox, the oldest first, without those that are there no more."""
        items = batch_get(self.client, self.table, [key_of(due.owner, due.sk) for due in dues])
        return sorted(map(notice_in, items), key=lambda notice: (notice.at, notice.message_id))

    def spread(
        self, owner: str, notices: Sequence[Notice], webhooks: Sequence[Webhook], kept: Collection[str] = ()
    ) -> None:
        """Make each notice a delivery to those of the owner's webhooks that want it, once. ``kept``: ids of those that
        stay in the outbox for their copies. Raises `ConditionFailed` if a webhook was deleted meanwhile."""
        room = (TRANSACT_ACTIONS - len(webhooks)) // (1 + 2 * len(webhooks))
        for start in range(0, len(notices), room):
            try:
                transact(self.client, self._spread(owner, notices[start : start + room], webhooks, kept))
            except ConditionFailed as lost:
                if any(name.startswith("webhook ") for name in lost.items):
                    raise
                return  # another run was faster; what it leaves is due still

    def _spread(
        self, owner: str, notices: Sequence[Notice], webhooks: Sequence[Webhook], kept: Collection[str]
    ) -> list[Action]:
        now = int(self.clock())
        gone = [self._spread_one(owner, notice.message_id, notice.message_id in kept) for notice in notices]
        told = [webhook for webhook in webhooks if any(map(webhook.wants, notices))]
        deliveries = [
            action
            for webhook in told
            for notice in notices
            if webhook.wants(notice)
            for action in self._kept(owner, _new_delivery(webhook.webhook_id, notice, now))
        ]
        return [*gone, *map(self._woken, told), *deliveries]

    def _spread_one(self, owner: str, message_id: str, is_kept: bool) -> Action:
        name, key = f"notice {message_id}", key_of(owner, f"{NOTICE_PREFIX}{message_id}")
        if not is_kept:
            return delete(name, self.table, key, "attribute_exists(pk)")
        values = {":yes": True, ":later": int(self.clock()) + COPY_SECONDS}
        change = "SET is_spread = :yes, deadline = :later"
        return update(name, self.table, key, change, "attribute_exists(pk)", values)

    def _woken(self, webhook: Webhook) -> Action:
        """The update by which something waits for it."""
        return update(
            f"webhook {webhook.webhook_id}", self.table, key_of(webhook.owner, _hook(webhook.webhook_id)),
            "SET #open = :open, deadline = :now ADD wakes :one", "attribute_exists(pk)",
            {":open": _lane(webhook), ":now": int(self.clock()), ":one": 1}, {"#open": "open"},
        )  # fmt: skip

    def _kept(self, owner: str, delivery: Delivery) -> list[Action]:
        """The puts of a delivery, and of its place among those that wait."""
        ttl = delivery.at // 1000 + KEPT_SECONDS
        name = f"{delivery.webhook_id} {delivery.message_id}"
        item = {**key_of(owner, _delivery_sk(delivery)), **encode(delivery), "ttl": ttl}
        writes = [put(f"delivery {name}", self.table, item)]
        if delivery.status == "pending":
            writes.append(put(f"due {name}", self.table, {**key_of(owner, _due_sk(delivery)), "ttl": ttl}))
        return writes

    def named(self, dues: Sequence[Due]) -> Sequence[Webhook]:
        """The webhooks that are due; deleted ones are left out."""
        return [
            _webhook(item)
            for item in batch_get(self.client, self.table, [key_of(due.owner, due.sk) for due in dues])
        ]

    def claim(self, webhook: Webhook) -> Webhook | None:
        """Keep other runs from the webhook; None if one has it, or it was deleted."""
        now = int(self.clock())
        values = {":now": now, ":until": now + CLAIM_SECONDS}
        action = update(
            "webhook", self.table, key_of(webhook.owner, _hook(webhook.webhook_id)),
            "SET claimed_until = :until", "attribute_exists(pk) AND claimed_until <= :now", values,
        )  # fmt: skip
        try:
            return _webhook(updated(self.client, action))
        except ConditionFailed:
            return None

    def waiting(self, webhook: Webhook, limit: int = 1, *, now: int | None = None) -> list[tuple[int, str]]:
        """The first deliveries that wait, or those that are due ``now``: when, and their positions."""
        prefix = f"DUE#{webhook.webhook_id}#"
        before = f"{prefix}{now + 1:010d}" if now is not None else ""
        items = query(
            self.client,
            self.table,
            partition_of_owner(webhook.owner),
            prefix=prefix,
            before=before,
            page_size=limit,
        )
        found = (item["sk"].removeprefix(prefix).split("#", 1) for item in itertools.islice(items, limit))
        return [(int(due), position) for due, position in found]

    def at(self, webhook: Webhook, positions: Iterable[str]) -> Mapping[str, Delivery]:
        """The deliveries at these positions, by position; those that are there no more are left out."""
        keys = [key_of(webhook.owner, f"DELIVERY#{webhook.webhook_id}#{position}") for position in positions]
        found = map(_delivery, batch_get(self.client, self.table, keys))
        return {delivery.position: delivery for delivery in found}

    def record(self, webhook: Webhook, due: tuple[int, str], after: Delivery | None) -> None:
        """Store what became of a delivery that was due; None: it is there no more. Nothing is written if it is due no
        more: its webhook was deleted, or a run that took over has recorded it."""
        sk = f"DUE#{webhook.webhook_id}#{due[0]:010d}#{due[1]}"
        gone = delete("was due", self.table, key_of(webhook.owner, sk), "attribute_exists(pk)")
        with contextlib.suppress(ConditionFailed):
            transact(self.client, [gone, *(self._kept(webhook.owner, after) if after else ())])

    def release(self, claimed: Webhook, after: Webhook, not_before: int = 0) -> None:
        """End a claim: store how the webhook does, and when it is due next. A disabled one is due no more, until it is
        sent something; ``not_before``: a time before which it is not. Nothing is written if it was deleted."""
        waiting = [] if after.disabled_at else self.waiting(after)
        values = {
            ":failing": after.failing_since,
            ":disabled": after.disabled_at,
            ":because": after.disabled_because,
            ":ms": after.milliseconds,
            ":free": 0,
            ":mine": claimed.claimed_until,
        }
        sets = (
            "SET failing_since = :failing, disabled_at = :disabled, disabled_because = :because,"
            " milliseconds = :ms, claimed_until = :free"
        )
        key = key_of(claimed.owner, _hook(claimed.webhook_id))
        rest = ", #open = :open, deadline = :next" if waiting else " REMOVE #open, deadline"
        due = {":open": _lane(after), ":next": max(waiting[0][0], not_before)} if waiting else {}
        unchanged = "claimed_until = :mine AND wakes = :wakes"
        try:
            transact(
                self.client,
                [
                    update(
                        "webhook", self.table, key, sets + rest, unchanged,
                        {**values, **due, ":wakes": claimed.wakes}, {"#open": "open"},
                    )
                ],
            )  # fmt: skip
        except ConditionFailed as lost:
            if lost.items["webhook"] is None:
                return
            # it was woken meanwhile: it stays in the index as the one that woke it has put it there
            with contextlib.suppress(ConditionFailed):
                transact(
                    self.client, [update("webhook", self.table, key, sets, "claimed_until = :mine", values)]
                )


def webhooks_of(stores: NoticeStores) -> WebhookStore:
    """The store of webhooks beside the outbox, of which they are told."""
    outbox = stores.outbox
    return WebhookStore(outbox.client, outbox.table, outbox.clock)


def no_such_webhook() -> Exception:
    """404."""
    return not_found("There is no such webhook.")


def _new_delivery(webhook_id: str, notice: Notice, now: int) -> Delivery:
    return Delivery(webhook_id, notice.message_id, notice.at, notice.type, notice.body, next_at=now)


def _hook(webhook_id: str) -> str:
    return f"HOOK#{webhook_id}"


def _delivery_sk(delivery: Delivery) -> str:
    return f"DELIVERY#{delivery.webhook_id}#{delivery.position}"


def _due_sk(delivery: Delivery) -> str:
    return f"DUE#{delivery.webhook_id}#{delivery.next_at:010d}#{delivery.position}"


def _lane(webhook: Webhook) -> str:
    return partition_of(_LANES[webhook.is_slow], webhook.owner)


def _position(cursor: str) -> str:
    position = position_of(cursor)
    at = position.partition("#")[0]
    if len(at) != 13 or not (at.isascii() and at.isdigit()):
        raise foreign_cursor()
    return position


def _webhook(item: Item) -> Webhook:
    return decode(
        Webhook, item, webhook_id=item["sk"].removeprefix("HOOK#"), owner=item["pk"].removeprefix(KEY_PREFIX)
    )


def _delivery(item: Item) -> Delivery:
    _, webhook_id, at, message_id = item["sk"].split("#", 3)
    return decode(Delivery, item, webhook_id=webhook_id, message_id=message_id, at=int(at))
