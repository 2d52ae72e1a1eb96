"""Deliveries: at least once under one id, signed, with back-off, and nobody waits for a slow receiver (CONTRACT 4)."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.errors import ApiError
from dualtrack.notices import Notice
from dualtrack.plugins.webhooks import store as module
from dualtrack.plugins.webhooks.deliver import (
    FAILING_SECONDS,
    GONE,
    NOTHING_TAKEN,
    QUIET_SECONDS,
    WAITS,
    Deliverer,
    DeliveryCounts,
    in_turn,
)
from dualtrack.plugins.webhooks.manage import trial_notice
from dualtrack.plugins.webhooks.post import Poster, PostOutcome
from dualtrack.plugins.webhooks.signing import new_secret
from dualtrack.plugins.webhooks.store import CLAIM_SECONDS, MOST_WAITING, webhooks_of
from dualtrack.plugins.webhooks.values import SLOW_MS, Webhook
from standardwebhooks import Webhook as Reference
from standardwebhooks import WebhookVerificationError

from tests.drivers.world import World, make_world
from tests.servers.webhook_receiver import Receiver, receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.plugins.webhooks.values import Delivery

EVENTS: Final = ("chat.done", "chat.failed", "chat.paused", "key.cap_reached")


class Plain:
    """Secrets that are not encrypted."""

    def open(self, webhook_id: str, sealed: str) -> str:
        """As stored."""
        assert webhook_id
        return sealed


@dataclass
class Office:
    """A world with webhooks and what tells them."""

    world: World
    receiver: Receiver
    made: int = 0
    disabled: list[str] = field(default_factory=list)
    poster: Poster = field(default_factory=lambda: Poster(loopback=True))

    def deliverer(self, seconds: float = 5.0) -> Deliverer:
        """As the function has it."""
        secrets: Any = Plain()
        poster = replace(self.poster, seconds=seconds)
        return Deliverer(
            webhooks_of(self.world.stores), secrets, poster, "dualtrack/test",
            lambda: self.disabled.append("one"), jitter=lambda: 0.0,
        )  # fmt: skip

    def hook(self, owner: str = "ann", path: str = "/ok", **more: Any) -> Webhook:
        """A webhook of this receiver."""
        self.made += 1
        made = Webhook(
            f"wh_{self.made:026d}", owner, self.receiver.url + path, EVENTS, new_secret(),
            int(self.world.clock.now), **more,
        )  # fmt: skip
        webhooks_of(self.world.stores).make(made, [])
        return made

    def now(self, hook: Webhook) -> Webhook:
        """As it is stored."""
        return webhooks_of(self.world.stores).find(hook.owner, hook.webhook_id)

    def tell(self, owner: str = "ann", message: str = "msg_1", **more: Any) -> Notice:
        """Note something in the outbox."""
        notice = Notice(message, "chat.done", int(self.world.clock.now * 1000), {"chat_id": message}, **more)
        self.world.stores.outbox.tell_once(owner, notice, 0)
        return notice

    def listed(self, hook: Webhook) -> list[Delivery]:
        """Its deliveries, the newest first."""
        return list(webhooks_of(self.world.stores).deliveries(hook, "", 100).items)


@pytest.fixture
def office() -> Iterator[Office]:
    with make_world() as world, receiving() as receiver:
        yield Office(world, receiver)


def test_a_notice_arrives_signed_for_the_reference_library(office: Office) -> None:
    office.world.clock.now = time.time()  # the library compares it with its own
    hook, notice = office.hook(), office.tell()
    assert office.deliverer().run(5) == DeliveryCounts(1, 1, 0)
    (got,) = office.receiver.received
    assert Reference(hook.secret).verify(got.body, got.headers) == json.loads(notice.body)
    assert got.headers["Content-Type"] == "application/json"
    for wrong in (got.body + b" ", got.body.replace(b"msg_1", b"msg_2")):
        with pytest.raises(WebhookVerificationError):
            Reference(hook.secret).verify(wrong, got.headers)
    with pytest.raises(WebhookVerificationError):
        Reference(new_secret()).verify(got.body, got.headers)
    (delivery,) = office.listed(hook)
    assert (delivery.status, delivery.answer, delivery.attempts) == ("delivered", 200, 1)
    assert office.deliverer().run(5) == DeliveryCounts()


def test_two_secrets_hold_during_a_rotation(office: Office) -> None:
    clock, store = office.world.clock, webhooks_of(office.world.stores)
    clock.now = time.time()
    old = office.hook()
    new = store.rotate(old, new_secret(), int(clock.now) + 60)
    office.tell()
    office.deliverer().run(5)
    (got,) = office.receiver.received
    for hook in (old, new):
        assert Reference(hook.secret).verify(got.body, got.headers)
    clock.now += 61
    office.tell(message="msg_2")
    office.deliverer().run(5)
    assert len(office.receiver.received[1].headers["webhook-signature"].split()) == 1


def test_the_id_stays_and_the_wait_grows(office: Office) -> None:
    hook = office.hook(path="/500")
    office.tell()
    waits = []
    for _ in range(len(WAITS) + 1):
        assert office.deliverer().run(5).failed == 1
        (delivery,) = office.listed(hook)
        waits.append(delivery.next_at - delivery.tried_at)
        assert office.deliverer().run(5) == DeliveryCounts()  # not before it is due
        office.world.clock.now = delivery.next_at + 1
    assert waits == [*WAITS, WAITS[-1]]
    assert {one.message_id for one in office.receiver.received} == {"msg_1"}
    assert len({one.headers["webhook-timestamp"] for one in office.receiver.received}) == len(waits)
    office.receiver.answers["/500"] = 204
    assert office.deliverer().run(5).delivered == 1
    assert office.now(hook).failing_since == 0


def test_three_days_of_failures_disable_it_and_a_test_enables_it_again(office: Office) -> None:
    hook, other = office.hook(path="/500"), office.hook(path="/ok")
    office.tell()
    clock, began = office.world.clock, office.world.clock.now
    for _ in range(20):
        office.deliverer().run(5)
        clock.now += 0 if office.now(hook).disabled_at else WAITS[-1] * 1.2
    assert FAILING_SECONDS <= clock.now - began < FAILING_SECONDS + 2 * WAITS[-1] * 1.2
    assert (office.now(hook).disabled_because, office.disabled) == (NOTHING_TAKEN, ["one"])
    assert office.now(other).disabled_at == 0
    seen = len(office.receiver.of("/500"))
    office.tell(message="msg_2")
    office.deliverer().run(5)
    assert len(office.receiver.of("/500")) == seen
    assert len(office.receiver.of("/ok")) == 2
    trial = trial_notice(hook.webhook_id, "msg_test_1", clock.now)
    webhooks_of(office.world.stores).send(hook, trial)
    office.deliverer().run(5)
    assert office.now(hook).disabled_at  # still answered with 500
    office.receiver.answers["/500"] = 200
    webhooks_of(office.world.stores).send(hook, replace(trial, message_id="msg_test_2"))
    office.deliverer().run(5)
    assert office.now(hook).disabled_at == office.now(hook).failing_since == 0


def test_410_disables_at_once(office: Office) -> None:
    hook = office.hook(path="/410")
    office.tell()
    office.tell(message="msg_2")
    office.deliverer().run(5)
    assert office.now(hook).disabled_because == GONE
    assert len(office.receiver.received) == 1


def test_only_what_was_asked_for(office: Office) -> None:
    office.hook(path="/ok/graph", profiles=("graph",))
    office.hook(path="/ok/all")
    office.hook(owner="bob", path="/ok/bob")
    office.tell(message="msg_1", profile="assistant")
    office.tell(message="msg_2", profile="graph")
    office.deliverer().run(5)
    told = [(one.path, one.message_id) for one in office.receiver.received]
    assert sorted(told) == [("/ok/all", "msg_1"), ("/ok/all", "msg_2"), ("/ok/graph", "msg_2")]


def test_two_runs_at_once_tell_once(office: Office) -> None:
    for number in range(4):
        office.hook(owner=f"user{number}", path=f"/ok/{number}")
        for message in range(5):
            office.tell(f"user{number}", f"msg_{message}")
    runs = [threading.Thread(target=office.deliverer().run, args=(20,)) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    office.deliverer().run(5)
    told = [(one.path, one.message_id) for one in office.receiver.received]
    assert len(told) == len(set(told)) == 20


def test_a_slow_receiver_delays_nobody(office: Office) -> None:
    """Those that answer are told while the others are still waited for."""
    for number in range(40):
        slow = office.hook(owner=f"slow{number}", path="/mute", failing_since=1)
        trial = trial_notice(slow.webhook_id, "msg_1", office.world.clock.now)
        webhooks_of(office.world.stores).send(slow, trial)
    for number in range(10):
        office.hook(owner=f"good{number}", path="/ok")
        office.tell(f"good{number}")
    run = threading.Thread(target=office.deliverer(seconds=60).run, args=(5,))
    run.start()
    arrived = threading.Event()
    while len(office.receiver.of("/ok")) < 10 and run.is_alive():
        arrived.wait(0.01)
    assert len(office.receiver.of("/ok")) == 10
    assert run.is_alive()
    office.receiver.release.set()
    run.join()


def test_slow_ones_are_never_before_others_in_the_index(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many slow webhooks wait, and for how long: a read of the index has those that answer."""
    monkeypatch.setattr(module, "_READ_AT_ONCE", 5)
    store = webhooks_of(office.world.stores)
    for number in range(30):
        slow = office.hook(owner=f"slow{number}", path="/mute", milliseconds=SLOW_MS + 1)
        store.send(slow, trial_notice(slow.webhook_id, "msg_1", office.world.clock.now))
    office.world.clock.now += 60
    good = office.hook(owner="good")
    store.send(good, trial_notice(good.webhook_id, "msg_2", office.world.clock.now))
    assert [one.owner for one in store.due()] == ["good"]
    assert 5 <= len(list(store.due(slow=True))) <= 20


