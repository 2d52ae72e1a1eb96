"""A conversation on a terminal, as it is typed."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.cli.interactive import Command, TypedMessage, parse

from tests.clients.terminal import Terminal
from tests.servers.api_server import CHAT_ID, Script, answered, api_server, conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.api_server import Refusal

PROMPT = "\x1b[?2004h"
"""The line editor takes what is typed."""
SHORT: Refusal = (
    402,
    {"code": "insufficient_credits", "message": "Short.", "required": 5, "available": 0},
    {},
)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DUALTRACK_TOKEN", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("line", "entered"),
    [
        ("", None),
        (" \n ", None),
        ("How? ", TypedMessage("How?")),
        ("two\nlines", TypedMessage("two\nlines")),
        ("/new", Command("new", "")),
        ("/file  a b.txt ", Command("file", "a b.txt")),
        ("//etc/hosts is what?", TypedMessage("/etc/hosts is what?")),
        ("/", Command("", "")),
    ],
)
def test_input_is_a_message_or_a_command(line: str, entered: TypedMessage | Command | None) -> None:
    assert parse(line) == entered


def test_questions_follow_one_another_in_one_conversation() -> None:
    script = Script(events=answered())
    with api_server(script) as url, Terminal("chat", "--url", url) as terminal:
        terminal.until("grace, a new conversation.")
        terminal.until(PROMPT)
        terminal.type("How?\r")
        terminal.until("−75 % so far")
        terminal.until(PROMPT)
        terminal.type("\x1b[200~And\nnow?\x1b[201~\r")
        terminal.until("−75 % so far")
        terminal.until(PROMPT)
        terminal.type(
            "\x1b[A\x1b[A\x1b[A\r"
        )  # past both lines of the last question, to the previous question
        terminal.until("−75 % so far")
        terminal.until(PROMPT)
        terminal.type("\x04")
        assert terminal.end() == 0
    assert script.asked("POST", "/v1/chats") == [
        {"message": "How?"},
        {"message": "And\nnow?", "conversation_id": "cv_00000000000000000000000001"},
        {"message": "How?", "conversation_id": "cv_00000000000000000000000001"},
    ]
    assert (
        "Continue with: uv run dualtrack chat --conversation cv_00000000000000000000000001 --url"
        in terminal.shown
    )


def test_ctrl_c_stops_the_answer_and_not_the_conversation() -> None:
    script = Script(events=answered(), hold_after=4)
    with api_server(script) as url, Terminal("chat", "--url", url) as terminal:
        terminal.until(PROMPT)
        terminal.type("How?\r")
        assert script.streaming.wait(30)
        terminal.until("I will look it up.")
        terminal.type("\x03")
        shown = terminal.until(PROMPT)
        assert script.asked("DELETE", f"/v1/chats/{CHAT_ID}") == [None]
        for expected in (
            "I will look it up.",
            "the chat was cancelled",
            "5 credits, 1,035 left",
            CHAT_ID,
        ):
            assert expected in shown
        terminal.type("\x03")
        terminal.until("Ctrl-D or /quit ends.")
        terminal.until(PROMPT)
        terminal.type("/quit\r")
        assert terminal.end() == 0
    assert "Traceback" not in terminal.shown


def test_an_answer_that_was_cut_off_goes_on() -> None:
    script = Script(events=answered("One, two,", stop="max_tokens"))
    with api_server(script) as url, Terminal("chat", "--url", url) as terminal:
        terminal.until(PROMPT)
        terminal.type("Count.\r")
        terminal.until("/continue lets the answer go on.")
        script.events = answered("three.")
        terminal.until(PROMPT)
        terminal.type("/continue\r")
        terminal.until("three.")
        shown = terminal.until(PROMPT)
        assert "/continue lets" not in shown
        terminal.type("\x04")
        assert terminal.end() == 0
    assert script.asked("POST", "/v1/chats") == [
        {"message": "Count."},
        {"continue": True, "conversation_id": "cv_00000000000000000000000001"},
    ]


def test_after_a_refusal_or_wrong_usage_it_goes_on(tmp_path: Path) -> None:
    script = Script(
        events=answered(),
        refusals={"POST /v1/chats": [SHORT]},
        balance={"available": 35, "plan": "free"},
        conversations=[conversation("cv_00000000000000000000000007", "How far?" + " Very" * 20)],
        records={
            "cv_00000000000000000000000007": [
                {"record_id": "q1", "role": "user", "type": "message", "content": "Far?"}
            ]
        },
    )
    with api_server(script) as url, Terminal("chat", "--url", url) as terminal:
        for entered, expected in (
            ("How?", "5 needed, 0 available; more with: uv run dualtrack credits grant 500"),
            ("/frob", "There is no /frob. /help lists"),
            ("/help", "// begins a question"),
            ("/show", "Nothing was asked yet"),
            ("/file missing.txt", "missing.txt: no such file"),
            ("/credits", "35 credits available, plan free"),
            ("/conversations far", "How far? Very Very Ver…"),  # cut to the terminal
            ("/open cv_00000000000000000000000007", "Continuing: How far?"),
            ("/open cv_00000000000000000000000008", "no such conversation"),
        ):
            terminal.until(PROMPT)
            terminal.type(f"{entered}\r")
            terminal.until(expected)
        terminal.until(PROMPT)
        terminal.type("And?\r")
        terminal.until("−75 % so far")
        terminal.until(PROMPT)
        terminal.type("\x04")
        assert terminal.end() == 0
    assert script.asked("POST", "/v1/chats")[-1] == {
        "message": "And?",
        "conversation_id": "cv_00000000000000000000000007",
    }


def test_a_question_is_asked_again_in_another_way() -> None:
    """In a new conversation, with which the next question goes on."""
    script, parent = Script(events=answered()), "cv_00000000000000000000000009"
    with api_server(script) as url, Terminal("chat", "--url", url, "--conversation", parent) as terminal:
        for entered, expected in (
            ("/fork", "Before which question?"),
            ("How?", "−75 %"),
            ("/fork two", "two is not a query id"),
            ("/fork", "In place of q1"),
            ("How else?", "Forked before q1"),
            ("And?", "−75 %"),
        ):
            terminal.until(PROMPT)
            terminal.type(f"{entered}\r")
            terminal.until(expected)
        terminal.until(PROMPT)
        terminal.type("\x04")
        assert terminal.end() == 0
    assert script.asked("POST", f"/v1/conversations/{parent}/fork") == [{"before": "q1"}]
    assert script.asked("POST", "/v1/chats") == [
        {"message": "How?", "conversation_id": parent},
        {"message": "How else?", "conversation_id": f"{parent}_fork"},
        {"message": "And?", "conversation_id": f"{parent}_fork"},
    ]


def test_a_file_is_sent_only_with_the_next_question(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    script = Script(events=answered())
    with api_server(script) as url, Terminal("chat", "--url", url) as terminal:
        for entered, expected in (
            (f"/file {tmp_path / 'a.txt'}", "Attached to the next question: a.txt"),
            ("Read it", "−75 % so far"),
            ("/new graph", "A new conversation with graph."),
            ("And?", "−75 % so far"),
        ):
            terminal.until(PROMPT)
            terminal.type(f"{entered}\r")
            terminal.until(expected)
        terminal.until(PROMPT)
        terminal.type("\x04")
        assert terminal.end() == 0
    file = {"name": "a.txt", "media_type": "text/plain", "data": base64.b64encode(b"alpha").decode()}
    assert script.asked("POST", "/v1/chats") == [
        {"message": "Read it", "attachments": [file]},
        {"message": "And?", "profile": "graph"},
    ]


def test_after_sigterm_the_terminal_is_restored() -> None:
    with api_server(Script()) as url, Terminal("chat", "--url", url) as terminal:
        terminal.until(PROMPT)
        terminal.terminate()
        assert terminal.end() == 143
    assert "Traceback" not in terminal.shown
    assert terminal.shown.rfind("\x1b[?2004l") > terminal.shown.rfind("\x1b[?2004h"), (
        "bracketed paste is off again"
    )
