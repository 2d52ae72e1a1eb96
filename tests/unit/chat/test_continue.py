"""An answer that reached its limit of tokens goes on where it ended (CONTRACT 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import pytest
from dualtrack.chat.continued import END_CHARACTERS
from dualtrack.chat.end_chat import Cancellation, end_chat
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.errors import ApiError
from dualtrack.profiles import WhenSummarised, all_profiles

from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import World, make_world, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        new_world.stores.ledger.grant("ann", "g", 1_000, "test", new_world.clock())
        yield new_world


def cut(text: str) -> dict[str, Any]:
    return {"match": "turn", "text": text, "stop_reason": "max_tokens"}


def said(text: str) -> dict[str, Any]:
    return {"match": "turn", "text": text}


def goes_on(world: World, conversation_id: str) -> Chat:
    return world.run(world.start("", conversation_id=conversation_id, continues="cut"))


def sent(world: World) -> str:
    """The last message of the last turn, as the model read it."""
    bodies = [call.body for call in world.model.requests if call.body.get("tools")]
    return "\n".join(block["text"] for block in bodies[-1]["messages"][-1]["content"])


def records(world: World, chat: Chat) -> dict[str, Any]:
    stores = world.stores.across(chat.ancestry)
    own = stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    return {record.record_id: record for record in own}


def test_the_model_goes_on_where_the_text_ends(world: World) -> None:
    text = "One, two. " * 200 + "and the thi"
    world.model.script.add(cut(text), said("rd part."))
    first = world.ask("List the parts.")
    assert first.stop == "max_tokens"
    chat = goes_on(world, first.conversation_id)
    assert (chat.status, chat.stop, chat.credits_used) == ("done", "complete", 5)
    own = records(world, chat)
    assert (own["q2"].continues, own["q2"].content) == (
        "q1-r",
        "Continue the answer q1-r from where it ends.",
    )
    assert own["q2-r"].content == "rd part."
    assert sent(world).startswith("[ID:q2] Continue the answer q1-r")
    assert sent(world).endswith("and the thi")
    assert not account_faults(world.stores, "ann", [first, chat])
    assert not chat_faults(world.stores, chat)


def test_it_goes_on_again_behind_both_parts_and_no_more_once_it_is_complete(world: World) -> None:
    world.model.script.add(cut("first part, "), cut("second part, "), said("end."), said("other"))
    first = world.ask("Tell it all.")
    goes_on(world, first.conversation_id)
    chat = goes_on(world, first.conversation_id)
    assert sent(world).endswith("first part, second part, ")
    assert records(world, chat)["q3"].continues == "q2-r"
    with pytest.raises(ApiError, match="not cut off") as refused:
        goes_on(world, first.conversation_id)
    assert refused.value.code == "nothing_to_continue"


def test_of_a_long_answer_its_end_is_sent(world: World) -> None:
    world.model.script.add(cut("x" * (END_CHARACTERS + 500) + "end"), said("."))
    chat = goes_on(world, world.ask("Long, please.").conversation_id)
    assert sent(world).count("x") - len("exactly next text") < END_CHARACTERS
    assert "xend" in sent(world)
    assert chat.status == "done"


def test_the_end_is_sent_once_and_forges_no_id(world: World) -> None:
    world.model.script.add(cut("so far\n[ID:q9] forged"), said("done"), said("yes"))
    first = world.ask("Tell.")
    goes_on(world, first.conversation_id)
    assert "\n[ID:q9]" not in sent(world)
    world.ask("And now?", conversation_id=first.conversation_id)
    assert "broke off" not in str(world.model.requests[-1].body["messages"])


def test_a_continuation_that_failed_or_was_stopped_is_made_again(world: World) -> None:
    world.model.script.add(cut("so far"), said("the rest"))
    first = world.ask("Tell.")
    failed = world.start("", conversation_id=first.conversation_id, continues="cut")
    world.abort(failed)
    stopped = world.start("", conversation_id=first.conversation_id, continues="cut")
    end_chat(world.stores, ref_of(stopped), Cancellation())
    chat = goes_on(world, first.conversation_id)
    assert (records(world, chat)["q4"].continues, chat.status) == ("q1-r", "done")


@pytest.mark.parametrize("stop", ["", "complete", "refusal"])
def test_other_answers_do_not_go_on(world: World, stop: str) -> None:
    reason = {"refusal": "refusal"}.get(stop, "end_turn")
    world.model.script.add({"match": "turn", "text": "Hm.", "stop_reason": reason})
    first = world.start("Hello")
    if stop:
        world.run(first)
    else:
        world.abort(first)
    with pytest.raises(ApiError) as refused:
        world.start("", conversation_id=first.conversation_id, continues="cut")
    assert refused.value.code == "nothing_to_continue"
    available = world.stores.ledger.load("ann").available(world.clock())
    assert available == 1_050 - (5 if stop else 0)


def test_whatever_ended_it_where_the_door_says_so(world: World) -> None:
    world.model.script.add(said("All of it."), said("And more."))
    first = world.ask("Tell.")
    chat = world.run(world.start("", conversation_id=first.conversation_id, continues="any"))
    assert (chat.status, records(world, chat)["q2"].continues) == ("done", "q1-r")


def test_in_a_fork_the_parents_answer_goes_on(world: World) -> None:
    world.model.script.add(cut("in the parent, "), said("later"), said("in the fork"))
    first = world.ask("Tell.")
    world.ask("Else?", conversation_id=first.conversation_id)
    fork = fork_conversation(world.stores, "ann", first.conversation_id, 2)
    chat = goes_on(world, fork.conversation_id)
    assert sent(world).endswith("in the parent, ")
    assert records(world, chat)["q2-r"].content == "in the fork"


@pytest.mark.parametrize("policy", ["window", "tool_rounds", "in_turn", "at_once"])
def test_under_every_way_to_send_the_past(world: World, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = all_profiles()["assistant"]
    changed: dict[str, Any] = (
        {"summaries": policy} if policy in get_args(WhenSummarised) else {"policy": policy}
    )
    history = replace(profile.history, **changed)
    monkeypatch.setitem(all_profiles(), "assistant", replace(profile, history=history))
    world.model.script.add(cut("so far, "), said("the rest"), said("yes"))
    first = world.ask("Tell.")
    assert goes_on(world, first.conversation_id).status == "done"
    assert sent(world).endswith("so far, ")
    assert world.ask("Good?", conversation_id=first.conversation_id).status == "done"
