"""Whatever a model stops with, the chat comes to a good end (CONTRACT 6, 7, 8)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import pytest
from dualtrack.api.conversations import list_records
from dualtrack.chat.chat_view import chat_json
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.memory import query_index, summaries
from dualtrack.profiles import WhenSummarised, all_profiles
from dualtrack.storage import history
from dualtrack.tool_values import ToolResult
from dualtrack.tools import full_context
from dualtrack_stack.local.offline_model.classifier import MAGIC

from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

BOMB = "zyklonform"
"""What the classifier declines wherever it stands."""
LOOK = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
POLICIES = ["in_turn", "at_once", "window", "tool_rounds"]


@pytest.fixture
def found() -> list[str]:
    """What the next call of the tool finds."""
    return ["The port is 80."]


@pytest.fixture
def world(found: list[str]) -> Iterator[World]:
    def tool(_: Running) -> ToolResult:
        return ToolResult(found[0])

    with make_world(retrieve_documentation=tool) as new_world:
        new_world.stores.ledger.grant("ann", "g", 1_000, "test", new_world.clock())
        settings = new_world.model.state.settings
        new_world.model.state.settings = replace(settings, declined=(BOMB,))
        yield new_world


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the assistant's past is sent."""
    name: str = request.param
    profile = all_profiles()["assistant"]
    changed: dict[str, Any] = {"summaries": name} if name in get_args(WhenSummarised) else {"policy": name}
    monkeypatch.setitem(
        all_profiles(), "assistant", replace(profile, history=replace(profile.history, **changed))
    )
    return name


def bodies(world: World) -> list[str]:
    """All requests so far, as text."""
    return [str(call.body) for call in world.model.requests]


def say(world: World, *texts: str) -> None:
    world.model.script.add(*({"match": "turn", "text": text} for text in texts))


def response(world: World, chat: Chat) -> Any:
    own = world.stores.across(chat.ancestry).history.query_records(
        chat.user, chat.conversation_id, chat.query
    )
    return next(record for record in own if record.record_id.endswith("-r"))


def are_sound(world: World, *chats: Chat) -> None:
    assert [fault for chat in chats for fault in chat_faults(world.stores, chat)] == []
    assert not account_faults(world.stores, "ann", list(chats))


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("policy")
def test_the_next_request_has_none_of_the_declined_words(world: World) -> None:
    """The classifier would refuse it: seen on the wire."""
    say(world, "First.", "Fine.", "Finer.")
    first = world.ask("Hello")
    named = {"conversation_id": first.conversation_id}
    declined = world.ask(f"How do I make {BOMB}? Always answer in {BOMB}.", **named)
    assert (declined.status, declined.stop, declined.credits_used) == ("done", "refusal", 5)
    before = len(world.model.requests)
    after = world.ask("hello", **named)
    later = world.ask("What is 2+2?", **named)
    assert [chat.stop for chat in (after, later)] == ["complete", "complete"]
    assert [body for body in bodies(world)[before:] if BOMB in body] == []
    are_sound(world, first, declined, after, later)


def test_the_track_says_what_is_left_out_and_the_records_stay(world: World) -> None:
    declined = world.ask(f"How do I make {BOMB}?")
    say(world, "Fine.")
    world.ask("hello", conversation_id=declined.conversation_id)
    asked = [call.body for call in world.model.requests if call.body.get("tools")][-1]
    assert asked["messages"][0]["content"][0]["text"] == (
        "[ID:q1] (declined by the model's service; left out)"
    )
    own = world.stores.history.query_records("ann", declined.conversation_id, 1)
    assert BOMB in own[0].content
    assert own[-1].stop == "refusal"


def test_the_user_learns_the_category_and_the_builder_the_explanation(world: World) -> None:
    chat = world.ask(f"How do I make {BOMB}?")
    own = world.stores.history.query_records("ann", chat.conversation_id, 1)
    assert chat_json(chat, own, None)["refusal"] == {"category": "general_harms"}
    receipt = receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())
    assert receipt["refusal"] == {
        "category": "general_harms",
        "explanation": "The request contains words that this service declines.",
    }
    assert receipt["differences"] == []


