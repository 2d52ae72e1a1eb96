"""Decisions at a terminal and by command: what is asked and shown, what is sent, and how a program goes on."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from dualtrack_stack.cli.main import main

from tests.clients.terminal import Terminal
from tests.servers.api_server import CHAT_ID, Script, api_server, asks, waiting

if TYPE_CHECKING:
    from pathlib import Path

PROMPT = "\x1b[?2004h"
"""The line editor takes what is typed."""
ORDER = asks("place_order", article="bulb", amount=4.5)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DUALTRACK_TOKEN", "NO_COLOR", "FORCE_COLOR", "EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)


def typed(
    script: Script, *lines: str, command: tuple[str, ...] = ("chat", "Order it."), code: int = 0
) -> str:
    """What is drawn if these lines are typed, one at each prompt."""
    with api_server(script) as url, Terminal(*command, "--url", url, columns=72) as terminal:
        for line in lines:
            terminal.until(PROMPT)
            terminal.type(line)
        assert terminal.end() == code, terminal.shown
        return terminal.shown


def plain(shown: str) -> str:
    """What is drawn, without colours and movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (("y\r",), {"approve": True}),
        (("approve\r", "\r", "YES\r"), {"approve": True}),  # neither is a key or its word
        (("n\r", "Too dear.\r"), {"approve": False, "reason": "Too dear."}),
        (("no\r", "\r"), {"approve": False}),
        (("a\r",), {"approve": True, "for": "conversation"}),
        (("e\r", "\r", "e\r", "\x01\x0b{\r", "e\r", '\x01\x0b{"amount": 3}\r'), {"input": {"amount": 3}}),
    ],
)
def test_each_key_decides(lines: tuple[str, ...], decision: dict[str, Any]) -> None:
    """The chat is followed to its answer; an input that was not changed, or is none, decides nothing."""
    script = Script(events=waiting({**ORDER, "allowable": True}))
    shown = plain(typed(script, *lines))
    assert script.decided == [{"id": "q1-t1", **decision}]
    assert "I will look it up." in shown
    assert "a allow in this conversation" in shown
    assert "Use OAuth 2.0" in shown


def test_an_editor_is_used_if_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/4.5/3/; s/$/ /\' "$1"\ntouch -d tomorrow "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    script = Script(events=waiting(ORDER))
    typed(script, "e\r", command=("watch", CHAT_ID))
    assert script.decided == [{"id": "q1-t1", "input": {"article": "bulb", "amount": 3}}]


def test_what_was_just_allowed_is_not_asked_for_again() -> None:
    script = Script(
        events=waiting({**ORDER, "allowable": True}, asks("place_order", 2, amount=9), asks("other", 3))
    )
    shown = typed(script, "a\r", "n\r", "\r")
    assert [decision["approve"] for decision in script.decided] == [True, True, False]
    assert plain(shown).count("May it run?") == 2


def test_a_question_takes_an_option_or_words_and_a_clients_tool_a_result() -> None:
    question = asks("ask_user", kind="question", question="Which colour?", options=["red", "blue"])
    local = asks("read_file", 2, kind="client_tool", path="a.txt")
    script = Script(events=waiting(question, local))
    shown = plain(typed(script, "2\r", "y\r", "r\r", "Its text.\r"))
    assert script.decided == [{"id": "q1-t1", "answer": "blue"}, {"id": "q1-t2", "result": "Its text."}]
    assert "2. blue" in shown
    assert "May it run?" not in shown


def test_what_the_server_refuses_is_asked_again_and_what_came_too_late_is_not() -> None:
    script = Script(events=waiting(ORDER))
    path = f"POST /v1/chats/{CHAT_ID}/decisions"
    script.refusals[path] = [(400, {"code": "invalid_request", "message": "amount: too much"}, {})]
    assert "amount: too much" in plain(typed(script, "e\r", '\x01\x0b{"amount": 999}\r', "y\r"))
    assert script.decided == [{"id": "q1-t1", "approve": True}]
    script = Script(events=waiting(ORDER))
    script.refusals[path] = [(409, {"code": "already_decided", "message": "It was declined."}, {})]
    shown = plain(typed(script, "y\r", code=6))  # the script's pause stays
    assert ("It was declined (already_decided)" in shown, shown.count("May it run?")) == (True, 1)