def test_one_that_becomes_slow_makes_way_at_once(office: Office) -> None:
    """Its next delivery waits for the next go, which is behind those that answer."""
    hook = office.hook(path="/mute")
    for number in range(5):
        office.tell(message=f"msg_{number}")
    assert office.deliverer(seconds=0.05).run(5).failed == 1
    assert office.now(hook).is_slow
    assert list(webhooks_of(office.world.stores).due(slow=True)) == []  # left alone for a while
    office.world.clock.now += QUIET_SECONDS
    assert [one.owner for one in webhooks_of(office.world.stores).due(slow=True)] == ["ann"]
    office.receiver.answers["/mute"] = 200
    office.receiver.release.set()
    assert office.deliverer().run(5).delivered == 5
    assert not office.now(hook).is_slow


def test_one_found_slow_after_it_was_read_is_served_all_the_same(office: Office) -> None:
    """The one that woke it has put it among the others."""
    stale = office.hook(path="/500")
    office.tell()
    office.deliverer().run(5)
    office.receiver.answers["/500"] = 200
    webhooks_of(office.world.stores).send(
        stale, trial_notice(stale.webhook_id, "msg_2", office.world.clock.now)
    )
    assert office.deliverer().run(5).delivered == 1


def test_every_owner_comes_before_anybody_s_second_webhook() -> None:
    made = [
        Webhook(f"wh_{owner}{number}", owner, "", (), "", 0, milliseconds=number + 10 * (owner == "a"))
        for owner in ("a", "b")
        for number in range(3)
    ]
    assert [one.webhook_id for one in in_turn(made)] == [
        "wh_b0", "wh_a0", "wh_b1", "wh_a1", "wh_b2", "wh_a2",
    ]  # fmt: skip


