"""What is piped into ``chat``, as a shell does it: it goes along, or is refused, and nobody waits for nothing."""

from __future__ import annotations

import base64
import os
import pty
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.cli import piped as piped_module
from dualtrack_stack.cli.piped import Unfinished, piped

from tests.servers.api_server import Script, answered, api_server

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = "+ a line of a diff, é\n" * 3_000
LARGEST = 50_000_000


@dataclass(frozen=True, slots=True)
class Shell:
    """A server, and a shell that knows the command as ``ask``."""

    script: Script
    url: str

    def run(self, line: str, stdin: int | bytes = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        ask = f'ask() {{ "{sys.executable}" -m dualtrack_stack.cli.main chat --url {self.url} "$@"; }}\n'
        given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
        command = ["bash", "-c", ask + line]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, **given)
        return subprocess.CompletedProcess(line, done.returncode, done.stdout.decode(), done.stderr.decode())

    @property
    def asked(self) -> list[Any]:
        return self.script.asked("POST", "/v1/chats")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.chdir(tmp_path)
    script = Script(events=answered())
    with api_server(script) as url:
        yield Shell(script, url)


def stdin_txt(text: str, name: str = "stdin.txt", media_type: str = "text/plain") -> dict[str, str]:
    return {"name": name, "media_type": media_type, "data": base64.b64encode(text.encode()).decode()}


def test_short_text_goes_behind_the_message(shell: Shell) -> None:
    Path("diff").write_text("- a\n+ b é\n")
    for line in ('cat diff | ask "Explain"', 'ask "Explain" <diff', 'ask "Explain" <<<"$(cat diff)"'):
        assert shell.run(line).returncode == 0
    assert shell.asked == [{"message": "Explain\n\n- a\n+ b é"}] * 3


def test_long_text_goes_along_as_a_file_behind_the_others(shell: Shell) -> None:
    Path("diff").write_text(LONG)
    Path("a.txt").write_text("a")
    for line in ('cat diff | ask "Explain" --file a.txt', 'ask "Explain" --file a.txt <diff'):
        assert shell.run(line).returncode == 0
    files = [stdin_txt("a", "a.txt"), stdin_txt(LONG)]
    assert shell.asked == [{"message": "Explain", "attachments": files}] * 2


@pytest.mark.parametrize(("characters", "is_file"), [(2_000, False), (2_001, True)])
def test_what_the_memory_keeps_word_for_word_is_no_file(shell: Shell, characters: int, is_file: bool) -> None:
    shell.run('ask "Hi"', b"x" * (characters - len("Hi\n\n")))
    assert ("attachments" in shell.asked[0]) is is_file
    assert len(shell.asked[0]["message"]) == (2 if is_file else characters)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            b"\x89PNG\r\n\x1a\n",
            "is no text: the text is not valid UTF-8 (byte 0). Send an image or a PDF with",
        ),
        (b"a\0b", "is no text: the file has a NUL character"),
        (b"caf\xe9", "is no text: the text is not valid UTF-8 (byte 3)"),
        (b"x" * (LARGEST + 1), "Standard input: too large; the files of a message may have 50 MB in total."),
    ],
)
def test_what_cannot_go_along_is_refused_before_anything_is_started(
    shell: Shell, data: bytes, problem: str
) -> None:
    Path("data").write_bytes(data)
    for line in ('cat data | ask "Explain"', 'ask "Explain" <data'):
        done = shell.run(line)
        assert (done.returncode, shell.script.requests) == (2, [])
        assert problem in done.stderr


def test_the_limits_of_a_message_hold_for_piped_text_too(shell: Shell) -> None:
    Path("a.txt").write_text("a")
    Path("data").write_bytes(b"x" * LARGEST)
    done = shell.run('ask "Explain" --file a.txt <data')
    assert (done.returncode, "a.txt: too large" in done.stderr) == (2, True)
    done = shell.run('ask "Explain" ' + "--file a.txt " * 5 + "<data")
    assert (done.returncode, "at most 5 files, not 6" in done.stderr) == (2, True)
    assert shell.script.requests == []


@pytest.mark.parametrize(
    "line",
    ['printf "" | ask "Hi"', 'printf " \\n" | ask "Hi"', 'ask "Hi" </dev/null', 'ask "Hi" <&-', 'ask "Hi"'],
)
def test_nothing_changes_nothing(shell: Shell, line: str) -> None:
    done = shell.run(line)
    assert (done.returncode, shell.asked) == (0, [{"message": "Hi"}])
    assert "standard input" not in done.stderr


def test_a_loop_over_a_file_keeps_its_lines(shell: Shell) -> None:
    Path("questions").write_text("One?\nTwo?\nThree?\n")
    assert shell.run('while read -r question; do ask "$question"; done <questions').returncode == 0
    assert [body["message"] for body in shell.asked] == ["One?", "Two?", "Three?"]


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_an_open_end_without_data_is_not_waited_for(shell: Shell, kind: str) -> None:
    one, other = os.pipe() if kind == "pipe" else tuple(end.detach() for end in socket.socketpair())
    done = shell.run('ask "Hi"', one)
    assert (done.returncode, shell.asked) == (0, [{"message": "Hi"}])
    assert "Nothing came from standard input within 5 seconds" in done.stderr
    assert "--file -" in done.stderr
    os.close(one)
    os.close(other)


def test_on_a_terminal_a_slow_program_is_waited_for(shell: Shell) -> None:
    """The wait is announced there: only then does the program write."""
    reads, writes = os.pipe()
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "dualtrack_stack.cli.main", "chat", "--url", shell.url, "Explain"]
    process = subprocess.Popen(command, stdin=reads, stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(reads)
    os.close(terminal)
    shown = b""
    while b"Waiting for the end of standard input" not in shown:
        shown += os.read(ours, 1_000)
    os.write(writes, b"late")
    os.close(writes)
    assert process.wait(60) == 0
    assert shell.asked == [{"message": "Explain\n\nlate"}]
    os.close(ours)


def test_standard_input_may_be_named_as_a_file(shell: Shell) -> None:
    assert shell.run('ask "Explain" --file -', b"short").returncode == 0
    assert shell.run('ask "Explain" --file -', b"%PDF-1.7 ..").returncode == 0
    files = [body["attachments"] for body in shell.asked]
    assert files == [[stdin_txt("short")], [stdin_txt("%PDF-1.7 ..", "stdin.pdf", "application/pdf")]]
    assert shell.run('ask "Explain" --file -', b"").returncode == 2
    assert shell.run("ask - --file -", b"short").returncode == 2


def test_a_message_of_a_dash_is_standard_input_alone(shell: Shell) -> None:
    assert shell.run('printf "How?" | ask -').returncode == 0
    assert shell.asked == [{"message": "How?"}]
    assert shell.run("printf How? | ask").returncode == 2


def test_text_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, writes = os.pipe()
    os.write(writes, b"begun")
    monkeypatch.setattr(piped_module, "_NEXT_SECONDS", 0.0)
    with os.fdopen(reads) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(Unfinished, match="5 bytes and did not end"):
            piped(100, print)
    os.close(writes)
