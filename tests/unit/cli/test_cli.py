"""The commands as a user or a script runs them."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from dualtrack.message_files import MESSAGE_CHARACTERS
from dualtrack_stack.cli.main import main
from dualtrack_stack.local.saved import WatchedFolders, look

from tests.clients.terminal import Terminal
from tests.drivers.images import png
from tests.servers.api_server import (
    ADMIN_PATH,
    AT,
    CHAT_ID,
    OWN_PATH,
    Script,
    answered,
    api_server,
    chat_object,
    conversation,
)

if TYPE_CHECKING:
    from tests.servers.api_server import Refusal

BALANCE: dict[str, Any] = {
    "plan": "pro",
    "available": 1630,
    "held": 5,
    "daily": {"limit": 150, "used": 15, "remaining": 135, "resets_at": "2026-11-22T00:00:00.000Z"},
    "monthly": {"limit": 3000, "used": 1200, "resets_at": "2026-12-01T00:00:00.000Z"},
    "pack": {"remaining": 1500},
}
FREE = {**BALANCE, "plan": "free", "monthly": None}
SETTLED = {
    "entry_id": "e1",
    "at": AT,
    "kind": "settle",
    "amount": 15,
    "chat_id": CHAT_ID,
    "available_after": 35,
}


@pytest.fixture(autouse=True)
def _somebody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DUALTRACK_TOKEN", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def ask(script: Script, *arguments: str, stdin: str | None = None) -> Result:
    with api_server(script) as url:
        return run("chat", "--url", url, *arguments, stdin=stdin)


def test_imports_of_single_commands_are_lazy() -> None:
    heavy = "{'dualtrack_stack.local', 'boto3', 'rich.markdown'}"
    program = f"import sys, dualtrack_stack.cli.main; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


class TestChat:
    def test_an_answer_exits_with_zero_and_shows_how_to_continue(self) -> None:
        result = ask(Script(events=answered()), "How?")
        assert result.exit_code == 0
        assert "turn 1 of 15" in result.stdout
        assert "Use **OAuth 2.0**." in result.stdout
        figures, further = result.stdout.rstrip().splitlines()[-2:]
        command = "uv run dualtrack chat"
        assert figures == (
            "15 credits, 1,035 left · $0.0012, with the full history $0.0048: −75 % so far (estimated)"
        )
        assert further.startswith(f"Continue with: {command} --last --url http://127.0.0.1:")
        assert "cv_" not in result.stdout

    def test_ids_and_every_figure_are_for_those_who_want_them(self) -> None:
        result = ask(Script(events=answered()), "How?", "-v")
        command = "uv run dualtrack chat"
        for shown in (f"chat         {CHAT_ID}", "credits      15 used, 1,035 left (grace)", "2 turns"):
            assert shown in result.stdout
        further, anew = result.stdout.rstrip().splitlines()[-2:]
        assert further.startswith(
            f"Continue with: {command} --conversation cv_00000000000000000000000001 --url http://127.0.0.1:"
        )
        assert anew.startswith(
            f"Ask q1 again: {command} --fork cv_00000000000000000000000001 --before q1 --url http://127.0.0.1:"
        )

    def test_json_is_only_the_chat_object(self) -> None:
        result = ask(Script(events=answered()), "How?", "--json")
        assert result.exit_code == 0
        assert json.loads(result.stdout) == chat_object()
        assert "turn 1 of 15" in result.stderr
        assert "offline model" in result.stderr

    def test_an_answer_for_a_program_is_its_json_alone(self, tmp_path: Path) -> None:
        (tmp_path / "order.json").write_text('{"type": "array"}')
        script = Script(events=answered("[1]", output=[1]))
        result = ask(script, "List it", "--schema", "order.json")
        assert (result.exit_code, json.loads(result.stdout)) == (0, [1])
        assert "turn 1 of 15" in result.stderr
        assert script.asked("POST", "/v1/chats") == [
            {"message": "List it", "output": {"schema": {"type": "array"}}}
        ]
        whole = ask(Script(events=answered("[1]", output=[1])), "List it", "--schema", "order.json", "--json")
        assert json.loads(whole.stdout)["output"] == [1]
        null = ask(Script(events=answered("null", output=None)), "List it", "--schema", "order.json")
        assert (null.exit_code, null.stdout) == (0, "null\n")

    def test_an_answer_that_does_not_fit_is_an_exit_code_of_its_own(self, tmp_path: Path) -> None:
        (tmp_path / "order.json").write_text('{"type": "array"}')
        misfit = answered("Words.", output=None, stop="invalid_output")
        result = ask(Script(events=misfit), "List it", "--schema", "order.json")
        assert (result.exit_code, result.stdout) == (7, "")
        assert "does not fit the schema" in result.stderr.splitlines()[-1]

    @pytest.mark.parametrize("content", ["", "{", "[]", None])
    def test_a_file_that_is_no_schema_is_wrong_usage(self, tmp_path: Path, content: str | None) -> None:
        if content is not None:
            (tmp_path / "order.json").write_text(content)
        result = ask(script := Script(events=answered()), "List it", "--schema", "order.json")
        assert (result.exit_code, script.requests) == (2, [])
        assert "order.json" in result.stderr

    def test_the_offline_model_is_named(self) -> None:
        assert "no language model" in ask(Script(events=answered()), "How?").stdout
        assert "no language model" not in ask(Script(events=answered(), mode="live"), "How?").stdout

    def test_the_request_has_only_the_given_options(self) -> None:
        script = Script(events=answered())
        ask(script, "Go on", "--conversation", "cv_00000000000000000000000009", "--profile", "courses")
        ask(script, "Hello")
        assert script.asked("POST", "/v1/chats") == [
            {"message": "Go on", "conversation_id": "cv_00000000000000000000000009", "profile": "courses"},
            {"message": "Hello"},
        ]
        assert len(script.chats) == 2, "each chat has an idempotency key of its own"

    @pytest.mark.parametrize(
        ("lost", "tries"), [([], 1), (["POST /v1/conversations/cv_00000000000000000000000009/fork"], 2)]
    )
    def test_a_fork_is_made_and_queried(self, lost: list[str], tries: int) -> None:
        script = Script(events=answered(), lost=lost)
        result = ask(script, "Again", "--fork", "cv_00000000000000000000000009", "--before", "q7")
        assert result.exit_code == 0
        assert "Forked before q7: cv_00000000000000000000000009_fork" in result.stdout
        forked = script.asked("POST", "/v1/conversations/cv_00000000000000000000000009/fork")
        assert forked == [{"before": "q7"}] * tries
        assert script.asked("POST", "/v1/chats") == [
            {"message": "Again", "conversation_id": "cv_00000000000000000000000009_fork"}
        ]

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--fork", "cv_00000000000000000000000009"),
            ("--before", "q7"),
            (
                "--fork",
                "cv_00000000000000000000000009",
                "--before",
                "q7",
                "--conversation",
                "cv_00000000000000000000000008",
            ),
            ("--fork", "cv_00000000000000000000000009", "--before", "q7", "--profile", "courses"),
        ],
    )
    def test_a_fork_needs_both_its_options_and_no_other_conversation(
        self, arguments: tuple[str, ...]
    ) -> None:
        script = Script(events=answered())
        assert ask(script, "Again", *arguments).exit_code == 2
        assert script.requests == []

    def test_a_fork_that_is_refused_says_why(self) -> None:
        refusal: Refusal = (404, {"code": "not_found", "message": "There is no such conversation."}, {})
        script = Script(
            events=answered(),
            refusals={"POST /v1/conversations/cv_00000000000000000000000008/fork": [refusal]},
        )
        result = ask(script, "Again", "--fork", "cv_00000000000000000000000008", "--before", "q7")
        assert (result.exit_code, "no such conversation" in result.stderr) == (2, True)
        assert script.asked("POST", "/v1/chats") == []

    @pytest.mark.parametrize(
        ("status", "code", "deleted"),
        [(402, "insufficient_credits", 1), (409, "conversation_busy", 1), (500, "internal", 0)],
    )
    def test_a_fork_whose_chat_is_refused_is_deleted(self, status: int, code: str, deleted: int) -> None:
        """Not after a 500: the chat may run."""
        refusal: Refusal = (status, {"code": code, "message": "No.", "required": 5, "available": 0}, {})
        script = Script(events=answered(), refusals={"POST /v1/chats": [refusal]})
        result = ask(script, "Again", "--fork", "cv_00000000000000000000000009", "--before", "q7")
        assert (result.exit_code != 0, "Forked before" in result.stdout) == (True, False)
        assert len(script.asked("DELETE", "/v1/conversations/cv_00000000000000000000000009_fork")) == deleted

    def test_files_are_sent_with_their_names_and_types(self, tmp_path: Path) -> None:
        contents = {
            "notes.md": (b"# Notes", "text/markdown"),
            "main.rs": (b"fn main() {}", "text/plain"),
            "data.json": (b"{}", "application/json"),
            "chart.jpg": (png(), "image/png"),
            "paper": (b"%PDF-1.7 ..", "application/pdf"),
        }
        arguments: list[str] = []
        for name, (data, _) in contents.items():
            (tmp_path / name).write_bytes(data)
            arguments += ["--file", name]
        script = Script(events=answered())
        assert ask(script, "Read these", *arguments).exit_code == 0
        assert script.asked("POST", "/v1/chats")[0]["attachments"] == [
            {"name": name, "media_type": kind, "data": base64.b64encode(data).decode()}
            for name, (data, kind) in contents.items()
        ]

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (None, "no such file"),
            (b"", "the file is empty"),
            (b"PK\x03\x04\0\0", "neither an image"),
            (png()[:-20], "the image is broken: it is cut off"),
            (b"caf\xe9", "not valid UTF-8"),
            (b"x" * 50_000_001, "50 MB in total"),
            (b"%PDF-1.7" + b"\n" * 11_000_000, "it has more than 10,485,760 bytes"),
        ],
    )
    def test_a_file_that_cannot_be_sent_is_named_first(
        self, tmp_path: Path, content: bytes | None, problem: str
    ) -> None:
        if content is not None:
            (tmp_path / "it.bin").write_bytes(content)
        script = Script(events=answered())
        result = ask(script, "Read it", "--file", "it.bin")
        assert result.exit_code == 2
        assert "it.bin: " in result.stderr
        assert problem in result.stderr
        assert script.requests == []

    def test_more_than_five_files_are_wrong_usage(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("a")
        result = run("chat", "Read", *["--file", "a.txt"] * 6)
        assert result.exit_code == 2
        assert "at most 5 files" in result.stderr

    def test_a_message_may_come_from_stdin(self) -> None:
        script = Script(events=answered())
        assert ask(script, "-", stdin="A long question").exit_code == 0
        assert script.asked("POST", "/v1/chats") == [{"message": "A long question"}]

    def test_the_default_user_of_a_local_stack_asks_and_is_named(self) -> None:
        script = Script(events=answered())
        result = ask(script, "How?", "--verbose")
        assert script.asked("GET", "/dev/token")
        assert "15 used, 1,035 left (grace)" in result.stdout

    def test_a_given_token_is_used_and_none_requested(self, monkeypatch: pytest.MonkeyPatch) -> None:
        script = Script(events=answered(), mode=None)
        assert ask(script, "How?", "--token", "token-of-user").exit_code == 0
        monkeypatch.setenv("DUALTRACK_TOKEN", "token-of-user")
        assert ask(script, "How?").exit_code == 0
        assert not [path for _, path, _ in script.requests if path.startswith("/dev/token")]

    @pytest.mark.parametrize(
        "arguments",
        [
            (),
            ("",),
            (" \n",),
            ("--json",),
            ("How?", "--url", "ftp://x"),
            ("How?", "--frob"),
            ("How?", "--conversation", "ch_00000000000000000000000001"),
            ("How?", "--conversation", "cv_00000000000000000000000001", "--last"),
            ("How?", "--fork", "cv_00000000000000000000000001", "--before", "7"),
            ("x" * (MESSAGE_CHARACTERS + 1),),
        ],
    )
    def test_wrong_usage_exits_with_two_before_anything_is_started(self, arguments: tuple[str, ...]) -> None:
        result = run("chat", "--state-dir", "state", *arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("Usage: ")
        assert not Path("state").exists()

    def test_the_latest_conversation_is_continued(self) -> None:
        script = Script(
            events=answered(),
            conversations=[
                conversation("cv_00000000000000000000000007"),
                conversation("cv_00000000000000000000000006"),
            ],
        )
        assert ask(script, "And now?", "--last").exit_code == 0
        assert script.asked("POST", "/v1/chats")[0]["conversation_id"] == "cv_00000000000000000000000007"

    def test_without_a_conversation_there_is_no_latest(self) -> None:
        result = ask(Script(), "And now?", "--last")
        assert (result.exit_code, "no conversation yet" in result.stderr) == (2, True)

    def test_the_prompt_returns_at_the_answer_and_not_at_the_end(self) -> None:
        """The stream is silent after the answer, the tenth event."""
        with api_server(Script(events=answered(), hold_after=10)) as url:
            result = run("chat", "--url", url, "How?")
        assert result.exit_code == 0
        assert "−75 % so far" in result.stdout

    def test_a_stack_elsewhere_needs_a_token(self) -> None:
        result = run("chat", "--url", "https://api.example.com", "How?")
        assert result.exit_code == 2
        assert "DUALTRACK_TOKEN" in result.stderr

    def test_a_local_address_that_issues_no_tokens_needs_one_too(self) -> None:
        result = ask(Script(mode=None), "How?")
        assert result.exit_code == 2
        assert "--token" in result.stderr

    @pytest.mark.parametrize(
        ("status", "code", "exit_code"),
        [
            (400, "invalid_request", 2),
            (404, "not_found", 2),
            (413, "too_large", 2),
            (401, "unauthorized", 4),
            (409, "conversation_busy", 4),
            (429, "rate_limited", 4),
            (500, "internal", 4),
        ],
    )
    def test_refusals_are_one_line_and_an_exit_code(self, status: int, code: str, exit_code: int) -> None:
        refusal: Refusal = (status, {"code": code, "message": "Because.\nReally."}, {})
        result = ask(Script(refusals={"POST /v1/chats": [refusal]}), "How?")
        assert result.exit_code == exit_code
        assert result.stderr == f"Error: Because. Really ({code})\n"

    @pytest.mark.parametrize("local", [True, False])
    def test_too_few_credits_exit_with_three_and_say_what_to_do(self, local: bool) -> None:
        error = {
            "code": "insufficient_credits",
            "message": "Not enough credits.",
            "required": 5,
            "available": 3,
            "resets_at": "2026-11-22T00:00:00.000Z",
            "upgrade": {"message": "Pro gives 150 a day for $19 a month.", "plans": [], "packs": []},
        }
        script = Script(refusals={"POST /v1/chats": [(402, error, {})]})
        with api_server(script) as url:
            own = () if local else ("--token", "token-of-user")
            result = run("chat", "--url", url, "How?", "--json", *own)
        more = "Pro gives 150 a day for $19 a month"
        if local:
            more = f"more with: uv run dualtrack credits grant 500 --url {url}"
        assert result.exit_code == 3
        assert result.stdout == ""
        assert result.stderr.splitlines()[-1] == (
            "Error: Not enough credits; 5 needed, 3 available; more at 2026-11-22 00:00 UTC; "
            f"{more} (insufficient_credits)"
        )

    def test_a_failed_chat_exits_with_four_and_json_shows_it(self) -> None:
        script = Script(
            events=[*answered()[:4], ("error", {"code": "timeout", "message": "It took too long."})]
        )
        result = ask(script, "How?", "--json")
        assert result.exit_code == 4
        assert json.loads(result.stdout)["status"] == "failed"
        assert "Error: The chat failed: It took too long. (timeout)" in result.stderr

    def test_a_cancelled_chat_exits_with_four(self) -> None:
        cancelled = chat_object(status="cancelled", stop="cancelled", response=None)
        result = ask(Script(events=[("done", cancelled)]), "How?")
        assert result.exit_code == 4
        assert "cancelled" in result.stderr

    def test_the_kept_text_of_a_cancelled_chat_is_printed(self) -> None:
        kept = chat_object(status="cancelled", stop="cancelled", response="It is port 80")
        result = ask(Script(events=[("done", kept)]), "How?")
        assert result.exit_code == 4
        assert "It is port 80" in result.stdout
        assert "Note: the chat was cancelled" in result.stdout

    def test_an_unreachable_address_exits_with_five_and_advice(self) -> None:
        with api_server(Script()) as url:
            pass
        result = run("chat", "--url", url, "How?")
        assert result.exit_code == 5
        assert url in result.stderr
        assert "uv run dualtrack dev" in result.stderr

    def test_a_shown_answer_succeeds_without_its_figures(self) -> None:
        gone: Refusal = (404, {"code": "not_found", "message": "Gone."}, {})
        path = f"GET /v1/chats/{CHAT_ID}"
        shown = ask(Script(events=answered(), refusals={path: [gone]}), "How?")
        assert shown.exit_code == 0
        assert "Use **OAuth 2.0**." in shown.stdout
        assert "Error: Gone." in shown.stderr


def of_stack(url: str) -> dict[str, Any]:
    """What a stack that serves an empty project writes of itself."""
    project = WatchedFolders(Path.cwd() / "empty", Path.cwd() / "empty" / "profiles")
    return {
        "url": url,
        "pid": os.getpid(),
        "root": str(project.root),
        "profiles": str(project.profiles),
        "seen": look(project).digest(),
        "problem": "",
    }


class TestRunningStack:
    def test_the_stack_of_the_state_folder_is_used(self) -> None:
        script = Script(events=answered())
        with api_server(script) as url:
            Path("state").mkdir()
            Path("state/dev.json").write_text(json.dumps(of_stack(url)))
            result = run("chat", "How?", "--state-dir", "state")
        assert result.exit_code == 0
        assert 'Continue with: uv run dualtrack chat --last --state-dir state "…"\n' in result.stdout

    def test_a_state_folder_elsewhere_is_named_in_the_next_command(self, tmp_path: Path) -> None:
        state = tmp_path / "my state"
        state.mkdir()
        with api_server(Script(events=answered())) as url:
            (state / "dev.json").write_text(json.dumps(of_stack(url)))
            result = run("chat", "How?", "--state-dir", str(state))
        assert f"--state-dir '{state}'" in result.stdout

    @pytest.mark.parametrize("written", ["", "[]", "{}", '{"url": "https://evil.example", "pid": 1}'])
    def test_a_runner_file_that_cannot_be_trusted_is_ignored(self, written: str, tmp_path: Path) -> None:
        from dualtrack_stack.local.shared import running_stack

        (tmp_path / "dev.json").write_text(written)
        assert running_stack(tmp_path) is None

    def test_a_runner_that_died_is_ignored(self, tmp_path: Path) -> None:
        from dualtrack_stack.local.shared import running_stack

        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        with api_server(Script()) as url:
            (tmp_path / "dev.json").write_text(json.dumps({"url": url, "pid": dead.pid}))
            assert running_stack(tmp_path) is None
            (tmp_path / "dev.json").write_text(json.dumps(of_stack(url)))
            assert running_stack(tmp_path) == url

    def test_a_starting_stack_is_waited_for(self, tmp_path: Path) -> None:
        from dualtrack_stack.cli.target import TargetOptions, open_target

        with api_server(Script()) as url, (tmp_path / "lock").open("w") as runner:
            fcntl.flock(runner, fcntl.LOCK_EX)
            written = json.dumps(of_stack(url))
            serving = threading.Timer(0.3, (tmp_path / "dev.json").write_text, [written])
            serving.start()
            with open_target(TargetOptions(None, None, None, tmp_path), print) as target:
                assert target.url == url
            serving.join()

    def test_a_stack_that_cannot_start_exits_with_five(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The background process writes the reason, and the command prints it."""
        monkeypatch.setenv("DUALTRACK_PROVIDER", "neither")
        result = run("chat", "How?", "--state-dir", "state")
        assert result.exit_code == 5
        assert "Error: The local stack cannot start. DUALTRACK_PROVIDER" in result.stderr