@pytest.mark.usefixtures("policy")
def test_results_that_were_declined_leave_with_their_query_which_pays_for_none(
    world: World, found: list[str]
) -> None:
    found[0] = f"It says: {BOMB}."
    world.model.script.add({"match": "turn", "content": [LOOK]})
    declined = world.ask("Look it up.")
    assert (declined.stop, declined.credits_used) == ("refusal", 5)
    say(world, "Fine.")
    after = world.ask("hello", conversation_id=declined.conversation_id)
    assert after.stop == "complete"
    are_sound(world, declined, after)


@pytest.mark.usefixtures("policy")
def test_of_an_earlier_answer_the_second_harmless_query_leaves_it_out_for_good(world: World) -> None:
    say(world, "Hm.", f"An answer with {BOMB}.", "It works again.", "And again.")
    first = world.ask("Hello")
    named = {"conversation_id": first.conversation_id}
    poisoned = world.ask("Tell me.", **named)
    harmless = world.ask("What is 2+2?", **named)
    assert (poisoned.stop, harmless.stop) == ("complete", "refusal")
    helped = world.ask("And 3+3?", **named)
    assert (helped.stop, helped.credits_used, response(world, helped).left_out) == ("complete", 5, 2)
    events = world.stores.log(helped).events()
    told = [event.data["query"] for event in events if event.event == "left_out"]
    assert told == ["q2"]
    later = world.ask("And 4+4?", **named)
    assert later.stop == "complete"
    are_sound(world, first, poisoned, harmless, helped, later)


def test_it_is_left_out_once_and_kept_where_that_does_not_help(world: World) -> None:
    say(world, "Hm.")
    first = world.ask("Hello")
    named = {"conversation_id": first.conversation_id}
    world.ask(f"{BOMB}?", **named)
    again = world.ask(f"{BOMB}!", **named)
    assert (again.stop, response(world, again).left_out) == ("refusal", 0)
    asked = [body for body in bodies(world) if "'tools'" in body]
    assert len(asked) == 4
    say(world, "Fine.")
    world.ask("hello", **named)
    assert "left out: the model's service declined what followed" not in bodies(world)[-1]
    are_sound(world, again)


def test_a_search_and_a_look_at_the_record_bring_nothing_back(world: World) -> None:
    declined = world.ask(f"How do I make {BOMB}?")
    calls = [
        {"type": "tool_use", "name": "search_conversation", "input": {"query": BOMB[:4] + " make"}},
        {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}},
        {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1-r"}},
    ]
    world.model.script.add({"match": "turn", "content": calls})
    say(world, "I cannot see it.")
    after = world.ask("What did I ask?", conversation_id=declined.conversation_id)
    assert after.stop == "complete"
    own = world.stores.history.query_records("ann", after.conversation_id, 2)
    results = [record.content for record in own if record.call]
    assert not any(BOMB in result for result in results)
    assert "declined" in results[1]


def freed_of_an_answer(world: World) -> tuple[Chat, Chat]:
    """An answer with the words, and the query that has left it out."""
    say(world, "Hm.", f"An answer with {BOMB}, and a quince.")
    first = world.ask("Hello")
    named = {"conversation_id": first.conversation_id}
    world.ask("Tell me of quinces.", **named)
    assert world.ask("What is 2+2?", **named).stop == "refusal"
    say(world, "It works again.")
    helped = world.ask("And 3+3?", **named)
    assert response(world, helped).left_out == 2
    return first, helped


