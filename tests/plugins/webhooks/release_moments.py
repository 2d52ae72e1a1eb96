"""What a release stores of webhooks, and what reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.notices import Notice
from dualtrack.plugins.webhooks.store import webhooks_of
from dualtrack.plugins.webhooks.values import Webhook

from tests.drivers.crash_world import USER

if TYPE_CHECKING:
    from dualtrack.storage.stores import Stores

    from tests.drivers.crash_world import World


def store(world: World) -> None:
    """A webhook whose secret was rotated and which has not answered, and what it waits for."""
    store, now = webhooks_of(world.look()), int(world.clock())
    hook = Webhook(
        "wh_00000000000000000000000001", USER, "https://hooks.example.com/", ("chat.done",), "bmV3", now,
        profiles=("assistant",), replaced="b2xk", replaced_until=now + 60, failing_since=now, milliseconds=5,
    )  # fmt: skip
    store.make(hook, [])
    store.send(
        hook, Notice("msg_1_done", "chat.done", now * 1000, {"chat_id": "ch_1", "stop": None}, "assistant")
    )


def read(stores: Stores) -> None:
    """Those of the moments' user, what they are told, and what waits for them."""
    store = webhooks_of(stores)
    for webhook in store.of(USER):
        store.deliveries(webhook, "", 10)
    store.notices(due for due in store.due() if due.is_notice)
