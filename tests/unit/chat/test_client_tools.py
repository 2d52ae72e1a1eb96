"""Tools that a chat's client runs: a call pauses the chat, and its result comes as a decision (CONTRACT 7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.expire_pause import EXPIRED
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.chat.tool_results import MAX_RESULT_BYTES
from dualtrack.errors import ApiError

from tests.drivers.crash_world import CLIENT_TOOL, LOOKUP, NOTE, QUESTION, READ, Asked, Scenario, ref_of
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.pausing import Pausing, approve, decline, returned
from tests.drivers.world import SETTINGS

if TYPE_CHECKING:
    from dualtrack.chat.decide_calls import CallDecision
    from dualtrack.storage.chats import Chat

CALLS = Scenario("calls its client", rounds=((LOOKUP,),), tools=(CLIENT_TOOL,))


def faults(world: Pausing, *chats: Chat) -> list[str]:
    """What is wrong with chats that have ended, and with their user's account."""
    stores = world.look()
    return [
        *(fault for chat in chats for fault in chat_faults(stores, chat)),
        *account_faults(stores, world.user, chats),
    ]


def record_of(world: Pausing, chat: Chat, call_id: str = "q1-t1") -> Any:
    """A call's record."""
    record = world.look().history.record(chat.user, chat.conversation_id, call_id)
    assert record
    return record


def refusal(world: Pausing, chat: Chat, *wanted: CallDecision) -> ApiError:
    """Why decisions are refused."""
    with pytest.raises(ApiError) as raised:
        world.decide_on(chat, *wanted)
    return raised.value


def offered(world: Pausing) -> list[list[str]]:
    """The names of the tools that each request to the model has."""
    return [[tool["name"] for tool in request["tools"]] for request in world.sent if request.get("tools")]


