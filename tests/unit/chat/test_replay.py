"""The policies `window` and `tool_rounds`, from the records to what goes over the wire (PROFILES 1 and 3)."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.conversations import list_records
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.events import delta, turn_begins
from dualtrack.memory.estimate import message_tokens
from dualtrack.profiles import History, all_profiles
from dualtrack.storage.stores import build_stores
from dualtrack.tool_values import ToolResult

from tests.drivers.world import SETTINGS, World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

SEARCH = "retrieve_documentation"
LEFT_OUT = "(The details of this tool call are left out here: retrieve_full_context with the id {} gives its result.)"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Every search finds ``found <query>``."""
    with make_world(
        **{SEARCH: lambda running: ToolResult(f"found {running.call.input['query']}")}
    ) as new_world:
        use(monkeypatch)
        new_world.stores.ledger.grant("ann", "g", 100_000, "test", new_world.clock())
        yield new_world


def use(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Change these fields of the deployment's assistant."""
    monkeypatch.setitem(all_profiles(), "assistant", replace(all_profiles()["assistant"], **changes))


def ask(world: World, message: str, rounds: list[list[str]] = [], answer: str = "", **more: Any) -> Chat:  # noqa: B006
    """A query whose model searches in these rounds and then answers."""
    said = [
        {
            "match": "turn",
            "content": [
                {"type": "text", "text": f"Looking for {' and '.join(queries)}."},
                *({"type": "tool_use", "name": SEARCH, "input": {"query": query}} for query in queries),
            ],
        }
        for queries in rounds
    ]
    world.model.reset()
    world.model.script.add(*said, {"match": "turn", "text": answer or f"Answer to {message}."})
    return world.ask(message, **more)


def first_sent(world: World) -> list[dict[str, Any]]:
    """The messages of the last query's first call, without cache marks."""
    turns = [request.body for request in world.model.requests if request.body.get("stream")]
    assert [request.refused for request in world.model.requests if request.refused] == []
    return unmarked(turns[0])


def unmarked(body: Any) -> list[dict[str, Any]]:
    """A request's messages without cache marks."""
    text = json.dumps(body["messages"]).replace(', "cache_control": {"type": "ephemeral"}', "")
    return list(json.loads(text))


def shown(messages: list[dict[str, Any]]) -> list[str]:
    """A line for each block: who says what."""
    return [f"{message['role'][0]} {_shown(block)}" for message in messages for block in message["content"]]


def _shown(block: dict[str, Any]) -> str:
    if block["type"] == "tool_use":
        return f"call {json.dumps(block['input'])}"
    if block["type"] == "tool_result":
        return f"result {block['content'][0]['text']}"
    return str(block["text"])


WINDOW = History("window", exchanges=2, as_written=True)


def test_a_window_sends_the_last_exchanges_whole_and_no_tools(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, history=WINDOW, query_template="Answer this: {query}")
    long = "A long answer. " * 100
    chat = ask(world, "one", [["a"]])
    for message in ("two", "three"):
        ask(world, message, [["b", "c"], ["d"]], long + message, conversation_id=chat.conversation_id)
        assert [request.body for request in world.model.requests if not request.body.get("stream")] == []
    ask(world, "four", conversation_id=chat.conversation_id)
    assert shown(first_sent(world)) == [
        "u [ID:q2] two",
        f"a [ID:q2-r] {long}two",
        "u [ID:q3] three",
        f"a [ID:q3-r] {long}three",
        "u [ID:q4] Answer this: four",
    ]


def test_until_a_window_is_full_its_past_is_a_prefix(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is sent, the running query alone stands in the template, so it alone is sent in other words later."""
    use(monkeypatch, history=replace(WINDOW, exchanges=4), query_template="Answer this: {query}")
    conversation_id = ask(world, "one").conversation_id
    sent = []
    for message in ("two", "three", "four"):
        ask(world, message, conversation_id=conversation_id)
        sent.append(first_sent(world))
    for before, after in itertools.pairwise(sent):
        assert after[: len(before) - 1] == before[:-1]
        assert before[-1] not in after
        assert len(after) == len(before) + 2


def test_a_pin_from_before_sends_the_windows_queries_in_the_template_to_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat's messages do not change under its thinking: what its first turn has pinned, its second one sends."""
    before = History("window", exchanges=2)
    use(monkeypatch, history=before, query_template="Answer this: {query}")
    conversation_id = ask(world, "one").conversation_id
    world.model.reset()
    looking = [{"type": "tool_use", "name": SEARCH, "input": {"query": "b"}}]
    world.model.script.add({"match": "turn", "content": looking}, {"match": "turn", "text": "Yes."})
    chat = world.start("two", conversation_id=conversation_id)
    world.turn(chat, 0)
    pinned = world.load(chat).pin
    assert pinned is not None
    use(monkeypatch, history=WINDOW, query_template="Answer this: {query}")
    deployed = replace(
        world, stores=build_stores(SETTINGS, world.stores.chats.client, world.stores.bodies.s3, world.clock)
    )
    agent = json.loads(world.stores.agents.load(pinned.agent) or "")
    del agent["profile"]["history"]["as_written"]
    deployed.stores.agents.keep(pinned.agent, json.dumps(agent))
    deployed.run(chat)
    first, second = (request.body for request in world.model.requests if request.body.get("stream"))
    assert unmarked(second)[: len(unmarked(first))] == unmarked(first)
    assert shown(unmarked(second))[0] == "u [ID:q1] Answer this: one"


def fail(world: World, conversation_id: str) -> Chat:
    chat = world.start("it fails", conversation_id=conversation_id)
    world.abort(chat)
    return chat


def stop(world: World, conversation_id: str, text: str) -> Chat:
    """A query that is stopped when its first turn has written this."""
    chat = world.start("it is stopped", conversation_id=conversation_id)
    world.stores.log(chat).append([turn_begins(1, 15, final=False), *([delta(1, text)] if text else [])])
    executions: Any = world.executions
    cancel_chat(world.stores, executions, world.load(chat))
    return chat


def test_a_window_leaves_out_what_has_no_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, history=WINDOW)
    conversation_id = ask(world, "one").conversation_id
    ask(world, "two", conversation_id=conversation_id)
    fail(world, conversation_id)
    stop(world, conversation_id, "")
    stop(world, conversation_id, "So far")
    fail(world, conversation_id)
    ask(world, "seven", conversation_id=conversation_id)
    assert shown(first_sent(world)) == [
        "u [ID:q2] two",
        "a [ID:q2-r] Answer to two.",
        "u [ID:q5] it is stopped",
        "a [ID:q5-r] So far (stopped by the user)",
        "u [ID:q7] seven",
    ]


def rounds_of(messages: list[dict[str, Any]]) -> list[bool]:
    """Of each past tool round whether it is in full; every call has its result, and none is halved."""
    in_full = []
    for message, after in itertools.pairwise(messages):
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        if not calls:
            continue
        results = [block for block in after["content"] if block["type"] == "tool_result"]
        assert [call["id"] for call in calls] == [result["tool_use_id"] for result in results]
        full = {bool(call["input"]) for call in calls}
        assert len(full) == 1
        for result in results:
            text = result["content"][0]["text"]
            record_id = text[text.index("q") :].split("]")[0].split(" ")[0]
            assert (LEFT_OUT.format(record_id) == text) is not full.copy().pop()
        in_full.append(full.pop())
    return in_full


@pytest.mark.parametrize(
    ("k", "total", "in_full"),
    [
        (3, 3, [True, True, True]),
        (3, 4, [False, True, True, True]),
        (2, 3, [False, True, True]),
        (0, 2, [False, False]),
        (9, 2, [True, True]),
    ],
)
def test_the_last_k_tool_rounds_are_sent_in_full(
    world: World, monkeypatch: pytest.MonkeyPatch, k: int, total: int, in_full: list[bool]
) -> None:
    """PROFILES 3: the threshold is the number of rounds less k. The first query has all rounds but the last."""
    use(monkeypatch, history=History("tool_rounds", rounds=k))
    chat = ask(world, "one", [[f"a{n}", f"b{n}"] for n in range(total - 1)])
    ask(world, "two", [["c"]], conversation_id=chat.conversation_id)
    ask(world, "three", [["d"]], conversation_id=chat.conversation_id)
    sent = first_sent(world)
    assert rounds_of(sent) == in_full
    asked = [unmarked(request.body) for request in world.model.requests]
    assert asked[1][: len(sent)] == sent, "the running query's rounds follow, in full"
    assert "[ID:q3-t1] found d" in json.dumps(asked[1])


def test_messages_are_sent_whole_and_thinking_is_not_replayed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, history=History("tool_rounds", rounds=1))
    thinks = replace(world, model_name="claude-haiku-5-5")
    long = "A long answer. " * 100
    thought: dict[str, Any] = {"type": "thinking", "thinking": "A secret thought."}
    for said in (
        [
            {"type": "text", "text": "First, look."},
            {"type": "tool_use", "name": SEARCH, "input": {"query": "a"}},
        ],
        [{"type": "text", "text": long}],
    ):
        thinks.model.script.add({"match": "turn", "content": [thought, *said]})
    chat = thinks.ask("one")
    conversation_id = chat.conversation_id
    assert thinks.stores.history.has_record(chat.user, conversation_id, "q1-a2"), "kept, before the answer"
    fail(thinks, conversation_id)
    stop(thinks, conversation_id, "So far")
    ask(thinks, "four", [["b"]], conversation_id=conversation_id)
    ask(thinks, "five", conversation_id=conversation_id)
    assert shown(first_sent(thinks)) == [
        "u [ID:q1] one",
        "a [ID:q1-a1] First, look.",
        "a call {}",
        f"u result {LEFT_OUT.format('q1-t1')}",
        f"a [ID:q1-r] {long}",
        "u [ID:q2] it fails",
        "a [ID:q2-r] (no answer: failed)",
        "u [ID:q3] it is stopped",
        "a [ID:q3-r] So far (stopped by the user)",
        "u [ID:q4] four",
        "a [ID:q4-a1] Looking for b.",
        'a call {"query": "b"}',
        "u result [ID:q4-t1] found b",
        "a [ID:q4-r] Answer to four.",
        "u [ID:q5] five",
    ]


