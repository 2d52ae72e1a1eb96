"""Nobody's message goes into another conversation, and nobody's past into another's request: the ways in which equal
texts could join what belongs to two. Behind one plain key there may be many people."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack.plugins.openai.exchanges import Exchange, ExchangePlace, is_likely, is_whole, trail_of
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.drivers.images import png
from tests.plugins.openai.door import Door, answers, said, text_of, user

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMED = "X-Dualtrack-Conversation"
FLAT = {"type": "function", "name": "count_files", "parameters": {"type": "object"}}
COUNT = {"type": "function", "function": {"name": "count_files", "parameters": {"type": "object"}}}
SECRET = "My account is 4711."
CALL = ScriptedResponse(match="turn", content=({"type": "tool_use", "name": "count_files", "input": {}},))


def respond(door: Door, key: str, sent: object, **more: Any) -> dict[str, Any]:
    body = {"model": "assistant", "input": sent, **more}
    headers = {"Authorization": f"Bearer {key}"}
    response = httpx.post(f"{door.url}/openai/v1/responses", json=body, headers=headers, timeout=30)
    assert response.status_code == 200, response.text
    made: dict[str, Any] = response.json()
    return made


def conversation_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return response.headers[NAMED]


def last_sent(door: Door) -> str:
    return "\n".join(door.sent()[-1])


def by_a_tool(door: Door, key: str, found: str, *, number: int) -> tuple[list[Any], dict[str, Any]]:
    """A conversation in which the client's tool has found something; its items, and its answer."""
    door.world.model.script.add(CALL)
    answers(door, "Three.")
    items: list[Any] = [user("How many?")]
    asked = respond(door, key, items, tools=[FLAT])
    call = asked["output"][0]
    items += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": found}]
    answer = respond(door, key, items, tools=[FLAT])
    items += answer["output"]
    assert len(door.conversations("ann")) == number
    return items, answer


def test_a_calls_id_names_its_conversation_before_any_hash(door: Door) -> None:
    """Two conversations with an equal exchange, one resent whole over responses, with further equal exchanges behind
    it."""
    key = door.key("ann")
    first, answer = by_a_tool(door, key, "Three of mine.", number=1)
    second, other = by_a_tool(door, key, "Three of another.", number=2)
    answers(door, "Yes.", "Yes.", "So be it.", "So be it too.")
    for items in (first, second):
        items.append(user("Sure?"))
        items.extend(respond(door, key, items, tools=[FLAT])["output"])
    more = respond(door, key, [*first, user("And now?")], tools=[FLAT])
    assert more["conversation"] == answer["conversation"]
    sent = str(door.world.model.requests[-1].body)
    assert "of mine" in sent
    assert "of another" not in sent
    more = respond(door, key, [*second, user("And now?")], tools=[FLAT])
    assert more["conversation"] == other["conversation"]
    assert sorted(each.queries for each in door.conversations("ann")) == [3, 3]


def test_what_a_tool_has_found_is_not_had_by_its_answers_text(door: Door) -> None:
    key = door.key("bea")
    door.world.model.script.add(CALL)
    answers(door, "Three.", "Well.")
    asked = respond(door, key, "How many?", tools=[FLAT])
    call = asked["output"][0]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": SECRET}
    respond(door, key, [result], previous_response_id=asked["id"], tools=[FLAT])
    stranger = door.post(key, said("How many?", "Three.", "Which?"))
    assert conversation_of(stranger) != asked["conversation"]["id"]
    assert SECRET not in last_sent(door)


def test_an_exchange_that_is_noted_late_has_its_trail(door: Door) -> None:
    """Read later, in the background: it is no beginning of a conversation."""
    key = door.key("cy")
    answers(door, "Noted.", "You're welcome!", "Well.", "Once more.")
    first = respond(door, key, SECRET)
    late = respond(door, key, "Thanks!", previous_response_id=first["id"], background=True)
    door.machine.wait()
    read = httpx.get(
        f"{door.url}/openai/v1/responses/{late['id']}", headers={"Authorization": f"Bearer {key}"}
    )
    assert read.json()["status"] == "completed"
    stranger = door.post(key, said("Thanks!", "You're welcome!", "What did I say?"))
    assert conversation_of(stranger) != first["conversation"]["id"]
    assert SECRET not in last_sent(door)
    whole = door.post(key, said(SECRET, "Noted.", "Thanks!", "You're welcome!", "What did I say?"))
    assert conversation_of(whole) == first["conversation"]["id"]
    assert SECRET in last_sent(door)


@pytest.mark.parametrize("is_named", [False, True])
def test_small_talk_opens_nobodys_past(door: Door, *, is_named: bool) -> None:
    key = door.key(f"di{is_named}")
    answers(door, "Noted.", "You're welcome!", "Well.", "Of course.")
    first = conversation_of(door.post(key, [user(SECRET)]))
    if is_named:
        door.post(key, [user("Thanks!")], {NAMED: first})
    else:
        door.post(key, said(SECRET, "Noted.", "Thanks!"))
    stranger = door.post(key, said("Thanks!", "You're welcome!", "What did I say?"))
    assert conversation_of(stranger) != first
    assert SECRET not in last_sent(door)
    own = door.post(key, said(SECRET, "Noted.", "Thanks!", "You're welcome!", "And now?"))
    assert conversation_of(own) == first