class TestSignals:
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_an_interrupted_chat_is_cancelled(self, number: signal.Signals, code: int) -> None:
        script = Script(events=answered(), hold_after=4)
        with api_server(script) as url:
            command = [sys.executable, "-m", "dualtrack_stack.cli.main", "chat", "--url", url, "How?"]
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[3],
            )
            assert script.streaming.wait(30)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=30)
        assert process.returncode == code
        assert ("DELETE", f"/v1/chats/{CHAT_ID}", None) in script.requests
        assert "Traceback" not in stderr
        kept = stdout[stdout.index("Stopping the chat") :]
        for told in (
            "I will look it up.",
            "Note: the chat was cancelled",
            "5 credits, 1,035 left · ch_",
            CHAT_ID,
        ):
            assert told in kept

    def test_json_of_an_interrupted_chat_is_the_stopped_chat(self) -> None:
        with (
            api_server(Script(events=answered(), hold_after=4)) as url,
            in_terminal("--json", url) as terminal,
        ):
            terminal.until("turn 1")
            terminal.type("\x03")
            assert terminal.end() == 130
        assert '"status": "cancelled"' in terminal.shown

    def test_shown_text_stays_if_the_chat_cannot_be_stopped(self) -> None:
        away: Refusal = (503, {"code": "unavailable", "message": "Away."}, {})
        script = Script(events=answered(), hold_after=4, refusals={f"DELETE /v1/chats/{CHAT_ID}": [away]})
        with api_server(script) as url, in_terminal("", url) as terminal:
            assert script.streaming.wait(30)
            terminal.until("I will look it up.")
            terminal.type("\x03")
            assert terminal.end() == 130
        left = terminal.shown[terminal.shown.index("Stopping the chat") :]
        assert "I will look it up." in left
        assert f"uv run dualtrack cancel {CHAT_ID}" in left

    def test_on_a_terminal_the_answer_is_drawn(self) -> None:
        with (
            api_server(Script(events=answered("Use **OAuth 2.0**."))) as url,
            in_terminal("", url) as terminal,
        ):
            assert terminal.end() == 0
        assert "\x1b[1mOAuth 2.0\x1b[0m" in terminal.shown, "Markdown is rendered"
        assert "−75 % so far" in terminal.shown