def test_a_past_reference_is_sent_with_the_text_it_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, history=History("tool_rounds", rounds=1))
    conversation_id = ask(world, "one", [["a"]]).conversation_id
    read = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1-t1"}}
    world.model.script.add({"match": "turn", "content": [read]}, {"match": "turn", "text": "Read."})
    world.ask("two", conversation_id=conversation_id)
    ask(world, "three", conversation_id=conversation_id)
    assert "u result [ID:q2-t1] found a" in shown(first_sent(world))


def test_the_budget_takes_precedence_over_the_rounds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 MB are cut to the limit of a result; results that still do not fit are replaced by their ids, oldest first."""
    use(monkeypatch, history=History("tool_rounds", rounds=3), result_limit=20_000)
    with_big = {"a": "x " * 1_000_000, "b": "y " * 1_000_000}
    big = replace(
        world, tools={SEARCH: lambda running: ToolResult(with_big.get(running.call.input["query"], "small"))}
    )
    for budget, in_full in (
        (24_000, [True, True, True]),
        (10_000, [False, True, True]),
        (4_000, [False] * 3),
    ):
        use(monkeypatch, track_tokens=budget)
        conversation_id = ask(big, "one", [["a"]]).conversation_id
        ask(big, "two", [["b"], ["a", "b"] if budget == 4_000 else ["c"]], conversation_id=conversation_id)
        ask(big, "three", conversation_id=conversation_id)
        sent = first_sent(big)
        assert rounds_of(sent) == in_full
        assert message_tokens(sent[:-1]) <= budget


def test_a_long_conversation_reads_no_more_than_it_sends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, history=History("tool_rounds", rounds=3), track_tokens=1_500)
    conversation_id = ask(world, "q " * 300).conversation_id
    for _ in range(12):
        ask(world, "q " * 300, conversation_id=conversation_id)
    sent = shown(first_sent(world))
    assert sent[0].startswith("u (The queries up to q")
    assert "q1]" not in json.dumps(sent)
    assert message_tokens(first_sent(world)[:-1]) <= 1_500


# ── the same for all ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("history", [WINDOW, History("tool_rounds", rounds=1), History()])
def test_a_deploy_in_the_middle_of_a_chat_changes_nothing_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch, history: History
) -> None:
    """Turns, retries and summaries send what the first attempt pinned; the next query uses what is deployed."""
    use(monkeypatch, history=history)
    conversation_id = ask(world, "one", [["a"]]).conversation_id
    world.model.reset()
    looking = [{"type": "tool_use", "name": SEARCH, "input": {"query": "b"}}]
    world.model.script.add(
        {"match": "turn", "status": 529},
        {"match": "turn", "content": looking},
        {"match": "turn", "text": "A long answer. " * 60},
        {"match": "turn", "text": "Yes."},
    )
    chat = world.start("two", conversation_id=conversation_id)
    outcome = world.turn(chat, 0)
    assert outcome["next"] == "wait"
    world.clock.sleep(outcome["seconds"])
    use(
        monkeypatch,
        history=History("window", exchanges=1),
        system="Another.",
        tools=("retrieve_full_context",),
        query_template="Now: {query}",
        model="claude-haiku-5-5",
        max_tokens=900,
        max_turns=1,
    )
    deployed = replace(
        world, stores=build_stores(SETTINGS, world.stores.chats.client, world.stores.bodies.s3, world.clock)
    )
    chat = deployed.run(chat)
    assert (chat.status, chat.stop) == ("done", "complete")
    bodies = [dict(request.body) for request in world.model.requests if request.body.get("stream")]
    first, retried, second = bodies[:3]
    assert unmarked(first) == unmarked(retried) == unmarked(second)[: len(unmarked(first))]
    for name in ("system", "tools", "model", "max_tokens"):
        assert first[name] == retried[name] == second[name]
    deployed.ask("three", conversation_id=conversation_id)
    last = dict(world.model.requests[-1].body)
    assert last["system"][0]["text"] == "Another."
    assert [tool["name"] for tool in last["tools"]] == ["retrieve_full_context"]


def test_the_memory_view_shows_what_the_next_query_sends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, history=History("tool_rounds", rounds=1))
    conversation_id = ask(world, "one", [["a"]]).conversation_id
    ask(world, "two", [["b"]], conversation_id=conversation_id)
    conversation = world.stores.conversations.find("ann", conversation_id)
    assert conversation is not None
    listed = list_records(world.stores, conversation, "summarised", "").items
    ask(world, "three", conversation_id=conversation_id)
    sent = [line for line in shown(first_sent(world))[:-1] if not line.startswith("a call ")]
    assert len(listed) == len(sent)
    for record, line in zip(listed, sent, strict=True):
        text = record.get("result", record.get("content"))
        assert line.endswith(str(text))
    assert [row["input"] for row in listed if row["type"] == "tool_call"] == [{}, {"query": "b"}]
