"""Notes that come with an answer: asked for, hidden, kept, and sent in place of their records (CONTRACT 6)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.conversations import find_record
from dualtrack.chat.chat_view import chat_json
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.errors import ModelUnavailable
from dualtrack.memory.notes import NOTES_TOKENS, mark_of
from dualtrack.models.receipt_data import UNSEEN
from dualtrack.models.wanted import Wanted
from dualtrack.profiles import all_profiles
from dualtrack.tool_values import ToolResult

from tests.drivers.long_memory import prose
from tests.drivers.world import World, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

TOOL = "retrieve_documentation"
MODEL = "claude-haiku-5-5"
LONG = 40_000


@pytest.fixture
def world() -> Iterator[World]:
    with make_world(**{TOOL: found}) as made:
        made.stores.ledger.grant("ann", "g", 100_000, "test", made.clock())
        yield replace(made, model_name=MODEL)


def found(running: Running) -> ToolResult:
    """As many characters as the query asks for."""
    return ToolResult(prose(running.call.id, int(str(running.call.input["query"]))))


def calls(*lengths: int) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "name": TOOL, "input": {"query": str(length)}} for length in lengths]


def ask(world: World, conversation_id: str, *results: int, answer: str = "It is 80.", **more: Any) -> Chat:
    """A query whose tools return results of these lengths, and whose answer brings the notes that are asked for."""
    if results:
        world.model.script.add({"match": "turn", "content": calls(*results)})
    world.model.script.add({"match": "turn", "text": answer, "notes": True, **more})
    return world.run(world.start("What is there?", conversation_id=conversation_id))


def sent(world: World) -> list[dict[str, Any]]:
    return [request.body for request in world.model.requests if request.body.get("stream")]


def texts(body: dict[str, Any]) -> list[str]:
    return [
        block["text"]
        for message in body["messages"]
        for block in message["content"]
        if block["type"] == "text"
    ]


def plain(messages: list[dict[str, Any]]) -> list[Any]:
    def unmarked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: unmarked(entry) for key, entry in value.items() if key != "cache_control"}
        return [unmarked(entry) for entry in value] if isinstance(value, list) else value

    return list(unmarked(messages))


def test_the_results_message_asks_last_for_the_longest_and_the_request_has_room_for_notes(
    world: World,
) -> None:
    chat = ask(world, "", LONG, 200, 45_000)
    first, second = sent(world)
    last = second["messages"][-1]["content"]
    assert [block["type"] for block in last] == ["tool_result"] * 3 + ["text"]
    asked = last[-1]["text"]
    assert mark_of(chat.chat_id) in asked
    assert "q1-t3" in asked
    assert "q1-t2" not in asked, "short records are sent whole"
    assert second["max_tokens"] == first["max_tokens"] + NOTES_TOKENS


def test_no_call_is_made_for_summaries(world: World) -> None:
    chat = ask(world, "", LONG)
    assert len(world.model.requests) == 2
    assert world.load(chat).status == "done"


def test_notes_count_as_they_were_written_however_much_of_them_is_kept(world: World) -> None:
    """A full history has none of it, so a model that writes too long is soon asked for less."""

    def full_history(words: int) -> float:
        world.model.script.add({"match": "turn", "content": calls(LONG)})
        chat = world.start("What is there?")
        recorded = world.turn(chat, 0)
        world.tool(chat, 1, recorded["calls"][0]["id"])
        note = f"It is 80.\n\n{mark_of(chat.chat_id)}\nq1-t1: {'word ' * words}"
        world.model.script.add({"match": "turn", "text": note})
        world.turn(chat, 1)
        return world.load(chat).memory.costs.full / 1e9

    assert full_history(2_000) == pytest.approx(full_history(20), rel=0.15)


def test_notes_are_in_no_answer_event_or_record(world: World) -> None:
    chat = ask(world, "", LONG)
    shown = chat_json(
        chat,
        world.stores.history.query_records("ann", chat.conversation_id, 1),
        world.stores.history.track("ann", chat.conversation_id, 1),
    )
    assert shown["response"] == "It is 80."
    log = world.stores.log(ref_of(chat)).events()
    assert "[[notes:" not in str([event.data for event in log if event.event != "done"])
    assert "".join(event.data["text"] for event in log if event.event == "delta") == "It is 80."
    names = [event.event for event in log]
    assert names.index("delta") < names.index("written") < names.index("answer")


def test_the_next_query_sees_notes_in_place_of_results_and_the_answer_whole(world: World) -> None:
    chat = ask(world, "", LONG)
    ask(world, chat.conversation_id)
    said = texts(sent(world)[-1])
    note = next(text for text in said if text.startswith("[ID:q1-t1-sum, ref:q1-t1, 40 KB]"))
    assert f"{TOOL} was called" in note
    assert any(text == "[ID:q1-r] It is 80." for text in said)
    assert not any(mark_of(chat.chat_id) in text for text in said)


def test_each_record_says_what_is_sent_of_it(world: World) -> None:
    chat = ask(world, "", LONG, 5_000)
    conversation = world.stores.conversations.find("ann", chat.conversation_id)
    track = world.stores.history.track("ann", chat.conversation_id, 1)
    assert conversation is not None
    assert track is not None
    forms = {block.record_id: block.form for block in track.blocks}
    assert forms == {"q1": "whole", "q1-t1-sum": "note", "q1-t2-sum": "extract", "q1-r-sum": "whole"}
    shown = find_record(world.stores, conversation, "q1-t1-sum", 0)
    assert shown["form"] == "note"


def test_a_query_of_which_nothing_is_shortened_goes_on_in_its_own_bytes(world: World) -> None:
    chat = ask(world, "", 300)
    for _ in range(3):
        ask(world, chat.conversation_id, 400)
    bodies = sent(world)
    for before, now in itertools.pairwise(bodies):
        known = plain(before["messages"])
        assert plain(now["messages"])[: len(known)] == known
    assert all(track.whole_tokens for track in world.stores.history.tracks("ann", chat.conversation_id, 4))


def test_a_retry_asks_alike(world: World) -> None:
    """The step dies behind the model's call; what it asked stands in the request of the next try."""
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    world.model.script.add({"match": "turn", "text": "It is", "cut_after": 4})
    world.model.script.add({"match": "turn", "text": "It is 80.", "notes": True})
    chat = world.start("What is there?")
    outcome = world.turn(chat, 0)
    for call in outcome["calls"]:
        world.tool(chat, 1, call["id"])
    with pytest.raises(ModelUnavailable):
        world.turn(chat, 1)
    assert world.turn(chat, 1)["next"] == "answered"
    before, after = sent(world)[-2:]
    assert before["messages"] == after["messages"]


