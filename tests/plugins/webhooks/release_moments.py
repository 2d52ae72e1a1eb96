"""What a release stores of webhooks, and what reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.notices import Notice
from dualtrack.plugins.webhooks.store import webhooks_of
from dualtrack.plugins.webhooks.values import Webhook

from tests.drivers.crash_world import USER

if TYPE_CHECKING:
    from dualtrack.storage.stores import Stores

    from tests.drivers.crash_world import World


def store(world: World) -> None:
    """A webhook whose secret was rotated and which has not answered, what it waits for, and a notice for it."""
    stores, now = world.look(), int(world.clock())
    hook = Webhook(
        "wh_00000000000000000000000001", USER, "https://hooks.example.com/", ("chat.done",), "bmV3", now,
        profiles=("assistant",), replaced="b2xk", replaced_until=now + 60, failing_since=now, milliseconds=5,
    )  # fmt: skip
    webhooks_of(stores).make(hook, [])
    notice = Notice("msg_1_done", "chat.done", now * 1000, {"chat_id": "ch_1", "stop": None}, "assistant")
    webhooks_of(stores).send(hook, notice)
    stores.outbox.tell_once(USER, replace(notice, message_id="msg_2_done"), now + 60)


def read(stores: Stores) -> None:
    """Those of the moments' user, what they are told, and what waits for them."""
    store = webhooks_of(stores)
    for webhook in store.of(USER):
        store.deliveries(webhook, "", 10)
    store.notices(due for due in store.due() if due.is_notice)
