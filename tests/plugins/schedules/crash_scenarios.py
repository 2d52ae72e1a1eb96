"""A schedule that asks the first query: its part of the crash matrix."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from dualtrack.api.identity import ApiCaller
from dualtrack.chat.cost_hold import CostSettings
from dualtrack.plugins.schedules.bodies import ScheduleBody
from dualtrack.plugins.schedules.manage import make_schedule
from dualtrack.plugins.schedules.run import Starting, run_schedules
from dualtrack.plugins.schedules.store import schedules_of

from tests.drivers.crash_world import MODEL, RUNS, Scenario, StepFailed, World
from tests.drivers.outbox import Unheard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.storage.chats import Chat

    from tests.drivers.faults import Process

BEGINS: Final = ("schedule",)
STEPS: Final = ()
SERVICES: Final = ()

DUE_AFTER: Final = 86_400
"""Seconds after which the schedule is due; the next time is beyond the scenario."""


class DueSchedule:
    """A schedule, due once, and the rule each minute."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._noted = False  # whether a run came through
        self._id = ""

    def play(self) -> None:
        """Make it, and run what is due."""
        world = self._world
        body = ScheduleBody(message="What is it?", profile=world.scenario.profile or None, rate="1 day")
        self._id = make_schedule(world.look(), ApiCaller(world.user, world.user), body).schedule_id
        world.clock.now += DUE_AFTER
        for _ in range(RUNS):
            with contextlib.suppress(StepFailed):
                world.state(*BEGINS, self._run, 0)
            world.machines()
            world.clock.now += 60

    def _run(self, process: Process) -> Any:
        """One delivery to `schedule`."""
        world = self._world
        starting = Starting(world.executions(process), CostSettings(MODEL, world.summaries))
        report = run_schedules(world.stores(process), starting, lambda: True)
        self._noted = True
        world.responses += [503] * report.waiting

    def faults(self, chats: Sequence[Chat]) -> Iterator[str]:
        """One chat for the due time, listed once."""
        schedule = schedules_of(self._world.look()).find(self._world.user, self._id)
        ran = Counter(run.due for run in schedule.runs)
        if any(number > 1 for number in ran.values()) or len(ran) > 1:
            yield f"due times {dict(ran)}"
        if self._noted and not any(run.chat_id in {chat.chat_id for chat in chats} for run in schedule.runs):
            yield f"its runs are {schedule.runs}"
        for chat in chats:
            if chat.query == 1 and chat.facets != {"schedule_id": schedule.schedule_id}:
                yield f"{chat.chat_id} is not the schedule's"


SCENARIOS: Final = (Scenario("scheduled", begun_by=DueSchedule, heard_by=Unheard),)
