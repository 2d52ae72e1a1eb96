"""Ids on the command line: one that cannot be is refused in plain words, before anything is started or asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from dualtrack.ids import new_chat_id
from dualtrack.plugin import id_forms
from dualtrack_stack.cli.id_types import wrong_id
from dualtrack_stack.cli.interactive import OpenConversation
from dualtrack_stack.cli.main import main
from dualtrack_stack.cli.talk import OutgoingMessage
from dualtrack_stack.cli.target import ChosenStack, TargetOptions

from tests.servers.api_server import Script, api_server

WRONG = ["../../etc/passwd", "..", ".", "", " ", "a/b", "%2e%2e", "q1#", "q1?x=1", "cv_1", "ch_", "\0", "é", "x" * 5_000, "q1\n"]  # fmt: skip
CV = "cv_01jd8m3v5q0000000000000000"  # the same for every worker
COMMANDS = [
    ("explain", "{}"),
    ("watch", "{}"),
    ("cancel", "{}"),
    ("show", "{}"),
    ("show", CV + "/{}"),
    ("chat", "Hi", "--conversation", "{}"),
    ("chat", "Hi", "--fork", "{}", "--before", "q2"),
    ("chat", "Hi", "--fork", CV, "--before", "{}"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wrong_id_is_wrong_usage(command: tuple[str, ...], wrong: str, tmp_path: Path) -> None:
    if command == ("show", "{}") and not wrong:
        return  # the latest conversation
    arguments = [part.format(wrong) for part in command]
    state = tmp_path / "state"
    result = CliRunner().invoke(main, [*arguments, "--state-dir", str(state)])
    assert (result.exit_code, state.exists()) == (2, False)
    assert " id such as " in result.stderr
    assert len(result.stderr) < 500


@pytest.mark.parametrize(
    "command", [("credits", "show", "--user"), ("credits", "spending"), ("credits", "plan"), ("credits", "grant"), ("users", "delete", "--yes")]
)  # fmt: skip
@pytest.mark.parametrize("wrong", ["../../etc/passwd", "..", "a/b", "", "x" * 129])
def test_a_deployed_stack_is_not_asked_for_what_is_no_user_id(command: tuple[str, ...], wrong: str) -> None:
    more = {"plan": ["pro"], "grant": ["5"]}.get(command[1], [])
    script = Script()
    with api_server(script) as url:
        arguments = [*command, wrong, *more, "--url", url, "--token", "token-of-user"]
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert "is not a user id such as" in result.stderr
    assert not [path for _, path, _ in script.requests if path.startswith("/v1")]


def test_a_ledger_is_not_read_for_what_is_no_user_id() -> None:
    result = CliRunner().invoke(main, ["credits", "audit", "../x", "--stage", "prod"])
    assert (result.exit_code, "is not a user id such as" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", ["/open {}", "/show {}", "/cost {}"])
def test_in_a_conversation_a_wrong_id_is_an_error_and_it_goes_on(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Script()
    with api_server(script) as url:
        target = ChosenStack(url, "token-of-user", dev=False)
        with target.client() as client:
            stack = TargetOptions(url, None, None, Path(".dualtrack"))
            talk = OpenConversation(stack, target, client, OutgoingMessage("", CV))
            for wrong in ("../../etc/passwd", "..", "cv_1", "x#"):
                talk.enter(command.format(wrong))
                assert " id such as " in capsys.readouterr().err
    assert script.requests == []


@pytest.mark.parametrize("name", id_forms())
def test_an_example_has_its_form(name: str) -> None:
    assert not wrong_id(name, id_forms()[name].example)


def test_right_ids_pass() -> None:
    ids = {"chat_id": new_chat_id(), "conversation_id": CV, "record_id": "q12-t3-sum", "query_id": "q7"}
    assert not [text for name, text in {**ids, "user_id": "erased-0b5c4f6e"}.items() if wrong_id(name, text)]
    assert not wrong_id("record_id", "d3")
