"""Chats by an API key: who pays, what is held and charged under the key, and what stays held until when."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.end_chat import Cancellation, end_chat
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.fold_ahead import free_rest
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.credits.audit import audit
from dualtrack.credits.keys import NANO, Caps
from dualtrack.errors import ApiError
from dualtrack.events import delta, turn_begins
from dualtrack.models.receipt_data import Heard
from dualtrack.models.turn import Usage
from dualtrack.profiles import all_profiles

from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, call_for_summaries, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

OWNER, END_USER, KEY = "owner", "s_0123456789", "k_1"
TOOL = {"type": "tool_use", "name": "retrieve_documentation", "input": {"query": "port"}}
LONG = "This is the answer, with facts such as 42 and DynamoDB. " * 40


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        new_world.model_name = "claude-haiku-5-5"
        new_world.stores.ledger.add_key(OWNER, KEY, Caps(), new_world.clock())
        yield new_world


def set_caps(world: World, **caps: float) -> None:
    world.stores.ledger.change_caps(OWNER, KEY, caps, world.clock())


def start(world: World, message: str = "Hello?", user: str = END_USER, conversation_id: str = "") -> Chat:
    return world.start(message, user, conversation_id, payer=OWNER, key_id=KEY)


def figures(world: World) -> Any:
    """The key's use; its owner's account must be what its lines say."""
    ledger = world.stores.ledger
    account = ledger.load(OWNER)
    assert audit(account, ledger.movements(OWNER)) == ()
    assert ledger.load(END_USER).seq == 0, "an end user has no account"
    return account.key_view(KEY, world.clock())


def dollars_of(world: World, chat: Chat) -> float:
    receipt = receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment())
    assert receipt["differences"] == []
    return receipt["totals"]["model_dollars"]


def test_the_owner_pays_for_an_end_user_and_the_key_is_charged_all_that_the_receipt_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_for_summaries(monkeypatch)
    world.model.script.add({"match": "Tell", "text": LONG})
    chat = start(world, "Tell me.")
    assert chat.credits_remaining == 45
    assert figures(world)["held"]["dollars_total"] > 0.25
    ended = world.run(chat)
    used = figures(world)["used"]
    assert (ended.user, ended.payer, ended.status) == (END_USER, OWNER, "done")
    assert used["credits_day"] == ended.credits_used == 5
    assert used["dollars_day"] == pytest.approx(dollars_of(world, ended), abs=2e-9)
    summary = ended.spent.summaries
    assert summary
    assert summary.usage.tokens, "the summary is among it"
    assert not world.stores.ledger.load(OWNER).holds
    lines = world.stores.ledger.entries(OWNER).items
    assert {line.get("key_id") for line in lines} == {KEY}
    assert [line["kind"] for line in lines] == ["cost", "cost", "settle", "hold", "caps"]
    assert chat_faults(world.stores, ended) == []
    assert account_faults(world.stores, OWNER, [ended]) == []


def test_a_failed_chat_costs_no_credits_and_its_dollars_count(world: World) -> None:
    world.model.script.add({"match": "Search.", "content": [TOOL]})
    chat = start(world, "Search.")
    world.turn(chat, 0)
    world.abort(chat)
    failed = world.load(chat)
    used = figures(world)["used"]
    assert (failed.status, used["credits_total"]) == ("failed", 0)
    assert used["dollars_total"] == pytest.approx(dollars_of(world, failed), abs=2e-9)
    assert used["dollars_total"] > 0
    assert not world.stores.ledger.load(OWNER).holds


def test_a_cancelled_chat_frees_what_it_does_not_owe(world: World) -> None:
    chat = start(world)
    end_chat(world.stores, ref_of(chat), Cancellation())
    view = figures(world)
    assert view["held"] == view["used"] == dict.fromkeys(view["used"], 0)


def test_a_cap_in_dollars_refuses_with_its_name_and_its_figures(world: World) -> None:
    set_caps(world, dollars_day=0.3)
    chat = start(world)
    with pytest.raises(ApiError) as refused:
        start(world)
    extra = refused.value.extra
    assert (refused.value.status, refused.value.code, extra["cap"]) == (402, "key_cap_reached", "dollars_day")
    held = extra["held"]
    assert held == extra["required"]
    world.run(chat)
    assert start(world).status == "running", "what was not spent is free again"


def test_a_key_that_was_revoked_meanwhile_starts_nothing(world: World) -> None:
    world.stores.ledger.revoke_key(OWNER, KEY, world.clock())
    with pytest.raises(ApiError) as refused:
        start(world)
    assert refused.value.status == 401


def test_tools_that_do_not_fit_the_cap_behave_like_those_that_do_not_fit_the_credits(world: World) -> None:
    set_caps(world, credits_day=10)
    world.model.script.add(
        {"match": "Search.", "content": [TOOL]}, {"match": "Search.", "text": "As far as I know."}
    )
    ended = world.run(start(world, "Search."))
    assert (ended.status, ended.stop, ended.credits_used) == ("done", "insufficient_credits", 5)
    short = [event.data for event in world.stores.log(ended).events() if event.data.get("code")]
    assert [(event["code"], event["required"], event["available"]) for event in short] == [
        ("insufficient_credits", 10, 5)
    ]
    assert figures(world)["used"]["credits_day"] == 5


def test_fifty_chats_at_once_at_a_cap_for_three_admit_three(world: World) -> None:
    world.stores.ledger.grant(OWNER, "g", 10_000, "test", world.clock())
    set_caps(world, credits_total=15)

    def admit(number: int) -> str:
        try:
            return start(world, user=f"{END_USER}{number}").status
        except ApiError as error:
            return f"{error.code} {error.extra.get('cap')}"

    with ThreadPoolExecutor(50) as pool:
        outcomes = list(pool.map(admit, range(50)))
    assert sorted(outcomes) == ["key_cap_reached credits_total"] * 47 + ["running"] * 3
    assert figures(world)["held"]["credits_total"] == 15


def test_what_is_held_for_a_digest_is_charged_with_the_digest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(all_profiles(), "assistant", replace(all_profiles()["assistant"], track_tokens=600))
    world.stores.ledger.grant(OWNER, "g", 10_000, "test", world.clock())
    world.model.script.add({"match": "turn", "text": LONG, "always": True})
    chats: list[Chat] = []
    for number in range(4):
        conversation = chats[-1].conversation_id if chats else ""
        chats.append(
            world.run(start(world, f"Question {number}? " + "Words. " * 20, conversation_id=conversation))
        )
    assert world.load(chats[-1]).fold or world.load(chats[-2]).fold, "a digest was written"
    every = sum(dollars_of(world, chat) for chat in chats)
    view = figures(world)
    assert view["used"]["dollars_total"] == pytest.approx(every, abs=2e-8)
    assert view["held"]["dollars_total"] == 0


def test_a_step_that_died_before_the_digest_leaves_a_hold_that_the_next_run_frees(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = start(world)
    assert world.answer(chat) == "answered"

    def dies(*_: object) -> None:
        raise RuntimeError("died")

    with monkeypatch.context() as dead:
        dead.setattr("dualtrack.chat.summarise.free_rest", dies)
        with pytest.raises(RuntimeError, match="died"):
            world.summarise(chat)
    assert 0 < figures(world)["held"]["dollars_total"] < 0.1
    world.summarise(chat)
    assert figures(world)["held"]["dollars_total"] == 0
    lines = len(world.stores.ledger.movements(OWNER))
    free_rest(world.stores, chat)
    assert len(world.stores.ledger.movements(OWNER)) == lines


def test_an_answer_that_nobody_summarises_is_closed_and_frees_everything(world: World) -> None:
    chat = start(world)
    world.answer(chat)
    world.abort(chat)
    assert world.load(chat).status == "done"
    assert not world.stores.ledger.load(OWNER).holds
    assert figures(world)["held"]["dollars_total"] == 0


def test_a_chat_whose_cut_calls_have_cost_all_that_it_holds_is_not_tried_again(world: World) -> None:
    """The cap is exceeded by that call alone, its prompt and the text that came, and the key shows it."""
    set_caps(world, dollars_total=0.3)
    chat = start(world)
    log = world.stores.log(chat)
    log.append([turn_begins(1, 15, final=False)])
    world.stores.chats.hear(chat, Heard(1, 1, "claude-haiku-5-5", usage=Usage(700_000)))
    log.append([delta(1, "It is")])
    asked = len(world.model.requests)
    assert world.turn(chat, 0)["next"] == "failed"
    ended = world.load(chat)
    assert (ended.status, len(world.model.requests)) == ("failed", asked)
    used = figures(world)["used"]
    assert used["credits_total"] == 0
    assert used["dollars_total"] == pytest.approx(0.35, abs=1e-4)
    with pytest.raises(ApiError, match="dollars_total is 0"):
        start(world)


def test_a_chat_without_a_cost_cap_of_its_own_ends_within_what_it_holds(world: World) -> None:
    """The first two turns cost a tenth of a dollar each: the third is the last."""
    usage = {"input_tokens": 50_000, "output_tokens": 160_000, "cache_creation_input_tokens": 0}
    world.model.script.add(
        *[{"match": "Search.", "content": [TOOL], "usage": usage}] * 9,
        {"match": "Search.", "text": "So far."},
    )
    chat = start(world, "Search.")
    assert chat.costs
    assert chat.costs.turns == NANO // 4
    held = figures(world)["held"]["dollars_total"]
    ended = world.run(chat)
    assert (ended.status, ended.stop, ended.turn) == ("done", "max_cost", 3)
    assert figures(world)["used"]["dollars_total"] <= held