def test_notes_before_a_further_call_count_and_are_hidden(world: World) -> None:
    chat = world.start("What is there?")
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    mark = mark_of(chat.chat_id)
    said = {"type": "text", "text": f"One more look.\n\n{mark}\nq1-t1: the ports of the gateway"}
    world.model.script.add({"match": "turn", "content": [said, *calls(200)]})
    world.model.script.add({"match": "turn", "text": "It is 80."})
    world.run(chat)
    thought = world.stores.history.query_records("ann", chat.conversation_id, 1)
    assert [record.content for record in thought if record.said] == ["One more look."]
    track = world.stores.history.track("ann", chat.conversation_id, 1)
    assert track is not None
    assert "the ports of the gateway" in track.blocks[1].content
    assert said["text"] in texts(sent(world)[-1]), "what was sent stays as it was"


def test_a_later_turn_keeps_the_earlier_ask_and_asks_briefly(world: World) -> None:
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    ask(world, "", 40_000)
    _, second, third = sent(world)
    known = plain(second["messages"])
    assert plain(third["messages"])[: len(known)] == known
    again = third["messages"][-1]["content"][-1]["text"]
    assert "as said above" in again
    assert len(again) < 120


def test_cut_off_behind_the_mark_an_answer_is_complete(world: World) -> None:
    chat = world.start("What is there?")
    world.model.script.add({"match": "turn", "content": calls(LONG, 45_000)})
    text = f"It is 80.\n\n{mark_of(chat.chat_id)}\nq1-t1: the ports\nq1-t2: half a"
    world.model.script.add({"match": "turn", "text": text, "stop_reason": "max_tokens"})
    chat = world.run(chat)
    assert (chat.status, chat.stop) == ("done", "complete")
    track = world.stores.history.track("ann", chat.conversation_id, 1)
    assert track is not None
    assert [block.form for block in track.blocks] == ["whole", "note", "extract", "whole"]


def test_a_follow_up_at_once_finds_the_notes(world: World) -> None:
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    world.model.script.add({"match": "turn", "text": "It is 80.", "notes": True})
    first = world.start("What is there?")
    assert world.answer(first) == "answered"
    before = world.clock()
    ask(world, first.conversation_id)
    assert world.clock() - before < 0.1, "the next query waits for nothing"
    assert any(f"{TOOL} was called" in text for text in texts(sent(world)[-1]))
    world.summarise(first)
    assert world.load(first).status == "done"


