"""What a fork sends, and what it inherits of digests (CONTRACT 4, 6, DESIGN 2.7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.conversations import find_record
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.latest_queries import asked_up_to
from dualtrack.errors import ApiError
from dualtrack.memory.ancestry import Ancestry, SharedPart
from dualtrack.profiles import all_profiles

from tests.drivers.crash_world import USER, Scenario
from tests.drivers.crash_world import World as FastWorld
from tests.drivers.faults import Process, Trace
from tests.drivers.world import World, call_for_summaries, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

ANSWER = "This is the answer, with facts such as 42 and DynamoDB. " * 20


@pytest.fixture(params=["assistant", "courses", "sessions", "graph"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A small budget for the past, with each policy."""
    small = replace(all_profiles()[request.param], track_tokens=900)
    monkeypatch.setitem(all_profiles(), request.param, small)
    with make_world() as new_world:
        new_world.stores.ledger.grant("ann", "g", 100_000, "test", new_world.clock())
        new_world.model.script.add({"match": "turn", "text": ANSWER, "always": True})
        yield new_world


def converse(world: World, profile: str, queries: int) -> Chat:
    chat = world.ask("Question 1? " + "Words. " * 20, "ann", "", profile=profile)
    for number in range(2, queries + 1):
        chat = world.ask(f"Question {number}? " + "Words. " * 20, "ann", chat.conversation_id)
    return chat


def sent(world: World) -> list[Any]:
    """System, tools, and role and text of every block, of each turn's request, without its own asks for notes."""
    return [
        (
            body.get("system"),
            body.get("tools"),
            [
                (message["role"], block.get("text"))
                for message in body["messages"]
                for block in message["content"]
                if not str(block.get("text")).startswith("(Notes ")
            ],
        )
        for body in (request.body for request in world.model.requests if request.body.get("stream"))
    ]


@pytest.mark.parametrize("before", [2, 5, 9, 10])
def test_the_first_query_of_a_fork_sends_what_its_parent_sent_there(
    world: World, before: int, request: pytest.FixtureRequest
) -> None:
    """Identical bytes, digest included, but for the query's own text: the prompt cache is reused."""
    profile = request.node.callspec.params["world"]
    parent = converse(world, profile, 10)
    of_parent = sent(world)[before - 1]
    own = fork_conversation(world.stores, "ann", parent.conversation_id, before)
    assert own.profile == profile
    world.ask("Another question", "ann", own.conversation_id)
    of_fork = sent(world)[-1]
    assert of_fork[:2] == of_parent[:2]
    assert of_fork[2][:-1] == of_parent[2][:-1]
    assert of_fork[2][-1] != of_parent[2][-1]


@pytest.mark.parametrize("world", ["assistant"], indirect=True)
def test_a_digest_of_queries_after_the_fork_is_not_inherited(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork writes its own under the same number, and both can be read."""
    call_for_summaries(monkeypatch)
    parent = converse(world, "assistant", 14)
    in_force, _ = world.stores.digests.newest("ann", parent.conversation_id)
    assert in_force is not None
    first = world.stores.digests.find("ann", parent.conversation_id, 1)
    assert first is not None
    taken = next(
        n for n in range(1, 15) if world.stores.digests.in_force_at("ann", parent.conversation_id, n)
    )
    early = fork_conversation(world.stores, "ann", parent.conversation_id, taken - 1)
    late = fork_conversation(world.stores, "ann", parent.conversation_id, taken)
    assert (early.ancestry.digests, late.ancestry.digests) == (0, 1)
    assert find_record(world.stores, late, "d1", 0)["content"] == first.said
    with pytest.raises(ApiError, match="no such record"):
        find_record(world.stores, early, "d1", 0)
    for number in range(6):
        world.ask(f"Elsewhere {number}? " + "Other words. " * 20, "ann", early.conversation_id)
    own = find_record(world.stores, early, "d1", 0)
    assert own["content"] != first.said or own["created_at"] != first.created_at
    again = world.stores.digests.find("ann", parent.conversation_id, 1)
    assert again == first


def test_a_fork_is_found_by_the_latest_shared_queries() -> None:
    """Of queries 1 to 25 the item has the latest 20."""
    world = FastWorld(Scenario("long", earlier=25))
    parent = world.look().conversations.find(USER, world.conversation_id)
    assert parent is not None
    known = tuple((number, f"known {number}") for number in range(6, 26))
    fork = asked_up_to(world.look().history, replace(parent, asked=known), 10)
    assert fork == known[:5], "of the others this scenario has no records"
    more = asked_up_to(world.look().history, replace(parent, asked=known), 25, "a" * 200)
    assert [number for number, _ in more] == list(range(7, 27))
    assert more[-1] == (26, "a" * 100)


@pytest.mark.parametrize("queries", [3, 1_000])
def test_a_fork_is_one_transaction_of_two_items(queries: int) -> None:
    """However long the past is (earlier releases' tracks, which `World` makes quickly)."""
    world = FastWorld(Scenario("long", earlier=queries))
    trace = Trace(world.aws)
    own = fork_conversation(world.stores(Process(trace, "fork")), USER, world.conversation_id, queries + 1)
    assert own.queries == queries
    writes = [site for site in trace.sites if site.operation not in ("get_item", "batch_get_item", "query")]
    assert [site.operation for site in writes] == ["transact_write_items"]
    before = len(world.aws.table("history"))
    fork_conversation(world.look(), USER, world.conversation_id, queries + 1)
    assert len(world.aws.table("history")) - before == 2


P, F, G = "cv_p", "cv_f", "cv_g"


@pytest.mark.parametrize(
    ("parts", "own", "through", "expected", "cut"),
    [
        ((), P, 0, (), ""),
        ((), P, 3, ((P, 3),), P),
        (((P, 3),), F, 5, ((P, 3), (F, 5)), F),
        (((P, 3),), F, 3, ((P, 3),), ""),
        (((P, 3),), F, 2, ((P, 2),), P),
        (((P, 3), (F, 5)), G, 4, ((P, 3), (F, 4)), F),
        (((P, 3), (F, 5)), G, 1, ((P, 1),), P),
        (((P, 3), (F, 5)), G, 9, ((P, 3), (F, 5), (G, 9)), G),
    ],
)
def test_a_fork_of_a_fork_names_the_conversations_that_wrote_its_queries(
    parts: Any, own: str, through: int, expected: Any, cut: str
) -> None:
    ancestry = Ancestry(tuple(SharedPart(*part) for part in parts))
    forked, looked_for = ancestry.forked(own, through)
    assert (tuple((part.conversation_id, part.through) for part in forked.parts), looked_for) == (
        expected,
        cut,
    )
    for number in range(1, through + 1):
        assert forked.home(G, number) == ancestry.home(own, number)
    runs = [number for run in forked.runs(G, 0, 12) for number in range(run.after + 1, run.before)]
    assert runs == list(range(1, 12))
