"""Chats while the model's service is busy for minutes, on a simulated clock.

Each chat runs through its real steps in a world of its own, driven as the state machine does it (waits, and
retries after 2, 4 and 8 seconds), and the model answers 529 until the trouble is over.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx2
from dualtrack.clock import epoch_of
from dualtrack_stack.local.offline_model.refusal import error_body

from tests.drivers.crash_world import READ, Scenario, StepFailed, World, ref_of
from tests.drivers.invariants import account_faults, chat_faults
from tests.drivers.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.requests import ChatRef
    from dualtrack_stack.local.offline_model import wire

    from tests.drivers.faults import Process

ARRIVAL_SECONDS: Final = 60
"""Seconds from the start of the outage over which the chats are started, evenly."""

REFUSED_SECONDS: Final = 0.35
ANSWERED_SECONDS: Final = 4.15
STEP_SECONDS: Final = 0.15
"""A function's seconds: our own part as in bench.chat_cost, and the model's."""

_RETRIES: Final = (2, 4, 8)


class BusyWorld(World):
    """A chat with one round of tools, and a model that is busy until ``until`` (epoch seconds)."""

    def __init__(self, *, until: float, begun: float, seed: str) -> None:
        self.until = until
        self.draw = random.Random(seed).random
        self.at: list[float] = []
        self.refused = 0
        self.states: Counter[str] = Counter()
        super().__init__(Scenario("busy", rounds=((READ,),)), clock=FakeClock(begun))

    def _say(self, process: Process, request: wire.Request, query: int, turn: int) -> httpx2.Response:
        self.at.append(self.clock.now)
        if self.clock.now < self.until:
            self.refused += 1
            self.clock.now += REFUSED_SECONDS
            return httpx2.Response(529, json=error_body(529, "scripted", "req_1"))
        self.clock.now += ANSWERED_SECONDS
        return super()._say(process, request, query, turn)

    def turn(self, ref: ChatRef, process: Process) -> Any:
        """One delivery of a turn."""
        outcome = self.take_turn(ref, process, self.draw)
        self.states["WaitForModel"] += outcome["next"] == "wait"
        return outcome

    def state(self, step: str, body: Callable[[Process], Any], retries: int) -> Any:
        """Run a state with its retries; a retry is not counted as another state."""
        self.states[step.split(" ", maxsplit=1)[0]] += 1
        for attempt in range(retries + 1):
            try:
                return self.deliver(step, body)
            except Exception as error:
                if attempt == retries:
                    raise StepFailed(error) from error
                self.clock.now += _RETRIES[attempt]
        raise AssertionError(step)

    @property
    def entered(self) -> int:
        """States of the workflow: each turn has its Route, each round of tools its Map."""
        return self.states.total() + self.states["turn"] + bool(self.states["tool"])

    @property
    def paid_seconds(self) -> float:
        """Seconds of functions, added up."""
        answered = len(self.at) - self.refused
        others = self.states.total() - self.states["turn"] - self.states["WaitForModel"]
        return self.refused * REFUSED_SECONDS + answered * ANSWERED_SECONDS + others * STEP_SECONDS


@dataclass(frozen=True, slots=True)
class BusyStorm:
    """What happened. ``calls``: of the model by turns; ``at_once``: the most of them in one second after the outage;
    ``seconds``: the longest from question to answer.
    """

    chats: int
    ended: Counter[str]
    stopped: Counter[str]
    charged: int
    calls: int
    states: int
    paid_seconds: float
    at_once: int
    seconds: float
    wrong: tuple[str, ...]


def busy_storm(chats: int, minutes: float, *, seed: int = 1) -> BusyStorm:
    """Run chats started at the beginning of an outage of this many minutes."""
    began = FakeClock().now
    until = began + 60 * minutes
    arrivals = [began + ARRIVAL_SECONDS * number / chats for number in range(chats)]
    worlds = [_one(at, until, seed=f"{seed} {at}") for at in arrivals]
    ended = [chat for world in worlds for chat in world.chats()]
    wrong = [fault for world in worlds for fault in _faults(world)]
    behind = Counter(int(at) for world in worlds for at in world.at if at >= until)
    return BusyStorm(
        chats,
        Counter(chat.status for chat in ended),
        Counter(chat.stop for chat in ended if chat.status == "done"),
        sum(chat.credits_used for chat in ended),
        sum(len(world.at) for world in worlds),
        sum(world.entered for world in worlds),
        sum(world.paid_seconds for world in worlds),
        max(behind.values(), default=0),
        max(epoch_of(chat.ended_at) - epoch_of(chat.created_at) for chat in ended),
        tuple(wrong),
    )


def _one(arrives: float, until: float, *, seed: str) -> BusyWorld:
    world = BusyWorld(until=until, begun=arrives, seed=seed)
    world.post()
    (chat,) = world.chats()
    world.machine(ref_of(chat))
    return world


def _faults(world: BusyWorld) -> list[str]:
    stores, chats = world.look(), world.chats()
    faults = [fault for chat in chats for fault in chat_faults(stores, chat)]
    return [*faults, *account_faults(stores, world.user, chats), *world.complaints]