def test_a_fork_has_the_notes(world: World) -> None:
    parent = ask(world, "", LONG)
    ask(world, parent.conversation_id)
    fork = fork_conversation(world.stores, "ann", parent.conversation_id, 2)
    ask(world, fork.conversation_id)
    assert any(f"{TOOL} was called" in text for text in texts(sent(world)[-1]))


def test_a_fork_before_the_track_is_written_has_the_notes(world: World) -> None:
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    world.model.script.add({"match": "turn", "text": "It is 80.", "notes": True})
    parent = world.start("What is there?")
    assert world.answer(parent) == "answered"
    fork = fork_conversation(world.stores, "ann", parent.conversation_id, 2)
    ask(world, fork.conversation_id)
    assert any(f"{TOOL} was called" in text for text in texts(sent(world)[-1]))


def test_a_chat_that_the_sweep_closes_keeps_its_notes(world: World) -> None:
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    world.model.script.add({"match": "turn", "text": "It is 80.", "notes": True})
    chat = world.start("What is there?")
    assert world.answer(chat) == "answered"
    world.abort(chat)
    assert world.load(chat).status == "done"
    track = world.stores.history.track("ann", chat.conversation_id, 1)
    assert track is not None
    assert [block.form for block in track.blocks] == ["whole", "note", "whole"]
    assert world.load(chat).memory.aside == 0, "nobody was asked for a summary"


def test_a_chat_that_fails_keeps_the_notes_that_it_has(world: World) -> None:
    chat = world.start("What is there?")
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    said = {"type": "text", "text": f"One more look.\n\n{mark_of(chat.chat_id)}\nq1-t1: the ports"}
    world.model.script.add({"match": "turn", "content": [said, *calls(200)]})
    for number in (0, 1):
        for call in world.turn(chat, number)["calls"]:
            world.tool(chat, number + 1, call["id"])
    world.abort(chat)
    assert world.load(chat).status == "failed"
    track = world.stores.history.track("ann", chat.conversation_id, 1)
    assert track is not None
    assert "the ports" in track.blocks[1].content


def test_a_model_that_ignores_the_ask_is_asked_no_more(world: World) -> None:
    conversation_id = ""
    for _ in range(6):
        world.model.script.add({"match": "turn", "content": calls(LONG)})
        world.model.script.add({"match": "turn", "text": "It is 80."})
        conversation_id = world.run(
            world.start("What is there?", conversation_id=conversation_id)
        ).conversation_id
    asked = ["(Notes for later" in str(body["messages"]) for body in sent(world)[1::2]]
    assert asked == [True] * 3 + [False] * 3


def test_short_answers_are_not_ignored_asks(world: World) -> None:
    chat = ask(world, "", LONG, LONG, answer="It is 80. " * 150)
    for _ in range(3):
        chat = ask(world, chat.conversation_id, answer="Yes.")
    assert is_asked(world), "for the answer alone, since one of the last four was long"
    assert chat.memory.sums.ignored == 0
    ask(world, chat.conversation_id, LONG)
    assert "q5-t1" in sent(world)[-1]["messages"][-1]["content"][-1]["text"]


def test_a_conversation_of_short_answers_is_not_asked_for_notes_on_them(world: World) -> None:
    chat = ask(world, "", LONG, LONG, answer="It is 80. " * 150)
    for _ in range(4):
        chat = ask(world, chat.conversation_id, answer="Yes.")
    chat = ask(world, chat.conversation_id, answer="It is 80. " * 150)
    assert not is_asked(world)
    ask(world, chat.conversation_id, answer="Yes.")
    assert is_asked(world), "as soon as there is a long one again"


def is_asked(world: World) -> bool:
    return "(Notes" in sent(world)[-1]["messages"][-1]["content"][-1]["text"]


def test_notes_alone_before_a_further_call_are_shown_to_nobody(world: World) -> None:
    chat = world.start("What is there?")
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    said = {"type": "text", "text": f"{mark_of(chat.chat_id)}\nq1-t1: the ports"}
    world.model.script.add({"match": "turn", "content": [said, *calls(200)]})
    world.model.script.add({"match": "turn", "text": "It is 80."})
    world.run(chat)
    log = world.stores.log(ref_of(chat)).events()
    assert "".join(event.data["text"] for event in log if event.event == "delta") == "It is 80."
    track = world.stores.history.track("ann", chat.conversation_id, 1)
    assert track is not None
    assert "the ports" in track.blocks[1].content