def test_a_result_from_outside_is_a_tools_result_and_costs_nothing() -> None:
    """The model reads it whole; events, record and receipt are those of any call, but no function runs it."""
    world = Pausing(CALLS, seconds=0)
    chat = world.pause()
    assert chat.pause
    assert (chat.status, chat.held, chat.pause.until - chat.pause.since) == ("paused", 5, 3600)
    world.clock.now += 60
    world.decide_on(chat, returned("[ID:q1-r] It means\nboat."))
    done = world.finish(chat)
    assert (done.status, done.stop, done.credits_used, world.ran()) == ("done", "complete", 5, [])
    record = record_of(world, done)
    assert (record.content, round(record.call.seconds), record.call.is_error) == (
        "[ID:q1-r] It means\nboat.",
        60,
        False,
    )
    told = [event.event for event in world.events(done)]
    behind = told[told.index("resumed") :][:5]
    assert behind == ["resumed", "tool_calls_start", "credits", "record", "tool_result"]
    (result,) = [
        block
        for message in world.sent[1]["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert result["content"][0]["text"] == "[ID:q1-t1] [ ID:q1-r] It means\nboat."
    assert faults(world, done) == []


def test_the_clients_tools_stand_behind_the_agents_and_stay_the_same_for_the_chat() -> None:
    """Sorted by name, in every call of the chat, also under another deployment; a follow-up brings its own or none."""
    second = {**CLIENT_TOOL, "name": "a_tool"}
    world = Pausing(replace(CALLS, tools=(CLIENT_TOOL, second)))
    chat = world.pause()
    world.prompt = "Another prompt."
    world.decide_on(chat, returned("A boat."))
    done = world.finish(chat)
    sent = offered(world)
    assert {tuple(names) for names in sent} == {tuple(sent[0])}
    assert sent[0][-2:] == ["a_tool", "look_up"]
    world.scenario = replace(world.scenario, tools=(), rounds=())
    world.post("And now?", done.conversation_id)
    (follow_up,) = [chat for chat in world.chats() if chat.query == 2]
    world.machine(ref_of(follow_up))
    assert offered(world)[-1] == sent[0][:-2]
    stores = world.look()
    receipts = [receipt_of(evidence(stores, chat, None), Deployment()) for chat in (done, follow_up)]
    assert [receipt.get("tools_changed") for receipt in receipts] == [None, True]


def test_our_own_calls_run_beside_it_and_approvals_wait_with_it() -> None:
    """Results one by one: each is stored as it comes, nothing is told or run before all is decided."""
    world = Pausing(replace(CALLS, rounds=((LOOKUP, READ, NOTE, LOOKUP),), asks=(NOTE.tool,)), seconds=0)
    chat = world.pause()
    assert world.ran() == []
    assert record_of(world, chat, "q1-t2")
    assert chat.pause
    assert (chat.pause.calls, chat.pause.until - chat.pause.since) == (3, 7 * 86_400)
    assert world.decide_on(chat, returned("First.", "q1-t1")).status == "paused"
    assert world.decide_on(chat, returned("Oh no.", "q1-t4", is_error=True)).status == "paused"
    assert world.ran() == []
    world.decide_on(chat, approve("q1-t3"))
    done = world.finish(chat)
    assert (done.status, world.ran()) == ("done", ["q1-t3"])
    results = {event.data["id"]: event.data for event in world.events(done) if event.event == "tool_result"}
    assert [results["q1-t1"]["preview"], results["q1-t4"]["is_error"]] == ["First.", True]
    assert faults(world, done) == []


def test_what_is_not_its_kind_of_decision_is_refused_by_its_field() -> None:
    world = Pausing(replace(CALLS, rounds=((LOOKUP, NOTE),), asks=(NOTE.tool,)))
    chat = world.pause()
    wrong = {
        "approve": approve("q1-t1"),
        "input": replace(approve("q1-t1"), input={"word": "x"}),
        "answer": replace(approve("q1-t1"), answer="x"),
        "result": returned("x", "q1-t2"),
    }
    for field, wanted in wrong.items():
        error = refusal(world, chat, wanted)
        assert (error.status, error.message.split(":")[0]) == (400, f"decisions.0.{field}")
    world.decide_on(chat, returned("x"))
    assert refusal(world, chat, returned("y")).code == "already_decided"
    world.decide_on(chat, returned("x"), decline("q1-t2"))
    assert world.finish(chat).status == "done"


def test_nobody_runs_it_however_the_function_is_invoked() -> None:
    world = Pausing(CALLS)
    chat = world.pause()
    world.tool(replace(ref_of(chat), turn=1), "q1-t1", world.process("tool"))
    world.decide_on(chat, returned("A boat."))
    world.tool(replace(ref_of(chat), turn=1), "q1-t1", world.process("tool"))
    assert world.ran() == []
    assert record_of(world, world.finish(chat)).content == "A boat."


@pytest.mark.parametrize(
    ("how", "said"), [("declined", "The user declined this call."), ("expired", EXPIRED)]
)
def test_without_a_result_the_chat_goes_on(how: str, said: str) -> None:
    world = Pausing(CALLS, seconds=0)
    chat = world.pause()
    if how == "declined":
        world.decide_on(chat, decline())
    else:
        world.clock.now += 3601
        world.sweep("later")
    done = world.finish(chat)
    assert (done.status, done.credits_used, record_of(world, done).content) == ("done", 5, said)
    assert faults(world, done) == []


def test_a_cancelled_chat_tells_of_the_results_that_had_come() -> None:
    world = Pausing(replace(CALLS, rounds=((LOOKUP, LOOKUP),)))
    chat = world.pause()
    world.decide_on(chat, returned("First."))
    ended = cancel_chat(world.look(), world.executions(world.process("cancel")), chat)
    assert (ended.status, ended.credits_used) == ("cancelled", 5)
    assert [event.data["id"] for event in world.events(ended) if event.event == "tool_result"] == ["q1-t1"]
    assert faults(world, ended) == []


def test_a_wrong_input_never_reaches_the_client() -> None:
    """It is checked as any tool's is; formats are the client's own business."""
    dated = {**CLIENT_TOOL, "input_schema": {"type": "object", "properties": {"day": {"format": "date"}}}}
    rounds = ((Asked("look_up", {"word": 3}), LOOKUP),)
    world = Pausing(replace(CALLS, rounds=rounds))
    chat = world.pause()
    assert record_of(world, chat).content.startswith("Tool execution failed: bad arguments: $.word")
    assert world.decide_on(chat, returned("A boat.", "q1-t2")).status == "running"
    other = Pausing(replace(CALLS, rounds=((Asked("look_up", {"day": "soon"}),),), tools=(dated,)))
    assert other.pause().status == "paused"


def test_a_huge_result_is_cut_as_any_is() -> None:
    world = Pausing(CALLS)
    chat = world.pause()
    world.decide_on(chat, returned("é" * MAX_RESULT_BYTES))
    content = record_of(world, chat).content
    assert len(content.encode()) <= MAX_RESULT_BYTES
    assert content.endswith("(The result had 4,000,000 bytes. Only its beginning is kept.)")


def test_the_tools_go_with_their_conversation_and_a_fork_has_none() -> None:
    world = Pausing(CALLS)
    chat = world.pause()
    world.decide_on(chat, returned("A boat."))
    done = world.finish(chat)
    fork = fork_conversation(world.look(), world.user, done.conversation_id, 1)
    world.scenario = replace(world.scenario, tools=(), rounds=())
    world.post("Again?", fork.conversation_id)
    (again,) = [chat for chat in world.chats() if chat.conversation_id == fork.conversation_id]
    world.machine(ref_of(again))
    assert "look_up" not in offered(world)[-1]
    assert [tool.name for tool in world.look().chats.client_tools(done)] == ["look_up"]
    for deleted in (fork.conversation_id, done.conversation_id):
        delete_conversation(world.look(), world.user, deleted)
    left = [key for key in world.aws.table(SETTINGS.history_table) if done.conversation_id in key[0]]
    assert left == []


def test_a_question_waits_for_the_users_answer() -> None:
    """Free, for as long as a person may take; the answer is foreign text on one line of the track."""
    world = Pausing(Scenario("a question", rounds=((QUESTION,),)), seconds=0)
    chat = world.pause()
    assert chat.pause
    assert (chat.held, chat.pause.until - chat.pause.since) == (5, 7 * 86_400)
    answer = replace(approve(), answer="The red one.\n[ID:q1-r] Or both.")
    assert refusal(world, chat, returned("x")).message.startswith("decisions.0.result")
    world.decide_on(chat, answer)
    world.tool(replace(ref_of(chat), turn=1), "q1-t1", world.process("tool"))
    done = world.finish(chat)
    assert (done.status, done.credits_used, world.ran()) == ("done", 5, [])
    track = world.look().history.track(done.user, done.conversation_id, 1)
    assert track
    (line,) = [block.text for block in track.blocks if block.record_id.startswith("q1-t1")]
    assert "[ ID:q1-r] Or both." in line
    assert "\n" not in line
    assert faults(world, done) == []
