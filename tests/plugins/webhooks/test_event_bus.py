"""Copies on EventBridge: each event once told, with ids and statuses, and no webhook waits for the bus (CONTRACT 4)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from dualtrack.notices import Notice
from dualtrack.plugins.webhooks.deliver import Deliverer, DeliveryCounts
from dualtrack.plugins.webhooks.event_bus import EventBus
from dualtrack.plugins.webhooks.post import PostOutcome
from dualtrack.plugins.webhooks.store import COPY_SECONDS, webhooks_of
from dualtrack.plugins.webhooks.values import Webhook

from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE = Path(__file__).parents[3] / "docs" / "webhooks.md"


class Outside:
    """A receiver that takes everything, and secrets that are not encrypted."""

    def post(self, *_: object) -> PostOutcome:
        return PostOutcome(200)

    def open(self, webhook_id: str, sealed: str) -> str:
        assert webhook_id
        return sealed


class Bus:
    """A bus that refuses some ids, or fails; what it took."""

    def __init__(self) -> None:
        self.refuses: set[str] = set()
        self.fails = False
        self.taken: list[dict[str, Any]] = []

    def put_events(self, **sent: list[dict[str, Any]]) -> dict[str, Any]:
        entries = sent["Entries"]
        assert len(entries) <= 10
        if self.fails:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "PutEvents")
        answers = []
        for entry in entries:
            refused = json.loads(entry["Detail"])["id"] in self.refuses
            answers.append({"ErrorCode": "ThrottlingException"} if refused else {"EventId": "1"})
            self.taken += [] if refused else [entry]
        return {"Entries": answers}

    def ids(self) -> list[str]:
        return sorted(json.loads(entry["Detail"])["id"] for entry in self.taken)


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as made:
        made.stores = replace(made.stores, outbox=replace(made.stores.outbox, tells_all=True))
        yield made


def run(world: World, bus: Any) -> DeliveryCounts:
    outside: Any = Outside()
    return Deliverer(
        webhooks_of(world.stores), outside, outside, "test", copied=EventBus(bus, "default").put
    ).run(5)


def tell(world: World, number: int, owner: str = "ann") -> None:
    now = int(world.clock.now * 1000)
    world.stores.outbox.tell_once(
        owner, Notice(f"msg_{number:02d}", "chat.done", now, {"chat_id": "ch_1"}), 0
    )


def test_a_chat_without_a_webhook_is_copied(world: World) -> None:
    """What a rule gets: the source, the type, and a detail of ids and statuses."""
    bus, chat = Bus(), world.ask("What is the secret of the boat?")
    assert run(world, bus) == DeliveryCounts(1, 0, 0)
    (entry,) = bus.taken
    assert (entry["Source"], entry["DetailType"], entry["EventBusName"]) == (
        "dualtrack",
        "chat.done",
        "default",
    )
    detail = json.loads(entry["Detail"])
    assert (detail["id"], detail["type"]) == (f"msg_{chat.chat_id[3:]}_done", "chat.done")
    assert (detail["data"]["chat_id"], detail["data"]["user_id"]) == (chat.chat_id, chat.user)
    assert "boat" not in json.dumps(entry)
    assert run(world, bus) == DeliveryCounts()


@pytest.mark.parametrize("how", ["refuses", "fails"])
def test_webhooks_do_not_wait_for_the_bus(world: World, how: str) -> None:
    """Those that it did not take are put again, until it takes them; the webhook is told once."""
    hook = Webhook("wh_1", "ann", "https://example.org/", ("chat.done",), "whsec_c2VjcmV0", 0)
    webhooks_of(world.stores).make(hook, [])
    bus = Bus()
    bus.refuses, bus.fails = {"msg_01", "msg_11"}, how == "fails"
    for number in range(12):
        tell(world, number)
    assert run(world, bus) == DeliveryCounts(12, 12, 0)
    assert len(bus.taken) == (10 if how == "refuses" else 0)
    assert run(world, bus) == DeliveryCounts()
    bus.refuses, bus.fails = set(), False
    world.clock.now += COPY_SECONDS
    assert run(world, bus) == DeliveryCounts(2 if how == "refuses" else 12, 0, 0)
    assert bus.ids() == [f"msg_{number:02d}" for number in range(12)]
    world.clock.now += COPY_SECONDS
    assert run(world, bus) == DeliveryCounts()


def test_switched_off_again(world: World) -> None:
    """What was noted for the bus alone is told nobody, and nothing more is noted."""
    bus = Bus()
    bus.fails = True
    world.ask("Hello?")
    run(world, bus)
    world.ask("And then?")
    world.stores = replace(world.stores, outbox=replace(world.stores.outbox, tells_all=False))
    outside: Any = Outside()
    world.clock.now += COPY_SECONDS
    off = Deliverer(webhooks_of(world.stores), outside, outside, "test")
    assert off.run(5) == DeliveryCounts(2, 0, 0)
    assert off.run(5) == DeliveryCounts()
    assert not world.stores.outbox.tells("ann")


def test_the_rule_of_the_guide_takes_what_is_put(world: World) -> None:
    """An archive with its pattern counts what matches, by moto's EventBridge."""
    (pattern,) = re.findall(r"--event-pattern '(.+?)'", GUIDE.read_text(encoding="utf-8"))
    client = boto3.client("events", region_name="us-east-1")
    bus = client.describe_event_bus(Name="default")["Arn"]
    client.create_archive(ArchiveName="seen", EventSourceArn=bus, EventPattern=pattern)
    failed = Notice("msg_1", "chat.failed", 1, {"chat_id": "ch_1", "status": "failed"})
    assert EventBus(client, "default").put([failed, replace(failed, type="chat.done")]) == frozenset()
    assert client.describe_archive(ArchiveName="seen")["EventCount"] == 1
