"""`local_chat`: a conversation with an agent within this process, for a test of its tools."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.api.chats import paused_turn
from dualtrack.chat.agent import AgentDeployment
from dualtrack.chat.chat_view import chat_json, open_calls
from dualtrack.chat.decide_calls import CallDecision, decide_calls
from dualtrack.chat.expire_pause import expire_pause
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.chat.start_chat import start_chat
from dualtrack.chat.turn_attempt import TurnSettings
from dualtrack.clock import iso
from dualtrack.credits.account import Account, AccountChange, Movement
from dualtrack.frozen import freeze, thaw
from dualtrack.ids import new_conversation_id
from dualtrack.models.thinking import Thinking
from dualtrack.models.trouble import ErrorDetails
from dualtrack.output_schema import refused_schema
from dualtrack.profiles import all_profiles
from dualtrack.requests import chat_ref
from dualtrack.settings import DEFAULTS
from dualtrack.storage.conversations import Conversation, list_position
from dualtrack.tool_values import ToolResult
from dualtrack.tools.full_context import result_text
from dualtrack_stack.local.testing.agents import agent_from, project_at, settings_at, tools_at
from dualtrack_stack.local.testing.aws import stores_in_memory
from dualtrack_stack.local.testing.script import ItemsScript, ScriptError, connect, shown
from dualtrack_stack.local.testing.tools import Toolbox, declarations_of, specs_of
from dualtrack_stack.local.testing.workflow import JumpingClock, LocalWorkflow
from dualtrack_stack.roots import project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dualtrack.answers import Receipt
    from dualtrack.frozen import JsonObject
    from dualtrack.memory.records import Record
    from dualtrack.models.protocol import Model
    from dualtrack.profiles import Profile
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import Stores
    from dualtrack.tool_declaration import Declaration
    from dualtrack.tools.running import Execute
    from dualtrack_stack.local.testing.script import Heard

USER: Final = "test"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a chat: the tool's name, the input as JSON, and what the model was told."""

    name: str
    input: dict[str, Any]
    result: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call that waits. ``kind``: ``approval``, ``client_tool`` or ``question``; ``allowable``: whether approval
    may be given for the whole conversation."""

    id: str
    name: str
    input: dict[str, Any]
    kind: str
    allowable: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """What a paused chat waits for, until ``expires_at`` (ISO 8601)."""

    calls: tuple[OpenCall, ...]
    expires_at: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A chat that has ended or waits. ``status``: ``done``, ``failed`` or ``paused``, with what it waits for in
    ``pause``; ``stop``: why it ended, such as ``complete`` or
    ``max_turns``; ``error``: the message of one that failed; ``credits``: what it was charged; ``sent``: the bodies of
    its turns' requests to the model, in order; ``output``: the answer as a JSON value, if it fits a schema."""

    text: str
    status: str
    stop: str
    error: str
    calls: tuple[Call, ...]
    credits: int
    sent: tuple[dict[str, Any], ...]
    output: Any = None
    pause: Pause | None = None
    chat_id: str = ""


