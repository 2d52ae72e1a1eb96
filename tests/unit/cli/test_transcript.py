"""What is shown of a chat, event by event."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from dualtrack.frozen import freeze
from dualtrack_stack.cli.client import ChatEvent
from dualtrack_stack.cli.transcript import (
    ChatDone,
    ChatError,
    ChatTranscript,
    FinalAnswer,
    FinishedCall,
    InterimText,
    Retrying,
    TurnBegan,
    Unpaid,
    clean,
    compared,
    cost_lines,
    describe,
    facts_of,
    figures_of,
    one_line,
    step,
    stop_note,
    wait_line,
)

from tests.servers.api_server import answered, chat_object


def watch(events: list[tuple[str, dict[str, Any]]]) -> tuple[ChatTranscript, list[object]]:
    transcript, seen = ChatTranscript(), list[object]()
    for number, (kind, data) in enumerate(events, 1):
        transcript, blocks = step(transcript, ChatEvent(number, kind, freeze(data)), float(number))
        seen += blocks
    return transcript, seen


def turn(number: int, *, final: bool = False) -> tuple[str, dict[str, Any]]:
    return "turn", {"turn": number, "max_turns": 15, "final": final}


def delta(number: int, text: str) -> tuple[str, dict[str, Any]]:
    return "delta", {"turn": number, "text": text}


def tools(*names: str) -> tuple[str, dict[str, Any]]:
    calls = [{"id": f"q1-t{n}", "tool": name, "input": {"n": n}} for n, name in enumerate(names, 1)]
    return "tool_calls_start", {"turn": 1, "calls": calls}


def result(number: int, tool: str, **more: Any) -> tuple[str, dict[str, Any]]:
    data = {"id": f"q1-t{number}", "tool": tool, "is_error": False, "seconds": 1.0, "preview": "fine"}
    return "tool_result", {**data, **more}


def test_a_chat_with_a_tool_is_shown_in_order() -> None:
    _, seen = watch(answered())
    kinds = [type(block) for block in seen]
    assert kinds == [TurnBegan, InterimText, FinishedCall, TurnBegan, FinalAnswer, ChatDone]
    assert seen[1] == InterimText("I will look it up.")
    assert seen[2] == FinishedCall("retrieve_documentation", 'query="OAuth"', 1.2)


def test_a_repeated_turn_voids_its_text() -> None:
    transcript, seen = watch([turn(1), delta(1, "Half an ans"), turn(1), delta(1, "Whole")])
    assert transcript.text == "Whole"
    assert seen == [TurnBegan(1, 15, final=False, again=False), TurnBegan(1, 15, final=False, again=True)]


def test_a_busy_model_is_shown_once_per_wait_and_its_turn_not_again() -> None:
    busy = (
        "retrying",
        {"turn": 1, "reason": "rate_limited", "try": 1, "seconds": 8, "until": "2026-11-23T11:11:11Z"},
    )
    transcript, seen = watch([turn(1), delta(1, "Half"), busy, turn(1), busy])
    until = f"{datetime(2026, 11, 23, 11, 11, 11, tzinfo=UTC).astimezone():%H:%M:%S}"
    assert seen == [
        TurnBegan(1, 15, final=False, again=False),
        Retrying(1, 8, until),
        Retrying(1, 8, until),
    ]
    assert transcript.waiting == seen[-1]
    asking, _ = watch([turn(1), busy, turn(1)])
    assert asking.waiting == Retrying(2, 0, until)
    assert not watch([turn(1), busy, turn(1), delta(1, "So")])[0].waiting
    assert not watch([turn(1), busy, turn(1), tools("quick")])[0].waiting
    transcript, seen = watch([turn(1), busy, turn(1, final=True)])
    assert seen[-1] == TurnBegan(1, 15, final=True, again=True)
    assert not transcript.waiting


def test_the_line_of_a_busy_model_counts_down() -> None:
    waiting = Retrying(4, 32, "12:34:56")
    line = "The model is busy: try 4, again in 32 s, until 12:34:56 at the latest"
    assert wait_line(waiting) == line
    assert wait_line(waiting, 30.6) == line.replace("32 s", "1 s")
    assert wait_line(waiting, 99) == line.replace("32 s", "0 s")
    assert wait_line(replace(waiting, tries=5, seconds=0)) == (
        "The model is busy: try 5, asking again, until 12:34:56 at the latest"
    )
    assert wait_line(replace(waiting, until="")) == "The model is busy: try 4, again in 32 s"


def test_text_of_a_turn_without_tools_is_kept_when_the_next_turn_begins() -> None:
    _, seen = watch([turn(1), delta(1, "Still thinking."), turn(2)])
    assert InterimText("Still thinking.") in seen


def test_late_text_of_an_earlier_turn_is_not_mixed_in() -> None:
    transcript, _ = watch([turn(1), turn(2), delta(1, "old"), delta(2, "new")])
    assert transcript.text == "new"


def test_tools_run_until_their_results_arrive_in_any_order() -> None:
    transcript, seen = watch([turn(1), tools("slow", "quick"), result(2, "quick")])
    assert [call.tool for call in transcript.running] == ["slow"]
    assert seen[-1] == FinishedCall("quick", "n=2", 1.0)


def test_a_tool_without_a_result_is_shown() -> None:
    transcript, seen = watch([turn(1), tools("lost"), turn(2)])
    assert FinishedCall("lost", "n=1", None, "no result seen") in seen
    assert transcript.running == ()


def test_a_failed_tool_says_why() -> None:
    preview = "Tool execution failed:\n timeout"
    _, seen = watch([turn(1), tools("slow"), result(1, "slow", is_error=True, preview=preview)])
    assert seen[-1] == FinishedCall("slow", "n=1", 1.0, "Tool execution failed: timeout")


def test_credits_are_mentioned_only_if_a_tool_could_not_be_paid() -> None:
    short = {"used": 5, "held": 0, "available": 1, "code": "insufficient_credits", "required": 10}
    _, seen = watch([("credits", {"used": 5, "held": 0, "available": 45}), ("credits", short)])
    assert seen == [Unpaid(10, 1)]


def test_a_failed_chat_ends_with_its_reason() -> None:
    transcript, seen = watch(
        [turn(1), delta(1, "Hm"), ("error", {"code": "timeout", "message": "Too long."})]
    )
    assert seen[-1] == ChatError("timeout", "Too long.")
    assert transcript.text == ""


def test_a_cancelled_chat_shows_what_it_had_written() -> None:
    kept = freeze(chat_object(status="cancelled", stop="cancelled", response="It is\x1b[2J 80"))
    _, seen = watch([turn(1), delta(1, "It is 80"), ("done", kept)])
    assert seen[-2:] == [FinalAnswer("It is[2J 80"), ChatDone(kept)]
    assert stop_note(kept)
    none = freeze(chat_object(status="cancelled", stop="cancelled", response=None))
    _, seen = watch([turn(1), ("done", none)])
    assert seen[-1] == ChatDone(none)
    assert FinalAnswer not in [type(shown) for shown in seen]
    assert not stop_note(none)


def test_events_of_a_later_version_change_nothing() -> None:
    assert watch([("confetti", {"anything": 1})]) == (ChatTranscript(), [])


@pytest.mark.parametrize("hostile", ["\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "\x00", "\r\x1b[A"])
def test_no_input_can_send_escapes_to_the_terminal(hostile: str) -> None:
    chat = freeze(chat_object(chat_id=hostile))
    events = [
        turn(1),
        delta(1, hostile),
        (
            "tool_calls_start",
            {"turn": 1, "calls": [{"id": "q1-t1", "tool": hostile, "input": {"a": hostile}}]},
        ),
        result(1, hostile, is_error=True, preview=hostile),
        ("answer", {"response": hostile, "sources": [], "stop": "complete", "turns": 1}),
    ]
    shown = repr(watch(events)[1]) + repr(facts_of(chat))
    assert "\\x1b" not in shown
    assert "\\x9b" not in shown
    assert "\\x07" not in shown
    assert "\\x00" not in shown


def test_cleaning_keeps_ordinary_text() -> None:
    assert clean("a\tb\r\n日本 ✓") == "a\tb\n日本 ✓"
    assert one_line("a\n b   c", 10) == "a b c"
    assert one_line("abcdef", 4) == "abc…"


def test_inputs_are_described_on_one_line() -> None:
    assert describe(freeze({"query": "o\nauth", "limit": 3, "tags": ["a"]})) == (
        'query="o\\nauth" limit=3 tags=["a"]'
    )
    assert len(describe({"query": "x" * 1000})) == 90


@pytest.mark.parametrize(
    ("ours", "full", "said"),
    [
        (0.0041, 0.0037, "$0.0041, with the full history $0.0037: +11 %"),
        (0.00012, 0.00048, "$0.00012, with the full history $0.00048: −75 %"),
        (0.5, 0.5, "$0.5000, with the full history $0.5000: ±0 %"),
        (0.0, 0.0, "$0"),
    ],
)
def test_costs_are_compared_in_whichever_direction(ours: float, full: float, said: str) -> None:
    assert compared(ours, full) == said


def test_a_later_query_has_its_own_cost_and_that_of_all_so_far() -> None:
    memory = {
        "dollars": 0.001,
        "full_history_dollars": 0.002,
        "conversation_dollars": 0.0041,
        "conversation_full_history_dollars": 0.0037,
        "estimated": True,
        "beyond_window": True,
        "summaries_due": False,
    }
    own, so_far = cost_lines(freeze({"memory": memory, "fictional": True}))
    assert own == ("cost", "$0.0010, with the full history $0.0020: −50 %")
    assert so_far[0] == "in all"
    assert so_far[1].startswith(
        "$0.0041, with the full history $0.0037: +11 % so far, estimated; the full history no "
    )
    assert so_far[1].endswith("(fictional: the offline model answered)")
    early_on = chat_object(status="answered")
    (early,) = cost_lines(freeze(early_on | {"memory": early_on["memory"] | {"summaries_due": True}}))
    assert early[1].endswith("so far, estimated, its summaries not counted yet")


@pytest.mark.parametrize(
    ("changed", "notes"),
    [
        ({}, "estimated"),
        ({"fictional": True}, "estimated; fictional"),
        ({"memory": None}, ""),
    ],
)
def test_the_figures_are_of_the_conversation(changed: dict[str, Any], notes: str) -> None:
    figures, said = figures_of(freeze(chat_object(**changed)))
    assert said == notes
    assert figures.startswith("15 credits, 1,035 left")
    assert figures.endswith("so far") == bool(notes)


def test_a_chat_without_an_answer_is_named() -> None:
    assert figures_of(chat_object(status="cancelled"))[0].startswith("15 credits, 1,035 left · ch_0")


def test_facts_name_work_credits_tokens_and_ids() -> None:
    assert facts_of(freeze(chat_object())) == (
        ("work", "2 turns, 1 tool call, 6.4 s"),
        ("credits", "15 used, 1,035 left"),
        ("cost", "$0.0012, with the full history $0.0048: −75 % so far, estimated"),
        ("chat", "ch_00000000000000000000000001"),
        ("conversation", "cv_00000000000000000000000001"),
    )


@pytest.mark.parametrize(
    "stop", ["max_turns", "insufficient_credits", "max_tokens", "context_window", "timeout", "refusal"]
)
def test_an_incomplete_answer_has_a_note(stop: str) -> None:
    assert stop_note(chat_object(stop=stop))
    assert not stop_note(chat_object(stop="complete"))
