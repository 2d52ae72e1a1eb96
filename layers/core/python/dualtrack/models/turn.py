"""The decision on a model's reply (CONTRACT 7). Pure.

Every tool call gets its id, and either the function that will run it or the reason why it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.codec import stored
from dualtrack.ids import tool_id
from dualtrack.indirect_calls import meant
from dualtrack.models.stops import CALLS_TOOLS, in_words, stop_of
from dualtrack.text import strip_echoes
from dualtrack.tool_values import PriceClass, ToolKind, effect_of
from dualtrack.vocabulary import CallKind, DecidedBy, DecisionOutcome, Effect

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.models.cache_word import CacheWord
    from dualtrack.models.stops import LastCallReason
    from dualtrack.tool_values import ToolSpec
    from dualtrack.vocabulary import Stop

    InputCheck = Callable[[str, Mapping[str, Any], str, ToolSpec], str]
    """By the tool use's id, the input that is meant, and what is wrong with how the tool is named."""
    Gates = Callable[[ToolSpec], "Gate"]

MAX_CALLS_PER_TURN: Final = 20

_CUT: Final = (
    "this call was not run: the answer reached its limit of {tokens:,} tokens within it, so its input is not whole. "
    "Write a shorter input, or do it in several calls."
)
_CUT_LATE: Final = (
    "this call was not run: the answer took longer than it may and was ended within it, so its input is not whole. "
    "Write a shorter input, or do it in several calls."
)

_TOO_MANY: Final = f"at most {MAX_CALLS_PER_TURN} tool calls run in one turn; ask again in the next one."

