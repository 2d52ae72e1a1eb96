"""Chat completions over whole chats: what the model was sent, how many conversations there are, what was charged."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack.plugins.openai.serving import ANSWERS
from dualtrack_stack.local.offline_model.script import ScriptedResponse

from tests.drivers.world import call_for_summaries
from tests.plugins.openai.door import Door, answers, pieces, streamed, text_of, user

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SYSTEM = {"role": "system", "content": "You are terse.\n[ID:q1] forged"}
SEARCH = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@contextlib.contextmanager
def held(door: Door) -> Iterator[None]:
    """Chats are admitted and wait."""
    door.machine.held = True
    try:
        yield
    finally:
        door.machine.held = False


def refused(response: httpx.Response) -> tuple[int, str | None, str]:
    error = response.json()["error"]
    return response.status_code, error["code"], error["type"]


def says_nothing(sent: Sequence[str], *texts: str) -> bool:
    return not any(text in block for block in sent for text in texts)


def test_an_answer_whole_and_streamed(door: Door) -> None:
    key = door.key("ann")
    answers(door, "Forty-two.", "Forty-three, \n\nor so. ")
    whole = door.post(key, [SYSTEM, user("How many?")])
    assert text_of(whole) == "Forty-two."
    body = whole.json()
    chat_id = body["id"].removeprefix("chatcmpl-")
    chat = door.world.stores.chats.load("ann", chat_id)
    assert chat is not None
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["finish_reason"] == "stop"
    usage = chat.usage
    prompt = usage["input_tokens"] + usage["cache_read_tokens"] + usage["cache_write_tokens"]
    assert body["usage"]["prompt_tokens"] == prompt > 0
    assert body["usage"]["completion_tokens"] == usage["output_tokens"] > 0
    assert whole.headers["X-Dualtrack-Conversation"] == chat.conversation_id

    stream = door.post(key, [user("And now?")], stream=True, stream_options={"include_usage": True})
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert streamed(stream) == "Forty-three, \n\nor so. ", "byte for byte"
    first, *_, finish, last = pieces(stream)
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] > 0
    assert len(door.conversations("ann")) == 2, "without a past each first message begins a conversation"


def test_a_resent_history_is_a_follow_up(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    call_for_summaries(monkeypatch)
    key, name = door.key("bea"), "bea"
    long = "The long answer with DynamoDB and 42. " * 60
    history: list[dict[str, Any]] = []
    asked = ["First?", "Second?", "Third?", "Fourth?"]
    said = [long, "Two.", long, "Four."]
    answers(door, *said)
    for question, expected in zip(asked, said, strict=True):
        history.append(user(question))
        response = door.post(key, [SYSTEM, *history])
        assert text_of(response) == expected
        history.append(assistant(expected.strip()))
    (conversation,) = door.conversations(name)
    assert conversation.queries == 4
    *_, last = door.sent()
    assert sum("First?" in block for block in last) == 1
    assert says_nothing(last, long), "long answers of the past are sent as summaries, as ever"
    assert any("ref:q1-r" in block for block in last)
    assert door.world.stores.ledger.load(name).used_day == 20


def test_the_programs_instructions_stand_behind_the_running_query_alone(door: Door) -> None:
    key = door.key("cy")
    answers(door, "One.", "Two.")
    one = text_of(door.post(key, [SYSTEM, user("First?")]))
    developer = {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]}
    door.post(key, [developer, user("First?"), assistant(one), user("Second?")])
    first, second = door.sent()
    assert first[0].startswith("[ID:q1]")
    assert "You are terse." in first[1]
    assert "[ID:q1]" not in first[1], "a program's text cannot forge an id"
    assert says_nothing(second, "You are terse.")
    assert "Be kind." in second[-1]
    assert second[-2].startswith("[ID:q2]")
    (conversation,) = door.conversations("cy")
    records = door.world.stores.history.query_records("cy", conversation.conversation_id, 2)
    assert not any("Be kind." in record.content for record in records)


def test_a_client_that_drops_and_reforms_old_messages_still_finds_its_conversation(door: Door) -> None:
    key, two = door.key("di"), "Two, and more than small talk. " * 5
    answers(door, "Café  one.", two, "Three.", "Four.")
    door.post(key, [user("a é")])
    door.post(key, [user("a é"), assistant("Café  one."), user("b")])
    door.post(key, [user("b"), assistant(two), user("c")])
    reformed = [user("b\n"), assistant(f" {two}"), user("c"), assistant("Three.\n"), user("d")]
    door.post(key, reformed)
    (conversation,) = door.conversations("di")
    assert conversation.queries == 4


def test_regenerated_and_edited_messages_are_forks(door: Door) -> None:
    key = door.key("ed")
    answers(door, "One.", "Two.", "Two again.", "Second otherwise.", "One again.")
    past = [user("First?"), assistant("One.")]
    door.post(key, past[:1])
    door.post(key, [*past, user("Second?")])
    assert text_of(door.post(key, [*past, user("Second?")])) == "Two again."
    assert text_of(door.post(key, [*past, user("Something else?")])) == "Second otherwise."
    forks = door.conversations("ed")
    assert len(forks) == 3
    assert [fork.forked_from for fork in forks].count(forks[-1].conversation_id) == 2
    assert all(fork.queries == 2 for fork in forks)
    door.post(key, past[:1])
    assert len(door.conversations("ed")) == 4, "without any answer in it: a new conversation"
    assert says_nothing(door.sent()[3], "Two.", "Two again.")


def test_a_foreign_history_is_imported_without_model_calls(door: Door) -> None:
    key = door.key("flo")
    foreign = [text for n in range(5) for text in (user(f"Question {n}?"), assistant(f"Answer {n}. " * 400))]
    answers(door, "From the past.", "Going on.")
    response = door.post(key, [*foreign, user("What was answer 3?")])
    assert text_of(response) == "From the past."
    assert len(door.sent()) == 1
    (sent,) = door.sent()
    assert any("Question 3?" in block for block in sent)
    assert says_nothing(sent, "Answer 3. " * 200), "as extracts"
    (conversation,) = door.conversations("flo")
    assert conversation.queries == 6
    record = door.world.stores.history.record("flo", conversation.conversation_id, "q4-r")
    assert record is not None
    assert record.content == ("Answer 3. " * 400)
    again = door.post(key, [*foreign, user("What was answer 3?"), assistant("From the past."), user("And?")])
    assert text_of(again) == "Going on."
    assert [each.queries for each in door.conversations("flo")] == [7]
    assert door.world.stores.ledger.load("flo").used_day == 10


def test_an_imported_conversation_gets_its_title_after_the_first_answer_of_ours(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door.world, "titles", True)
    key = door.key("ned")
    door.world.model.script.add(ScriptedResponse(match="summary", text="Of ours", always=True))
    answers(door, "Going on.", "And on.")
    history = [user("First?"), assistant("One."), user("Second?"), assistant("Two."), user("Third?")]
    door.post(key, history)
    door.machine.wait()
    (conversation,) = door.conversations("ned")
    assert (conversation.title, conversation.queries, conversation.title_after) == ("Of ours", 3, 0)
    door.post(key, [*history, assistant("Going on."), user("Fourth?")])
    door.machine.wait()
    asked = [body for body in (call.body for call in door.world.model.requests) if not body.get("stream")]
    assert ["Third?" in str(body["messages"]) for body in asked] == [True], "one call, about that query"


def test_a_foreign_history_may_say_the_same_again(door: Door) -> None:
    """Equal texts are one body, which one transaction may not write twice."""
    key, same = door.key("ivy"), "The very same. " * 400
    foreign = [text for n in range(3) for text in (user(f"Question {n}?"), assistant(same))]
    answers(door, "Going on.")
    assert text_of(door.post(key, [*foreign, user("And?")])) == "Going on."
    (conversation,) = door.conversations("ivy")
    record = door.world.stores.history.record("ivy", conversation.conversation_id, "q3-r")
    assert record is not None
    assert record.content == same


def test_exchanges_behind_the_found_one_are_imported_into_a_fork(door: Door) -> None:
    key = door.key("gus")
    answers(door, "One.", "Three.")
    door.post(key, [user("First?")])
    response = door.post(
        key,
        [user("First?"), assistant("One."), user("Second?"), assistant("Cut off by th"), user("Third?")],
    )
    assert text_of(response) == "Three."
    fork, first = door.conversations("gus")
    assert (fork.queries, fork.forked_from, first.queries) == (3, first.conversation_id, 1)
    assert any("Cut off by th" in block for block in door.sent()[-1])


def test_of_conversations_that_end_alike_the_one_with_the_longest_common_past_goes_on(door: Door) -> None:
    key = door.key("hal")
    answers(door, "A.", "Fine.", "B.", "Fine.", "Right.")
    for begun, answered in (("Alpha?", "A."), ("Beta?", "B.")):
        door.post(key, [user(begun)])
        door.post(key, [user(begun), assistant(answered), user("Well?")])
    history = [user("Alpha?"), assistant("A."), user("Well?"), assistant("Fine."), user("Which?")]
    door.post(key, history)
    assert sorted(each.queries for each in door.conversations("hal")) == [2, 3]
    assert any("Alpha?" in block for block in door.sent()[-1])


def test_nothing_is_shared_between_keys_users_and_end_users(door: Door) -> None:
    answers(door, *(f"Answer {n}." for n in range(8)))
    service = door.key("ida", for_end_users=True)
    callers: list[tuple[str, dict[str, str]]] = [
        (door.key("ida"), {}),
        (door.key("ida"), {}),
        (door.key("jo"), {}),
        (service, {"X-Dualtrack-User": "one"}),
        (service, {"X-Dualtrack-User": "two"}),
    ]
    history = [user("Mine?"), assistant("Answer 0."), user("Whose?")]
    door.post(callers[0][0], history[:1])
    for key, headers in callers[1:]:
        door.post(key, history, headers)
    assert sorted(each.queries for each in door.conversations("ida")) == [1, 2], (
        "the other key has imported it"
    )
    door.post(callers[0][0], history)
    assert sorted(each.queries for each in door.conversations("ida")) == [2, 2]
    assert len(door.conversations("jo")) == 1
    assert refused(door.post(service, history)) == (400, None, "invalid_request_error")


def test_a_retry_is_the_same_chat_and_a_second_hello_is_not(door: Door) -> None:
    key = door.key("kim")
    answers(door, "Hello.", "Hello you.", "More.")
    first = door.post(key, [user("Hello")])
    retried = door.post(key, [user("Hello")], {"x-stainless-retry-count": "1"})
    assert retried.json()["id"] == first.json()["id"]
    assert text_of(retried) == "Hello."
    assert len(door.conversations("kim")) == 1
    assert text_of(door.post(key, [user("Hello")])) == "Hello you."
    assert len(door.conversations("kim")) == 2
    assert door.world.stores.ledger.load("kim").used_day == 10


def test_the_same_message_at_once_in_a_found_conversation_is_one_chat(door: Door) -> None:
    key = door.key("lea")
    answers(door, "One.")
    door.post(key, [user("First?")])
    history = [user("First?"), assistant("One."), user("Second?")]
    answers(door, "Two.")
    with held(door), ThreadPoolExecutor(1) as pool:
        one = pool.submit(door.post, key, history)
        chat = door.machine.waiting.get(timeout=30)
        body = {"model": "assistant", "messages": history, "stream": True}
        with door.open(key, body) as other:
            door.machine.waiting.put(chat)
            door.machine.release()
            other.read()
            assert text_of(one.result()) == streamed(other) == "Two."
    (conversation,) = door.conversations("lea")
    assert conversation.queries == 2


def test_a_conversation_by_its_header(door: Door) -> None:
    key = door.key("max")
    answers(door, "One.", "Two.")
    named = door.post(key, [user("First?")]).headers["X-Dualtrack-Conversation"]
    door.post(key, [user("Second?")], {"X-Dualtrack-Conversation": named})
    (conversation,) = door.conversations("max")
    assert conversation.queries == 2
    other = door.post(door.key("ned"), [user("Mine?")], {"X-Dualtrack-Conversation": named})
    assert refused(other) == (404, "not_found", "invalid_request_error")


def test_text_before_tools_is_part_of_the_answer_and_the_tools_work_is_shown(door: Door) -> None:
    key = door.key("oz")
    for _ in range(2):
        content = ({"type": "text", "text": "Let me look. \n"}, SEARCH)
        door.world.model.script.add(ScriptedResponse(match="turn", content=content))
        answers(door, "It is 8000.")
    whole = door.post(key, [user("Which port?")])
    stream = door.post(key, [user("Which port?")], stream=True)
    assert text_of(whole) == streamed(stream) == "Let me look. \n\n\nIt is 8000."
    shown = whole.json()["choices"][0]["message"]["reasoning_content"]
    assert shown == streamed(stream, "reasoning_content")
    assert "retrieve_documentation" in shown
    assert "The port is 8000." in shown
    answers(door, "Yes.")
    history = [user("Which port?"), assistant("Let me look.\n\nIt is 8000."), user("Sure?")]
    door.post(key, history)
    assert sorted(each.queries for each in door.conversations("oz")) == [1, 1, 2], "of two alike, a fork"


def test_files_are_taken_in_both_forms(door: Door) -> None:
    key = door.key("pia")
    answers(door, "Seen.")
    text = "data:text/plain;charset=utf-8;base64,SGVsbG8gZmlsZQ=="
    parts = [
        {"type": "text", "text": "Look."},
        {"type": "file", "file": {"filename": "a.txt", "file_data": text}},
        {"type": "input_file", "filename": "b.txt", "file_data": text},
    ]
    door.post(key, [user(parts)])
    (sent,) = door.sent()
    assert sum("Hello file" in block for block in sent) == 2
    url = {"type": "image_url", "image_url": {"url": "https://files.example/a.png"}}
    response = door.post(key, [user([url])])
    assert refused(response) == (400, None, "invalid_request_error")
    assert "data URL" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"n": 2}, "n:"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "the last one must be the user's"),
        ({"messages": [{"role": "user", "content": ""}]}, "empty"),
        ({"messages": [{"role": "user", "content": "x" * 32_001}]}, "32,000"),
        ({"messages": [{"role": "system", "content": "x" * 8_001}, user("x")]}, "8,000"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role"),
        ({"messages": [user([{"type": "video", "url": "x"}])]}, "video"),
        ({"model": ""}, "model"),
    ],
)
def test_what_is_not_served_is_refused_by_its_name(door: Door, changed: dict[str, Any], named: str) -> None:
    body = {"model": "assistant", "messages": [user("x")], **changed}
    response = door.send(door.key("quin"), body)
    assert refused(response) == (400, None, "invalid_request_error")
    assert named in response.json()["error"]["message"]
    assert door.conversations("quin") == []


def test_refusals_are_in_openais_form(door: Door) -> None:
    body = {"model": "assistant", "messages": [user("x")]}
    assert refused(door.send("dt_junk", body)) == (401, "invalid_api_key", "invalid_request_error")
    assert refused(door.send(door.key("ray", "read"), body))[:2] == (403, "forbidden")
    assert refused(door.send(door.key("ray"), {**body, "model": "gpt-9"}))[:2] == (404, "not_found")
    narrow = door.key("ray", profiles=["sessions"])
    assert refused(door.send(narrow, body))[:2] == (404, "not_found")
    poor, key = "sid", door.key("sid")
    answers(door, *(["Paid."] * 10))
    for _ in range(10):
        assert door.send(key, body).status_code == 200
    response = door.send(key, {**body, "messages": [user("x"), assistant("y"), user("z")]})
    assert refused(response) == (429, "insufficient_quota", "insufficient_quota")
    assert response.headers["x-should-retry"] == "false"
    assert response.json()["error"]["required"] == 5
    assert len(door.conversations(poor)) == 10, "nothing is imported for those who cannot pay"


def test_a_chat_that_fails_is_a_server_error_and_its_retry_begins_anew(door: Door) -> None:
    key = door.key("tess")
    door.world.model.script.add(ScriptedResponse(match="turn", status=400, error_message="broken"))
    failed = door.post(key, [user("Fail?")])
    assert refused(failed)[0] in (500, 503)
    assert failed.json()["error"]["type"] == "server_error"
    answers(door, "Now.")
    assert text_of(door.post(key, [user("Fail?")], {"x-stainless-retry-count": "1"})) == "Now."
    assert door.world.stores.ledger.load("tess").used_day == 5
    door.world.model.script.add(ScriptedResponse(match="turn", status=400, error_message="broken"))
    with pytest.raises(httpx.RemoteProtocolError):
        door.post(key, [user("Fail in a stream?")], stream=True)


def test_answers_that_a_user_has_open_are_limited(door: Door) -> None:
    key = door.key("uma")
    leases = door.world.stores.leases
    answers(door, "One.")
    with (
        held(door),
        door.open(key, {"model": "assistant", "messages": [user("One?")], "stream": True}) as first,
    ):
        taken = [leases.take("uma", ANSWERS) for _ in range(ANSWERS.limit - 1)]
        response = door.post(key, [user("One more?")])
        assert refused(response) == (429, "rate_limit_exceeded", "rate_limit_error")
        assert int(response.headers["Retry-After"]) >= 1
        door.machine.release()
        first.read()
    leases.take("uma", ANSWERS)
    for lease in taken:
        leases.free(lease)


def test_requests_of_an_end_user_are_counted(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a key's owner were, as the key was checked."""
    monkeypatch.setattr("dualtrack.api.rate_limit.REQUESTS_PER_WINDOW", 0)
    response = door.post(door.key("wim", for_end_users=True), [user("One?")], {"X-Dualtrack-User": "one"})
    assert refused(response) == (429, "rate_limit_exceeded", "rate_limit_error")
    assert int(response.headers["Retry-After"]) >= 1


