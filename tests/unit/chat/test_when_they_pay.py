"""Queries that are sent whole until their summaries pay (CONTRACT 6)."""

from __future__ import annotations

import base64
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat import summarise as summarise_module
from dualtrack.chat.agent import AgentDeployment, agent_of
from dualtrack.chat.chat_view import chat_json
from dualtrack.chat.cost_hold import CostSettings, cost_hold
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.summary_plan import plan_of
from dualtrack.memory.records import CallSums
from dualtrack.memory.summaries import SummarySettings, track_of
from dualtrack.models.cost_cap import CostHold
from dualtrack.profiles import all_profiles
from dualtrack.storage.past_writes import write_summaries
from dualtrack.tool_values import Media, ToolResult

from tests.drivers.images import png
from tests.drivers.long_memory import prose
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

CALL = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
MODEL = "claude-haiku-5-5"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    profile = all_profiles()["assistant"]
    history = replace(profile.history, summaries="when_they_pay")
    monkeypatch.setitem(all_profiles(), "assistant", replace(profile, history=history))
    with make_world(retrieve_documentation=found) as made:
        made.stores.ledger.grant("ann", "g", 100_000, "test", made.clock())
        yield replace(made, model_name=MODEL)


def found(running: Running) -> ToolResult:
    """As many characters as the query asks for."""
    return ToolResult(prose(running.call.id, int(str(running.call.input["query"]))))


def ask(
    world: World, conversation_id: str = "", *results: int, answer: int = 1_500, summed: bool = True
) -> Chat:
    """A query whose tools return results of these lengths."""
    calls = [{**CALL, "input": {"query": str(length)}} for length in results]
    if calls:
        world.model.script.add(
            {"match": "turn", "content": [{"type": "text", "text": "I will look."}, *calls]}
        )
    world.model.script.add({"match": "turn", "text": prose(f"answer {conversation_id}", answer)})
    chat = world.start("What is there?", conversation_id=conversation_id)
    if summed:
        return world.run(chat)
    assert world.answer(chat) == "answered"
    return chat


def plain(messages: list[dict[str, Any]]) -> list[Any]:
    """Messages without breakpoints."""

    def unmarked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: unmarked(entry) for key, entry in value.items() if key != "cache_control"}
        return [unmarked(entry) for entry in value] if isinstance(value, list) else value

    return list(unmarked(messages))


def turns_sent(world: World) -> list[list[Any]]:
    """The messages of every turn so far."""
    return [
        plain(request.body["messages"])
        for request in world.model.requests
        if request.body.get("stream") and not asks_for_summaries(request.body)
    ]


def asks_for_summaries(body: dict[str, Any]) -> bool:
    return str(body["messages"][-1]["content"][-1].get("text", "")).startswith("Summarise the records")


def summary_calls(world: World) -> list[dict[str, Any]]:
    return [
        request.body
        for request in world.model.requests
        if asks_for_summaries(request.body) or not request.body.get("stream")
    ]