NextStep = Literal["tools", "turn", "answered"]


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, as the API counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """All tokens that the model read, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.prompt_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """The usage of two calls."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class FirstByte:
    """The beginning of a reply: the name under which the service serves the model, and the usage that it reports before
    it writes: that of the prompt."""

    served: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Declined:
    """What the model's service says of a request that it declined: the ``category`` of its policy, and the
    ``explanation`` in its own words; empty where it says nothing."""

    category: str = ""
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply: frozen content blocks as they must be sent back, and why the model stopped.

    ``broken``: by tool use id, what is wrong with an input that cannot be sent back; its block has ``{}``.
    ``cut``: the id of the tool use within whose input the limit of tokens came, or with ``is_late`` that of time.
    ``declined``: what the service says if it has declined the request.
    ``calls``: the number of model calls it took; ``usage`` is their total. ``first_seconds``: from the request to the
    first piece of the answer, whether thinking, text or a tool's input; None if not measured. ``message``: the id by
    which a later request can name this one, empty if the service was not asked to remember it; ``cache``: its word on
    the cache.
    """

    content: tuple[Mapping[str, Any], ...]
    stop_reason: str
    usage: Usage = Usage()
    broken: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cut: str = ""
    declined: Declined | None = None
    calls: int = 1
    first_seconds: float | None = field(default=None, compare=False)
    is_late: bool = False
    message: str = field(default="", compare=False)
    cache: CacheWord | None = None

    @property
    def prompt_tokens(self) -> int:
        """The tokens of the request as the service counted them, cached or not; 0 if it did not."""
        usage = self.usage
        return (usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens) // self.calls

    @property
    def calls_tools(self) -> bool:
        """Whether a tool is called in it, whole or cut."""
        return any(block["type"] == "tool_use" for block in self.content)

    @property
    def is_thought_alone(self) -> bool:
        """Whether it was cut off before any text or tool call: thinking used up all tokens."""
        written = any(block["type"] in ("text", "tool_use") for block in self.content)
        return self.stop_reason == "max_tokens" and not written


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on a call that waited for one. ``mark``: a hash of what was decided, by which a repeated request is
    recognised."""

    outcome: DecisionOutcome
    by: DecidedBy
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a call ``asks`` for before it may run; empty if nothing. ``allowable``: the tool's mark if leave for it may
    hold for the whole conversation, or already does (`dualtrack.tools.approval`)."""

    asks: CallKind | Literal[""] = ""
    allowable: str = ""


@stored
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of a turn. ``refused``: the error result of a call that will not run. ``asks`` and ``allowable`` as
    `Gate` says; ``verdict`` is None until there is a decision."""

    id: str
    tool_use_id: str
    tool: str
    input: Mapping[str, Any]
    fn: ToolKind | Literal[""] = ""
    price_class: PriceClass = "other"
    repeatable: bool = True
    refused: str = ""
    spec: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """``server`` and ``remote_name`` of an MCP tool; the ``options`` of the agent's."""
    asks: CallKind | Literal[""] = ""
    allowable: str = ""
    verdict: Verdict | None = None
    effect: Effect | Literal[""] = ""
    """As `dualtrack.tool_values.ToolSpec` has it."""

    @property
    def does(self) -> Effect:
        """What its tool does to the world."""
        return effect_of(self.effect, is_known_to_read=self.repeatable and self.fn != "mcp")

    @property
    def is_marked(self) -> bool:
        """Whether it is marked as begun before it runs. Of a call that only reads the recorded turn says as much."""
        return not (self.does == "reads" and self.repeatable)

    @property
    def is_refused_by_somebody(self) -> bool:
        """Whether it will not run because somebody, or nobody in time, said so."""
        return self.verdict is not None and self.verdict.outcome in ("declined", "expired")

    @property
    def needs_leave(self) -> bool:
        """Whether it runs only because its tool is allowed in the conversation."""
        return bool(self.allowable) and not self.asks

    @property
    def is_open(self) -> bool:
        """Whether somebody has to decide on it."""
        return bool(self.asks) and not self.verdict and not self.refused

    @property
    def is_edited(self) -> bool:
        """Whether it runs with another input than the model's."""
        return self.verdict is not None and self.verdict.outcome == "edited"

    @property
    def may_run(self) -> bool:
        """Whether a function may run it: it is not refused, and approved if it has to be."""
        if self.refused:
            return False
        return not self.asks or (self.verdict is not None and self.verdict.outcome in ("approved", "edited"))

    @property
    def is_answered(self) -> bool:
        """Whether its result came from outside."""
        return self.verdict is not None and self.verdict.outcome == "answered"

    def decided(self, verdict: Verdict, refused: str = "") -> ToolCall:
        """The call with a decision on it; ``refused`` if it will not run."""
        return replace(self, verdict=verdict, refused=refused)


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """The decision on a reply: ``text`` is the response if answered, else the text before the tools; ``stop`` says why
    it ended, if answered. ``is_cut``: the limit of tokens came within a tool call. ``misfit``: why an answer does not
    fit its JSON Schema and has to be given again; ``fits``: it does; ``told``: what the model is told of an answer that
    lacks the call which the client wants; ``notes``: on records, by id, which are no part of the text."""

    next: NextStep
    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = "complete"
    is_cut: bool = False
    misfit: str = ""
    fits: bool = False
    told: str = ""
    notes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def decide(
    reply: ModelReply,
    *,
    query: int,
    calls_before: int,
    offered: Mapping[str, ToolSpec],
    limit: LastCallReason,
    invalid: Callable[[ToolSpec, Mapping[str, Any]], str],
    gates: Gates,
    max_tokens: int,
) -> TurnDecision:
    """The decision on a reply, as the table of `dualtrack.models.stops` has it.

    ``calls_before`` counts the query's calls so far; ``invalid`` returns what is wrong with a tool's input, or an empty
    string; ``gates`` what a call of a tool has to wait for; ``max_tokens``: the limit that a cut call is told.
    """
    text = strip_echoes("".join(block["text"] for block in reply.content if block["type"] == "text"))
    tool_uses = [block for block in reply.content if block["type"] == "tool_use"]
    if not limit and reply.stop_reason in CALLS_TOOLS and tool_uses:

        def check(use_id: str, arguments: Mapping[str, Any], problem: str, spec: ToolSpec) -> str:
            if use_id == reply.cut:
                return _CUT_LATE if reply.is_late else _CUT.format(tokens=max_tokens)
            return reply.broken.get(use_id, "") or problem or invalid(spec, arguments)

        calls = tuple(
            _call(block, tool_id(query, calls_before + number), offered, number, check, gates)
            for number, block in enumerate(tool_uses, start=1)
        )
        runnable = any(call.may_run for call in calls)
        return TurnDecision("tools" if runnable else "turn", text, calls, is_cut=bool(reply.cut))
    if not limit and reply.stop_reason == "pause_turn":
        return TurnDecision("turn", text)
    stop = stop_of(reply.stop_reason, limit)
    return TurnDecision("answered", in_words(text, stop), stop=stop)


def _call(
    block: Mapping[str, Any],
    call_id: str,
    offered: Mapping[str, ToolSpec],
    number: int,
    check: InputCheck,
    gates: Gates,
) -> ToolCall:
    name, arguments, problem = meant(block["name"], block["input"])
    spec = offered.get(name)
    if spec is None:
        return ToolCall(call_id, block["id"], name, arguments, refused=f"Unknown tool: {name}")
    reason = _TOO_MANY if number > MAX_CALLS_PER_TURN else check(block["id"], arguments, problem, spec)
    gate = Gate() if reason else gates(spec)
    return ToolCall(
        id=call_id,
        tool_use_id=block["id"],
        tool=spec.name,
        input=arguments,
        fn=spec.kind,
        price_class=spec.price_class,
        repeatable=spec.repeatable,
        refused=f"Tool execution failed: {reason}" if reason else "",
        spec=MappingProxyType({"server": spec.server, "remote_name": spec.remote_name, **spec.options}),
        asks=gate.asks,
        allowable=gate.allowable,
        effect=spec.does,
    )
