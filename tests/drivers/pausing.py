"""A chat of `tests.drivers.crash_world` up to its pause, and what one may do with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import httpx2
from dualtrack.chat.decide_calls import CallDecision, decide_calls
from dualtrack.profiles import ApprovalPolicy
from dualtrack.storage.event_log import read_events
from dualtrack.tool_values import ToolResult
from dualtrack_stack.local.offline_model.refusal import error_body
from dualtrack_stack.local.offline_model.signing import bind

from tests.drivers.crash_world import MACHINE, MODEL, NOTE, Scenario, World, ref_of

if TYPE_CHECKING:
    from dualtrack.chat.agent import AgentDeployment
    from dualtrack.events import StoredEvent
    from dualtrack.storage.chats import Chat
    from dualtrack.vocabulary import ApprovalRule
    from dualtrack_stack.local.offline_model import wire
    from dualtrack_stack.local.offline_model.reply import Reply

    from tests.drivers.faults import Process

PAUSES: Final = Scenario("pauses", rounds=((NOTE,),), asks=(NOTE.tool,))
"""It asks for leave to write a note, then answers."""


@dataclass
class Pausing(World):
    """A world in which nobody decides by itself. ``prompt``: the system prompt of the deployment; ``seconds``: how long
    its chats wait; ``default``: what its profiles ask for besides the scenario's tools."""

    prompt: str = "The first release's prompt."
    seconds: int = 7 * 86_400
    default: ApprovalRule = "never"
    model: str = MODEL
    """The deployment's."""
    withdrawn: str = ""
    """The model that the service serves no more."""
    sent: list[dict[str, Any]] = field(default_factory=list)
    """Every request to the model, whole."""

    def deployed(self) -> AgentDeployment:
        """The deployment."""
        deployed = super().deployed()
        approval = ApprovalPolicy(self.default, ask=self.scenario.asks)
        profiles = {
            name: replace(profile, approval=approval, system=self.prompt, pause_seconds=self.seconds)
            for name, profile in deployed.profiles.items()
        }
        return replace(deployed, model=self.model, profiles=profiles)

    def _reply(self, process: Process, raw: bytes) -> Any:
        request = json.loads(raw)
        self.sent.append(request)
        if request["model"] == self.withdrawn:
            refused = error_body(404, f"model: {self.withdrawn}", "req_1")
            return "no such model", lambda: httpx2.Response(404, json=refused)
        return super()._reply(process, raw)

    def _stream(self, request: wire.Request, reply: Reply) -> httpx2.Response:
        """A model of generation 5 thinks first."""
        if not request.thinking:
            return super()._stream(request, reply)
        thought = {"type": "thinking", "thinking": "Hm.", "signature": ""}
        return super()._stream(request, replace(reply, content=bind(request, (thought, *reply.content))))

    def _decide(self, ref: Any) -> None:
        """Nobody does."""

    def pause(self, message: str = "What is it?", conversation_id: str = "") -> Chat:
        """A chat up to its pause."""
        known = {chat.chat_id for chat in self.chats()}
        self.post(message, conversation_id)
        (chat,) = [chat for chat in self.chats() if chat.chat_id not in known]
        self.machine(ref_of(chat))
        return self.now(chat)

    def now(self, chat: Chat) -> Chat:
        """The chat as it is now."""
        loaded = self.look().chats.load(chat.user, chat.chat_id)
        assert loaded
        return loaded

    def decide_on(self, chat: Chat, *wanted: CallDecision) -> Chat:
        """POST /v1/chats/{id}/decisions."""
        executions = self.executions(self.process("decide"))
        return decide_calls(self.look(), executions, chat, wanted, "user", self.deployed())

    def finish(self, chat: Chat) -> Chat:
        """The execution that goes on after the pause, to its end."""
        current = self.now(chat)
        assert self.execution(chat.chat_id) == "RUNNING", (MACHINE, current.execution)
        self.machine(ref_of(current))
        return self.now(chat)

    def events(self, chat: Chat) -> list[StoredEvent]:
        """All events of the chat."""
        stores = self.look()
        return read_events(stores.chats.client, stores.chats.table, chat.pk, consistent=True)

    def ran(self) -> list[str]:
        """The calls whose tool ran."""
        return [call_id for call_id, _ in self.tool_runs]


def approve(call_id: str = "q1-t1") -> CallDecision:
    """The call may run."""
    return CallDecision(call_id, approve=True)


def allow(call_id: str = "q1-t1") -> CallDecision:
    """It may run, and its tool from now on in this conversation."""
    return CallDecision(call_id, approve=True, lasts=True)


def decline(call_id: str = "q1-t1", reason: str = "") -> CallDecision:
    """It may not."""
    return CallDecision(call_id, approve=False, reason=reason)


def returned(text: str, call_id: str = "q1-t1", *, is_error: bool = False) -> CallDecision:
    """The client's tool has returned this."""
    return CallDecision(call_id, result=ToolResult(text, is_error))


def edit(call_id: str = "q1-t1", **arguments: Any) -> CallDecision:
    """It may run with these arguments."""
    return CallDecision(call_id, approve=True, input=arguments)