def test_a_crowd_of_notices_takes_few_transactions(office: Office) -> None:
    hooks = [office.hook(), office.hook(path="/ok/2")]
    notices = [office.tell(message=f"msg_{number:03d}") for number in range(100)]
    made = []
    events = office.world.stores.chats.client.meta.events
    events.register(
        "before-call.dynamodb.TransactWriteItems", lambda **sent: made.append(sent), unique_id="count"
    )
    webhooks_of(office.world.stores).spread("ann", notices, hooks)
    events.unregister("before-call.dynamodb.TransactWriteItems", unique_id="count")
    assert len(made) == 6  # 19 notices each
    assert [len(webhooks_of(office.world.stores).waiting(hook, 200)) for hook in hooks] == [100, 100]
    webhooks_of(office.world.stores).spread("ann", notices, hooks)  # another run was faster
    assert [len(webhooks_of(office.world.stores).waiting(hook, 200)) for hook in hooks] == [100, 100]
    assert office.deliverer().run(30) == DeliveryCounts(0, 200, 0)


def test_what_a_message_costs(office: Office) -> None:
    """Its write units, as docs/webhooks.md has them: two for an item in a transaction, one for another; one for each
    change of the index. Items are below a kilobyte."""
    hook, written, indexed = office.hook(), [0], [0]
    events = office.world.stores.chats.client.meta.events

    def count(params: dict[str, Any], model: Any, **_: Any) -> None:
        asked = json.loads(params["body"])
        actions = [next(iter(one.values())) for one in asked.get("TransactItems", [])] or [asked]
        writes = "Write" in model.name or model.name in ("PutItem", "UpdateItem", "DeleteItem")
        written[0] += writes * (2 * len(actions) if len(actions) > 1 else 1)
        words = [json.dumps(action) for action in actions]
        indexed[0] += writes * sum("open" in text or "OUTBOX" in text for text in words)

    events.register("before-call.dynamodb", count, unique_id="count")
    office.world.stores.outbox.tell_once("ann", Notice("msg_1", "chat.done", 0, {"chat_id": "ch_1"}), 0)
    told_once = written[0] - 2  # the mark of what is told once: a chat's transaction writes none
    assert office.deliverer().run(5) == DeliveryCounts(1, 1, 0)
    events.unregister("before-call.dynamodb", unique_id="count")
    assert office.listed(hook)[0].status == "delivered"
    assert (told_once, written[0] - 2, indexed[0]) == (2, 16, 4)


