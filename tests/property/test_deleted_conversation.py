"""A step that continues after its conversation was deleted leaves nothing behind: no record, event or body.

A step is held at an outside call; its chat is ended and its conversation deleted; then the step continues.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.api.conversations import create_conversation
from dualtrack.chat.attached_files import File
from dualtrack.chat.delete_conversation import WRITERS_SECONDS, delete_conversation
from dualtrack.chat.end_chat import Cancellation, end_chat
from dualtrack.chat.new_chat import NewChat, Repeat
from dualtrack.chat.start_chat import first_chat, start_chat
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.errors import ApiError
from dualtrack.storage.bodies import partition
from dualtrack_stack.local.offline_model.reply import Reply

from tests.drivers import crash_world
from tests.drivers.crash_matrix import TWO_ROUNDS
from tests.drivers.crash_world import BIG, USER, Asked, Scenario, World, ref_of
from tests.drivers.erasure_world import USER as ERASED
from tests.drivers.erasure_world import Erased
from tests.drivers.faults import PATIENCE, Fault, Process, Site, start_late
from tests.drivers.world import call_for_summaries

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2
    from dualtrack.requests import ChatRef
    from dualtrack_stack.local.offline_model import wire

LONG: Final = " ".join(str(number) for number in range(2_000))
"""Larger than an item."""

NOTE_DOWN: Final = ((Asked("kit_note", {"text": LONG}),),)
AT_THE_MODEL: Final = ("model", "messages", "turn 1")
AT_THE_ACCOUNT: Final = ("dynamodb", "get_item", "account")
"""The last call of a step before its commit and the bodies of that commit."""

SMALL_FILE: Final = File("image/png", b"\x89PNG" + LONG.encode())
BIG_FILE: Final = File("application/pdf", b"%PDF" + random.Random(3).randbytes(300_000))
"""One is stored in the table, the other in S3."""


@dataclass
class Wordless(World):
    """The model calls tools without text: no delta of its turn notices that the chat was ended."""

    def _say(self, process: Process, request: wire.Request, query: int, turn: int) -> httpx2.Response:
        calls = tuple(map(crash_world._tool_use, self.scenario.rounds[turn - 1]))
        return self._stream(request, Reply(calls, "tool_use"))


# ── the steps of the workflow ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "call", "rounds"),
    [
        pytest.param(Wordless, AT_THE_MODEL, NOTE_DOWN, id="tools without a word, held at the model"),
        pytest.param(World, AT_THE_MODEL, NOTE_DOWN, id="tools, held at the model"),
        pytest.param(World, AT_THE_ACCOUNT, NOTE_DOWN, id="tools, held before the commit"),
        pytest.param(World, AT_THE_MODEL, (), id="answer, held at the model"),
        pytest.param(World, AT_THE_ACCOUNT, (), id="answer, held before the commit"),
    ],
)
def test_a_turn_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, kind: type[World], call: tuple[str, str, str], rounds: Any
) -> None:
    """Cancelled and deleted during the model call, or just before the turn's commit."""
    monkeypatch.setattr(crash_world, "ANSWER", LONG)
    world = kind(Scenario("deleted", rounds=rounds), Fault(Site("turn 1", *call), "held"))
    ref = posted(world)
    outcome = held(
        world, "turn 1", lambda process: world.turn(ref, process), lambda: cancel_and_delete(world, ref)
    )
    assert outcome == {"turn": 1, "next": "failed", "calls": []}
    only_the_end_is_left(world)


@pytest.mark.parametrize(("answer", "looks"), [("A short answer.", 1), (LONG, 2)])
def test_a_turn_looks_again_only_before_it_writes_bodies(
    monkeypatch: pytest.MonkeyPatch, answer: str, looks: int
) -> None:
    """The log's tail is read when the turn begins, and once more before the turn's and the response's bodies."""
    monkeypatch.setattr(crash_world, "ANSWER", answer)
    world = World(Scenario("counted"))
    ref = posted(world)
    world.turn(ref, Process(world.trace, "turn 1"))
    calls = Counter((site.operation, site.detail) for site in world.recorded.sites if site.step == "turn 1")
    assert calls["query", "EV"] == looks
    assert calls["put_item", "body"] == 2 * (looks - 1)


