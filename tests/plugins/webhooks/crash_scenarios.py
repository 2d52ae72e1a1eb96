"""What webhooks are told, their part of the crash matrix: receivers behind a process's edge (docs/faults.md)."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError, ReadTimeoutError
from dualtrack.plugins.webhooks.deliver import WAITS, Deliverer
from dualtrack.plugins.webhooks.post import PostOutcome
from dualtrack.plugins.webhooks.store import CLAIM_SECONDS, webhooks_of
from dualtrack.plugins.webhooks.values import Webhook

from tests.drivers.crash_world import NOTE, RUNS, Scenario, StepFailed
from tests.drivers.outbox import messages_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.storage.chats import Chat

    from tests.drivers.crash_world import World
    from tests.drivers.faults import Process

BEGINS: Final = ()
STEPS: Final = ("deliver",)
SERVICES: Final = ("receiver", "kms")

HOOKS: Final = ("wh_1", "wh_2")
EVENTS: Final = ("chat.done", "chat.failed", "chat.paused")
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
        answer = partial(self.receiver.answer, url, body, headers["webhook-id"])
        try:
            outcome: PostOutcome = self.process.call("receiver", "post", url.rsplit("/", 1)[1], answer)
        except ClientError:
            return PostOutcome(429)
        except ReadTimeoutError:
            return PostOutcome(error="no answer")
        return outcome

    def open(self, webhook_id: str, sealed: str) -> str:
        """Decrypt a secret."""
        opened: str = self.process.call("kms", "decrypt", webhook_id, lambda: sealed)
        return opened


class TwoWebhooks:
    """Both want everything."""

    def __init__(self, world: World, *, fails_first: bool = False) -> None:
        self._world, self._receiver = world, Receiver(fails_first)

    def listen(self) -> None:
        """Make them."""
        store = webhooks_of(self._world.look())
        for webhook_id in HOOKS:
            url = f"https://example.org/{webhook_id}"
            store.make(Webhook(webhook_id, self._world.user, url, EVENTS, "whsec_c2VjcmV0", 0), [])

    def hear(self) -> None:
        """The function `deliver`, until a run that dies is made up for."""
        for _ in range(2 * RUNS):
            with contextlib.suppress(StepFailed):
                self._world.state(*STEPS, self._deliver, 0)
            self._world.clock.now += APART

    def _deliver(self, process: Process) -> None:
        """One delivery to `deliver`."""
        edge: Any = Edge(process, self._receiver)
        store = webhooks_of(self._world.stores(process))
        Deliverer(store, edge, edge, "test", jitter=lambda: 0.0).run(60)

    def faults(self, chats: Sequence[Chat], said: Sequence[str]) -> Iterator[str]:
        """Each end and each pause arrives at each webhook, under one id, with one body and no text; nothing waits."""
        fault = self._world.fault
        if fault and fault.always and fault.site.step in STEPS:
            return
        wanted = {(hook, message) for chat in chats for message in messages_of(chat) for hook in HOOKS}
        taken = self._receiver.taken
        for hook, message in sorted(wanted ^ taken.keys()):
            yield f"{message} {'was lost' if (hook, message) in wanted else 'has no cause'}: {hook}"
        for (hook, message), bodies in taken.items():
            if len(set(bodies)) > 1:
                yield f"{message} was told in {len(set(bodies))} ways: {hook}"
            yield from (f"{message} quotes {text[:20]!r}" for text in said if text in bodies[0])
            if not json.loads(bodies[0])["data"]["chat_id"]:
                yield f"{message} names no chat"
        yield from self._left()

    def _left(self) -> Iterator[str]:
        store = webhooks_of(self._world.look())
        for hook in store.of(self._world.user):
            listed = store.deliveries(hook, "", 100).items
            undone = {one.message_id: one.status for one in listed if one.status != "delivered"}
            if undone:
                yield f"{hook.webhook_id} lists {undone}"
            if store.waiting(hook):
                yield f"{hook.webhook_id} waits for {store.waiting(hook, 10)}"
        if left := list(store.due()):
            yield f"in the index: {left}"


SCENARIOS: Final = (
    Scenario("told", heard_by=TwoWebhooks),
    Scenario("told in the end, of a pause too", rounds=((NOTE,),), charged=8, asks=(NOTE.tool,), heard_by=partial(TwoWebhooks, fails_first=True)),
    Scenario("told of a failure", status="failed", stop="", charged=0, refused_by_model=True, heard_by=TwoWebhooks),
    Scenario("cancelled, told of its pause alone", rounds=((NOTE,),), status="cancelled", stop="cancelled", asks=(NOTE.tool,), decided="cancel", heard_by=TwoWebhooks),
)  # fmt: skip