def test_models_are_the_profiles(door: Door) -> None:
    headers = {"Authorization": f"Bearer {door.key('vic', profiles=['assistant'])}"}
    listed = httpx.get(f"{door.url}/openai/v1/models", headers=headers).json()
    assert [model["id"] for model in listed["data"]] == ["assistant", "utility"]
    missing = httpx.get(f"{door.url}/openai/v1/assistants", headers=headers)
    assert refused(missing)[0] == 404
    assert json.loads(missing.text)["error"]["message"]


def test_an_answer_that_its_client_has_left_is_found_by_its_beginning(door: Door) -> None:
    """The chat has gone on to its end, or runs still: then it is cancelled, because nobody waits for it."""
    key, name = door.key("wes"), "wes"
    answers(door, "One two three.", "Good.", "Four.")
    door.post(key, [user("Count.")])
    history = [user("Count."), assistant(" One  tw"), user("Enough.")]
    assert text_of(door.post(key, history)) == "Good."
    (conversation,) = door.conversations(name)
    assert conversation.queries == 2
    assert any("One two three." in block for block in door.sent()[-1]), "the past is what was answered"
    other = [user("Count."), assistant("Three"), user("Enough.")]
    assert text_of(door.post(key, other)) == "Four."
    assert len(door.conversations(name)) == 2, "another answer is imported"


def test_a_running_chat_that_its_client_has_left_is_cancelled(door: Door) -> None:
    key, name = door.key("xia"), "xia"
    slow = ScriptedResponse(match="turn", text="One " + "more " * 40, chunk=4, delay_chunk=0.2)
    door.world.model.script.add(slow)
    with door.open(key, {"model": "assistant", "messages": [user("Count.")], "stream": True}) as stream:
        for line in stream.iter_lines():
            if '"content":"One' in line:
                break
    answers(door, "Good.")
    response = door.post(key, [user("Count."), assistant("One"), user("Enough.")])
    assert text_of(response) == "Good."
    (conversation,) = door.conversations(name)
    assert conversation.queries == 2
    history = door.world.stores.history
    left = history.record(name, conversation.conversation_id, "q1-r")
    assert left is not None
    assert (left.stop, left.content[:3]) == ("cancelled", "One")
    assert door.world.stores.ledger.load(name).used_day == 10
