"""What is told with nobody waiting, for the crash matrix: receivers behind a process's edge.

`faults_in_telling` says what must hold after any fault (docs/faults.md).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dualtrack.storage.webhooks import CLAIM_SECONDS, Webhook, webhooks_of
from dualtrack.webhooks.deliver import WAITS, Deliverer
from dualtrack.webhooks.post import PostOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import Stores

    from tests.drivers.faults import Process

HOOKS: Final = ("wh_1", "wh_2")
EVENTS: Final = ("chat.done", "chat.failed", "chat.paused")
RUNS: Final = 3
"""Runs of a periodic function: one may fail, and what it has claimed may be done by the next."""

APART: Final = CLAIM_SECONDS + WAITS[0]
"""Seconds between two runs of `deliver`, after which a dead one's claims are over."""


@dataclass
class Receiver:
    """Two receivers: the first fails at the first message of each id, if it is to. ``taken``: by webhook and id, the
    bodies that arrived."""

    fails_first: bool = False
    taken: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def answer(self, url: str, body: bytes, message_id: str) -> PostOutcome:
        """Take a message, or fail."""
        webhook_id = url.rsplit("/", 1)[1]
        if self.fails_first and webhook_id == HOOKS[0] and message_id not in self.refused:
            self.refused.add(message_id)
            return PostOutcome(500)
        self.taken.setdefault((webhook_id, message_id), []).append(body.decode())
        return PostOutcome(200)


@dataclass(frozen=True, slots=True)
class Edge:
    """The receiver and KMS as a process reaches them."""

    process: Process
    receiver: Receiver

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> PostOutcome:
        """A POST."""
        message_id = headers["webhook-id"]
        outcome: PostOutcome = self.process.call(
            "receiver", "post", url.rsplit("/", 1)[1], lambda: self.receiver.answer(url, body, message_id)
        )
        return outcome

    def open(self, webhook_id: str, sealed: str) -> str:
        """Decrypt a secret."""
        opened: str = self.process.call("kms", "decrypt", webhook_id, lambda: sealed)
        return opened


def make_webhooks(stores: Stores, user: str) -> None:
    """Two, of which both want everything."""
    for webhook_id in HOOKS:
        url = f"https://example.org/{webhook_id}"
        webhooks_of(stores).make(Webhook(webhook_id, user, url, EVENTS, "whsec_c2VjcmV0", 0), [])


def deliver(stores: Stores, edge: Edge) -> None:
    """A run of `deliver`."""
    outside: Any = edge
    Deliverer(webhooks_of(stores), outside, outside, "test", jitter=lambda: 0.0).run(60)


def faults_in_telling(
    stores: Stores, receiver: Receiver, user: str, chats: Sequence[Chat], said: Sequence[str]
) -> Iterator[str]:
    """Each end and each pause arrives at each webhook, under one id, with one body and no text; nothing waits."""
    wanted = {(hook, message) for chat in chats for message in _messages(chat) for hook in HOOKS}
    for hook, message in sorted(wanted ^ receiver.taken.keys()):
        yield f"{message} {'was lost' if (hook, message) in wanted else 'has no cause'}: {hook}"
    for (hook, message), bodies in receiver.taken.items():
        if len(set(bodies)) > 1:
            yield f"{message} was told in {len(set(bodies))} ways: {hook}"
        yield from (f"{message} quotes {text[:20]!r}" for text in said if text in bodies[0])
        if not json.loads(bodies[0])["data"]["chat_id"]:
            yield f"{message} names no chat"
    for hook in webhooks_of(stores).of(user):
        listed = webhooks_of(stores).deliveries(hook, "", 100).items
        undone = {one.message_id: one.status for one in listed if one.status != "delivered"}
        if undone:
            yield f"{hook.webhook_id} lists {undone}"
        if webhooks_of(stores).waiting(hook):
            yield f"{hook.webhook_id} waits for {webhooks_of(stores).waiting(hook, 10)}"
    if left := list(webhooks_of(stores).due()):
        yield f"in the index: {left}"


def _messages(chat: Chat) -> Iterator[str]:
    name = f"msg_{chat.chat_id.removeprefix('ch_')}"
    yield from (f"{name}_paused{number}" for number in range(1, chat.pauses + 1))
    if chat.status in ("done", "failed"):
        yield f"{name}_{chat.status}"