@dataclass(frozen=True, slots=True)
class LocalChat:
    """A conversation."""

    user: str
    conversation_id: str
    _stores: Stores
    _heard: Heard
    _workflow: LocalWorkflow

    def ask(
        self,
        message: str,
        *,
        output: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Answer:
        """Send a message, take the chat to its end or to a pause, and return its answer. ``output``: the JSON Schema
        that it has to fit; ``tools``: what the client runs, each ``{"name", "description", "input_schema"}``.

        Raises ValueError for a schema that the API does not take, `ScriptError` if the script does not fit, and
        `dualtrack.errors.ApiError` for what the API refuses: too few credits (``insufficient_credits``), or another
        chat that runs (``conversation_busy``).
        """
        if output is not None and (problem := refused_schema(output)):
            raise ValueError(f"output: {problem}")
        new = NewChat(self.user, message, self.conversation_id, output=output, tools=tools)
        return self._taken(lambda executions: start_chat(self._stores, executions, new, repeat=None))

    def decide(
        self,
        *calls: str,
        approve: bool | None = None,
        reason: str = "",
        for_conversation: bool = False,
        input: Mapping[str, Any] | None = None,  # noqa: A002 - the API's name
        result: str | None = None,
        is_error: bool = False,
        answer: str | None = None,
    ) -> Answer:
        """Decide on open calls of the chat that waits, by their ids (none: on all), and return its answer as it goes
        on: exactly one of ``approve``, ``input``, ``result`` and ``answer``.

        Raises ValueError if it waits for nothing or if that is not one decision, and `dualtrack.errors.ApiError` for
        what the API refuses.
        """
        if sum(said is not None for said in (approve, input, result, answer)) != 1:
            raise ValueError("a decision is one of approve, input, result and answer")
        came = None if result is None else ToolResult(result, is_error=is_error)
        decision = CallDecision(
            "", approve is not False, reason, freeze(input), for_conversation, came, answer
        )
        chat, pause = self._paused()
        wanted = [replace(decision, call_id=call) for call in calls or (call.id for call in pause.calls)]
        deployed = self._workflow.settings.deployed
        return self._taken(
            lambda executions: decide_calls(self._stores, executions, chat, wanted, "user", deployed)
        )

    def expire(self) -> Answer:
        """Let the time of the pause pass, which takes none here: nobody has decided, and the chat goes on. Raises
        ValueError if it waits for nothing."""
        chat, _ = self._paused()
        self._workflow.clock.sleep(max(0.0, chat.deadline - self._stores.clock()) + 1)
        return self._taken(lambda executions: expire_pause(self._stores, executions, chat))

    def receipt(self, answer: Answer) -> Receipt:
        """What the chat of an answer did and cost, as the API says it; without AWS and the ledger."""
        chat = self._stores.chats.load(self.user, answer.chat_id)
        assert chat is not None
        return receipt_of(evidence(self._stores, chat, None), Deployment())

    def waits_for(self) -> str:
        """A sentence, after a blank, about the calls that wait for approval and how one goes on; empty if none does."""
        listed = self._stores.paused.of(self.user)
        names = [call.name for call in self._paused()[1].calls if call.kind == "approval"] if listed else []
        if not names:
            return ""
        return (
            f" It waits for approval of {', '.join(names)}: call chat.decide(approve=True), or write effect='reads' in"
            " @tool(…) if the tool only reads."
        )

    def _paused(self) -> tuple[Chat, Pause]:
        listed = self._stores.paused.of(self.user)
        chat = self._stores.chats.load(self.user, listed[0].chat_id) if listed else None
        pause = self._pause(chat) if chat else None
        if chat is None or pause is None:
            raise ValueError("the chat waits for no decision")
        return chat, pause

    def _pause(self, chat: Chat) -> Pause | None:
        turn = paused_turn(self._stores.chats, chat)
        if turn is None or chat.pause is None:
            return None
        calls = tuple(
            OpenCall(
                call["id"], call["tool"], thaw(call["input"]), call["kind"], call.get("allowable", False)
            )
            for call in open_calls(turn)
        )
        return Pause(calls, iso(chat.pause.until))

    def _taken(self, take: Callable[[Executions], Chat | None]) -> Answer:
        """The answer of the chat that goes on with this. Raises `ScriptError`."""
        first = len(self._heard.sent)
        executions: Any = _AtOnce(self._workflow)
        chat = take(executions)
        if self._heard.problem:
            raise ScriptError(self._heard.problem)
        assert chat is not None
        return self._answer(chat.chat_id, self._heard.sent[first:])

    def _answer(self, chat_id: str, sent: list[dict[str, Any]]) -> Answer:
        chat = self._stores.chats.load(self.user, chat_id)
        assert chat is not None
        records = self._stores.history.query_records(self.user, self.conversation_id, chat.query)
        shown_to_user = chat_json(chat, records, None)
        return Answer(
            text=shown_to_user["response"] or "",
            status=chat.status,
            stop=chat.stop,
            error=" ".join((chat.error or {}).get(part, "") for part in ("message", "operator")).strip(),
            calls=tuple(self._call(record) for record in records if record.call),
            credits=chat.credits_used,
            sent=tuple(sent),
            output=shown_to_user["output"],
            pause=self._pause(chat),
            chat_id=chat_id,
        )

    def _call(self, record: Record) -> Call:
        assert record.call is not None
        result = result_text(self._stores, self.user, self.conversation_id, record)
        return Call(record.call.tool, thaw(record.call.input), result, record.call.is_error)


@dataclass(frozen=True, slots=True)
class _AtOnce:
    """Executions that have ended, at the chat's end or in a pause, when they are started."""

    workflow: LocalWorkflow

    def start(self, name: str, payload: JsonObject) -> None:  # noqa: ARG002
        self.workflow.run(chat_ref(payload))


@contextmanager
def local_chat(
    profile: str | Mapping[str, Any],
    model: Iterable[object],
    *,
    tools: Iterable[Callable[..., Any]] = (),
    user: str = USER,
    credits: int = 1_000,  # noqa: A002 - the contract's name
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[LocalChat]:
    """A conversation with the agent ``profile``, within this process: the name of a profile of the project around the
    current folder or of the library, or the content of a profile's file.

    ``model``: what answers the model's calls, one item each: a text, ``calls(…)``, a list of texts and calls, or
    ``fails(…)``. ``tools``: functions marked with ``@tool``, offered beside those that the profile names; one with the
    name of a tool of the project stands in for it. ``credits``: what the user has. ``settings``: what a `ToolContext`
    tells them, besides the project's variables and the secrets that the environment has.

    Raises ValueError for a profile that does not exist or is wrong and for files of the project that are, TypeError
    for a tool or an item that is none, and, at the end of the block, `ScriptError` for items that are left over.
    """
    script, given = ItemsScript(model), declarations_of(tools)
    served = Served(lambda clock: connect(script, clock), script)
    with conversation(profile, served, given, user=user, given_credits=credits, settings=settings) as chat:
        yield chat
        waits_for = chat.waits_for()
    if script.left and not script.problem:
        rest = ", ".join(map(shown, script.left))
        raise ScriptError(f"The model was not called again, and the script goes on: {rest}.{waits_for}")


@dataclass(frozen=True, slots=True)
class Served:
    """Who answers the model's calls. ``connect`` makes the client, given the clock of the chat; ``heard`` keeps what it
    was sent. ``model``: its name, of agents that name none; ``clock``: waits for a busy service take no time, unless
    the service is a real one."""

    connect: Callable[[JumpingClock], Model]
    heard: Heard
    model: str = DEFAULTS.dualtrack_model
    provider: str = DEFAULTS.dualtrack_provider
    thinking: Thinking = field(default_factory=Thinking)
    max_cost: float = 0.0
    clock: Callable[[], JumpingClock] = JumpingClock


@contextmanager
def conversation(
    profile: str | Mapping[str, Any],
    served: Served,
    given: Mapping[str, Declaration] = MappingProxyType({}),
    *,
    user: str = USER,
    given_credits: int = 1_000,
    settings: Mapping[str, str] = MappingProxyType({}),
    change: Callable[[Profile], Profile] = lambda agent: agent,
    around: Callable[[Execute], Execute] = lambda run: run,
) -> Iterator[LocalChat]:
    """`local_chat` with any model. ``given``: tools by name, beside those of the profile; ``change`` is made to the
    agent, and ``around`` takes the place of whoever runs its tool calls. Raises ValueError likewise."""
    root = project_root()
    specs = specs_of(project_at(root), given)
    agent = change(agent_from(profile, root, specs, given))
    clock = served.clock()
    own, profiles = {**tools_at(root), **given}, {agent.name: agent}
    with (
        _offered(agent),
        stores_in_memory(clock) as stores,
        closing(Toolbox(own, {**settings_at(root), **settings}, stores, profiles)) as toolbox,
    ):
        _give(stores, user, given_credits)
        conversation_id, now = new_conversation_id(), iso(stores.clock())
        position = list_position(now, conversation_id)
        begun = Conversation(user, conversation_id, "Test", agent.name, now, now, position)
        stores.conversations.create(begun)
        deployed = AgentDeployment(
            served.model, served.thinking, served.provider, profiles=profiles, tools=specs
        )
        turns = TurnSettings(deployed, served.max_cost, ErrorDetails())
        workflow = LocalWorkflow(stores, served.connect(clock), turns, around(toolbox), clock)
        yield LocalChat(user, conversation_id, stores, served.heard, workflow)


@contextmanager
def _offered(agent: Profile) -> Iterator[None]:
    """The profile among the library's, if they have none of its name: admission asks it for the time of a call. Its
    tools are those of the chat's own deployment."""
    known = all_profiles()
    is_new = agent.name not in known
    if is_new:
        known[agent.name] = replace(agent, tools=())
    try:
        yield
    finally:
        if is_new:
            known.pop(agent.name, None)


def _give(stores: Stores, user: str, amount: int) -> None:
    """An account whose allowance of today is used, with a pack of this many credits."""
    account = Account(user)
    now = stores.clock()
    today = account.at(now)
    given = replace(today, seq=1, used_day=today.limits.daily, used_month=today.limits.daily, pack=amount)
    line = Movement("grant", amount, amount, now, reason="test")
    stores.ledger.commit(account, AccountChange(given, (line,)))
