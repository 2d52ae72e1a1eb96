"""Tools: what the model may call, which function runs it, what it costs, what it is given, what it returns.

To offer a tool is to know its `ToolSpec`; to run one of ours, or of a project, is to call a function that
`dualtrack.tool_declaration.tool` has marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, TypeAlias

from dualtrack.codec import stored
from dualtrack.vocabulary import ApprovalRule, Effect

ToolKind = Literal["tool", "search", "graph", "mcp", "own", "client_tool", "question"]
"""What runs a tool: a Lambda function (for in-house tools, searches, the graph, tools of MCP servers, the project's
own), the client, or nobody: a question is answered by the user."""

PriceClass: TypeAlias = str
"""How a tool is charged: `credits.plans` has the prices, and ``[prices]`` of a project further classes."""


Switch: TypeAlias = Literal["rerank"]
"""A field of a profile by which a tool does without a part of itself (`dualtrack.tool`, ``switches``)."""
OFF: Final = "off"
"""Among a tool's options, what the profile has switched off."""

NOTHING: Final = "(the tool returned nothing)"
"""What stands for an empty result."""
MAX_REASON: Final = 1_000
"""Maximum characters of an error's message that the model is told."""


@stored(whole=True)
@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as the model sees it and as we run it.

    ``input_schema`` is a frozen JSON Schema (2020-12, type object). ``repeatable``: running it twice is harmless; if
    false, a call that has begun is never run again. ``effect``: what it does to the world, which is asked for approval
    by; empty if an earlier release stored it, which `does` reads. ``hints``: the annotations by which the server of an
    MCP tool says so, as it listed them; ``is_changed``: what it lists now is not what was accepted
    (`dualtrack.tools.mcp.hints`). ``approval``: which of its calls need approval, by its own declaration;
    empty if it leaves that to the profile (`dualtrack.tools.approval`). ``server`` names the MCP server of the tool and
    ``remote_name`` its name there; ``renamed`` has the server's own names of properties that are offered under others
    (`dualtrack.tools.mcp.legal`). ``options``: what the agent says of it to the function that runs it.
    ``is_searched``: it is not sent with a request, and found by a search (`dualtrack.indirect_calls`).
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    kind: ToolKind
    price_class: PriceClass = "other"
    repeatable: bool = True
    server: str = ""
    remote_name: str = ""
    renamed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    approval: ApprovalRule | Literal[""] = ""
    effect: Effect | Literal[""] = ""
    hints: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    is_changed: bool = False
    is_searched: bool = False

    @property
    def does(self) -> Effect:
        """Its effect."""
        return effect_of(self.effect, is_known_to_read=self.repeatable and not self.server)

    @property
    def outside(self) -> Literal["client_tool", "question", ""]:
        """Who gives its results, if no function runs it: the client, or the user as the answer to a question."""
        return self.kind if self.kind in ("client_tool", "question") else ""

    @property
    def is_foreign(self) -> bool:
        """Whether somebody else declares it: an MCP server, or the client."""
        return bool(self.server) or self.kind == "client_tool"


def sent_tools(offered: Mapping[str, ToolSpec]) -> list[ToolSpec]:
    """The tools of a request, in its order: those that are not left to a search."""
    return [spec for spec in offered.values() if not spec.is_searched]


def effect_of(effect: Effect | Literal[""], *, is_known_to_read: bool) -> Effect:
    """An effect as it is stored. Releases before it had repeatable tools alone: those of ours only read."""
    return effect or ("reads" if is_known_to_read else "changes")


class Injected:
    """What the function that runs a tool gives it: a parameter of such a type is no argument of the model's.

    ``kind``: the only Lambda function that has it; empty if each has.
    """

    __slots__ = ()
    kind: ClassVar[ToolKind | Literal[""]] = ""


@dataclass(frozen=True, slots=True)
class ToolContext(Injected):
    """Whose call it is, by ids: the user, the conversation, the chat (a message and its answer). ``settings``: what the
    project's settings tell its tools."""

    user: str
    conversation: str
    chat: str
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@stored
@dataclass(frozen=True, slots=True)
class Source:
    """A source of an answer. ``record_id`` is the tool call that returned it; ``passages``: where in the result's text
    it stands, from character to character, by which it is known whether an answer has used it
    (`dualtrack.memory.used_sources`)."""

    title: str
    url: str = ""
    record_id: str = ""
    passages: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Media:
    """Binary content of a result: an image or a PDF, base64."""

    media_type: str
    data: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool returns to the model. ``content`` is untrusted text in full (it is cut only on the wire).

    ``reference``: the result repeats a record (``retrieve_full_context``), so the reference is
    stored and not a copy: ``{"id", "offset", "limit"}``. ``left_out``: what a search had to go without
    (`dualtrack.runtime.metrics.PARTS`); it is counted, not stored. ``preview``: what people see of it while the chat
    runs, where its beginning is written for the model; empty for the beginning of ``content``. ``outcome``: what became
    of the call, if that is no error of its own; ``ran``: false if it never began, and so costs nothing; ``charged``:
    false if it ran and gave nothing that is worth its price.
    """

    content: str
    is_error: bool = False
    sources: tuple[Source, ...] = ()
    media: tuple[Media, ...] = ()
    reference: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    left_out: tuple[str, ...] = ()
    preview: str = ""
    outcome: Literal["", "declined", "unknown"] = ""
    ran: bool = True
    charged: bool = True


def titles(sources: tuple[Source, ...], *notes: str) -> str:
    """A preview of a result: a line for each source, then the notes."""
    return "\n".join((*(source.title for source in sources), *notes))


def failed(reason: str) -> ToolResult:
    """``Tool execution failed: <reason>`` (CONTRACT 7)."""
    return ToolResult(f"Tool execution failed: {reason}", is_error=True)


def reason_of(error: BaseException) -> str:
    """What the model is told of what a tool has raised: a ValueError's message, which is about the arguments; of all
    else the class alone, because a message may have a secret in it, such as an address with a key."""
    said = " ".join(str(error)[:MAX_REASON].split()) if type(error) is ValueError else ""
    return said or f"{type(error).__name__}."


def unknown(name: str) -> ToolResult:
    """``Unknown tool: <name>`` (CONTRACT 7)."""
    return ToolResult(f"Unknown tool: {name}", is_error=True)
