"""The background stack runs as long as it is used, and no longer."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local.processes import ChildDied
from dualtrack_stack.local.runner import is_locked, keep

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


def kept(guests: Path, checks: list[Callable[[], Any]], work: list[bool], seconds: float = 60) -> Stack:
    stack = Stack(checks, work)
    with guests.open("a") as own:
        keep(stack, own, nothing, seconds)  # type: ignore[arg-type]
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
