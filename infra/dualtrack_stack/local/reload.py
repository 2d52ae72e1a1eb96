"""Takes up what is saved in a project's folder while its stack runs.

What is wrong is said, and the stack stays as it is. Chats that run finish: the emulator ends no call of a function when
another version of it is deployed, and what a chat's agent is was written down when the chat began.
"""

from __future__ import annotations

import re
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.saved import changes, is_due
from dualtrack_stack.project.model import BadProject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dualtrack_stack.local.stack import LocalStack
    from dualtrack_stack.project.model import Project

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a stack."""
_IDLE_SECONDS: Final = 1.0


class Reload:
    """Looks at the project's folder whenever it is told to, and deploys what has changed. ``say`` is called with what
    the user is told."""

    def __init__(self, stack: LocalStack, say: Callable[[str], None]) -> None:
        self._stack = stack
        self._say = say
        self._taken = self._last = stack.seen
        self._first_change = self._last_change = 0.0
        self._problem = ""
        self._notes, self._later = _without_figures(stack.notes), frozenset[str]()
        self._tidied = self._is_idle = True
        self._asked_at = 0.0

    def look(self) -> None:
        """One look, to be repeated a few times a second; returns when what has changed is deployed."""
        now, at = self._stack.saved(), time.monotonic()
        if now != self._last:
            self._first_change = at if self._last == self._taken else self._first_change
            self._last, self._last_change = now, at
        if is_due(self._taken, now, at - self._first_change, at - self._last_change):
            self._take_up()
        elif not self._tidied and at - self._asked_at >= _IDLE_SECONDS:
            self._tidy(at)

    def _take_up(self) -> None:
        taken, self._taken = self._taken, self._last
        problem, told = self._problem, f"{changes(taken, self._taken)}: "
        self._problem = self._deploy(told, mended=bool(problem))
        if self._problem:
            self._say(kept(self._problem))
        self._stack.announce(self._taken, self._problem)

    def _deploy(self, told: str, *, mended: bool) -> str:
        """Deploy what is saved and say so; what is wrong with it, empty if nothing is."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - loads while the stack starts
        from dualtrack_stack.local.deploy import DeployFailed  # noqa: PLC0415

        try:
            project = self._stack.read()
            with _to_its_end():
                deployed = self._stack.deploy(project)
        except BadProject as wrong:
            return str(wrong)
        except (DeployFailed, BotoCoreError, ClientError, OSError) as failed:
            return f"{told}it could not be deployed: {failed}"
        told += "mended, " if mended else ""
        if deployed.changed:
            self._tidied = self._is_idle = False
            seconds = time.monotonic() - self._first_change
            self._say(f"{told}{counted(project)}, from the next chat on ({seconds:.1f} s)")
        elif mended:
            self._say(f"{told}and as it was before")
        self._tell_more(project)
        return ""

    def _tell_more(self, project: Project) -> None:
        """What is worth a word, each time that it is new."""
        notes, later = _without_figures(project.notes), frozenset(self._stack.later)
        for note in project.notes:
            if _without_figures([note]) - self._notes:
                self._say(note)
        if later - self._later:
            self._say(f"{', '.join(self._stack.later)}: from the next start on (Ctrl-C, then dev again)")
        self._notes, self._later = notes, later

    def _tidy(self, at: float) -> None:
        """Delete the versions that were replaced, once nothing runs at two looks: a request that waits for a chat is
        answered soon after the chat's end."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
        from dualtrack_stack.local.deploy import delete_old_versions  # noqa: PLC0415

        was_idle, self._asked_at = self._is_idle, at
        with suppress(
            BotoCoreError, ClientError
        ):  # tried again; whether the emulator runs is checked elsewhere
            self._is_idle = not self._stack.works()
            if was_idle and self._is_idle:
                delete_old_versions(self._stack.aws)
                self._tidied = True


def _without_figures(notes: Iterable[str]) -> frozenset[str]:
    """So that a note is the same when a module takes some milliseconds longer."""
    return frozenset(re.sub(r"\d", "", note) for note in notes)


def counted(project: Project) -> str:
    """``2 tools, 1 profile``: what the project has of its own."""
    numbers = ((len(project.specs), "tool"), (len(project.profiles), "profile"))
    own = [f"{number} {name}{'s' * (number > 1)}" for number, name in numbers if number]
    return ", ".join(own) or "no tools or profiles of its own"


def kept(problem: str) -> str:
    """A problem, and that it changes nothing; a sentence of its own on the same line, or a line."""
    stays = "The last good version stays."
    return f"{problem}\n{stays}" if "\n" in problem else f"{problem.rstrip('.')}. {stays}"


@contextmanager
def _to_its_end() -> Iterator[None]:
    """A Ctrl-C waits for the end of the block: the emulator would save half of a deployment. Signals that are blocked
    would reach the handlers by another thread, such as numpy's."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _frame: came.append(number)) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
