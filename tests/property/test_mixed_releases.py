"""A deploy in the middle of chats: each step runs an earlier release's code or today's; none is lost or charged twice.

1.0.0 is the first release, so that until its tag is there the earlier code is that of the last commit
(`tests.drivers.mixed_releases.earlier`): a step that reads what it no longer writes is seen before it is committed.

A real deploy mixes less than these tests: an execution started by the workflow's alias stays on one release, and only
calls from outside (the API, the sweep, the rule on an execution's end) may run another's.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.drivers.crash_world import BIG, IMAGE, SEARCH, USER, Scenario, ref_of
from tests.drivers.faults import Process
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.mixed_releases import PAUSING, SCENARIO, Earlier, MixedWorld, NoHistory
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEEDS: Final = 40 if LONG else 6
QUERIES: Final = 3
STEPS: Final = 8
"""Steps of a query: start, three turns, three tools, summaries."""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Earlier]:
    try:
        process = Earlier(tmp_path_factory.mktemp("earlier"))
    except NoHistory as problem:
        pytest.skip(f"the earlier release is not in this clone's history: {problem}")
    with process:
        yield process


def wrong(world: MixedWorld) -> list[str]:
    stores, chats = world.stores(Process(world.quiet, "check")), world.chats()
    faults = [fault for chat in chats for fault in chat_faults(stores, chat)]
    return [*faults, *account_faults(stores, USER, chats), *world.complaints]


def conversation(world: MixedWorld) -> None:
    """Run queries one after the other, and everything that runs on a schedule."""
    conversation_id = ""
    for number in range(QUERIES):
        known = {chat.chat_id for chat in world.chats()}
        world.look().ledger.grant(USER, f"grant-{number}", 100, "test", world.clock())
        world.post(conversation_id=conversation_id)
        (asked,) = [chat for chat in world.chats() if chat.chat_id not in known]
        conversation_id = asked.conversation_id
        world.machine(ref_of(asked))
    world.look_after()


def check_conversation(world: MixedWorld, seed: int) -> None:
    ended = [(chat.status, chat.stop, chat.credits_used) for chat in world.chats()]
    assert ended == [("done", "complete", SCENARIO.charged)] * QUERIES, (seed, world.ran)
    assert wrong(world) == [], (seed, world.ran)
    lines = world.look().ledger.movements(USER)
    assert sum(line.amount for line in lines if line.kind == "settle") == SCENARIO.charged * QUERIES


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_step_may_run_either_release(earlier: Earlier, seed: int) -> None:
    drawn = random.Random(seed)
    world = MixedWorld(SCENARIO, earlier=earlier, is_earlier=lambda _: drawn.random() < 0.5)
    conversation(world)
    check_conversation(world, seed)
    assert {release for _, release in world.ran} == {"earlier", "today"}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_step_may_run_on_both_releases(earlier: Earlier, seed: int) -> None:
    """A step whose answer was lost is repeated after the alias has moved: it counts once."""
    drawn = random.Random(seed)
    world = MixedWorld(
        SCENARIO,
        earlier=earlier,
        is_earlier=lambda _: drawn.random() < 0.5,
        is_repeated=lambda _: drawn.random() < 0.3,
    )
    conversation(world)
    check_conversation(world, seed)
    assert len(world.ran) > STEPS * QUERIES


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
def test_a_deploy_may_happen_at_any_step(earlier: Earlier, *, back: bool, seed: int) -> None:
    """From the earlier release to today's, and back after a rollback."""
    moment = random.Random(seed).randrange(1, STEPS * QUERIES)
    world = MixedWorld(SCENARIO, earlier=earlier)
    world.is_earlier = lambda _: (len(world.ran) >= moment) == back
    conversation(world)
    check_conversation(world, seed)
    counts = Counter(release for _, release in world.ran)
    assert counts["today" if back else "earlier"] == moment


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize(
    ("decided", "charged", "noted"),
    [("approve", 18, 1), ("edit", 18, 1), ("decline", 15, 0), ("nobody", 15, 0), ("cancel", 15, 0)],
)
def test_a_deploy_may_happen_in_a_pause(
    earlier: Earlier, decided: Any, charged: int, noted: int, *, back: bool
) -> None:
    """What one release has paused, the other decides, ends or cancels, and goes on with; the client's tool and a
    question as well."""
    world = MixedWorld(replace(PAUSING, decided=decided), earlier=earlier)
    world.is_earlier = lambda _: any(chat.pauses for chat in world.chats()) == back
    world.run()
    (chat,) = world.chats()
    assert (chat.status, chat.credits_used) == ("cancelled" if decided == "cancel" else "done", charged)
    assert chat.pauses == (1 if decided == "cancel" else 2)
    notes = [call_id for call_id, _ in world.tool_runs if call_id == "q1-t2"]
    assert len(notes) == (noted if not back else 0), "the earlier release runs them in a process of its own"
    assert wrong(world) == []
    assert {release for _, release in world.ran} == {"earlier", "today"}


def by_today_up_to(step: int) -> Callable[[MixedWorld], Callable[[str], bool]]:
    return lambda world: lambda _: len(world.ran) >= step


def only(*names: str) -> Callable[[MixedWorld], Callable[[str], bool]]:
    """Run only the steps of these names on the earlier release."""
    return lambda _: lambda name: name in names


@pytest.mark.parametrize(
    ("scenario", "is_earlier"),
    [
        (replace(SCENARIO, keyed=True), only("start")),
        (replace(SCENARIO, result=BIG), by_today_up_to(5)),
        (replace(SCENARIO, result="What the documentation says. " * 5_000), by_today_up_to(5)),
        (replace(SCENARIO, files=(IMAGE,)), by_today_up_to(1)),
        (replace(SCENARIO, earlier=30), by_today_up_to(2)),
        (replace(SCENARIO, earlier=24, digest_waits=True), by_today_up_to(1)),
        (replace(SCENARIO, rounds=((SEARCH,), *SCENARIO.rounds[1:]), charged=9), by_today_up_to(2)),
        (replace(SCENARIO, busy=2), by_today_up_to(4)),
        (replace(SCENARIO, used_before=41, charged=8, stop="insufficient_credits"), by_today_up_to(2)),
        (
            replace(SCENARIO, stopped_after="tool q1-t2", status="cancelled", stop="cancelled", charged=18),
            only("stop"),
        ),
        (
            replace(SCENARIO, stopped_after="tool q1-t2", status="cancelled", stop="cancelled", charged=18),
            only("start", "turn", "tool"),
        ),
        (
            replace(SCENARIO, vanishes_after="tool q1-t1", status="failed", stop="", charged=0),
            only("look_at_open_chats"),
        ),
        (
            replace(SCENARIO, vanishes_after="tool q1-t1", status="failed", stop="", charged=0),
            only("start", "turn", "tool"),
        ),
    ],
    ids=[
        "a key", "two megabytes", "over the budget", "an image", "a fold", "a digest ahead", "a search",
        "a busy model", "out of credits", "cancelled by the earlier", "cancelled by today's",
        "swept by the earlier", "swept by today's",
    ],
)  # fmt: skip
def test_the_earlier_release_continues_chats_of_today(
    earlier: Earlier, scenario: Scenario, is_earlier: Callable[[MixedWorld], Callable[[str], bool]]
) -> None:
    world = MixedWorld(scenario, earlier=earlier)
    world.is_earlier = is_earlier(world)
    world.run()
    (chat,) = world.chats()
    assert (chat.status, chat.stop, chat.credits_used) == (scenario.status, scenario.stop, scenario.charged)
    assert wrong(world) == []
    assert "earlier" in {release for _, release in world.ran}
