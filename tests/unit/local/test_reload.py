"""What a running stack says of a saved change, and that a deployment is never cut in half."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local.deploy import DeployFailed, StackOutputs
from dualtrack_stack.local.reload import Reload, counted, kept
from dualtrack_stack.local.saved import WatchedFolders, look
from dualtrack_stack.project.model import BadProject, Project

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack_stack.local.saved import FileStates


class Stack:
    """In place of the local stack: a folder whose files are the deployment, once they say ``good``."""

    def __init__(self, folder: Path) -> None:
        self.watched = WatchedFolders(folder, folder / "profiles")
        self.seen = self.saved()
        self.deployed: list[str] = []
        self.announced: list[tuple[str, str]] = []
        self.during: Callable[[], None] = lambda: None
        self.notes: tuple[str, ...] = ("tools/a.py:1: importing it takes 1.2 s",)
        self.later: tuple[str, ...] = ()

    def saved(self) -> FileStates:
        return look(self.watched)

    def text(self) -> str:
        return "".join(path.read_text() for path in sorted(self.watched.profiles.glob("*.json")))

    def read(self) -> Project:
        if "bad" in self.text():
            raise BadProject("profiles/a.json:1: it is bad: write good")
        return Project(
            self.watched.root, profiles=tuple(self.watched.profiles.glob("*.json")), notes=self.notes
        )

    def deploy(self, _project: Project) -> StackOutputs:
        text = self.text()
        self.during()
        before = self.deployed[-1] if self.deployed else ""
        self.deployed.append(text)
        return StackOutputs({}, changed=text != before, fresh=False)

    def announce(self, seen: FileStates, problem: str = "") -> None:
        self.announced.append((seen.digest(), problem))

    def works(self) -> bool:
        return True


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setattr("dualtrack_stack.local.saved.SETTLE_SECONDS", 0.0)
    (tmp_path / "profiles").mkdir()
    return Stack(tmp_path)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def reload(stack: Stack, said: list[str]) -> Reload:
    return Reload(stack, said.append)  # type: ignore[arg-type]


def save(stack: Stack, text: str, name: str = "a") -> None:
    new = stack.watched.root / "new"
    new.write_text(text)
    new.replace(stack.watched.profiles / f"{name}.json")


def test_nothing_is_done_until_something_is_saved(stack: Stack, reload: Reload, said: list[str]) -> None:
    reload.look()
    assert (stack.deployed, stack.announced, said) == ([], [], [])


def test_what_is_saved_is_deployed_once(stack: Stack, reload: Reload, said: list[str]) -> None:
    save(stack, "good")
    for _ in range(3):
        reload.look()
    assert stack.deployed == ["good"]
    assert stack.announced == [(stack.saved().digest(), "")]
    (line,) = said
    assert line.startswith("profiles/a.json added: 1 profile, from the next chat on (")


def test_a_file_that_is_saved_unchanged_is_not_worth_a_word(
    stack: Stack, reload: Reload, said: list[str]
) -> None:
    for _ in range(2):
        save(stack, "good")
        reload.look()
    assert (len(said), len(stack.announced)) == (1, 2)


def test_what_is_wrong_is_not_deployed_and_said_once(stack: Stack, reload: Reload, said: list[str]) -> None:
    save(stack, "bad")
    reload.look()
    reload.look()
    assert stack.deployed == []
    assert stack.announced == [(stack.saved().digest(), "profiles/a.json:1: it is bad: write good")]
    assert said == ["profiles/a.json:1: it is bad: write good. The last good version stays."]


def test_what_was_wrong_is_called_mended(stack: Stack, reload: Reload, said: list[str]) -> None:
    for text in ("good", "bad", "better", "bad", "better"):
        save(stack, text)
        reload.look()
    assert [line.split("(")[0].strip() for line in said] == [
        "profiles/a.json added: 1 profile, from the next chat on",
        "profiles/a.json:1: it is bad: write good. The last good version stays.",
        "profiles/a.json changed: mended, 1 profile, from the next chat on",
        "profiles/a.json:1: it is bad: write good. The last good version stays.",
        "profiles/a.json changed: mended, and as it was before",
    ]


def test_a_note_is_said_when_it_is_new(stack: Stack, reload: Reload, said: list[str]) -> None:
    """Not again because a module took longer."""
    stack.notes = ("tools/a.py:1: importing it takes 1.4 s", "tools/b.py:1: it prints")
    for text in ("one", "two"):
        save(stack, text)
        reload.look()
    assert [line for line in said if line.startswith("tools")] == ["tools/b.py:1: it prints"]


def test_what_needs_a_restart_is_named_once(stack: Stack, reload: Reload, said: list[str]) -> None:
    stack.later = ("ALLOWED_ORIGINS",)
    for text in ("one", "two"):
        save(stack, text)
        reload.look()
    told = [line for line in said if "ALLOWED_ORIGINS" in line]
    assert told == ["ALLOWED_ORIGINS: from the next start on (Ctrl-C, then dev again)"]


def test_what_is_saved_during_a_deployment_is_taken_up_after_it(stack: Stack, reload: Reload) -> None:
    stack.during = lambda: save(stack, "later")
    save(stack, "good")
    reload.look()
    stack.during = lambda: None
    reload.look()
    assert stack.deployed == ["good", "later"]
    assert stack.announced[-1][0] == stack.saved().digest()


def test_a_deployment_that_fails_is_not_tried_again_by_itself(
    stack: Stack, reload: Reload, said: list[str]
) -> None:
    def refuse() -> None:
        raise DeployFailed("dualtrack-local-chat: UPDATE_ROLLBACK_COMPLETE")

    stack.during = refuse
    save(stack, "good")
    reload.look()
    reload.look()
    told = "profiles/a.json added: it could not be deployed: dualtrack-local-chat: UPDATE_ROLLBACK_COMPLETE."
    assert said == [f"{told} The last good version stays."]


def test_ctrl_c_waits_for_the_end_of_a_deployment(stack: Stack, reload: Reload) -> None:
    """The emulator would save half of it."""
    stack.during = lambda: os.kill(os.getpid(), signal.SIGINT)
    save(stack, "good")
    with pytest.raises(KeyboardInterrupt):
        reload.look()
    assert stack.deployed == ["good"]


def test_what_a_project_has_is_counted() -> None:
    profiles = (Path("a.json"),)
    assert counted(Project(Path(), ({}, {}), profiles=profiles)) == "2 tools, 1 profile"
    assert counted(Project(Path())) == "no tools or profiles of its own"


def test_several_problems_have_a_line_each() -> None:
    assert kept("a.py:1: one.\nb.py:2: two.") == "a.py:1: one.\nb.py:2: two.\nThe last good version stays."