def test_a_query_that_read_the_past_back_is_not_sent_on_whole(world: World) -> None:
    chat = ask(world, "", LONG)
    fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1-t1"}}
    world.model.script.add({"match": "turn", "content": [fetch]})
    ask(world, chat.conversation_id)
    ask(world, chat.conversation_id)
    assert len(str(sent(world)[-2]["messages"])) > LONG
    assert len(str(sent(world)[-1]["messages"])) < LONG / 4


@pytest.mark.parametrize("wanted", [Wanted(max_tokens=50), Wanted(stop=("END",))], ids=["tokens", "stop"])
def test_a_clients_limits_hold(world: World, wanted: Wanted) -> None:
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    world.model.script.add({"match": "turn", "text": "It is 80.", "notes": True})
    world.run(world.start("What is there?", wanted=wanted))
    assert "(Notes" not in str([body["messages"] for body in sent(world)])
    first, second = sent(world)
    assert first["max_tokens"] == second["max_tokens"]


def test_an_answer_that_is_cut_behind_its_notes_can_go_on(world: World) -> None:
    chat = world.start("What is there?")
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    text = f"It is 80.\n\n{mark_of(chat.chat_id)}\nq1-t1: the ports\n\nThe second port is"
    world.model.script.add({"match": "turn", "text": text, "stop_reason": "max_tokens"})
    assert world.run(chat).stop == "max_tokens"


def test_a_whole_call_behind_notes_runs_at_the_limit_of_tokens(world: World) -> None:
    chat = world.start("What is there?")
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    said = {"type": "text", "text": f"One more look.\n\n{mark_of(chat.chat_id)}\nq1-t1: the ports"}
    world.model.script.add({"match": "turn", "content": [said, *calls(200)], "stop_reason": "max_tokens"})
    world.model.script.add({"match": "turn", "text": "It is 80."})
    chat = world.run(chat)
    assert (chat.stop, chat.calls) == ("complete", 2)


def test_nothing_is_asked_for_that_is_sent_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = all_profiles()["assistant"]
    history = replace(profile.history, whole_characters=5_000)
    monkeypatch.setitem(all_profiles(), "assistant", replace(profile, history=history))
    ask(world, "", LONG, LONG, 4_000)
    asked = sent(world)[-1]["messages"][-1]["content"][-1]["text"]
    assert "q1-t1" in asked
    assert "q1-t3" not in asked
    assert "q1-r" not in asked


def test_a_call_that_dies_in_its_notes_is_counted_with_them(world: World) -> None:
    chat = world.start("What is there?")
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    text = f"It is 80.\n\n{mark_of(chat.chat_id)}\nq1-t1: {'the ports and ' * 20}"
    world.model.script.add({"match": "turn", "text": text, "chunk": 20, "cut_after": 12})
    world.model.script.add({"match": "turn", "text": "It is 80."})
    outcome = world.turn(chat, 0)
    for call in outcome["calls"]:
        world.tool(chat, 1, call["id"])
    with pytest.raises(ModelUnavailable):
        world.turn(chat, 1)
    world.turn(chat, 1)
    turn = world.stores.chats.turn(world.load(chat), 2)
    assert turn is not None
    (lost,) = turn.made.lost
    assert lost.usage is not None
    assert lost.usage.output_tokens >= NOTES_TOKENS
    assert UNSEEN == 4 * NOTES_TOKENS


def test_no_notes_where_an_answer_is_read_by_a_program(world: World) -> None:
    schema = {"type": "object", "properties": {"port": {"type": "integer"}}, "required": ["port"]}
    world.model.script.add({"match": "turn", "content": calls(LONG)})
    world.model.script.add({"match": "turn", "text": '{"port": 80}'})
    world.run(world.start("What is there?", output=schema))
    assert "(Notes" not in str([body["messages"] for body in sent(world)])


def test_the_conversation_is_never_dearer_by_notes_than_it_may_be(world: World) -> None:
    conversation_id = ""
    for number in range(8):
        chat = ask(world, conversation_id, 1_200 + 100 * number, answer=prose(f"answer {number}", 600))
        conversation_id = chat.conversation_id
        sums = chat.memory.sums
        assert sums.costs.own + sums.aside <= 1.03 * sums.costs.full