def in_terminal(option: str, url: str) -> Terminal:
    return Terminal("chat", "--url", url, *([option] if option else []), "How?")


class TestCredits:
    def operate(self, script: Script, command: str, *arguments: str) -> Result:
        with api_server(script) as url:
            return run("credits", command, *arguments, "--url", url)

    def test_ones_own_balance_and_movements(self) -> None:
        with api_server(Script(balance=BALANCE, ledger=[SETTLED])) as url:
            result = run("credits", "show", "--url", url)
        assert result.exit_code == 0
        assert result.stdout.splitlines() == [
            "user       grace",
            "plan       pro",
            "available  1,630",
            "held       5",
            "today      15 of 150 used, resets 2026-11-22 00:00 UTC",
            "this month 1,200 of 3,000 used, resets 2026-12-01 00:00 UTC",
            "pack       1,500",
            "",
            "Last movements, newest first",
            "time                  kind      amount  available  for",
            "2026-11-21 21:31 UTC  settle        15         35  ch_00000000000000000000000001",
            "",
            f"More: uv run dualtrack credits grant 500 --url {url}",
        ]

    def test_json_is_only_the_balance(self) -> None:
        script = Script(balance=FREE)
        assert json.loads(self.operate(script, "show", "--json").stdout) == FREE
        assert json.loads(self.operate(script, "show", "--json", "--user", "ada").stdout) == FREE
        assert json.loads(self.operate(script, "plan", "ada", "free", "--json").stdout) == FREE
        grant = self.operate(script, "grant", "ada", "5", "--reason", "Sorry", "--json")
        assert json.loads(grant.stdout) == FREE

    def test_somebody_elses_balance_by_name(self) -> None:
        result = self.operate(Script(balance=FREE, ledger=[SETTLED]), "show", "--user", "ada")
        assert "free" in result.stdout
        assert "this month" not in result.stdout
        assert "settle" in result.stdout

    def test_a_grant_names_its_id_so_that_it_can_be_repeated(self) -> None:
        script = Script(balance=BALANCE)
        granted = self.operate(script, "grant", "ada", "500", "--reason", "Pack", "--grant-id", "pay_1")
        chosen = self.operate(script, "grant", "ada", "500", "--reason", "Pack")
        assert (granted.exit_code, chosen.exit_code) == (0, 0)
        first, second = script.asked("POST", f"{ADMIN_PATH}/grants")
        assert first == {"credits": 500, "reason": "Pack", "grant_id": "pay_1"}
        assert second["grant_id"] in chosen.stderr

    def test_a_plan_is_set(self) -> None:
        script = Script(balance=BALANCE)
        assert self.operate(script, "plan", "ada", "pro").exit_code == 0
        assert script.asked("PUT", f"{ADMIN_PATH}/plan") == [{"plan": "pro"}]

    def test_a_new_name_is_announced(self) -> None:
        """A user is created for it, so a misspelling would go unnoticed."""
        script = Script(balance=BALANCE)
        told = "ada is a new user of the local stack, just created: id-of-ada"
        assert told in self.operate(script, "plan", "ada", "pro").stderr
        assert "new user" not in self.operate(script, "plan", "ada", "pro").stderr

    def test_a_grant_without_a_name_is_to_oneself(self) -> None:
        script = Script(balance=BALANCE)
        result = self.operate(script, "grant", "500")
        assert result.exit_code == 0
        assert "500 credits for grace." in result.stderr
        assert "user       grace" in result.stdout
        sent = script.asked("POST", f"{OWN_PATH}/grants")[0]
        assert (sent["credits"], sent["reason"]) == (500, "granted by command")

    @pytest.mark.parametrize("amount", ["abc", "0", "1.5"])
    def test_an_amount_that_is_no_number_is_named(self, amount: str) -> None:
        result = self.operate(Script(), "grant", "ada", amount)
        assert result.exit_code == 2
        assert f"CREDITS must be a whole number of at least 1, not '{amount}'." in result.stderr

    def test_the_user_must_be_known(self) -> None:
        script = Script(mode=None, admins={"user"})
        result = self.operate(script, "grant", "500", "--token", "token-of-user")
        assert (result.exit_code, "name the USER" in result.stderr) == (2, True)
        assert not [path for _, path, _ in script.requests if path.startswith("/v1/")]

    def test_on_a_deployed_stack_ids_and_the_given_token_are_sent(self) -> None:
        script = Script(balance=FREE, tokens={"t": "boss"}, admins={"boss"}, mode=None)
        assert self.operate(script, "show", "--user", "id-of-ada", "--token", "t").exit_code == 0
        assert script.asked("GET", f"{ADMIN_PATH}/credits")

    def test_what_was_spent_by_day(self) -> None:
        days = [
            {"day": "2026-11-21", "chats": 1200, "credits": 6007, "dollars": 12.34567},
            {"day": "2026-11-20", "chats": 1, "credits": 0, "dollars": 0.00004},
        ]
        keys = [{"key_id": "k_1", "days": days[1:]}]
        profiles = [{"profile": "graph", "days": days[:1]}]
        spent = {"user_id": "id-of-ada", "complete": False, "days": days, "keys": keys, "profiles": profiles}
        script = Script(spending=spent)
        result = self.operate(script, "spending", "ada", "--days", "2")
        assert result.exit_code == 0
        assert result.stdout.splitlines() == [
            "day           chats  credits     dollars",
            "2026-11-21    1,200    6,007     12.3457",
            "2026-11-20        1        0      0.0000",
            "together      1,201    6,007     12.3457",
            "",
            "under the API key k_1",
            "2026-11-20        1        0      0.0000",
            "",
            "with graph",
            "2026-11-21    1,200    6,007     12.3457",
            "Not all movements were read: the oldest day may be incomplete. Ask for fewer days.",
        ]
        assert script.asked("GET", f"{ADMIN_PATH}/spending?days=2")
        assert json.loads(self.operate(script, "spending", "ada", "--json").stdout) == script.spending
        script.keys = [{"key_id": "k_1", "name": "nightly"}]
        own = self.operate(script, "spending").stdout
        assert own == result.stdout.replace("API key k_1", "API key nightly"), (
            "without an administrator's right"
        )
        assert script.asked("GET", "/v1/credits/spending?days=30")

    def test_a_user_who_is_no_administrator_is_refused(self) -> None:
        result = self.operate(Script(mode=None), "plan", "id-of-ada", "pro", "--token", "token-of-user")
        assert result.exit_code == 4
        assert "forbidden" in result.stderr

    @pytest.mark.parametrize(
        "arguments",
        [
            ("grant", "ada", "0"),
            ("grant", "ada"),
            ("grant",),
            ("grant", "ada", "1.5"),
            ("grant", "ada", "5", "6"),
            ("plan",),
            ("plan", "ada", "gold"),
        ],
    )
    def test_wrong_usage_exits_with_two(self, arguments: tuple[str, ...]) -> None:
        assert run("credits", *arguments).exit_code == 2


