"""The two figures of memory (CONTRACT 4): what the calls cost, and what a full history would have cost.

They are compared with a computation of its own over the requests on the wire (tests/drivers/counted_calls.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.chat_view import chat_json
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.end_chat import Cancellation, end_chat
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.profiles import WhenSummarised, all_profiles
from dualtrack.tool_values import ToolResult

from tests.drivers.counted_calls import FullHistory, Recorder, spent
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.tools.running import Running

WITHIN = 0.05
"""Of the independent figure; the contract says 10 %."""
WORDS = "The port of the service is 8080, its host is set in the file and both may change. "


def text(characters: int, number: int) -> str:
    """A text of this length, another one for each number."""
    return f"Number {number}. {WORDS * (characters // len(WORDS) + 1)}"[:characters]


@pytest.fixture
def world() -> Iterator[World]:
    """A tool that brings 8,000 characters."""

    def manual(_: Running) -> ToolResult:
        return ToolResult(text(8_000, 0))

    with make_world(retrieve_documentation=manual) as new_world:
        new_world.model_name = "claude-haiku-5-5"
        recorder: Any = Recorder(new_world.claude, lambda: new_world.clock.now)
        new_world.claude = recorder
        new_world.stores.ledger.grant("ann", "g", 10_000, "test", new_world.clock())
        yield new_world


@dataclass(frozen=True)
class Kind:
    """A kind of conversation. ``pause``: seconds before every third query; ``recalls``: every third query reads the
    past back before it answers; ``track_tokens``: the budget of the past; ``summaries``: when they are made."""

    queries: int = 9
    query: int = 120
    tools: int = 0
    answer: int = 400
    pause: int = 0
    recalls: bool = False
    track_tokens: int = 24_000
    summaries: WhenSummarised = "at_once"


KINDS = {
    "short answers": Kind(12),
    "short records": Kind(queries=6, tools=0, answer=150),
    "long answers": Kind(answer=3_000),
    "long results": Kind(tools=2, answer=2_500),
    "with pauses": Kind(tools=2, answer=2_500, pause=400),
    "reads the past back": Kind(tools=1, answer=1_000, recalls=True),
    "folded": Kind(14, answer=1_500, track_tokens=600),
    "long queries": Kind(query=6_000, answer=600),
    "noted": Kind(tools=2, answer=1_500, summaries="in_turn"),
    "noted, with pauses": Kind(tools=1, answer=400, pause=400, summaries="in_turn"),
}


class Talk:
    """A conversation and both of its figures, computed from the wire."""

    def __init__(self, world: World, kind: Kind, conversation_id: str = "", first: int = 1) -> None:
        self.world, self.kind, self.conversation_id, self.number = world, kind, conversation_id, first
        self.full, self.own = FullHistory(), 0.0
        self.made: dict[int, Any] = {}

    def ask(self) -> Chat:
        """The next query."""
        kind, number, script = self.kind, self.number, self.world.model.script
        is_third = number % 3 == 0
        if kind.pause and is_third:
            self.world.clock.sleep(kind.pause)
        if kind.recalls and is_third:
            script.add({"match": "turn", "content": [_asks("retrieve_full_context", id="q1-t1")]})
        if kind.tools:
            calls = [_asks("retrieve_documentation", query="port")] * kind.tools
            script.add({"match": "turn", "content": calls})
        answer = text(kind.answer, number)
        script.add({"match": "turn", "text": answer})
        calls_before = len(self.calls)
        query = f"{number}? {text(kind.query, number)}"
        chat = self.world.ask(query, conversation_id=self.conversation_id)
        made = self.made[number] = self.calls[calls_before:]
        self.own += spent(made)
        self.full.ask(number, made, answer)
        self.conversation_id, self.number = chat.conversation_id, number + 1
        return chat

    @property
    def calls(self) -> Any:
        recorder: Any = self.world.claude
        return recorder.calls


def _asks(tool: str, **arguments: str) -> dict[str, Any]:
    return {"type": "tool_use", "name": tool, "input": arguments}


def figures(chat: Chat) -> Any:
    """`memory` of the chat object."""
    return chat_json(chat, (), None)["memory"]


def use(monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    """The profile with the kind's budget."""
    profile = all_profiles()["assistant"]
    history = replace(profile.history, summaries=kind.summaries)
    profile = replace(profile, track_tokens=kind.track_tokens, history=history)
    monkeypatch.setitem(all_profiles(), "assistant", profile)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_both_figures_are_those_of_the_wire(
    world: World, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, kind)
    talk = Talk(world, kind)
    total, shown = 0.0, {}
    for _ in range(kind.queries):
        chat = talk.ask()
        shown = figures(chat)
        total += shown["dollars"]
        assert shown["conversation_dollars"] == pytest.approx(talk.own, rel=1e-6)
        assert shown["conversation_full_history_dollars"] == pytest.approx(talk.full.dollars, rel=WITHIN)
    assert total == pytest.approx(shown["conversation_dollars"])
    assert not shown["beyond_window"]


