"""Faults at the outside calls of a fork request, and of deletions while forks exist (docs/faults.md).

A sample, larger in the long form.
"""

from __future__ import annotations

import contextlib
import os
import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.fork_conversation import first_fork, fork_conversation
from dualtrack.chat.new_chat import Repeat
from dualtrack.errors import ApiError

from tests.drivers.crash_world import ERASURE_SWEEPS, USER, World, ref_of
from tests.drivers.faults import Fault, Process, Trace, deliver, kinds_at
from tests.drivers.invariants import erasure_faults
from tests.long_forms import LONG
from tests.property.test_forks import TALK, Talk, shown

if TYPE_CHECKING:
    from collections.abc import Callable

SAID: Final = "What is it? "
KEY: Final = Repeat("fork-1", "the same body")
SWEEPS: Final = ERASURE_SWEEPS + 1
CASES: Final = 40 if LONG else 8
SEED: Final = os.environ.get("DUALTRACK_CRASH_SEED", "20261122")


class Family:
    """A conversation of three queries whose last has no summaries yet, a fork of it with one more, a fork of that.

    ``act``: the request that meets the fault; it is repeated, as by a client, until it is answered.
    """

    def __init__(self, act: str, fault: Fault | None) -> None:
        self.world: World = Talk(TALK)
        self.world.look().ledger.grant(USER, "g", 1_000, "test", self.world.clock())
        self.act = act
        self.parent = self.ask("")
        self.ask(self.parent)
        self.ask(self.parent, is_summed_up=act != "fork")
        self.trace = Trace(self.world.aws, fault)
        self.made: list[str] = []
        if act != "fork":
            self.child = fork_conversation(self.world.look(), USER, self.parent, 3).conversation_id
            self.ask(self.child)
            self.grandchild = fork_conversation(self.world.look(), USER, self.child, 4).conversation_id
        self.before = shown(self.world, self.parent)

    def ask(self, conversation_id: str, *, is_summed_up: bool = True) -> str:
        world, known = self.world, {chat.chat_id for chat in self.world.chats()}
        world.post(SAID * 200, conversation_id)
        (chat,) = [chat for chat in world.chats() if chat.chat_id not in known]
        if is_summed_up:
            world.machine(ref_of(chat))
            return chat.conversation_id
        turn = world.turn(ref_of(chat), Process(world.quiet, "turn 1"))
        for call in turn["calls"]:
            world.tool(replace(ref_of(chat), turn=1), call["id"], Process(world.quiet, "tool"))
        assert world.turn(replace(ref_of(chat), turn=1), Process(world.quiet, "turn 2"))["next"] == "answered"
        return chat.conversation_id

    def run(self) -> None:
        """Send the request until it is answered, then run sweeps for a long time."""
        bodies: dict[str, Callable[[Process], None]] = {
            "fork": self.fork,
            "delete the parent": partial(self.delete, self.parent),
            "delete the fork": partial(self.delete, getattr(self, "child", "")),
            "erase the user": self.world.begin_erasure,
        }
        if self.act in ("delete the fork", "erase the user"):
            self.delete(self.parent, Process(self.world.quiet, "before"))
        for _ in range(3):
            with contextlib.suppress(Exception):  # a 500 for the client
                self.deliver(self.act, bodies[self.act])
                break
        if self.act == "erase the user" and not self.world.look().deletions.is_refused(USER):
            self.world.begin_erasure(Process(self.world.quiet, "request again"))
        for number in range(SWEEPS):
            self.world.clock.now += 300
            with contextlib.suppress(Exception):
                self.deliver(f"sweep {number}", self.world.look_at_deletions)

    def deliver(self, step: str, body: Callable[[Process], None]) -> None:
        """Run a step once; raises what it raised."""
        outcome = deliver(self.trace, self.world.quiet, step, body)
        if isinstance(outcome, BaseException):
            raise outcome

    def fork(self, process: Process) -> None:
        stores = self.world.stores(process)
        fork = first_fork(stores, USER, KEY) or fork_conversation(stores, USER, self.parent, 4, KEY)
        self.made.append(fork.conversation_id)

    def delete(self, conversation_id: str, process: Process) -> None:
        with contextlib.suppress(ApiError):  # already hidden: 404
            delete_conversation(self.world.stores(process), USER, conversation_id)

    def faults(self) -> list[str]:
        """What is wrong afterwards, and what is left once everything is deleted."""
        world, wrong = self.world, []
        if self.act == "erase the user":
            return erasure_faults(world.look(), USER, SAID)
        living = {key[1] for key in world.aws.table("history") if key[1].startswith("CONV#")}
        if self.act == "fork":
            if len(set(self.made)) != 1 or len(living - {f"CONV#{self.parent}"}) != 1:
                wrong.append(f"forks {self.made}, there are {living}")
            if self.made and shown(world, self.made[0]) != shown(world, self.parent):
                wrong.append("the fork shows something else")
            rest = [self.parent, *self.made[:1]]
        else:
            if self.act == "delete the parent" and shown(world, self.child)[:2] != self.before[:2]:
                wrong.append("the fork lost something")
            if (
                shown(world, self.grandchild)[:2] != self.before[:2]
                or len(shown(world, self.grandchild)) != 3
            ):
                wrong.append("the fork of the fork lost something")
            rest = [self.grandchild, self.child]
        for conversation_id in rest:
            self.delete(conversation_id, Process(world.quiet, "the end"))
            for _ in range(8):
                world.clock.now += 300
                world.look_at_deletions(Process(world.quiet, "the end"))
        leftovers = [
            key
            for name in ("history", "chats")
            for key in world.aws.table(name)
            if not key[1].startswith(("IDEM#", "RATE#"))
        ]
        return (
            wrong
            + [f"{leftovers} is left"] * bool(leftovers)
            + [f"{key} is left" for key in world.aws.objects]
        )


@pytest.mark.parametrize("act", ["fork", "delete the parent", "delete the fork", "erase the user"])
def test_a_fault_at_any_call_loses_nothing_and_leaves_nothing(act: str) -> None:
    """Each call fails once, with a random kind of fault."""
    quiet = Family(act, None)
    quiet.run()
    sites = list(dict.fromkeys(quiet.trace.sites))
    assert quiet.faults() == []
    drawn = random.Random(f"{SEED} {act}")
    taken = drawn.sample(sites, min(CASES, len(sites)))
    cases = [Fault(site, drawn.choice([*kinds_at(site), "held"])) for site in taken]
    broken = []
    for fault in cases:
        family = Family(act, fault)
        family.run()
        assert family.trace.struck, fault
        broken += [f"{fault}: {wrong}" for wrong in family.faults()]
    assert len(cases) > 5
    assert broken == []
