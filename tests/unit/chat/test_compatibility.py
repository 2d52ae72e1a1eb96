"""A chat begun by an earlier release is finished by this one (DESIGN 2.14).

The fixtures are what each release wrote, never written again. A test that fails here says that a deploy would
break chats that are running: read the old form too, or keep writing it for one more release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.conversations import find_conversation, list_records
from dualtrack.chat.delete_conversation import WRITERS_SECONDS
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.profiles import all_profiles
from dualtrack.tools.conversation.search import search_conversation
from dualtrack.tools.running import Running

from tests.drivers.corpus_world import CORPUS
from tests.drivers.crash_matrix import SAID
from tests.drivers.crash_world import PAUSED, USER, World, ref_of
from tests.drivers.faults import Process
from tests.drivers.invariants import account_faults, chat_faults, erasure_faults
from tests.drivers.local_vectors import LocalVectors
from tests.drivers.release_fixtures import FIXTURES, load
from tests.drivers.release_moments import ERASURE, JOB
from tests.drivers.world import search_needs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.drivers.release_moments import Moment

PATHS = sorted(FIXTURES.glob("[0-9]*/*.json"))


def _each(chosen: Callable[[Moment], bool]) -> pytest.MarkDecorator:
    paths = [path for path in PATHS if chosen(load(path))]
    assert paths
    return pytest.mark.parametrize("path", paths, ids=lambda path: f"{path.parent.name} {path.stem}")


def _has(moment: Moment, pk: str, sk: str) -> bool:
    tables = moment.aws.tables.values()
    return any(key[0].startswith(pk) and key[1].startswith(sk) for table in tables for key in table)


chats = _each(lambda moment: moment.state in ("Turn", "RunTools", "Summarise", PAUSED))
erasures = _each(lambda moment: moment.state == ERASURE)
jobs = _each(lambda moment: moment.state == JOB)
keyed = _each(lambda moment: _has(moment, "USER#", "IDEM#"))
with_deleted = _each(lambda moment: moment.state != ERASURE and _has(moment, "DELETIONS", "CONV#"))


@chats
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


@chats
def test_a_conversation_of_an_earlier_release_folds_with_its_next_query(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The running chat sends what it had pinned, to its end; the next one folds, without a model call."""
    small = replace(all_profiles()["assistant"], track_tokens=80)
    monkeypatch.setitem(all_profiles(), "assistant", small)
    moment = load(path)
    world = moment.world()
    chat = world.chats()[-1]
    stores = world.stores(Process(world.quiet, "check"))
    folded, _ = stores.digests.newest(USER, chat.conversation_id)
    began_before = chat.turn > 0 or chat.pin is not None
    world.go_on(ref_of(chat), moment.state, moment.turn, moment.calls)
    in_force, _ = stores.digests.newest(USER, chat.conversation_id)
    assert in_force == folded or not began_before
    following = world.ask_again()
    in_force, _ = stores.digests.newest(USER, chat.conversation_id)
    assert in_force is not None
    assert following.pin is not None
    assert following.pin.digest == in_force.number
    assert _wrong(world) == []


@chats
def test_a_conversation_of_an_earlier_release_is_searched(path: Path) -> None:
    """By words and by meaning, without data that its release did not write."""
    moment = load(path)
    world = moment.world()
    chat = world.chats()[-1]
    world.go_on(ref_of(chat), moment.state, moment.turn, moment.calls)
    stores = world.look().across(chat.ancestry)
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


@chats
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


@keyed
def test_a_request_to_an_earlier_release_is_repeated(path: Path) -> None:
    """With its key: the answer is the chat that it has made."""
    world = load(path).world()
    known = world.chats()
    world.scenario = replace(world.scenario, keyed=True)
    world.post()
    assert (world.responses, world.chats()) == ([202], known)


@with_deleted
def test_what_an_earlier_release_has_deleted_is_crossed_out(path: Path) -> None:
    """Once its last writers are gone."""
    world = load(path).world()
    world.clock.now += WRITERS_SECONDS + 1
    world.look_at_deletions(Process(world.quiet, "sweep"))
    assert not [key for key in world.aws.table("history") if key[0] == "DELETIONS"]


@erasures
def test_an_erasure_of_an_earlier_release_is_carried_out(path: Path) -> None:
    """Its running chat's steps find nothing to do, and nothing names the user."""
    world = load(path).world()
    assert world.look().deletions.is_refused(USER)
    world.end_erasure()
    assert erasure_faults(world.look(), USER, SAID) == []


@jobs
def test_a_job_of_an_earlier_release_is_finished(path: Path) -> None:
    """From the step that its workflow was about to make, on the version that its release has published."""
    world = load(path).corpora()
    (job,) = world.stores().corpus_jobs.open_jobs(CORPUS)
    assert world.titles() == ["Boats"]
    assert world.run(job).status == "done"
    assert world.titles() == ["Boats", "Tables"]
