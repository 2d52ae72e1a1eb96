"""Records of a conversation: what is stored in full (full track) and what is sent (summarised track)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from dualtrack.codec import APART, As, stored
from dualtrack.ids import parse_record_id
from dualtrack.memory.full_history import MemorySums
from dualtrack.models.receipt_data import ToolSideCalls
from dualtrack.text import clean, neutralise, one_line
from dualtrack.tool_rules import name_of
from dualtrack.tool_values import Source
from dualtrack.vocabulary import CallStatus, Form, RecordType, Role, Shortened, Stop

_ATTACHED: Final = "(Attached file"
THINKING: Final = ("thinking", "redacted_thinking")
"""The types of the blocks in which a model thinks."""


@stored
@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a query or of a tool's result.

    Its bytes are in the body store under ``body``; those of a text file are the text of the record ``record_id``.
    ``name``: the user's name for it, cleaned; empty if there is none.
    """

    media_type: str
    size: int
    body: str = ""
    name: str = ""
    record_id: Annotated[str, As("record")] = ""


@stored
@dataclass(frozen=True, slots=True)
class ToolCallDetail:
    """The data of a tool call's record beside its text. ``input`` is frozen JSON."""

    tool_use_id: str
    tool: str
    input: Mapping[str, Any]
    is_error: bool
    seconds: float
    turn: int
    sources: tuple[Source, ...] = ()
    """Without ``record_id``, which is its own."""
    media: tuple[Attachment, ...] = ()
    reference: Mapping[str, Any] | None = None
    asked: tuple[ToolSideCalls, ...] = ()
    """The tool's own model calls."""
    edited: bool = False
    """Whether ``input`` is not the model's: it was approved with another one."""
    outcome: Literal["", "declined", "unknown"] = ""
    ran: bool = True
    charged: bool = True
    """As `dualtrack.tool_values.ToolResult` has them."""

    @property
    def status(self) -> CallStatus:
        """What became of the call."""
        return self.outcome or ("failed" if self.is_error else "done")


@stored
@dataclass(frozen=True, slots=True)
class Record:
    """A record of the full track. ``content`` is the full text; ``turn`` orders it within its query."""

    record_id: Annotated[str, APART]
    type: RecordType
    role: Role
    content: Annotated[str, APART]
    created_at: Annotated[str, As("at")]
    turn: int = 0
    attachments: tuple[Attachment, ...] = ()
    call: ToolCallDetail | None = None
    stop: Stop | Literal[""] = ""
    chat_id: Annotated[str, APART] = ""
    """For a query: the chat that it started."""
    said: int = 0
    """For a thought: the length of the interim text at its end."""
    ref: str = ""
    """For a digest: the queries that it covers, ``q1..q41``."""
    size: int = 0
    """For a summary: that of its block."""
    sums: MemorySums | None = None
    """For a response: the conversation's sums with its query in them, which a fork behind it inherits."""
    continues: str = ""
    """For a query that is no message of the user's: the answer that goes on."""
    unused: tuple[int, ...] = ()
    """For a response: the places of the sources that its query's tools returned and that it has not used
    (`dualtrack.memory.sources`)."""
    left_out: int = 0
    """For a response: the query whose results were left out so that the model's service would answer."""
    form: Form | Literal[""] = ""
    """On the summarised track: what is sent of it; never stored."""

    @property
    def thinking_characters(self) -> int:
        """For a thought: how much of it precedes its interim text; all of it without one."""
        parsed = parse_record_id(self.record_id)
        return len(self.content) - self.said if parsed and parsed.kind == "thought" else 0


