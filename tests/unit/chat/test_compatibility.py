"""A chat begun by an earlier release is finished by this one (DESIGN 2.14).

The fixtures are what each release wrote, never written again. A test that fails here says that a deploy would
break chats that are running: read the old form too, or keep writing it for one more release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.conversations import find_conversation, list_records
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.profiles import all_profiles
from dualtrack.tools.conversation.search import search_conversation
from dualtrack.tools.running import Running

from tests.drivers.crash_world import USER, World, ref_of
from tests.drivers.faults import Process
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.local_vectors import LocalVectors
from tests.drivers.release_fixtures import FIXTURES, load, moments, second_query
from tests.drivers.world import search_needs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PATHS = sorted(FIXTURES.glob("[0-9]*/*.json"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_chat_of_an_earlier_release_is_finished(path: Path) -> None:
    """From the state that the old workflow was about to enter, to `done`, and on to the next query."""
    moment = load(path)
    world = moment.world()
    chat = world.chats()[-1]
    world.go_on(ref_of(chat), moment.state, moment.turn, moment.calls)
    stores = world.stores(Process(world.quiet, "check"))
    chat = world.chats()[-1]
    assert (chat.status, chat.stop, chat.credits_used) == ("done", "complete", 20)
    assert _wrong(world) == []
    notes = stores.history.record(USER, chat.conversation_id, f"q{chat.query}-t2")
    assert notes is not None
    assert notes.content.startswith("Tool execution failed: the call was begun") == (
        moment.name == "a tool begun"
    )
    following = world.ask_again()
    assert (following.status, following.stop) == ("done", "complete")
    assert _wrong(world) == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_conversation_of_an_earlier_release_folds_with_its_next_query(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The running chat sends what it had pinned, to its end; the next one folds, without a model call."""
    small = replace(all_profiles()["assistant"], track_tokens=80)
    monkeypatch.setitem(all_profiles(), "assistant", small)
    moment = load(path)
    world = moment.world()
    chat = world.chats()[-1]
    began_before = chat.turn > 0 or chat.pin is not None
    world.go_on(ref_of(chat), moment.state, moment.turn, moment.calls)
    stores = world.stores(Process(world.quiet, "check"))
    in_force, _ = stores.digests.newest(USER, chat.conversation_id)
    assert in_force is None or not began_before
    following = world.ask_again()
    in_force, _ = stores.digests.newest(USER, chat.conversation_id)
    assert in_force is not None
    assert following.pin is not None
    assert following.pin.digest == in_force.number
    assert _wrong(world) == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_conversation_of_an_earlier_release_is_searched(path: Path) -> None:
    """By words and by meaning, without data that its release did not write."""
    moment = load(path)
    world = moment.world()
    chat = world.chats()[-1]
    world.go_on(ref_of(chat), moment.state, moment.turn, moment.calls)
    stores = world.stores(Process(world.quiet, "check"))
    query = stores.history.record(USER, chat.conversation_id, "q1")
    assert query is not None
    call: Any = None
    running = Running(USER, chat.conversation_id, replace(chat, query=chat.query + 1), call)
    by_words = search_conversation(query.content, 20, running=running, needs=search_needs(stores)).content
    by_both = search_conversation(
        query.content, 20, running=running, needs=search_needs(stores, local=LocalVectors())
    ).content
    assert "q1 (query): " in by_words
    assert f"q{chat.query}-t1 (result of " in by_both


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_conversation_of_an_earlier_release_is_forked(path: Path) -> None:
    """Before its last query and behind it; the fork shows the same records and takes the next query."""
    moment = load(path)
    world = moment.world()
    chat = world.chats()[-1]
    world.go_on(ref_of(chat), moment.state, moment.turn, moment.calls)
    stores = world.stores(Process(world.quiet, "check"))
    parent = find_conversation(stores, USER, chat.conversation_id)
    whole = list_records(stores, parent, "full", "").items
    for before in (chat.query, chat.query + 1):
        own = fork_conversation(stores, USER, parent.conversation_id, before)
        shared = tuple(record for record in whole if int(record["record_id"].split("-")[0][1:]) < before)
        assert list_records(stores, own, "full", "").items == shared
    known = {other.chat_id for other in world.chats()}
    world.look().ledger.grant(USER, "fork", 100, "test", world.clock())
    world.post("And in the fork?", own.conversation_id)
    (new_chat,) = [other for other in world.chats() if other.chat_id not in known]
    world.machine(ref_of(new_chat))
    (new_chat,) = [other for other in world.chats() if other.chat_id not in known]
    assert (new_chat.status, new_chat.stop, new_chat.query) == ("done", "complete", chat.query + 1)
    assert _wrong(world) == []


def _wrong(world: World) -> list[str]:
    stores = world.stores(Process(world.quiet, "check"))
    chats = world.chats()
    wrong = [fault for chat in chats for fault in chat_faults(stores, chat)]
    return [*world.complaints, *wrong, *account_faults(stores, USER, chats)]


def test_the_fixtures_have_every_kind_of_item_that_this_release_writes() -> None:
    """A new kind of item needs a fixture of the release that brings it."""
    written = {kind for moment in (*moments(), second_query()) for kind in _kinds(moment.aws.tables)}
    kept = {kind for path in PATHS for kind in _kinds(load(path).aws.tables)}
    assert written <= kept, f"kinds of items without a fixture: {sorted(written - kept)}"


def _kinds(tables: Mapping[str, Mapping[tuple[str, str], object]]) -> set[tuple[str, str, str]]:
    """Table, head of the partition key, head of the sort key."""
    return {(name, pk.split("#")[0], sk.split("#")[0]) for name, table in tables.items() for pk, sk in table}
