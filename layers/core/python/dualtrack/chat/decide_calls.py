"""POST /v1/chats/{chat_id}/decisions: which decisions a request makes, and whether they may be made (CONTRACT 4)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.chat.agent import agent_of
from dualtrack.chat.record_decisions import Beside, record_decisions, start_again
from dualtrack.errors import ApiError, Contended, Superseded, invalid_request, not_found
from dualtrack.frozen import dumps
from dualtrack.models.turn import Verdict
from dualtrack.storage.conversations import MAX_ALLOWED, Allowing
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.text import clean
from dualtrack.tool_values import ToolResult
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.mcp.catalogue import load_catalogue
from dualtrack.tools.registry import offered_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.chat.agent import AgentDeployment
    from dualtrack.models.turn import ToolCall
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import TurnStores
    from dualtrack.tool_values import ToolSpec
    from dualtrack.vocabulary import CallKind, DecidedBy

_TRIES: Final = 40
"""Each round lets one of those through that decide at once; a turn has at most 20 calls."""

DECLINED: Final = "The user declined this call"


@dataclass(frozen=True, slots=True)
class CallDecision:
    """A decision on a call as it was asked for: declined; or approved, with another ``input`` if there is one; or,
    depending on what it waits for, the client's ``result`` or the user's ``answer``.
    ``lasts``: approved for the whole conversation."""

    call_id: str
    approve: bool = True
    reason: str = ""
    input: Mapping[str, Any] | None = None
    lasts: bool = False
    result: ToolResult | None = None
    answer: str | None = None

    @property
    def field(self) -> Literal["approve", "input", "result", "answer"]:
        """The field of the request that says it."""
        if self.result is not None:
            return "result"
        if self.answer is not None:
            return "answer"
        return "approve" if self.input is None else "input"

    @property
    def lets_run(self) -> bool:
        """Whether it is leave to run a call."""
        return self.approve and self.field in ("approve", "input")

    @property
    def came(self) -> ToolResult | None:
        """The result that it brings."""
        return self.result if self.answer is None else ToolResult(self.answer)

    @property
    def mark(self) -> str:
        """A hash of the decision (`dualtrack.models.turn.Verdict`)."""
        came = self.came
        files = [[file.media_type, file.data] for file in came.media] if came else []
        brought = came and [came.content, came.is_error, *files]
        said = dumps([self.field, self.approve, self.reason, self.input, self.lasts, brought])
        return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def on(self, call: ToolCall, by: DecidedBy) -> ToolCall:
        """The call with this decision."""
        if not self.approve:
            reason = clean(self.reason).strip()
            refused = f"{DECLINED}: {reason}" if reason else f"{DECLINED}."
            return call.decided(Verdict("declined", by, self.mark), refused)
        if self.came is not None:
            return call.decided(Verdict("answered", by, self.mark))
        if self.input is None:
            return call.decided(Verdict("approved", by, self.mark))
        return replace(call.decided(Verdict("edited", by, self.mark)), input=self.input)


def decide_calls(
    stores: TurnStores,
    executions: Executions,
    chat: Chat,
    wanted: Sequence[CallDecision],
    by: DecidedBy,
    deployed: AgentDeployment,
) -> Chat:
    """Decide calls of a paused chat and return its new state; the chat goes on when none is open. The same decisions
    again change nothing. Raises `ApiError`: 400, 404, 409 and 410."""
    decided = take_decisions(stores, chat, wanted, by, deployed)
    start_again(executions, decided)
    return decided


def take_decisions(
    stores: TurnStores,
    chat: Chat,
    wanted: Sequence[CallDecision],
    by: DecidedBy,
    deployed: AgentDeployment,
) -> Chat:
    """`decide_calls` without the execution in which the chat goes on: the sweep starts it if nobody ends the chat."""
    for _ in range(_TRIES):
        loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
        if loaded is None:
            raise not_found("There is no such chat.")
        current, turns = loaded
        todo = _still_open(current, turns, wanted, stores.clock())
        if not todo:
            return current
        turn = turns[-1]
        _check_kinds(todo)
        _check_inputs(stores, current, todo, deployed)
        decided = {decision.call_id: decision.on(call, by) for _, decision, call in todo}
        after = replace(turn, calls=tuple(decided.get(call.id, call) for call in turn.calls))
        try:
            beside = Beside(_allowing(stores, current, todo), _results(todo))
            return record_decisions(stores, current, turn, after, by, beside)
        except (ConditionFailed, Superseded):
            continue
    raise Contended("Others decided at the same time, again and again.")


_Todo = tuple[int, CallDecision, "ToolCall"]
"""A decision with its place in the request, and its call."""


def _still_open(
    chat: Chat, turns: Sequence[RecordedTurn], wanted: Sequence[CallDecision], now: float
) -> list[_Todo]:
    """The decisions that are not made yet; none if all were made in just this way. Raises `ApiError`."""
    calls = {call.id: call for turn in turns for call in turn.calls}
    todo = []
    for place, decision in enumerate(wanted):
        call = calls.get(decision.call_id)
        if call is None or not call.asks:
            if chat.status != "paused":
                raise _not_paused(chat)
            raise invalid_request(f"decisions.{place}.id: {decision.call_id!r:.80} waits for no decision")
        if call.verdict is None:
            todo.append((place, decision, call))
        elif call.verdict.outcome == "expired":
            raise ApiError("expired", f"Nobody decided on {call.id} in time, and the chat went on.")
        elif call.verdict.mark != decision.mark:
            raise ApiError("already_decided", f"{call.id} was decided: {call.verdict.outcome}.")
    if todo and (chat.status != "paused" or any(not call.is_open for _, _, call in todo)):
        raise _not_paused(chat)
    if todo and now >= chat.deadline:
        raise ApiError("expired", "Nobody decided in time; the chat goes on without these calls.")
    return todo


def _not_paused(chat: Chat) -> ApiError:
    return ApiError("not_paused", f"This chat waits for no decision: it is {chat.status}.")


def _allowing(stores: TurnStores, chat: Chat, todo: Sequence[_Todo]) -> Allowing | None:
    """What the decisions allow for the conversation; None if nothing. Raises 400."""
    lasting = [(place, call) for place, decision, call in todo if decision.lasts]
    if not lasting:
        return None
    conversation = stores.conversations.find(chat.user, chat.conversation_id)
    before = conversation.allowed if conversation else {}
    after = dict(before)
    for place, call in lasting:
        if not call.allowable:
            raise invalid_request(f"decisions.{place}.for: {call.tool} asks each time.")
        after[call.tool] = call.allowable
        if len(after) > MAX_ALLOWED:
            problem = f"{MAX_ALLOWED} tools are allowed in this conversation already: take one back first."
            raise invalid_request(f"decisions.{place}.for: {problem}")
    return Allowing(before, after)


_FIELDS: Final[Mapping[CallKind, tuple[str, ...]]] = MappingProxyType(
    {"approval": ("approve", "input"), "client_tool": ("result",), "question": ("answer",)}
)
"""What decides a call that waits; any of them can be declined."""


def _check_kinds(todo: Sequence[_Todo]) -> None:
    """Raises 400 for a decision that is none on such a call."""
    for place, decision, call in todo:
        assert call.asks
        fields = _FIELDS[call.asks]
        if decision.approve and decision.field not in fields:
            wanted = " or ".join((*fields, "approve: false"))
            raise invalid_request(
                f"decisions.{place}.{decision.field}: {call.id} is of kind {call.asks}, which takes {wanted}"
            )


def _results(todo: Sequence[_Todo]) -> Mapping[str, ToolResult]:
    """The results that came, by call."""
    return {call.id: came for _, decision, call in todo if (came := decision.came) is not None}


def _check_inputs(stores: TurnStores, chat: Chat, todo: Sequence[_Todo], deployed: AgentDeployment) -> None:
    """Edited arguments are checked as the model's are. Raises 400."""
    edited = [(place, decision.input, call) for place, decision, call in todo if decision.input is not None]
    if not edited:
        return
    offered = _offered(stores, chat, deployed)
    for place, arguments, call in edited:
        spec = offered.get(call.tool)
        problem = invalid_arguments(spec, arguments) if spec else "the tool is no longer offered"
        if problem:
            raise invalid_request(f"decisions.{place}.input: {problem}")


def _offered(stores: TurnStores, chat: Chat, deployed: AgentDeployment) -> Mapping[str, ToolSpec]:
    agent = agent_of(stores.agents, chat, deployed)
    pinned = chat.pin.catalogue if chat.pin else ""
    catalogue = load_catalogue(stores.cache, stores.clock(), version=pinned)
    return offered_tools(agent.profile, agent.tools, catalogue)