def test_a_tool_leaves_nothing() -> None:
    """Cancelled and deleted while the tool was running."""
    site = Site("tool q1-t1", "tool", "execute", "retrieve_documentation")
    world = World(Scenario("deleted", rounds=TWO_ROUNDS, result=BIG), Fault(site, "held"))
    ref = posted(world)
    world.turn(ref, Process(world.trace, "turn 1"))
    held(
        world,
        site.step,
        lambda process: world.tool(replace(ref, turn=1), "q1-t1", process),
        lambda: cancel_and_delete(world, ref),
    )
    only_the_end_is_left(world)


def test_summarise_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is delivered and the conversation deleted while its summaries are written."""
    call_for_summaries(monkeypatch)
    monkeypatch.setattr(crash_world, "ANSWER", LONG)
    world = World(
        Scenario("deleted"), Fault(Site("summarise", "model", "messages", "summary Response:"), "held")
    )
    ref = posted(world, LONG)
    world.turn(ref, Process(world.trace, "turn 1"))

    def late(process: Process) -> object:
        return world.summarise(ref, process)

    held(world, "summarise", late, lambda: delete(world, ref))
    nothing_is_left(world)


def before_the_summaries(fault: Fault | None = None) -> tuple[World, ChatRef]:
    """A world in which a follow-up is about to begin, and the previous, long query has no track yet."""
    world = World(Scenario("deleted", rounds=((NOTE_DOWN[0] * 6),)), fault)
    first = posted(world, LONG)
    calls = world.turn(first, quiet(world))["calls"]
    for call in calls:
        world.tool(replace(first, turn=1), call["id"], quiet(world))
    world.turn(replace(first, turn=1), quiet(world))
    world.post("And now?", first.conversation_id)
    return world, next(ref_of(chat) for chat in world.chats() if chat.query == 2)


def test_a_follow_up_makes_no_track_final_in_a_deleted_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held before each of its calls in turn, while the chat is cancelled and the conversation deleted. Its answer needs
    no body: the put of one that was due just then stays until the deletion's last pass."""
    monkeypatch.setattr(crash_world, "ANSWER", "A short answer.")
    world, ref = before_the_summaries()
    world.turn(ref, Process(world.trace, "turn 1"))
    sites = [call for call in world.recorded.sites if call.step == "turn 1"]
    assert "conversation,track" in {call.detail for call in sites}
    for site in sites:
        world, ref = before_the_summaries(Fault(site, "held"))
        body = partial(world.turn, ref)
        outcome = held(world, "turn 1", body, partial(cancel_and_delete, world, ref))
        assert not isinstance(outcome, BaseException), (site, outcome)
        only_the_end_is_left(world)


def test_an_end_leaves_nothing() -> None:
    """A held cancel continues after its chat has ended otherwise and was deleted."""
    world = World(Scenario("deleted"), Fault(Site("cancel", *AT_THE_ACCOUNT), "held"))
    ref = posted(world, LONG)

    def late(process: Process) -> object:
        return end_chat(world.stores(process), ref, Cancellation())

    def meanwhile() -> None:
        world.abort(ref, "meanwhile")
        delete(world, ref)

    held(world, "cancel", late, meanwhile)
    only_the_end_is_left(world)


def steps_of(world: World, ref: ChatRef) -> dict[str, Callable[[Process], object]]:
    """Every step of a chat with one round of tools."""
    query = next(chat.query for chat in world.chats() if chat.chat_id == ref.chat_id)
    return {
        "turn 1": lambda process: world.turn(ref, process),
        "tool": lambda process: world.tool(replace(ref, turn=1), f"q{query}-t1", process),
        "turn 2": lambda process: world.turn(replace(ref, turn=1), process),
        "summarise": lambda process: world.summarise(ref, process),
    }


def prepared(step: str, fault: Fault | None = None) -> tuple[World, ChatRef]:
    """A world in which a second query with long texts is about to take the step."""
    world = World(Scenario("deleted", rounds=NOTE_DOWN, always_asks=True), fault)
    ref = posted(world, LONG)
    for body in steps_of(world, ref).values():
        body(quiet(world))
    world.post(LONG, ref.conversation_id)
    ref = next(ref_of(chat) for chat in world.chats() if chat.query == 2)
    for name in itertools.takewhile(lambda earlier: earlier != step, steps_of(world, ref)):
        steps_of(world, ref)[name](quiet(world))
    return world, ref


