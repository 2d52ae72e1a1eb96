"""What a model's reply means (CONTRACT 7)."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.frozen import freeze
from dualtrack.models.turn import Gate, ModelReply, TurnDecision, decide
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.registry import IN_HOUSE

if TYPE_CHECKING:
    from dualtrack.models.stops import LastCallReason
    from dualtrack.vocabulary import Stop

OFFERED = MappingProxyType({name: IN_HOUSE[name] for name in ("retrieve_full_context",)})


def reply(stop: str, *blocks: dict[str, Any]) -> ModelReply:
    """A reply with these blocks."""
    return ModelReply(freeze(list(blocks)), stop)


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def use(number: int, name: str = "retrieve_full_context", **arguments: Any) -> dict[str, Any]:
    """A tool_use block."""
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments or {"id": "q1"}}


def decided(answered: ModelReply, limit: LastCallReason = "", before: int = 0) -> TurnDecision:
    """The decision on query 2."""
    return decide(
        answered,
        query=2,
        calls_before=before,
        offered=OFFERED,
        limit=limit,
        invalid=invalid_arguments,
        gates=lambda _: Gate(),
        max_tokens=4_096,
    )


@pytest.mark.parametrize(
    ("stop_reason", "stop"),
    [
        ("end_turn", "complete"),
        ("stop_sequence", "complete"),
        ("max_tokens", "max_tokens"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context_window"),
        ("compaction", "other"),
        ("", "other"),
    ],
)
def test_every_stop_reason_answers(stop_reason: str, stop: Stop) -> None:
    """With the text written so far."""
    assert decided(reply(stop_reason, text("So."))) == TurnDecision("answered", "So.", stop=stop)


def test_an_answer_without_words_says_so() -> None:
    """An empty text could be neither stored nor sent again."""
    assert decided(reply("refusal")).text == "The model declined to answer this request."
    assert decided(reply("end_turn", text(" \n"))).text == "(The model gave no answer.)"


def test_calls_are_numbered_through_the_query() -> None:
    """M counts through all turns."""
    decision = decided(reply("tool_use", text("Let me see."), use(1), use(2)), before=3)
    assert (decision.next, decision.text) == ("tools", "Let me see.")
    assert [(call.id, call.tool_use_id, call.fn, call.refused) for call in decision.calls] == [
        ("q2-t4", "toolu_1", "tool", ""),
        ("q2-t5", "toolu_2", "tool", ""),
    ]


def test_unknown_tools_and_bad_arguments_are_refused_but_answered() -> None:
    """The model reads why; the other calls run."""
    decision = decided(reply("tool_use", use(1, "nope"), use(2, wrong=1), use(3)))
    assert decision.next == "tools"
    assert decision.calls[0].refused == "Unknown tool: nope"
    assert decision.calls[1].refused.startswith("Tool execution failed: bad arguments: $")
    assert decision.calls[2].refused == ""


def test_a_turn_without_a_runnable_call_goes_on_to_the_next() -> None:
    """No empty fan-out."""
    assert decided(reply("tool_use", use(1, "nope"))).next == "turn"


def test_at_most_twenty_calls_run() -> None:
    """The rest get an error result."""
    decision = decided(reply("tool_use", *[use(number) for number in range(25)]))
    assert [bool(call.refused) for call in decision.calls] == [False] * 20 + [True] * 5


def test_input_that_is_not_an_object_is_refused_not_fatal() -> None:
    """The API allows only objects, but a model may send something else."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "retrieve_full_context", "input": "q1"}
    assert "bad arguments" in decided(reply("tool_use", block)).calls[0].refused


def test_a_paused_turn_goes_on() -> None:
    """With its content sent back unchanged."""
    assert decided(reply("pause_turn", text("…"))) == TurnDecision("turn", "…")


@pytest.mark.parametrize("limit", ["max_turns", "insufficient_credits", "timeout"])
def test_the_last_call_answers_whatever_the_model_wants(limit: Any) -> None:
    """Even if it asks for tools against tool_choice none."""
    decision = decided(reply("tool_use", text("Found this."), use(1)), limit)
    assert decision == TurnDecision("answered", "Found this.", stop=limit)


@pytest.mark.parametrize(
    ("reason", "stop"), [("end_turn", "complete"), ("tool_use", "complete"), ("max_tokens", "max_tokens")]
)
def test_after_a_profiles_rounds_the_answer_stops_as_the_model_says(reason: str, stop: Stop) -> None:
    decision = decided(reply(reason, text("Found this."), use(1)), "rounds_done")
    assert decision == TurnDecision("answered", "Found this.", stop=stop)


def test_a_tool_call_that_the_token_limit_cuts_is_not_run_and_the_others_are() -> None:
    """It is told the limit, and the turn goes on."""
    cut = replace(reply("max_tokens", text("And so"), use(1), use(2)), cut="toolu_2")
    decision = decided(cut)
    assert (decision.next, decision.is_cut) == ("tools", True)
    first, second = decision.calls
    assert first.may_run
    assert second.refused.startswith("Tool execution failed: this call was not run")
    assert "4,096 tokens" in second.refused
    (late,) = decided(replace(reply("max_tokens", use(1)), cut="toolu_1", is_late=True)).calls
    assert "took longer than it may" in late.refused
    assert "tokens" not in late.refused
    alone = decided(replace(reply("max_tokens", use(1)), cut="toolu_1"))
    assert (alone.next, alone.is_cut, alone.stop) == ("turn", True, "complete")


@pytest.mark.parametrize("limit", ["max_turns", "cut_calls", "rounds_done"])
@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("refusal", "refusal"),
        ("max_tokens", "max_tokens"),
        ("compaction", "other"),
        ("model_context_window_exceeded", "context_window"),
    ],
)
def test_what_the_model_says_of_its_end_goes_before_the_limit(limit: Any, reason: str, stop: Stop) -> None:
    decision = decided(reply(reason, text("So."), use(1)), limit)
    assert decision == TurnDecision("answered", "So.", stop=stop)


def test_after_two_cuts_the_last_answer_says_why_it_is_the_last() -> None:
    assert decided(reply("end_turn", text("So.")), "cut_calls").stop == "max_tokens"


def test_echoed_ids_are_not_part_of_the_answer() -> None:
    """Nor of anything stored."""
    assert decided(reply("end_turn", text("[ID:q1-r] Right."))).text == "Right."