def test_tests_are_no_way_to_flood_somebody(office: Office) -> None:
    """A webhook may lead to anybody: while twenty messages wait for it, no test is added."""
    hook = office.hook(path="/500")
    trial = trial_notice(hook.webhook_id, "msg_1", office.world.clock.now)
    for number in range(MOST_WAITING):
        webhooks_of(office.world.stores).send(hook, replace(trial, message_id=f"msg_{number}"))
    with pytest.raises(ApiError, match="20 messages wait"):
        webhooks_of(office.world.stores).send(hook, trial)
    office.deliverer().run(5)
    assert len(office.receiver.received) == MOST_WAITING
    with pytest.raises(ApiError, match="20 messages wait"):
        webhooks_of(office.world.stores).send(hook, trial)  # they have failed, and wait


class Killed(BaseException):
    """The process is gone."""


def _dying(office: Office, at: int, moment: str, deliverer: Deliverer) -> bool:
    """A run that dies at its n-th request of the tables, before it or behind it; whether it came so far."""
    events, count = office.world.stores.chats.client.meta.events, [0]

    def die(**_: Any) -> None:
        count[0] += 1
        if count[0] == at:
            raise Killed

    events.register(moment, die, unique_id="dying")
    try:
        deliverer.run(5)
    except Killed:
        return True
    finally:
        events.unregister(moment, unique_id="dying")
    return False


@pytest.mark.parametrize("moment", ["before-call.dynamodb", "after-call.dynamodb"])
def test_a_run_that_dies_anywhere_loses_nothing(office: Office, moment: str) -> None:
    """Killed at each request: each message arrives, under its id, and is listed once as delivered."""
    hook, at, died = office.hook(), 0, True
    while died:
        at += 1
        messages = [f"msg_{at}_{number}" for number in range(2)]
        for message in messages:
            office.tell(message=message)
        died = _dying(office, at, moment, office.deliverer())
        office.world.clock.now += CLAIM_SECONDS + 1
        office.deliverer().run(5)
        assert {one.message_id for one in office.receiver.received} >= set(messages)
        assert [one.status for one in office.listed(hook)] == ["delivered"] * len(office.listed(hook))
        assert office.deliverer().run(5) == DeliveryCounts()
    assert at > 12
    assert len(office.listed(hook)) == 2 * at
    repeats = len(office.receiver.received) - 2 * at
    assert repeats <= at
    assert (repeats > 0) == (moment == "before-call.dynamodb")  # between the answer and its record


def test_what_becomes_of_a_deleted_webhook(office: Office) -> None:
    hook = office.hook(path="/500")
    office.tell()
    office.deliverer().run(5)
    webhooks_of(office.world.stores).remove("ann", hook.webhook_id)
    office.world.clock.now += WAITS[-1]
    office.tell(message="msg_2")
    assert office.deliverer().run(5).failed == 0
    assert len(office.receiver.received) == 1
    assert not office.world.stores.outbox.tells("ann")


def test_an_answer_is_judged_by_its_status() -> None:
    assert [PostOutcome(status).is_delivered for status in (199, 200, 204, 299, 300, 404)] == [
        False, True, True, True, False, False,
    ]  # fmt: skip
