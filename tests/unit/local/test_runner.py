"""The background stack runs as long as it is used, and no longer."""

from __future__ import annotations

import fcntl
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local.processes import ChildDied
from dualtrack_stack.local.runner import LEAVE_FILE, Deleted, is_locked, keep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Stack:
    """Replaces the local stack with scripted checks and work."""

    def __init__(self, checks: list[Callable[[], Any]], work: list[bool]) -> None:
        self.checks = checks
        self.work = work

    def check(self) -> None:
        if self.checks:
            self.checks.pop(0)()

    def works(self) -> bool:
        return self.work.pop(0)


def nothing() -> None:
    """Nothing happens."""


@pytest.fixture
def guests(tmp_path: Path) -> Path:
    path = tmp_path / "guests"
    path.touch()
    return path


def kept(
    guests: Path, checks: list[Callable[[], Any]], work: list[bool], seconds: float = 60, idle: float = 0
) -> Stack:
    stack = Stack(checks, work)
    with guests.open("a") as own:
        keep(stack, own, nothing, idle, seconds)  # type: ignore[arg-type]
        assert is_locked(guests), "no new guest is admitted"
    return stack


def test_it_runs_until_its_last_guest_has_left(guests: Path) -> None:
    first, second = guests.open(), guests.open()
    for guest in (first, second):
        fcntl.flock(guest, fcntl.LOCK_SH)
    stack = kept(guests, [nothing, first.close, nothing, second.close], [False])
    assert (stack.checks, stack.work) == ([], [])


def test_it_runs_until_its_work_is_done(guests: Path) -> None:
    """And admits guests in the meantime."""
    seen: list[bool] = []

    def look() -> None:
        seen.append(is_locked(guests))

    stack = kept(guests, [look] * 3, [True, True, False])
    assert (seen, stack.work) == ([False] * 3, [])


def test_a_guest_that_arrives_during_the_work_is_waited_for(guests: Path) -> None:
    guest = guests.open()
    come = [nothing, lambda: fcntl.flock(guest, fcntl.LOCK_SH), nothing, guest.close]
    stack = kept(guests, come, [True, False])
    assert (stack.checks, stack.work) == ([], [])


def test_work_without_end_is_not_waited_for(guests: Path) -> None:
    assert kept(guests, [], [True], seconds=0).work == []


def test_a_part_that_died_ends_it(guests: Path) -> None:
    def died() -> None:
        raise ChildDied("emulator ended with code 1")

    with pytest.raises(ChildDied):
        kept(guests, [died], [])


@pytest.fixture
def minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute passes between two looks."""
    passed = iter(range(0, 60_000, 60))
    clock = SimpleNamespace(monotonic=lambda: float(next(passed)), sleep=lambda _: None)
    monkeypatch.setattr("dualtrack_stack.local.runner.time", clock)


@pytest.mark.usefixtures("minutes")
def test_it_stays_until_nobody_has_used_it_for_a_while(guests: Path) -> None:
    """A request counts as a guest does."""
    guest = guests.open()
    fcntl.flock(guest, fcntl.LOCK_SH)
    used: list[Callable[[], Any]] = [
        nothing,
        guest.close,
        *[nothing] * 8,
        guests.touch,
        *[nothing] * 10,
    ]
    assert kept(guests, used, [False], idle=600).checks == []
    assert kept(guests, [nothing] * 12, [False], idle=600).checks == [nothing]


@pytest.mark.usefixtures("minutes")
def test_it_ends_when_somebody_waits_for_that(guests: Path) -> None:
    """But not before its work and its guests."""
    guest, leave = guests.open(), guests.with_name(LEAVE_FILE).open("a")
    fcntl.flock(guest, fcntl.LOCK_SH)
    checks = [nothing, nothing, lambda: fcntl.flock(leave, fcntl.LOCK_SH), nothing, guest.close, nothing]
    stack = kept(guests, checks, [True, False], seconds=600, idle=86_400)
    leave.close()
    assert (stack.checks, stack.work) == ([], [])


@pytest.mark.usefixtures("minutes")
def test_it_ends_with_its_folder(guests: Path) -> None:
    """Another stack may already have made the folder anew, and what this one saved would be mixed with that."""

    def anew() -> None:
        shutil.rmtree(guests.parent)
        guests.parent.mkdir()
        guests.touch()

    with pytest.raises(Deleted):
        kept(guests, [nothing, anew, nothing], [], idle=600)
