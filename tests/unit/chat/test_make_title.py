"""A title by the model: when it is asked for, what it costs whom, and who wins (CONTRACT 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.conversations import (
    create_conversation,
    find_conversation,
    list_conversations,
    rename_conversation,
)
from dualtrack.chat.cost_hold import CostSettings, cost_hold
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.credits.audit import audit
from dualtrack.credits.keys import Caps
from dualtrack.errors import ApiError
from dualtrack.memory.titles import title_of
from dualtrack.models.cost_cap import side_nanodollars
from dualtrack.profiles import all_profiles
from dualtrack.storage.dynamo import ConditionFailed, transact

from tests.drivers.invariants import account_faults, chat_faults, conversation_faults
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.answers import Receipt
    from dualtrack.models.turn import Usage
    from dualtrack.storage.chats import Chat

QUESTION = "How do I set up OAuth for Twitter ads? I have a key."
BY_QUERY = "How do I set up OAuth for Twitter ads?"
TITLE = "OAuth for ads"
SHORT = "With a token."
KEY = "k_1"


@pytest.fixture
def world() -> Iterator[World]:
    """Answers that need no summary, so that the only call beside a turn is that for the title."""
    with make_world() as new_world:
        new_world.titles = True
        new_world.model_name = "claude-haiku-5-5"
        new_world.model.script.add({"match": "turn", "text": SHORT, "always": True})
        yield new_world


def title_is(world: World, text: str, **more: Any) -> None:
    world.model.script.add({"match": "summary", "text": text, "always": True, **more})


def titled(world: World, chat: Chat) -> str:
    return find_conversation(world.stores, chat.user, chat.conversation_id).title


def asked(world: World) -> list[Mapping[str, Any]]:
    """The calls for a title."""
    return [request.body for request in world.model.requests if not request.body.get("stream")]


def receipt(world: World, chat: Chat) -> Receipt:
    return receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())


def test_the_first_answer_gives_a_conversation_its_title_and_no_later_one_does(world: World) -> None:
    title_is(world, f'"{TITLE}."')
    chat = world.ask(QUESTION)
    assert titled(world, chat) == TITLE
    (call,) = asked(world)
    assert call["messages"][0]["content"][0]["text"] == f"Message:\n{QUESTION}\n\nResponse:\n{SHORT}"
    again = world.ask("And then?", conversation_id=chat.conversation_id)
    assert len(asked(world)) == 1
    assert again.titling is None
    assert titled(world, chat) == TITLE
    assert all(TITLE not in str(request.body) for request in world.model.requests), "no prompt contains it"
    (found,) = list_conversations(world.stores, "ann", "", 10, "oauth ads").items
    assert found["conversation_id"] == chat.conversation_id


def test_its_cost_is_a_line_of_the_receipt_and_no_part_of_what_memory_costs(world: World) -> None:
    title_is(world, TITLE)
    chat = world.ask(QUESTION)
    (turn,) = [line for line in receipt(world, chat)["lines"] if line["kind"] == "model"]
    (line,) = [line for line in receipt(world, chat)["lines"] if line["kind"] == "title"]
    assert (line["calls"], line["tries"], line["model"]) == (1, 1, "claude-haiku-5-5")
    assert line["dollars"] > 0
    assert receipt(world, chat)["totals"]["model_dollars"] == turn["dollars"] + line["dollars"]
    assert receipt(world, chat)["memory"]["dollars"] == pytest.approx(turn["dollars"], abs=2e-9)
    assert chat.usage["output_tokens"] == turn["usage"]["output"]
    assert chat.credits_used == 5
    assert chat_faults(world.stores, chat) == account_faults(world.stores, "ann", [chat]) == []
    assert conversation_faults(world.stores, [chat]) == []


def test_without_the_setting_nothing_more_is_asked(world: World) -> None:
    world.titles = False
    chat = world.ask(QUESTION)
    assert [request.body.get("stream") for request in world.model.requests] == [True]
    assert titled(world, chat) == BY_QUERY
    world.titles = True
    world.ask("And then?", conversation_id=chat.conversation_id)
    assert asked(world) == [], "a conversation that is no longer new keeps its title"


@pytest.mark.parametrize(
    "said",
    [
        {"text": ""},
        {"text": "word " * 20},
        {"text": "x" * 200},
        {"text": "…"},
        {"text": TITLE, "status": 400},
        {"text": TITLE, "status": 529},
        {"text": TITLE, "status": 500},
    ],
)
def test_a_call_that_gives_no_title_leaves_the_beginning_of_the_query(
    world: World, said: Mapping[str, Any]
) -> None:
    title_is(world, **said)
    chat = world.ask(QUESTION)
    assert (chat.status, titled(world, chat)) == ("done", BY_QUERY)
    assert len(asked(world)) == 1
    assert (chat.titling is None) == ("status" in said), "what was answered is paid for"
    assert chat_faults(world.stores, chat) == []


def test_an_answer_that_was_cut_is_no_title(world: World) -> None:
    title_is(world, TITLE, usage={"output_tokens": 32})
    assert titled(world, world.ask(QUESTION)) == BY_QUERY


def test_a_user_who_renames_the_conversation_meanwhile_wins(world: World) -> None:
    """Before the call, while the model writes, and afterwards; also with the very title that it had."""
    title_is(world, TITLE)
    for name in ("Mine", BY_QUERY):
        before = world.start(QUESTION)
        rename_conversation(world.stores, "ann", before.conversation_id, name)
        calls = len(asked(world))
        assert (titled(world, world.run(before)), len(asked(world))) == (name, calls)

        meanwhile = world.start(QUESTION)
        claude = world.claude
        world.claude = _Renaming(claude, world, meanwhile, name)  # type: ignore[assignment]
        ended = world.run(meanwhile)
        world.claude = claude
        assert titled(world, meanwhile) == name
        assert ended.titling is not None, "the call was made and is paid for"
        assert chat_faults(world.stores, ended) == []

    rename_conversation(world.stores, "ann", meanwhile.conversation_id, "At last")
    world.summarise(meanwhile)
    assert titled(world, meanwhile) == "At last"


class _Renaming:
    """The model, while which writes a title the user names the conversation."""

    def __init__(self, claude: Any, world: World, chat: Chat, name: str) -> None:
        self._claude, self._world, self._chat, self._name = claude, world, chat, name

    def stream(self, *asked: Any, **more: Any) -> Any:
        return self._claude.stream(*asked, **more)

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:
        answer: tuple[str, Usage] = self._claude.complete(request, seconds)
        rename_conversation(self._world.stores, "ann", self._chat.conversation_id, self._name)
        return answer


def test_a_rename_between_the_reading_of_a_conversation_and_its_first_query_stays(world: World) -> None:
    stores = world.stores
    empty = create_conversation(stores, "ann", "", "assistant")
    chat = replace(world.start("?"), conversation_id=empty.conversation_id)
    rename_conversation(stores, "ann", empty.conversation_id, "Mine")
    with pytest.raises(ConditionFailed):
        transact(stores.chats.client, [stores.conversations.take_action(empty, chat, "?", ())])


def test_a_title_that_the_user_gave_and_one_that_a_fork_inherits_stay(world: World) -> None:
    title_is(world, TITLE)
    named = create_conversation(world.stores, "ann", title_of(QUESTION), "assistant")
    untitled = create_conversation(world.stores, "ann", "", "assistant")
    assert titled(world, world.ask(QUESTION, conversation_id=named.conversation_id)) == BY_QUERY
    first = world.ask(QUESTION, conversation_id=untitled.conversation_id)
    assert titled(world, first) == TITLE
    fork = fork_conversation(world.stores, "ann", named.conversation_id, 2)
    assert titled(world, world.ask("And then?", conversation_id=fork.conversation_id)) == BY_QUERY
    empty = fork_conversation(world.stores, "ann", named.conversation_id, 1)
    assert titled(world, world.ask("Else?", conversation_id=empty.conversation_id)) == TITLE
    assert len(asked(world)) == 2


def test_a_small_task_and_a_deleted_conversation_get_none(world: World) -> None:
    title_is(world, TITLE)
    task = world.ask("Write tags.", is_task=True)
    assert task.status == "done"
    assert asked(world) == []
    chat = world.start(QUESTION)
    claude = world.claude
    world.claude = _Deleting(claude, world, chat)  # type: ignore[assignment]
    world.answer(chat)
    world.summarise(chat)
    assert len(asked(world)) == 1
    assert world.stores.conversations.find("ann", chat.conversation_id) is None
    assert world.stores.chats.load("ann", chat.chat_id) is None


class _Deleting(_Renaming):
    """The model, while which writes a title the user deletes the conversation."""

    def __init__(self, claude: Any, world: World, chat: Chat) -> None:
        super().__init__(claude, world, chat, "")

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:
        answer: tuple[str, Usage] = self._claude.complete(request, seconds)
        delete_conversation(self._world.stores, "ann", self._chat.conversation_id)
        return answer


@pytest.mark.parametrize("profile", ["assistant", "sessions"])
def test_a_key_holds_a_title_while_it_is_due_and_is_charged_what_it_took(world: World, profile: str) -> None:
    title_is(world, TITLE)
    world.stores.ledger.add_key("ann", KEY, Caps(), world.clock())
    chat = world.start(QUESTION, key_id=KEY, profile=profile)
    assert chat.costs
    ended = world.run(chat)
    assert titled(world, chat) == TITLE
    assert ended.titling
    assert 0 < side_nanodollars(ended.titling) <= chat.costs.title < 10_000_000
    account = world.stores.ledger.load("ann")
    assert not account.holds
    used = account.key_view(KEY, world.clock())["used"]["dollars_total"]
    assert used == pytest.approx(receipt(world, ended)["totals"]["model_dollars"], abs=3e-9)
    assert audit(account, world.stores.ledger.movements("ann")) == ()
    assert account_faults(world.stores, "ann", [ended]) == []
    later = world.start("And then?", key_id=KEY, conversation_id=chat.conversation_id)
    assert later.costs
    assert later.costs.title == 0
    world.titles = False
    off = world.start(QUESTION, key_id=KEY)
    world.titles = True
    assert off.costs
    assert (off.costs.title, world.run(off).titling) == (0, None), "what was not held is not asked"


def test_a_cap_in_dollars_has_to_leave_room_for_the_title(world: World) -> None:
    """A chat of $0.25 and its title fit, or neither."""
    probe = cost_hold(
        all_profiles()["sessions"], CostSettings(world.model_name, world.summaries), titled=True
    )
    assert probe.in_all == probe.turns + probe.title
    for missing in (0, 1):
        key, cap = f"{KEY}{missing}", (probe.in_all - missing) / 1e9
        world.stores.ledger.add_key("ann", key, Caps().changed({"dollars_total": cap}), world.clock())
    assert world.start(QUESTION, key_id=f"{KEY}0", profile="sessions").status == "running"
    with pytest.raises(ApiError, match="cap"):
        world.start(QUESTION, key_id=f"{KEY}1", profile="sessions")