def test_hostile_arguments_move_nothing() -> None:
    """Neither the cursor nor the reading direction: they are shown by their numbers, in the width of a phone."""
    hostile = "safe\x1b[2J\x9b1A\r\u202egnp.exe\u2066" + "W" * 100 + "\n" * 50 + "end"
    script = Script(events=waiting(asks("place\x1b[1A_order", text=hostile, **{"na\x08me": 1})))
    with api_server(script) as url, Terminal("chat", "Order.", "--url", url, columns=40) as terminal:
        drawn = terminal.until(
            "May it run?"
        )  # behind it the line editor moves the cursor itself, by \x08 too
        terminal.until(PROMPT)
        terminal.type("\x04")
        assert terminal.end() == 6
    assert "safe\\u001b[2J\\u009b1A\\u000d" in plain(drawn).replace("\r\n", "").replace(" ", "")
    assert not re.search("[\x9b\x08\u202e\u2066]", drawn)
    assert "\x1b[2J" not in drawn
    assert "more characters" in plain(drawn)


@pytest.mark.parametrize(("effect", "said"), [("destroys", 1), ("changes", 0)])
def test_a_call_that_destroys_says_so_in_red(effect: str, said: int) -> None:
    shown = typed(Script(events=waiting({**ORDER, "effect": effect})), "n\r", "\r")
    assert shown.count("\x1b[1;31mIt destroys something") == said


LONG = "begin " + "x" * 4_000 + "\u202e rm -rf"


def test_a_long_input_is_read_to_its_end_before_it_is_approved() -> None:
    """Its end is shown at once; what is between, by its key; and only then a yes counts."""
    script = Script(events=waiting({**asks("place_order", text=LONG), "allowable": True}))
    shown = plain(typed(script, "y\r", "a\r", "m\r", "y\r"))
    assert script.decided == [{"id": "q1-t1", "approve": True}]
    before, _, behind = shown.partition("m more, n no, e edit")
    assert "begin" in before
    assert "\\u202e rm -rf" in before
    assert "more characters; m shows all" in before
    assert behind.count("Read on first: m.") == 2
    assert behind.count("x") > 4_000
    assert behind.count("y yes") == 1


def test_many_arguments_are_read_to_their_end_too() -> None:
    many: dict[str, Any] = {f"n{number}": number for number in range(60)}
    script = Script(events=waiting(asks("place_order", **many)))
    shown = plain(typed(script, "y\r", "m\r", "y\r"))
    assert script.decided == [{"id": "q1-t1", "approve": True}]
    assert "20 more; m shows all" in shown
    assert re.search(r"n59\s+59", shown)


def test_a_long_input_may_be_declined_unread() -> None:
    script = Script(events=waiting(asks("place_order", text=LONG)))
    typed(script, "n\r", "\r")
    assert script.decided == [{"id": "q1-t1", "approve": False}]


