"""Tools that a user lets run in a conversation without being asked again (CONTRACT 7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest
from dualtrack.api.conversations import disallow_tool
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.run_tool import TAKEN_BACK
from dualtrack.errors import ApiError
from dualtrack.profiles import ApprovalPolicy, all_profiles
from dualtrack.storage.conversations import MAX_ALLOWED
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.tools.approval import gate, mark_of
from dualtrack.tools.mcp import catalogue

from tests.drivers.crash_world import NOTE, NOTE_SPEC, READ, ref_of
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.pausing import PAUSES, Pausing, allow, approve, decline

if TYPE_CHECKING:
    from dualtrack.storage.chats import Chat
    from dualtrack.vocabulary import ApprovalRule

ALWAYS_ASKS = replace(PAUSES, always_asks=True)


def allowed_in(world: Pausing, chat: Chat) -> list[str]:
    """The tools that the conversation allows."""
    conversation = world.look().conversations.find(chat.user, chat.conversation_id)
    assert conversation
    return [*conversation.allowed]


def allowing() -> tuple[Pausing, Chat]:
    """A conversation whose first chat has ended, and in which its tool is allowed."""
    world = Pausing(ALWAYS_ASKS)
    chat = world.pause()
    world.decide_on(chat, allow())
    return world, world.finish(chat)


def test_an_allowed_tool_runs_unasked_in_later_turns_and_chats_but_not_in_forks() -> None:
    world = Pausing(replace(ALWAYS_ASKS, rounds=((NOTE,), (NOTE,))))
    chat = world.pause()
    world.decide_on(chat, allow())
    done = world.finish(chat)
    assert (done.status, done.pauses, world.ran()) == ("done", 1, ["q1-t1", "q1-t2"])
    assert allowed_in(world, done) == [NOTE.tool]
    again = world.pause("Once more.", done.conversation_id)
    assert (again.status, again.pauses) == ("done", 0)
    fork = fork_conversation(world.look(), world.user, done.conversation_id, 2)
    in_fork = world.pause("Here?", fork.conversation_id)
    assert (in_fork.status, allowed_in(world, in_fork)) == ("paused", [])
    assert world.pause("And elsewhere?").status == "paused"
    stores = world.look()
    assert [fault for one in (done, again) for fault in chat_faults(stores, one)] == []


def test_a_tool_that_has_changed_asks_again() -> None:
    """Its new schema, with the very same name."""
    world, done = allowing()
    changed = replace(NOTE_SPEC, input_schema={**NOTE_SPEC.input_schema, "additionalProperties": False})
    catalogue.store_listing(world.look().cache, "kit", catalogue.ServerTools((changed,)), world.clock())
    again = world.pause("Once more.", done.conversation_id)
    assert (again.status, allowed_in(world, again)) == ("paused", [NOTE.tool])
    world.decide_on(again, replace(allow(), call_id="q2-t1"))
    world.finish(again)
    assert world.pause("And now?", done.conversation_id).status == "done"


def test_what_is_taken_back_asks_again() -> None:
    world, done = allowing()
    for _ in range(2):
        disallow_tool(world.look(), world.user, done.conversation_id, NOTE.tool)
    assert allowed_in(world, done) == []
    assert world.pause("Once more.", done.conversation_id).status == "paused"
    with pytest.raises(ApiError, match="no such conversation"):
        disallow_tool(world.look(), "somebody-else", done.conversation_id, NOTE.tool)


def test_a_call_does_not_run_once_its_tool_is_taken_back() -> None:
    """Its turn was recorded while the tool was allowed; whoever then invokes the function."""
    world, done = allowing()
    world.post("Once more.", done.conversation_id)
    (chat,) = [chat for chat in world.chats() if chat.query == 2]
    outcome = world.turn(ref_of(chat), world.process("turn"))
    assert [call["id"] for call in outcome["calls"]] == ["q2-t1"]
    disallow_tool(world.look(), world.user, done.conversation_id, NOTE.tool)
    world.tool(replace(ref_of(chat), turn=1), "q2-t1", world.process("tool"))
    record = world.look().history.record(world.user, done.conversation_id, "q2-t1")
    assert record
    assert (world.ran(), record.content) == (["q1-t1"], TAKEN_BACK.content)
    world.machine(replace(ref_of(chat), turn=1))
    chats = [world.now(one) for one in (done, chat)]
    assert (chats[1].status, account_faults(world.look(), world.user, chats)) == ("done", [])


def test_one_of_two_is_allowed_while_the_other_is_open() -> None:
    """It counts from that moment, and runs nothing before the other is decided."""
    world = Pausing(replace(PAUSES, rounds=((NOTE, READ, NOTE),)))
    chat = world.pause()
    assert world.decide_on(chat, allow("q1-t1")).status == "paused"
    assert (allowed_in(world, chat), world.ran()) == ([NOTE.tool], [])
    disallow_tool(world.look(), world.user, chat.conversation_id, NOTE.tool)
    world.decide_on(chat, decline("q1-t3"))
    done = world.finish(chat)
    assert (allowed_in(world, done), world.ran(), done.status) == ([], ["q1-t1"], "done")


def test_the_same_decision_again_changes_nothing_and_a_narrower_one_is_another() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    world.decide_on(chat, allow())
    disallow_tool(world.look(), world.user, chat.conversation_id, NOTE.tool)
    world.decide_on(chat, allow())
    assert allowed_in(world, chat) == []
    with pytest.raises(ApiError, match="was decided: approved"):
        world.decide_on(chat, approve())


def test_what_has_changed_since_it_was_read_is_read_again() -> None:
    """What was taken back meanwhile does not come back with what another decision allows."""
    world, done = allowing()
    store = world.look().conversations
    read = store.find(done.user, done.conversation_id)
    assert read
    store.disallow(read, NOTE.tool)
    with pytest.raises(ConditionFailed):
        store.disallow(read, NOTE.tool)


def test_each_call_of_what_always_asks_is_asked_for() -> None:
    world = Pausing(replace(PAUSES, asks=()), default="always")
    chat = world.pause()
    with pytest.raises(ApiError, match=f"decisions.0.for: {NOTE.tool} asks each time"):
        world.decide_on(chat, allow())
    assert (world.now(chat).status, allowed_in(world, chat)) == ("paused", [])


def test_so_many_tools_are_allowed_and_no_more() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    key = (f"USER#{chat.user}", f"CONV#{chat.conversation_id}")
    conversation = world.look().conversations.find(chat.user, chat.conversation_id)
    assert conversation
    many = {f"tool_{number}": "0" * 16 for number in range(MAX_ALLOWED)}
    world.aws.table("history")[key]["allowed"] = {"S": str(many).replace("'", '"')}
    with pytest.raises(ApiError, match=f"decisions.0.for: {MAX_ALLOWED} tools are allowed"):
        world.decide_on(chat, allow())
    assert world.now(chat).status == "paused"


@pytest.mark.parametrize(
    ("policy", "own", "asks", "lasts"),
    [
        (ApprovalPolicy("writes"), "", "approval", True),
        (ApprovalPolicy("never", ask=("kit_*",)), "", "approval", True),
        (ApprovalPolicy("writes"), "writes", "approval", True),
        (ApprovalPolicy("always"), "", "approval", False),
        (ApprovalPolicy("writes"), "always", "approval", False),
        (ApprovalPolicy("never", ask=("kit_*",)), "always", "approval", False),
        (ApprovalPolicy("always", allow=("kit_*",)), "always", "", False),
        (ApprovalPolicy("always"), "never", "approval", False),
    ],
)
def test_leave_does_not_hold_for_what_always_asks(
    policy: ApprovalPolicy, own: ApprovalRule | Literal[""], asks: str, lasts: bool
) -> None:
    """``never`` is a server's word here, and does not count."""
    spec, profile = replace(NOTE_SPEC, approval=own), replace(all_profiles()["assistant"], approval=policy)
    first = gate(profile, dict, spec)
    assert (first.asks, bool(first.allowable)) == (asks, lasts)
    if asks:
        granted = gate(profile, lambda: {spec.name: mark_of(spec)}, spec)
        assert bool(granted.asks) is not lasts