def test_of_two_that_are_alike_neither_gets_the_message(door: Door) -> None:
    """One of them goes on by the header: it must not meet what the other has said."""
    key = door.key("ed")
    answers(door, "Hello!", "Hello!", "Noted.", "Nothing.")
    one, other = (conversation_of(door.post(key, [user("Hi")])) for _ in range(2))
    joined = conversation_of(door.post(key, said("Hi", "Hello!", SECRET)))
    assert joined not in (one, other)
    for named in (one, other):
        door.post(key, [user("What was said?")], {NAMED: named})
        assert SECRET not in last_sent(door)


def test_another_file_is_another_exchange(door: Door) -> None:
    key = door.key("flo")

    def look(filling: bytes) -> dict[str, Any]:
        data = base64.b64encode(png(filling)).decode()
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        return user([{"type": "text", "text": "What is it?"}, image])

    answers(door, "A cat.", "Grey.", "Black.")
    first = conversation_of(door.post(key, [look(b"1")]))
    stranger = door.post(key, [look(b"2"), {"role": "assistant", "content": "A cat."}, user("Which colour?")])
    assert conversation_of(stranger) != first
    own = door.post(key, [look(b"1"), {"role": "assistant", "content": "A cat."}, user("Which colour?")])
    assert conversation_of(own) == first


def test_whom_the_client_names_is_told_apart(door: Door) -> None:
    key = door.key("gus")
    answers(door, "Hello!", "Well.", "Yes.")
    first = conversation_of(door.post(key, [user("Hi")], user="ann"))
    assert conversation_of(door.post(key, said("Hi", "Hello!", "So?"), user="ben")) != first
    assert conversation_of(door.post(key, said("Hi", "Hello!", "So?"), safety_identifier="ann")) == first


def test_an_answer_that_another_is_reading_is_not_cancelled(door: Door) -> None:
    """Two have asked the same, and one of them has left before the end."""
    key = door.key("hal")
    slow = ScriptedResponse(match="turn", text="One " + "more " * 40, chunk=4, delay_chunk=0.05)
    door.world.model.script.add(slow, slow)
    body: Mapping[str, Any] = {"model": "assistant", "messages": [user("Count.")], "stream": True}
    with door.open(key, body) as mine, door.open(key, body) as others:
        lines, theirs = mine.iter_lines(), others.iter_lines()
        for begun in (lines, theirs):
            next(line for line in begun if '"content":"One' in line)
        answers(door, "Good.")
        left = door.post(key, [user("Count."), {"role": "assistant", "content": "One"}, user("Enough.")])
        assert text_of(left) == "Good."
        for stream, rest in ((mine, lines), (others, theirs)):
            text = "\n".join(rest)
            assert '"finish_reason":"stop"' in text, stream.headers[NAMED]
            assert conversation_of(left) != stream.headers[NAMED]


def test_what_runs_for_another_program_is_not_answered_with(door: Door) -> None:
    key = door.key("ivy")
    answers(door, "Hello!")
    door.post(key, [user("Hi")])
    history = said("Hi", "Hello!", "Who am I?")
    slow = ScriptedResponse(match="turn", text="You are Ann. " * 9, chunk=4, delay_chunk=0.05)
    door.world.model.script.add(slow)
    anns = [{"role": "system", "content": "The user is Ann."}, *history]
    with door.open(key, {"model": "assistant", "messages": anns, "stream": True}) as stream:
        answers(door, "You are Ben.")
        bens = door.post(key, [{"role": "system", "content": "The user is Ben."}, *history])
        assert text_of(bens) == "You are Ben."
        stream.read()
    assert conversation_of(bens) != stream.headers[NAMED]


def test_a_retry_does_not_mean_what_another_has_gone_on_with(door: Door) -> None:
    key, again = door.key("jo"), {"x-stainless-retry-count": "1"}
    answers(door, "Hello!", "Noted.", "Hello you!")
    first = conversation_of(door.post(key, [user("Hi")]))
    assert conversation_of(door.post(key, [user("Hi")], again)) == first
    door.post(key, said("Hi", "Hello!", SECRET))
    late = door.post(key, [user("Hi")], again)
    assert text_of(late) == "Hello you!"
    assert conversation_of(late) != first


def test_another_users_call_names_nothing(door: Door) -> None:
    door.world.model.script.add(CALL)
    mine = door.key("kim")
    history: list[Any] = [user("How many?")]
    message = door.post(mine, history, tools=[COUNT]).json()["choices"][0]["message"]
    history += [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "3"}]
    answers(door, "Well.", "Well, well.")
    for other in (door.key("lea"), door.key("kim", "chat")):
        response = door.post(other, [*history, {"role": "assistant", "content": "Three."}, user("So?")])
        assert response.status_code == 200, response.text
        assert "waits" not in response.text
    assert len(door.world.stores.paused.of("kim")) == 1, "it waits still"


def exchanges(*texts: str) -> list[Exchange]:
    return [Exchange(text, f"{text}.") for text in texts]


def test_what_proves_a_conversation() -> None:
    past = exchanges("a", "b", "c")
    place = ExchangePlace("cv_1", 3, trail_of(past[:2]))
    assert is_whole(place, trail_of(past[:2]))
    assert is_whole(place, trail_of([*exchanges("older"), *past[:2]])), "the client knows more than is there"
    assert not is_whole(place, trail_of(past[1:2]))
    assert not is_whole(ExchangePlace("cv_1", 3), trail_of(past[:2])), "of what is not noted nothing is known"
    assert is_likely(place, past[1:])
    assert not is_likely(place, past[2:]), "too little was resent"
    assert is_likely(place, [*past[:2], Exchange("c", "long " * 50)][2:])
    assert not is_likely(place, [*exchanges("x"), *past[1:]]), "it contradicts"