def test_a_fork_inherits_the_sums_as_of_its_point(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a fork of a part whose conversation and chats were deleted: only its last summaries are missing then."""
    kind = KINDS["long results"]
    use(monkeypatch, kind)
    talk = Talk(world, kind)
    chats = [talk.ask() for _ in range(5)]
    shown = [figures(world.load(chat)) for chat in chats]
    own = fork_conversation(world.stores, "ann", talk.conversation_id, 4)
    at_end = fork_conversation(world.stores, "ann", talk.conversation_id, 6)
    whole = fork_conversation(world.stores, "ann", talk.conversation_id, 1)
    assert _of(own) == (shown[2]["conversation_dollars"], shown[2]["conversation_full_history_dollars"])
    assert _of(at_end) == (shown[4]["conversation_dollars"], shown[4]["conversation_full_history_dollars"])
    assert _of(whole) == (0.0, 0.0)
    delete_conversation(world.stores, "ann", talk.conversation_id)
    again = fork_conversation(world.stores, "ann", own.conversation_id, 3)
    summaries = shown[1]["dollars"] - chats[1].memory.costs.own / 1e9
    known, full = _of(again)
    assert known == pytest.approx(shown[1]["conversation_dollars"] - summaries)
    assert full == shown[1]["conversation_full_history_dollars"]
    forked = Talk(world, kind, own.conversation_id, first=4)
    forked.full, forked.own = (
        _replayed(talk, chats[:3]),
        sum(spent(talk.made[number]) for number in (1, 2, 3)),
    )
    last = figures(forked.ask())
    assert last["conversation_dollars"] == pytest.approx(forked.own, rel=1e-6)
    assert last["conversation_full_history_dollars"] == pytest.approx(forked.full.dollars, rel=WITHIN)


def _of(conversation: Any) -> tuple[float, float]:
    sums = conversation.costs_so_far
    return (sums.costs.own + sums.aside) / 1e9, sums.costs.full / 1e9


def _replayed(talk: Talk, chats: list[Chat]) -> FullHistory:
    """The full history of the first queries of a talk."""
    full = FullHistory()
    for chat in chats:
        full.ask(chat.query, talk.made[chat.query], text(talk.kind.answer, chat.query))
    return full


def test_the_last_call_of_a_chat_is_cached_apart_on_both_sides(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turns with tools used up, a query ends with a call that may use none."""
    profile = replace(all_profiles()["assistant"], max_turns=1)
    monkeypatch.setitem(all_profiles(), "assistant", profile)
    talk = Talk(world, KINDS["long results"])
    for _ in range(5):
        shown = figures(talk.ask())
        assert shown["conversation_dollars"] == pytest.approx(talk.own, rel=1e-6)
        assert shown["conversation_full_history_dollars"] == pytest.approx(talk.full.dollars, rel=WITHIN)


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_query_without_an_answer_stays_in_the_full_history(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its recorded call cost counts on both sides, and the next call sends its 8,000 characters again."""
    kind = KINDS["long results"]
    use(monkeypatch, kind)
    talk = Talk(world, kind)
    first = talk.ask()
    world.model.script.add({"match": "turn", "content": [_asks("retrieve_documentation", query="port")]})
    chat = world.start("And the host?", conversation_id=first.conversation_id)
    outcome = world.turn(chat, 0)
    world.tool(chat, outcome["turn"], outcome["calls"][0]["id"])
    if how == "failed":
        world.abort(chat)
    else:
        end_chat(world.stores, ref_of(chat), Cancellation())
    ended = world.load(chat)
    after = ended.memory
    assert ended.status == how
    assert after.costs.own > 0
    assert after.sums.costs == first.memory.sums.costs + after.costs
    assert after.sums.tokens - first.memory.sums.tokens == pytest.approx(8_000 / 4, rel=0.1)
    assert chat_faults(world.stores, ended) == []
    assert account_faults(world.stores, "ann", [first, ended]) == []


def test_a_follow_up_before_the_summaries_has_their_cost_at_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first query is answered, the second begins, then the summaries of the first come."""
    use(monkeypatch, KINDS["long results"])
    answer = {"match": "turn", "text": text(2_500, 1)}
    world.model.script.add(answer, answer)
    first = world.start("Which port?")
    world.answer(first)
    so_far = figures(world.load(first))
    second = world.start("And the host?", conversation_id=first.conversation_id)
    world.summarise(first)
    world.answer(second)
    world.summarise(second)
    first, second = world.load(first), world.load(second)
    shown = figures(first), figures(second)
    assert shown[0]["dollars"] > so_far["dollars"]
    assert shown[1]["conversation_dollars"] == pytest.approx(shown[0]["dollars"] + shown[1]["dollars"])
    assert account_faults(world.stores, "ann", [first, second]) == []


def test_summaries_are_counted_once_however_often_their_step_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, KINDS["long results"])
    world.model.script.add({"match": "turn", "text": text(2_500, 1)})
    chat = world.ask("Which port?")
    before = world.stores.conversations.find("ann", chat.conversation_id)
    world.summarise(chat)
    world.abort(chat)
    assert world.stores.conversations.find("ann", chat.conversation_id) == before
    assert before is not None
    assert before.aside == chat.memory.aside > 0


def test_beyond_the_models_window_the_full_history_grows_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of 8,000 tokens; every query adds some 4,500. A call then costs as much as the one before."""
    monkeypatch.setattr("dualtrack.memory.full_history.context_window", lambda _: 8_000)
    talk = Talk(world, KINDS["long results"])
    shown = [figures(talk.ask()) for _ in range(6)]
    assert [one["beyond_window"] for one in shown] == [False, True, True, True, True, True]
    late = [round(one["full_history_dollars"], 6) for one in shown[3:]]
    assert len(set(late)) == 1
    assert late[0] < talk.full.dollars / 6
