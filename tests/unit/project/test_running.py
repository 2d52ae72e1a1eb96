"""What a project's tools may do when they run: the chat goes on, and the model is told in one sentence."""

from __future__ import annotations

import threading

import pytest
from dualtrack import tool
from dualtrack.testing import calls, local_chat

BOUND = 2_000
"""Characters of a line that the model may be sent of a failure."""
ended = threading.Event()


@tool(effect="reads")
def huge() -> str:
    """Returns five megabytes."""
    return "x" * 5_000_000


@tool(effect="reads")
def secretive() -> str:
    """Raises."""
    raise RuntimeError("https://user:pass@host")


@tool(effect="reads", seconds=0.2)
def hanging() -> str:
    """Does not return by itself."""
    ended.wait(60)
    return "late"


@tool(effect="reads")
def chatty() -> str:
    """Prints."""
    print("to the log")
    return "told"


def test_a_huge_result_is_cut_for_the_record_and_again_on_the_wire() -> None:
    with local_chat("assistant", model=[calls("huge"), "Large."], tools=[huge]) as chat:
        answer = chat.ask("Go.")
    (call,) = answer.calls
    assert (answer.status, call.is_error, len(call.result)) == ("done", False, 2_000_000)
    assert len(str(answer.sent[-1])) < 500_000


@pytest.mark.parametrize("function", [secretive, hanging])
def test_a_failure_is_an_error_result_in_a_sentence(function: object) -> None:
    name = function.__name__  # type: ignore[attr-defined]
    ended.clear()
    try:
        with local_chat("assistant", model=[calls(name), "It failed."], tools=[function]) as chat:  # type: ignore[list-item]
            answer = chat.ask("Go.")
    finally:
        ended.set()
    (call,) = answer.calls
    assert (answer.status, answer.text, call.is_error) == ("done", "It failed.", True)
    assert call.result.startswith("Tool execution failed: ")
    assert len(call.result) < BOUND
    assert "pass@host" not in call.result
    assert "Traceback" not in call.result


def test_what_a_tool_prints_is_not_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    with local_chat("assistant", model=[calls("chatty"), "Done."], tools=[chatty]) as chat:
        answer = chat.ask("Go.")
    assert [call.result for call in answer.calls] == ["told"]
    assert "to the log" in capsys.readouterr().out