@pytest.mark.parametrize("step", ["turn 1", "tool", "turn 2", "summarise"])
def test_a_step_ends_cleanly_when_what_it_reads_next_is_deleted(step: str) -> None:
    """Held before each of its calls in turn, while its chat is ended and everything deleted."""
    world, ref = prepared(step)
    steps_of(world, ref)[step](Process(world.trace, step))
    for site in [call for call in world.recorded.sites if call.step == step]:
        world, ref = prepared(step, Fault(site, "held"))
        body = steps_of(world, ref)[step]
        outcome = held(world, step, body, partial(cancel_and_delete, world, ref))
        assert not isinstance(outcome, BaseException), (site, outcome)
        assert not outcome or outcome["next"] == "failed" or outcome["next"] == "answered", (site, outcome)


# ── every kind of item ────────────────────────────────────────────────────────────────────────────


def test_everything_in_the_partition_is_deleted() -> None:
    """Digests, search indexes (passages, vectors, words), files, bodies in the table and in S3."""
    somebody = Erased()
    world = somebody.world
    world.cancel(somebody.running)
    history, conversation_id = world.aws.table("history"), world.conversation_id
    pk = partition(ERASED, conversation_id)
    history[pk, "V#a-model#000001.0000"] = {"pk": {"S": pk}, "sk": {"S": "V#a-model#000001.0000"}}
    kept = {key for key in history if key[0] == partition(ERASED, conversation_id)}
    assert {sk.split("#")[0] for _, sk in kept} == {"F", "S", "B", "D", "K", "V", "WORDS"}
    assert {f"F#000007{rest}" for rest in ("", "#a#0001", "#f#0001", "#t#0001", "#z")} <= {
        sk for _, sk in kept
    }
    assert world.aws.objects
    delete_conversation(world.stores(quiet(world)), ERASED, conversation_id)
    assert [key for key in history if conversation_id in str(key) and key[0] != "DELETIONS"] == []
    assert world.aws.objects == {}


def test_a_refused_follow_up_leaves_the_chats_to_the_deletion() -> None:
    """It removes what it has written, but keeps the references to chats that are not yet deleted."""
    world = World(Scenario("deleted"), Fault(Site("start", *AT_THE_ACCOUNT), "held"))
    ref = posted_and_answered(world)

    def follow(process: Process) -> object:
        new = NewChat(USER, "And now?", ref.conversation_id)
        return start_chat(world.stores(process), world.executions(process), new, None)

    def hide_only() -> None:
        delete_conversation(world.stores(quiet(world)), USER, ref.conversation_id, lambda: False)

    refusal = held(world, "start", follow, hide_only)
    assert isinstance(refusal, ApiError)
    assert refusal.code == "not_found"
    later(world)
    nothing_is_left(world)


# ── a new chat with files ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("file", "operation", "detail"),
    [
        pytest.param(SMALL_FILE, "put_item", "body", id="in the table"),
        pytest.param(BIG_FILE, "put_object", "", id="in S3"),
    ],
)
def test_a_chat_that_is_not_admitted_takes_its_files_back(file: File, operation: str, detail: str) -> None:
    """The conversation is deleted while the files of its next chat are being written."""
    service = "s3" if operation == "put_object" else "dynamodb"
    world = World(Scenario("deleted"), Fault(Site("start", service, operation, detail), "held"))
    setup = world.stores(Process(world.quiet, "setup"))
    conversation_id = create_conversation(setup, USER, "", "assistant").conversation_id

    def start(process: Process) -> object:
        new = NewChat(USER, LONG, conversation_id, files=(file,))
        return start_chat(world.stores(process), world.executions(process), new, None)

    refusal = held(
        world, "start", start, lambda: delete_conversation(world.stores(quiet(world)), USER, conversation_id)
    )
    assert isinstance(refusal, ApiError)
    assert refusal.code == "not_found"
    nothing_is_left(world)