class TestUsers:
    def delete(self, script: Script, *arguments: str, stdin: str | None = None) -> Result:
        with api_server(script) as url:
            return run("users", "delete", *arguments, "--url", url, stdin=stdin)

    def test_a_user_is_erased_after_confirmation(self) -> None:
        script = Script()
        result = self.delete(script, "ada", stdin="y\n")
        assert result.exit_code == 0
        assert "This cannot be undone [y/N]" in result.stdout
        assert "ada is refused from now on" in result.stdout
        assert len(script.asked("DELETE", ADMIN_PATH)) == 1

    @pytest.mark.parametrize("answer", ["n\n", "\n", ""])
    def test_without_confirmation_no_request_is_made(self, answer: str) -> None:
        """Nor is a user created for the name."""
        script = Script()
        assert self.delete(script, "ada", stdin=answer).exit_code == 1
        assert script.requests == []

    def test_on_a_deployed_stack_the_id_and_the_given_token_are_sent(self) -> None:
        script = Script(tokens={"t": "boss"}, admins={"boss"}, mode=None)
        assert self.delete(script, "id-of-ada", "--yes", "--token", "t").exit_code == 0
        assert len(script.asked("DELETE", ADMIN_PATH)) == 1

    def test_an_unknown_user_or_a_token_without_the_right_is_refused(self) -> None:
        script = Script(tokens={"t": "boss", "u": "user"}, admins={"boss"}, mode=None)
        nobody = self.delete(script, "nobody", "--yes", "--token", "t")
        refused = self.delete(script, "id-of-ada", "--yes", "--token", "u")
        assert (nobody.exit_code, refused.exit_code) == (2, 4)
        assert "not_found" in nobody.stderr
        assert "forbidden" in refused.stderr