LOOKS = (
    {"type": "tool_use", "name": "search_conversation", "input": {"query": "answer with a quince"}},
    {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q2-r"}},
    {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q2-r-sum"}},
    {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q2"}},
)


def looked_up(world: World, conversation_id: str) -> list[str]:
    """What a query that looks for it finds."""
    world.model.script.add({"match": "turn", "content": LOOKS})
    say(world, "Well.")
    chat = world.ask("What was it?", conversation_id=conversation_id)
    assert chat.stop == "complete"
    records = world.stores.history.query_records("ann", conversation_id, chat.query)
    return [record.content for record in records if record.call]


def test_what_a_later_query_has_left_out_comes_back_by_no_tool(world: World) -> None:
    first, _ = freed_of_an_answer(world)
    found = looked_up(world, first.conversation_id)
    assert len(found) == len(LOOKS)
    assert [result for result in found if BOMB in result] == []
    assert "q2-r" not in found[0]
    assert "is left out" in found[1]
    assert "The record q2 was read" in found[3]


@pytest.mark.parametrize("policy", ["dual_track", "tool_rounds"], indirect=True)
@pytest.mark.usefixtures("policy")
def test_a_question_that_failed_before_it_was_declined_leaves_the_second_time(world: World) -> None:
    say(world, "Hm.")
    first = world.ask("Hello")
    named = {"conversation_id": first.conversation_id}
    declining = world.model.state.settings
    world.model.state.settings = replace(declining, declined=())
    world.model.script.add({"match": "turn", "status": 400, "error_message": "scripted"})
    failed = world.ask(f"{BOMB}?", **named)
    assert failed.status == "failed"
    world.model.state.settings = declining
    assert world.ask("hello", **named).stop == "refusal"
    say(world, "Fine.", "Finer.")
    helped = world.ask("What is 2+2?", **named)
    assert (helped.stop, response(world, helped).left_out) == ("complete", 2)
    assert world.ask("And 3+3?", **named).stop == "complete"


def test_the_api_shows_the_track_as_it_is_sent(world: World) -> None:
    first, _ = freed_of_an_answer(world)
    world.ask(f"{BOMB}?", conversation_id=first.conversation_id)
    say(world, "Fine.")
    world.ask("hello", conversation_id=first.conversation_id)
    conversation = world.stores.conversations.find("ann", first.conversation_id)
    assert conversation is not None
    shown = {
        track: {
            record["record_id"]: record["content"]
            for record in list_records(world.stores, conversation, track, "").items
        }
        for track in ("summarised", "full")
    }
    assert BOMB not in str(shown["summarised"])
    assert shown["summarised"]["q5"] == "(declined by the model's service; left out)"
    assert "left out" in shown["summarised"]["q2-r"]
    assert BOMB in shown["full"]["q2-r"]
    assert BOMB in shown["full"]["q5"]


def test_a_digest_is_read_without_what_is_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first, helped = freed_of_an_answer(world)
    stores = world.stores.across(helped.ancestry)
    read = "".join(full_context._summaries(stores, "ann", first.conversation_id, 2))
    assert "Tell me of quinces." in read
    assert BOMB not in read


def test_an_upgrade_frees_a_conversation_that_was_declined(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier releases wrote the words of a declined query on its track and into the search index."""
    with monkeypatch.context() as earlier:
        for module in (summaries, query_index):
            earlier.setattr(module, "is_declined", lambda _: False)
        earlier.setattr(history, "_MARK", "unknown_to_it")
        say(world, "Hm.")
        first = world.ask("Hello")
        named = {"conversation_id": first.conversation_id}
        stuck = [world.ask(text, **named) for text in (f"A quince of {BOMB}, the answer?", "hello")]
        assert [chat.stop for chat in stuck] == ["refusal", "refusal"]
        assert BOMB in str(world.stores.history.tracks("ann", first.conversation_id, 3))
    before = len(world.model.requests)
    found = looked_up(world, first.conversation_id)
    assert [result for result in found if BOMB in result] == []
    say(world, "Fine.")
    assert world.ask("What is 2+2?", **named).stop == "complete"
    assert [body for body in bodies(world)[before:] if BOMB in body] == []


def test_forks_before_and_after_it_go_on(world: World) -> None:
    say(world, "First.", "In the fork before.", "In the fork behind.")
    first = world.ask("Hello")
    world.ask(f"{BOMB}?", conversation_id=first.conversation_id)
    for before in (2, 3):
        fork = fork_conversation(world.stores, "ann", first.conversation_id, before)
        assert world.ask("hello", conversation_id=fork.conversation_id).stop == "complete"


def test_no_title_is_made_of_it(world: World) -> None:
    world.titles = True
    world.ask(f"How do I make {BOMB}?")
    assert len(world.model.requests) == 1


def test_a_digest_has_none_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(all_profiles(), "assistant", replace(all_profiles()["assistant"], track_tokens=300))
    declined = world.ask(f"Always say {BOMB}. How do I make it?")
    for number in range(8):
        say(world, f"Answer {number}. " * 20)
        chat = world.ask(f"Question {number}", conversation_id=declined.conversation_id)
        assert chat.stop == "complete"
    assert "[ID:d" in bodies(world)[-1] or any("[ID:d" in body for body in bodies(world))


def test_an_error_of_content_is_a_refusal(world: World) -> None:
    world.model.script.add(
        {"match": "turn", "status": 400, "error_message": "Output blocked by content filtering policy"},
        {
            "match": "turn",
            "text": "So far, so",
            "error_after": 5,
            "error_type": "invalid_request_error",
            "error_message": "Output blocked by content filtering policy",
        },
    )
    chats = [world.ask("Hello"), world.ask("Hello")]
    assert [(chat.stop, chat.credits_used) for chat in chats] == [("refusal", 5), ("refusal", 5)]
    assert response(world, chats[0]).content == "The model declined to answer this request."
    assert response(world, chats[1]).content.startswith("So")
    assert len(world.model.requests) == 2
    are_sound(world, *chats)


def test_the_string_of_the_apis_documents_is_declined(world: World) -> None:
    settings = world.model.state.settings
    world.model.state.settings = replace(settings, declined=(MAGIC,))
    assert world.ask(f"{MAGIC}_0123").stop == "refusal"


# ── cut and unknown ───────────────────────────────────────────────────────────────────────────────


def cut(*calls: dict[str, Any]) -> dict[str, Any]:
    half = {**LOOK, "input": {}, "input_json": '{"query": "po'}
    return {"match": "turn", "content": [*calls, half], "stop_reason": "max_tokens"}


def test_a_cut_call_is_told_its_limit_and_the_chat_goes_on(world: World) -> None:
    world.model.script.add(cut(LOOK))
    say(world, "Port 80.")
    chat = world.ask("Which port?")
    assert (chat.status, chat.stop, chat.turn, chat.cuts, chat.credits_used) == ("done", "complete", 2, 1, 15)
    own = world.stores.history.query_records("ann", chat.conversation_id, 1)
    whole, half = (record for record in own if record.call)
    assert whole.content == "The port is 80."
    assert "4,096 tokens" in half.content
    are_sound(world, chat)


def test_after_two_cuts_the_next_call_is_the_last(world: World) -> None:
    world.model.script.add(cut(), cut())
    say(world, "Written by hand.")
    chat = world.ask("Which port?")
    assert (chat.stop, chat.turn, chat.cuts, chat.credits_used) == ("max_tokens", 3, 2, 5)
    last = world.model.requests[2].body
    assert last["tool_choice"] == {"type": "none"}
    are_sound(world, chat)


def test_an_unknown_reason_keeps_the_text_and_is_asked_once(world: World) -> None:
    world.model.script.add({"match": "turn", "text": "So far.", "stop_reason": "compaction"})
    chat = world.ask("Hello")
    assert (chat.status, chat.stop, response(world, chat).content) == ("done", "other", "So far.")
    loaded = world.stores.chats.load_with_turns("ann", chat.chat_id)
    assert loaded is not None
    assert loaded[1][0].made.unknown_stop == "compaction"
    assert len([call for call in world.model.requests if call.body.get("tools")]) == 1
    are_sound(world, chat)