def test_an_edited_input_with_hidden_characters_is_shown_before_it_is_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The editor has them as escapes; what is pasted there is shown, and asked for."""
    editor = tmp_path / "editor"
    seen = tmp_path / "seen"
    editor.write_text(
        f'#!/bin/sh\ncp "$1" "{seen}"\nprintf \'{{"text": "b\\342\\200\\256c"}}\' > "$1"\ntouch -d tomorrow "$1"\n'
    )
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    script = Script(events=waiting(asks("place_order", text="a\u200bb")))
    shown = plain(typed(script, "e\r", "n\r", "e\r", "y\r", command=("watch", CHAT_ID)))
    assert "a\\u200bb" in seen.read_text()
    assert shown.count("characters that cannot be seen") == shown.count("b\\u202ec") == 2
    assert script.decided == [{"id": "q1-t1", "input": {"text": "b\u202ec"}}]


def test_questions_and_options_are_whole_and_hide_nothing() -> None:
    question = asks(
        "ask_user", kind="question", question="Q" * 2_500 + "\u2067", options=["y\u200bes", "n" * 150]
    )
    script = Script(events=waiting(question))
    shown = plain(typed(script, "1\r")).replace("\r\n", "").replace(" ", "")
    assert shown.count("Q") >= 2_500
    assert "\\u2067" in shown
    assert "1.y\\u200bes" in shown
    assert "n" * 150 in shown
    assert script.decided == [{"id": "q1-t1", "answer": "y\u200bes"}]


def test_a_listed_call_hides_nothing_and_has_its_end() -> None:
    call = asks("pay\u202e", text="a\x1b[2J\u2066" + "x" * 500 + " to Mallory")
    for command in (("pauses",), ("decide", CHAT_ID, "q1-t2", "--decline")):
        script = Script(events=waiting(call, asks("other", 2)))
        said = run(script, *command).output
        assert "pay\\u202e text=" in said
        assert "\\u2066" in said
        assert 'to Mallory"' in said
        assert not re.search("[\x1b\u202e\u2066]", said)


def test_later_leaves_it_open_and_says_how_to_go_on() -> None:
    script = Script(events=waiting(ORDER))
    shown = plain(typed(script, "\x04", code=6))
    assert f"Decide: uv run dualtrack decide {CHAT_ID}" in shown.replace("\r\n", "")
    assert script.asked("DELETE", f"/v1/chats/{CHAT_ID}") == script.decided == []


# ── by command ────────────────────────────────────────────────────────────────────────────────────


def run(script: Script, *arguments: str) -> Result:
    with api_server(script) as url:
        return CliRunner().invoke(main, [*arguments, "--url", url])


def test_without_a_terminal_it_exits_with_six_and_says_what_to_do() -> None:
    result = run(Script(events=waiting(ORDER)), "chat", "Order it.")
    assert result.exit_code == 6
    assert 'waits   place_order article="bulb" amount=4.5' in result.stdout
    assert f"uv run dualtrack decide {CHAT_ID} --url" in result.stderr


@pytest.mark.parametrize(
    ("options", "decisions"),
    [
        (("--approve",), [{"id": "q1-t1", "approve": True}, {"id": "q1-t2", "approve": True}]),
        (("q1-t2", "--decline", "--reason", "No."), [{"id": "q1-t2", "approve": False, "reason": "No."}]),
        (
            ("q1-t1", "--approve", "--for-conversation"),
            [{"id": "q1-t1", "approve": True, "for": "conversation"}],
        ),
        (("q1-t1", "--input", '{"amount": 3}'), [{"id": "q1-t1", "input": {"amount": 3}}]),
        (("--answer", "blue"), [{"id": "q1-t3", "answer": "blue"}]),
        (("--result", "", "--is-error"), [{"id": "q1-t4", "result": "", "is_error": True}]),
    ],
)
def test_a_command_decides_on_the_calls_that_it_suits(
    options: tuple[str, ...], decisions: list[dict[str, Any]]
) -> None:
    others = [asks("ask_user", 3, kind="question"), asks("local", 4, kind="client_tool")]
    script = Script(events=waiting(ORDER, asks("place_order", 2), *others))
    result = run(script, "decide", CHAT_ID, *options, "--json")
    assert (result.exit_code, script.decided) == (0, decisions), result.output
    assert json.loads(result.stdout)["status"] == "paused"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ((), 2, "Which decision?"),
        (("--approve", "--decline"), 2, "Only one of --approve and --decline"),
        (("--reason", "x", "--approve"), 2, "--reason belongs to --decline"),
        (("--for-conversation",), 2, "belongs to --approve"),
        (("--input", "[1]"), 2, "takes a JSON object"),
        (("--input", "{}"), 2, "Which call? q1-t1, q1-t2"),
        (("--answer", "x"), 4, "takes --answer"),
        (("../x", "--approve"), 2, "is not a record id"),
    ],
)
def test_wrong_usage_decides_nothing(options: tuple[str, ...], code: int, words: str) -> None:
    script = Script(events=waiting(ORDER, asks("place_order", 2)))
    result = run(script, "decide", CHAT_ID, *options)
    assert (result.exit_code, script.decided) == (code, [])
    assert words in result.stderr


def test_open_calls_are_listed() -> None:
    result = run(Script(events=waiting(ORDER)), "pauses")
    assert 'q1-t1 place_order article="bulb" amount=4.5' in result.stdout
    assert f"dualtrack decide {CHAT_ID}" in result.stderr
    script = Script(events=waiting(ORDER), decided=[{"id": "q1-t1"}])
    assert run(script, "pauses").stdout == "Nothing waits for you.\n"
    assert json.loads(run(script, "pauses", "--json").stdout) == {"pauses": []}