def response(number: int, text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": f"[ID:q{number}-r] {text}"}]}


def breakpoints(body: dict[str, Any]) -> int:
    return str(body["messages"]).count("cache_control") + str(body["system"]).count("cache_control")


def test_a_past_query_is_sent_in_the_very_messages_in_which_it_was_sent(world: World) -> None:
    chat = ask(world, "", 1_500, 1_500)
    for _ in range(4):
        chat = ask(world, chat.conversation_id, 1_500, 1_500)
    sent = turns_sent(world)
    assert summary_calls(world) == []
    answer = prose("answer ", 1_500)
    assert sent[2][: len(sent[1]) + 1] == [*sent[1], response(1, answer)]
    for before, now in itertools.pairwise(sent):
        assert now[: len(before)] == before
    assert all(breakpoints(request.body) <= 4 for request in world.model.requests)


def test_the_chat_says_that_its_summary_is_an_extract(world: World) -> None:
    chat = ask(world, "", answer=1_500)
    track = world.stores.history.track("ann", chat.conversation_id, 1)
    shown = chat_json(chat, world.stores.history.query_records("ann", chat.conversation_id, 1), track)
    assert (shown["status"], shown["summary_made"]) == ("done", False)
    assert 0 < len(shown["summary"] or "") < 400


def test_long_results_are_summarised_together_with_what_stood_whole(world: World) -> None:
    first = ask(world, "", 1_500)
    second = ask(world, first.conversation_id, 40_000, 40_000)
    assert len(summary_calls(world)) == 1
    ask(world, first.conversation_id)
    starts = turns_sent(world)[-1]
    texts = [block["text"] for message in starts for block in message["content"]]
    assert [text.split(",")[0].split("]")[0] for text in texts] == [
        "[ID:q1", "[ID:q1-t1-sum", "[ID:q1-r-sum",
        "[ID:q2", "[ID:q2-t1-sum", "[ID:q2-t2-sum", "[ID:q2-r-sum",
        "[ID:q3",
    ]  # fmt: skip
    tracks = world.stores.history.tracks("ann", first.conversation_id, 2)
    assert [track.whole_tokens for track in tracks] == [0, 0]
    assert second.usage["summary_tokens"] > 0


def test_a_follow_up_at_once_sends_the_query_before_whole(world: World) -> None:
    first = ask(world, "", 1_500, summed=False)
    second = ask(world, first.conversation_id, 1_500, summed=False)
    sent = turns_sent(world)
    assert sent[2][: len(sent[1])] == sent[1]
    world.summarise(first)
    world.summarise(second)
    ask(world, first.conversation_id)
    sent = turns_sent(world)
    assert sent[4][: len(sent[3])] == sent[3]
    assert world.load(first).status == world.load(second).status == "done"


def test_a_batch_that_is_written_meanwhile_does_not_change_what_a_running_query_sends(world: World) -> None:
    first = ask(world, "", 1_500)
    second = ask(world, first.conversation_id, 40_000, 40_000, summed=False)
    world.model.script.add({"match": "turn", "content": [{**CALL, "input": {"query": "500"}}]})
    world.model.script.add({"match": "turn", "text": "Done."})
    third = world.start("And?", conversation_id=first.conversation_id)
    outcome = world.turn(third, 0)
    world.summarise(second)
    assert world.stores.history.track("ann", first.conversation_id, 1).whole_tokens  # type: ignore[union-attr]
    for call in outcome["calls"]:
        world.tool(third, 1, call["id"])
    world.turn(third, 1)
    before, now = turns_sent(world)[-2:]
    assert now[: len(before)] == before


def test_two_batches_at_once_summarise_each_query_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chat before writes its batch after this one has planned its own."""
    first = ask(world, "", 1_500)
    ask(world, first.conversation_id, 1_500)
    third = ask(world, first.conversation_id, 40_000, 40_000, summed=False)
    write_batch = summarise_module.write_batch

    def after_another(*planned: Any) -> Any:
        stores, chat, _, plan, _, whole = planned
        track, query = plan.earlier[0]
        other = replace(track_of(query.records, {}, whole, "now"), pace=track.pace)
        write_summaries(stores, chat, [other])
        return write_batch(*planned)

    with monkeypatch.context() as patched:
        patched.setattr(summarise_module, "write_batch", after_another)
        world.summarise(third)
    assert world.load(third).status == "done"
    tracks = world.stores.history.tracks("ann", first.conversation_id, 3)
    assert [track.whole_tokens for track in tracks] == [0, 0, 0]
    written = [track.blocks[1].created_at == "now" for track in tracks]
    assert written == [True, False, False], "the first to write counts"


@pytest.mark.parametrize("pause", [0.0, 400.0], ids=["jointly", "one by one"])
def test_a_model_that_makes_no_summary_leaves_the_queries_whole(world: World, pause: float) -> None:
    first = ask(world, "", 1_500)
    second = ask(world, first.conversation_id, 40_000, 40_000, summed=False)
    world.model.script.add({"match": "summary", "status": 400, "always": True})
    world.clock.sleep(pause)
    world.summarise(second)
    assert world.load(second).status == "done"
    tracks = world.stores.history.tracks("ann", first.conversation_id, 2)
    assert all(track.whole_tokens for track in tracks)


def test_a_batch_costs_no_more_than_the_chat_holds_for_summaries(world: World) -> None:
    """Under a key. What the chat cannot pay for, newest first, stays whole; what it holds is enough for all."""
    first = ask(world, "", 1_500, 1_500)
    second = ask(world, first.conversation_id, 40_000, 40_000, summed=False)
    agent = agent_of(world.stores.agents, second, AgentDeployment(MODEL))
    records = world.stores.history.query_records("ann", first.conversation_id, 2)

    def summarised(held: int) -> tuple[str, ...]:
        chat = replace(world.load(second), costs=CostHold(10**9, held))
        planned = plan_of(world.stores, chat, agent, records, SummarySettings(MODEL))
        return tuple(request.record_id.split("-")[0] for request in planned.requests)

    everything = ("q1", "q1", "q1", "q2", "q2", "q2")
    costs = cost_hold(agent.profile, CostSettings(MODEL, SummarySettings(MODEL)))
    assert summarised(costs.summaries) == everything
    step = costs.summaries // 100
    assert {summarised(held) for held in range(0, costs.summaries, step)} <= {(), everything[:3], everything}
    assert summarised(0) == ()


def test_a_batch_that_dies_halfway_is_made_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ask(world, "", 1_500)
    second = ask(world, first.conversation_id, 40_000, 40_000, summed=False)

    def dies(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(summarise_module, "finish", dies)
        with pytest.raises(MemoryError):
            world.summarise(second)
    world.summarise(second)
    assert world.load(second).status == "done"
    tracks = world.stores.history.tracks("ann", first.conversation_id, 2)
    assert [track.whole_tokens for track in tracks] == [0, 0]
    assert "retrieve_documentation was called" in tracks[0].blocks[1].content


def test_a_query_with_files_is_summarised_at_once(world: World) -> None:
    chat = ask(world, "", 1_500)
    tools = {
        "retrieve_documentation": lambda _: ToolResult(
            "x " * 900, media=(Media("image/png", base64.b64encode(png()).decode()),)
        )
    }
    with_file = replace(world, tools=tools)
    ask(with_file, chat.conversation_id, 1_500)
    ask(world, chat.conversation_id, 1_500)
    tracks = world.stores.history.tracks("ann", chat.conversation_id, 3)
    assert [bool(track.whole_tokens) for track in tracks] == [True, False, True]
    assert [track.pace.queries for track in tracks] == [1, 2, 3]


def test_the_pace_counts_queries_after_a_pause(world: World) -> None:
    chat = ask(world, "")
    world.clock.sleep(400)
    ask(world, chat.conversation_id, 1_500)
    ask(world, chat.conversation_id)
    pace = world.stores.history.tracks("ann", chat.conversation_id, 3)[-1].pace
    assert (pace.queries, pace.calls, pace.cold) == (3, 4, 1)
    assert CallSums().after(10.0, 20.0, 1) == CallSums(1, 1, 0, 20.0)


def test_a_fork_sends_what_its_parent_sent_and_leaves_the_parents_tracks(world: World) -> None:
    parent = ask(world, "", 1_500)
    ask(world, parent.conversation_id, 1_500)
    before = turns_sent(world)[3]
    fork = fork_conversation(world.stores, "ann", parent.conversation_id, 3)
    assert ask(world, fork.conversation_id, 40_000, 40_000).status == "done"
    sent = turns_sent(world)[4]
    assert sent[: len(before)] == before
    own = world.stores.across(fork.ancestry).history.tracks("ann", fork.conversation_id, 3)
    assert [bool(track.whole_tokens) for track in own] == [True, True, True], "what it shares is its parent's"
    tracks = world.stores.history.tracks("ann", parent.conversation_id, 2)
    assert [bool(track.whole_tokens) for track in tracks] == [True, True]
    ask(world, parent.conversation_id, 1_500)
    now = turns_sent(world)[6]
    assert now[: len(before)] == before


def test_a_forks_past_stays_whole_after_the_parent_is_deleted(world: World) -> None:
    parent = ask(world, "", 1_500)
    ask(world, parent.conversation_id, 1_500)
    fork = fork_conversation(world.stores, "ann", parent.conversation_id, 2)
    before = turns_sent(world)[1]
    delete_conversation(world.stores, "ann", parent.conversation_id)
    ask(world, fork.conversation_id)
    assert turns_sent(world)[-1][: len(before)] == before


def test_a_deleted_conversation_leaves_nothing(world: World) -> None:
    chat = ask(world, "", 1_500)
    delete_conversation(world.stores, "ann", chat.conversation_id)
    assert world.stores.history.last_items("ann", chat.conversation_id) == []


def test_a_past_that_no_longer_fits_is_summarised_whatever_it_costs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(all_profiles()["assistant"], context_tokens=20_000, max_tokens=4_000, track_tokens=4_000)
    monkeypatch.setitem(all_profiles(), "assistant", small)
    chat = ask(world, "", 3_000, 3_000)
    for _ in range(6):
        ask(world, chat.conversation_id, 3_000, 3_000)
    tracks = world.stores.history.tracks("ann", chat.conversation_id, 7)
    assert [bool(track.whole_tokens) for track in tracks][:3] == [False] * 3
    assert len(summary_calls(world)) > 0


def thinking_in(messages: list[Any]) -> list[str]:
    return [
        block["thinking"]
        for message in messages
        for block in message["content"]
        if block["type"] == "thinking"
    ]


def test_thinking_is_sent_again_only_behind_what_preceded_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service refuses it behind anything else: here the deployment has another system prompt."""
    thought = {"type": "thinking", "thinking": "Hm."}
    world.model.script.add({"match": "turn", "content": [thought, {**CALL, "input": {"query": "1500"}}]})
    world.model.script.add({"match": "turn", "text": "Done."})
    chat = world.ask("First?")
    ask(world, chat.conversation_id)
    before, now = turns_sent(world)[1:3]
    assert now[: len(before)] == before
    assert thinking_in(now) == ["Hm."]
    other = replace(all_profiles()["assistant"], system="You are somebody else.")
    monkeypatch.setitem(all_profiles(), "assistant", other)
    ask(world, chat.conversation_id)
    assert thinking_in(turns_sent(world)[-1]) == []
    assert [text for text in str(turns_sent(world)[-1]).split("tool_use") if text]


def test_calls_of_tools_are_not_sent_to_an_agent_that_has_none_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = ask(world, "", 1_500)
    bare = replace(all_profiles()["assistant"], tools=(), mcp=())
    monkeypatch.setitem(all_profiles(), "assistant", bare)
    ask(world, chat.conversation_id)
    assert "tool_use" not in str(turns_sent(world)[-1])
    assert "[ID:q1-t1-sum" in str(turns_sent(world)[-1])


def test_a_profile_that_is_set_back_sends_extracts_of_what_stood_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And they count as such: a past that is short again is not folded."""
    chat = ask(world, "", 3_500, 3_500, 3_500, 3_500, answer=100)
    assistant = all_profiles()["assistant"]
    back = replace(assistant, history=replace(assistant.history, summaries="at_once"), track_tokens=4_000)
    monkeypatch.setitem(all_profiles(), "assistant", back)
    ask(world, chat.conversation_id, answer=100)
    sent = str(turns_sent(world)[-1])
    assert world.stores.history.tracks("ann", chat.conversation_id, 1)[0].whole_tokens > 4_000
    assert "[ID:q1-t1-sum, ref:q1-t1" in sent
    assert "[ID:d1" not in sent
    assert "tool_use" not in sent
