"""The state machine of a chat (``chat.asl.json``) within a process: the library's steps in its order, with its tries.

turn ──► tools (all at once) ──► turn … ──► summarise
  ├────────► abort ◄───────────────────────────┘
  └────────► paused: a decision begins again here
"""

from __future__ import annotations

import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from dualtrack.chat.end_chat import end_chat, failure_of
from dualtrack.chat.run_tool import run_tool
from dualtrack.chat.run_turn import run_turn
from dualtrack.chat.summarise import summarise
from dualtrack.chat.turn_attempt import WaitTiming
from dualtrack.memory.summaries import SummarySettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.chat.run_turn import TurnOutcome
    from dualtrack.chat.turn_attempt import TurnSettings
    from dualtrack.models.protocol import Model
    from dualtrack.requests import ChatRef
    from dualtrack.storage.stores import Stores
    from dualtrack.tools.running import Execute

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)
_TRIES: Final = 4
"""Of a turn and of the summaries: once, and three times again."""
_TOOL_TRIES: Final = 2
_TOOL_SECONDS: Final = 60.0
_TOOLS_AT_ONCE: Final = 40


@dataclass
class JumpingClock:
    """The time of day, which jumps over waits (epoch seconds)."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead

    def sleep(self, seconds: float) -> None:
        """Be there at once."""
        self.ahead += seconds


class WaitingClock(JumpingClock):
    """The time of day, for a service that is really asked: a busy one is left alone for as long as it says."""

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class LocalWorkflow:
    """The steps with what their functions have. ``tools`` runs any tool call; ``clock`` is also that of the stores."""

    stores: Stores
    model: Model
    settings: TurnSettings
    tools: Execute
    clock: JumpingClock = field(default_factory=JumpingClock)

    def run(self, ref: ChatRef) -> None:
        """Take the chat to its end, or to its next pause."""
        try:
            if self._is_answered(ref):
                self._tried(lambda: self._summarise(ref), _TRIES)
        except Exception as error:  # noqa: BLE001 - the machine catches every error of a step
            _log.exception("chat %s failed", ref.chat_id)
            cause = {"Error": type(error).__name__, "Cause": json.dumps({"errorMessage": str(error)})}
            end_chat(self.stores, ref, failure_of(cause, self.settings.details))

    def _is_answered(self, ref: ChatRef) -> bool:
        """Turns and tools up to the end, behind those that are recorded; False for a chat that has failed or waits."""
        recorded = ref.turn
        while True:
            outcome = self._tried(lambda: self._turn(replace(ref, turn=recorded)), _TRIES)  # noqa: B023
            recorded = outcome["turn"]
            if outcome["next"] == "wait":
                self.clock.sleep(outcome["seconds"])
            elif outcome["next"] == "tools":
                self._run_tools(replace(ref, turn=recorded), [call["id"] for call in outcome["calls"]])
            elif outcome["next"] != "turn":
                return outcome["next"] == "answered"

    def _turn(self, ref: ChatRef) -> TurnOutcome:
        return run_turn(
            ref, self.stores, lambda _: self.model, self.settings, waiting=WaitTiming(self.clock.sleep)
        )

    def _run_tools(self, ref: ChatRef, calls: list[str]) -> None:
        with ThreadPoolExecutor(min(_TOOLS_AT_ONCE, len(calls))) as pool:
            list(pool.map(lambda call: self._run_tool(ref, call), calls))

    def _run_tool(self, ref: ChatRef, call: str) -> None:
        """A call that leaves no result gets its error result in the next turn."""
        try:
            self._tried(lambda: run_tool(ref, call, self.stores, self.tools, _TOOL_SECONDS), _TOOL_TRIES)
        except Exception:  # noqa: BLE001 - the same
            _log.exception("call %s left no result", call)

    def _summarise(self, ref: ChatRef) -> None:
        by = SummarySettings(self.settings.deployed.model)
        summarise(ref, self.stores, lambda _: self.model, by, sleep=self.clock.sleep)

    def _tried(self, step: Callable[[], T], tries: int) -> T:
        """What the step returns or, after the last try, raises. The machine waits 2 s, 4 s … before the next one."""
        for again in range(1, tries):
            try:
                return step()
            except Exception:  # noqa: BLE001 - the same
                _log.warning("a step failed and is tried again", exc_info=True)
                self.clock.sleep(2.0**again)
        return step()