@stored
@dataclass(frozen=True, slots=True)
class TrackBlock:
    """One block of the summarised track: a query verbatim, or the summary of the record ``ref``.

    A block never changes; the order of blocks is the order of the track. ``size``: that of the record in bytes of
    UTF-8; 0 for a block that has all of it. ``contents``: what follows the summary, the record's headings and files.
    ``instructions``: of a long query, the user's standing ones, word for word (`dualtrack.memory.standing`).
    ``made``: what the content is, if it is not all of the record.
    """

    record_id: Annotated[str, As("id")]
    role: Role
    content: str
    created_at: Annotated[str, As("at")]
    ref: str = ""
    size: int = 0
    contents: str = ""
    instructions: tuple[str, ...] = ()
    made: Shortened | Literal[""] = ""

    @property
    def header(self) -> str:
        """``[ID:q1]``, ``[ID:q1-t1-sum, ref:q1-t1, 23 KB]``. What is whole stands under the record's own id: nothing
        more can be read by another, and in a conversation of short records each token of it is paid in every call."""
        if not self.size:
            return f"[ID:{self.ref or self.record_id}]"
        return f"[ID:{self.record_id}, ref:{self.ref}, {max(round(self.size / 1_000), 1)} KB]"

    @property
    def names_files(self) -> bool:
        """Whether the record has files, which are named after its content."""
        return _ATTACHED in self.contents

    @property
    def form(self) -> Form:
        """What the content is; of a release that kept no notes it is a summary if it is shorter than its record."""
        return self.made or ("summary" if self.size else "whole")

    @property
    def said(self) -> str:
        """The content, and what follows it."""
        return f"{self.content}{self.contents}"

    @property
    def text(self) -> str:
        """The text on the wire: the id, then what is said, with forged ids neutralised."""
        return f"{self.header} {neutralise(self.said)}"


@stored
@dataclass(frozen=True, slots=True)
class Whole:
    """An ended query as it was sent: its frozen messages, its response last. ``after`` names what preceded them then:
    behind anything else the model's service refuses the thinking in them."""

    messages: tuple[Mapping[str, Any], ...] = ()
    after: str = ""

    def sent_after(self, now: str) -> Whole:
        """The messages as they are sent behind this: without thinking if something else preceded them."""
        return self if now == self.after else replace(self, messages=tuple(map(_unthought, self.messages)))

    @property
    def uses_tools(self) -> bool:
        """Whether a tool is called in them: the service then wants tools in the request."""
        return any(block["type"] == "tool_use" for message in self.messages for block in message["content"])


def _unthought(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = tuple(block for block in message["content"] if block["type"] not in THINKING)
    return MappingProxyType({**message, "content": content})


@stored(row=True)
@dataclass(frozen=True, slots=True)
class LastSent:
    """The newest call of an ended query whose request a next one may begin with: its answer's id (``message``), and a
    name of what preceded the query in it (``past``)."""

    message: str
    past: str


@dataclass(frozen=True, slots=True)
class QueryTrack:
    """The summarised track of an ended query, in order: query or its summary, tool summaries, response summary.

    ``whole_tokens``: those of its messages by the cautious estimate, if it is sent on in them. ``leaves_out``: the
    query whose results it has left out (`dualtrack.memory.left_out`). ``last``: the call that sent the query's messages
    as they stand here or whole; None if they are sent otherwise now.
    """

    query: int
    blocks: tuple[TrackBlock, ...]
    whole_tokens: int = 0
    leaves_out: int = 0
    last: LastSent | None = None


def block_of(record: Record) -> TrackBlock:
    """The block that sends a full record; it names the record's files, so that they can be read back."""
    own = (record.record_id, record.role, clean(record.content), record.created_at)
    return TrackBlock(*own, contents=files_named(record))


def files_named(record: Record) -> str:
    """A line for each file of a query or of a tool's result, with its name and the id of the record that has it: of a
    text file its own, of an image or a PDF the one that it came with; empty if there is none."""
    files = (*record.attachments, *(record.call.media if record.call else ()))
    return "".join(
        f"\n{_ATTACHED} {number}: {_file(file, record.record_id)}.)"
        for number, file in enumerate(files, start=1)
        if file.record_id != record.record_id
    )


def _file(file: Attachment, of: str) -> str:
    """``"notes.txt", text/plain, 12 bytes, record q3-f1``."""
    name = f'"{file.name}", ' if file.name else ""
    return f"{name}{file.media_type}, {file.size} bytes, record {file.record_id or of}"


def file_data(name: str, text: str) -> str:
    """``(data from the file "notes.txt")`` and, from the next line on, the unchanged lines of the file."""
    named = f'the file "{name}"' if name else "a file"
    return f"(data from {named})\n{clean(text)}"


def data_of(call: ToolCallDetail, text: str) -> str:
    """``(data from NAME) …``: a tool's text in the user's role (CONTRACT 6).

    It is one line, so that nothing in it looks like a separate message. Forged ids are neutralised before, because they
    are no longer recognised on one line.
    """
    return f"(data from {name_of(call.tool)}) {one_line(neutralise(clean(text)))}"