def test_of_two_requests_with_one_key_the_slower_removes_its_files() -> None:
    """Each would create a conversation; only the one that was created keeps its files."""
    world = World(Scenario("twice"), Fault(Site("start", "dynamodb", "put_item", "body"), "held"))
    new = NewChat(USER, LONG, files=(SMALL_FILE, BIG_FILE))
    repeat = Repeat("key-1", "fingerprint")

    def start(process: Process) -> Any:
        return start_chat(world.stores(process), world.executions(process), new, repeat)

    slower = held(world, "start", start, lambda: start(quiet(world)))
    executions = world.executions(quiet(world))
    assert slower == first_chat(world.stores(quiet(world)), executions, USER, repeat)
    later(world)
    assert {pk for pk, _ in world.aws.table("history")} == {
        f"USER#{USER}", partition(USER, slower.conversation_id)
    }  # fmt: skip
    assert [key.split("/")[:2] for key in world.aws.objects] == [[USER, slower.conversation_id]]


def test_files_are_not_written_for_a_chat_without_credits() -> None:
    """A refusal would leave them in a conversation that does not exist."""
    world = World(Scenario("broke", used_before=46))
    new = NewChat(USER, "What is this?", files=(SMALL_FILE, BIG_FILE))
    with pytest.raises(ApiError, match="credits"):
        start_chat(world.stores(quiet(world)), world.executions(quiet(world)), new, None)
    nothing_is_left(world)


# ── steps and checks of the tests ────────────────────────────────────────────────────────────────────


def quiet(world: World) -> Process:
    """A process without faults."""
    return Process(world.quiet, "quiet")


def posted(world: World, message: str = "What is it?") -> ChatRef:
    """An admitted chat, before its first turn."""
    world.post(message)
    return ref_of(world.chats()[0])


def posted_and_answered(world: World) -> ChatRef:
    """A chat that has ended; the world's fault is for later steps."""
    fault, world.trace.fault = world.trace.fault, None
    ref = posted(world)
    world.machine(ref)
    world.trace.fault = fault
    return ref


def held(world: World, step: str, body: Callable[[Process], object], meanwhile: Callable[[], object]) -> Any:
    """The outcome of a step that is held at the world's fault, and continues after ``meanwhile``."""
    process = Process(world.trace, step)
    late, outcome = start_late(f"late {step}", partial(body, process))
    assert process.held.wait(PATIENCE), outcome
    meanwhile()
    process.released.set()
    late.join(PATIENCE)
    assert not late.is_alive()
    return outcome[0]


def delete(world: World, ref: ChatRef) -> None:
    """DELETE /v1/conversations/{id}."""
    delete_conversation(world.stores(quiet(world)), ref.user, ref.conversation_id)


def cancel_and_delete(world: World, ref: ChatRef) -> None:
    """Cancel the chat and delete its conversation, as the user."""
    world.cancel(ref)
    delete(world, ref)


def nothing_is_left(world: World) -> None:
    """Check: no record, no body, no object, no chat; and later no entry of the deletion."""
    assert world.aws.table("chats") == {}
    no_history_is_left(world)
    later(world)
    assert (world.aws.table("history"), world.aws.table("chats"), world.aws.objects) == ({}, {}, {})


def only_the_end_is_left(world: World) -> None:
    """Check: an interrupted chat leaves only the blank end of its log, which keeps late writers out while there can be
    any.
    """
    (end,) = world.aws.table("chats").values()
    assert (end["data"], end["closed"], "z" in end) == ({"S": "[]"}, {"BOOL": True}, False)
    no_history_is_left(world)
    later(world)
    nothing_is_left(world)


def no_history_is_left(world: World) -> None:
    """Check at once, not only after the last sweep."""
    history = {key: item for key, item in world.aws.table("history").items() if key[0] != "DELETIONS"}
    assert (history, world.aws.objects) == ({}, {})


def later(world: World) -> None:
    """Run the sweep when no step can write any more."""
    world.clock.now += WRITERS_SECONDS + 1
    stores = world.stores(quiet(world))
    sweep_deletions(stores, world.executions(quiet(world)), Nobody(), 120)


class Nobody:
    """A user pool without users."""

    def delete(self, user: str) -> bool:
        """There is no user to delete."""
        return False
