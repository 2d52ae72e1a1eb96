"""An attempt at one turn: what it has, whom it tells, and the fences that stop it once it has been overtaken."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dualtrack.errors import ModelRefused, Superseded
from dualtrack.models.protocol import ignore
from dualtrack.models.receipt_data import EarlierTries
from dualtrack.models.trouble import ErrorDetails
from dualtrack.models.wanted import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.chat.agent import Agent, AgentDeployment
    from dualtrack.chat.end_chat import OnEnd
    from dualtrack.events import StoredEvent
    from dualtrack.frozen import JsonObject
    from dualtrack.models.protocol import Model
    from dualtrack.models.stops import LastCallReason
    from dualtrack.profiles import Profile
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import TurnStores
    from dualtrack.tool_values import ToolSpec


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """What the deployment sets for turns. ``max_cost``: the cost cap in dollars a chat, 0 for none; ``details``: what
    the operator's text of a refusal names."""

    deployed: AgentDeployment
    max_cost: float = 0.0
    details: ErrorDetails = field(default_factory=ErrorDetails)


@dataclass(frozen=True, slots=True)
class TurnCallbacks:
    """Who is told of a turn, for metrics and the log."""

    first_text: Callable[[float], None] = ignore
    """Called with the seconds from a request to the first text of its answer, if it has any."""
    recorded: Callable[[RecordedTurn], None] = ignore
    """Called with a recorded turn, by the run that has recorded it."""
    ended: OnEnd = lambda *_: None
    """Called for a chat that this run has answered or ended as failed."""
    refused: Callable[[ModelRefused], None] = ignore
    """Called if the model's service rejects a request."""
    tool_refused: Callable[[ToolSpec, ModelRefused], None] = lambda *_: None
    """Called for a tool of an MCP server for which it does; the turn goes on without that tool."""


@dataclass(frozen=True, slots=True)
class WaitTiming:
    """How a turn waits. ``draw``: a random number from 0 to 1, for the random part of a wait for the model."""

    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class TurnAttempt:
    """One attempt at one turn."""

    stores: TurnStores
    serve: Callable[[str], Model]
    model: Model
    settings: TurnSettings
    told: TurnCallbacks
    waiting: WaitTiming
    chat: Chat
    agent: Agent
    log: EventLog
    number: int
    limit: LastCallReason
    turns: tuple[RecordedTurn, ...] = ()
    """The turns before it."""
    before: EarlierTries = field(default_factory=EarlierTries)
    """What the turn has behind it."""
    left_out: tuple[str, ...] = ()
    """What this attempt has left out because the service refused it: tools, a model that was withdrawn."""
    output: JsonObject | None = None
    """The JSON Schema that the answer has to fit."""
    is_forced: bool = True
    """Whether a second answer is forced to fit it; not any more once the service has refused that."""
    wanted: Wanted = field(default_factory=Wanted)
    """What the client asks of the answer."""
    wanted_after: int = 0
    """The turn behind which that answer begins."""
    spare: float = math.inf
    """Dollars that this turn may cost if another call is to follow."""

    @property
    def profile(self) -> Profile:
        """The agent's profile."""
        return self.agent.profile

    @property
    def max_tokens(self) -> int:
        """Of each of its calls."""
        return min(self.wanted.max_tokens or self.profile.max_tokens, self.profile.max_tokens)

    @property
    def is_held_back(self) -> bool:
        """Whether text is written only once it is known to be what is wanted."""
        return self.output is not None or self.wanted.must_call

    @property
    def may_tell(self) -> bool:
        """Whether the model may be told once more what is wanted: it was not told yet, and a turn with tools is
        left."""
        told = any(turn.told for turn in self.turns if turn.number > self.wanted_after)
        return not (told or self.limit) and self.number < self.profile.max_turns


def no_commit(event: StoredEvent) -> None:
    """The fence while announcing: another run has announced or committed since the tail was read."""
    if event.event in ("turn", "retrying", "credits", "answer"):
        raise Superseded(event.event)


def no_other_run(event: StoredEvent) -> None:
    """The fence after announcing: a newer run of this turn has begun."""
    if event.event == "turn":
        raise Superseded(event.event)
