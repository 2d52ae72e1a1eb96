"""The parts of a request that the offline model reads: the question, earlier records, results of tools."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

_ID_LINE = re.compile(
    r"^\s*\[ID:(?P<id>[^\],]+)(?:,\s*ref:(?P<ref>[^\],]+)(?:,[^\]]+)?)?\]\s*(?:\(data from [A-Za-z0-9_-]{0,64}\)\s*)?"
)
_QUERY = re.compile(r"^\s*\[ID:(q\d+)\]\s*")
_FILE = re.compile(r"^\s*\[ID:(q\d+-f\d+)\]\s*\(data from (?:the file \"([^\"\n]{0,200})\"|a file)\)\s*")
_ATTACHED = re.compile(
    r"^\(Attached file \d+: (?:\"([^\"\n]{0,200})\", )?[^,\n]{1,200}, \d+ bytes, record (q\d+(?:-[ft]\d+)?)\.\)$",
    re.MULTILINE,
)
_READ_BY_A_PROGRAM = "(The answer to this query is read by a program."
_IS_QUERY = re.compile(r"q\d+")
_ANY_ID_LINE = re.compile(r"^[^\S\n]*+\[ ?ID:[^\]\n]*+\]\s*+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PastRecord:
    """A record of an earlier query: the id to fetch it by, its text here, and whether that is all of it. For a file
    the text is its name, and the id that of the record that it came with, unless it is a text."""

    ref: str
    text: str
    whole: bool
    question: str = ""
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tool call of the running query and what came back."""

    tool: str
    input: dict[str, Any]
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class AttachedText:
    """A text file of the running query: its id, its name or none, and the part that was sent."""

    ref: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """The running question, the records before it, and the outcomes since."""

    question: str
    past: tuple[PastRecord, ...]
    outcomes: tuple[Outcome, ...]
    media: int = 0
    files: tuple[AttachedText, ...] = ()
    schema: dict[str, Any] | None = None
    """The JSON Schema that the answer has to fit."""


def without_ids(text: str) -> str:
    """The text without id lines at the start of its lines."""
    return _ANY_ID_LINE.sub("", text)


def prompt_of(request: wire.Request) -> str:
    """The system prompt."""
    return "\n\n".join(block.text for block in request.system)


def texts(content: tuple[wire.Block, ...] | tuple[Any, ...]) -> list[str]:
    """The text blocks of a message or a tool result, in order."""
    return [block.text for block in content if isinstance(block, wire.Text)]


def read(request: wire.Request) -> Transcript:
    """The transcript: the running query is the last block ``[ID:qN]``, else the first message."""
    start, question = running(request.messages)
    media = sum(isinstance(block, wire.Image | wire.Document) for block in request.messages[start].content)
    return Transcript(
        question=_ATTACHED.sub("", without_ids(question)).strip(),
        past=_past(request.messages[:start]),
        outcomes=_outcomes(request.messages[start:]),
        media=media,
        files=tuple(_files(texts(request.messages[start].content))),
        schema=_schema(texts(request.messages[start].content)),
    )


def _schema(sent: list[str]) -> dict[str, Any] | None:
    """The schema that stands behind the query: the last line of its last block."""
    if not sent[-1:] or not sent[-1].startswith(_READ_BY_A_PROGRAM):
        return None
    schema: dict[str, Any] = json.loads(sent[-1].rsplit("\n", 1)[-1])
    return schema


def _files(sent: list[str]) -> Iterator[AttachedText]:
    for text in sent:
        if match := _FILE.match(text):
            yield AttachedText(match[1], match[2] or "", without_ids(text[match.end() :]))


def running(messages: tuple[wire.Message, ...]) -> tuple[int, str]:
    """Where the running query stands among the messages, and its text with its id."""
    for index in range(len(messages) - 1, -1, -1):
        for text in reversed(texts(messages[index].content)):
            if messages[index].role == "user" and _QUERY.match(text):
                return index, text
    return 0, "\n".join(texts(messages[0].content))


def _past(messages: tuple[wire.Message, ...]) -> tuple[PastRecord, ...]:
    records: list[PastRecord] = []
    question = ""
    for message in messages:
        for text in texts(message.content):
            match = _ID_LINE.match(text)
            if not match:
                continue
            ref = match["ref"] or match["id"]
            if _IS_QUERY.fullmatch(ref):
                question = text[match.end() :]
                records.extend(
                    PastRecord(of, name, False, question, is_file=True)
                    for name, of in _ATTACHED.findall(text)
                )
            if _QUERY.match(text):
                continue
            records.append(PastRecord(ref.strip(), text[match.end() :], match["ref"] is None, question))
    return tuple(records)


def _outcomes(messages: tuple[wire.Message, ...]) -> tuple[Outcome, ...]:
    return tuple(
        Outcome(use.name, use.input, without_ids(text).strip(), is_error)
        for use, text, is_error in results(messages)
    )


def results(messages: tuple[wire.Message, ...]) -> Iterator[tuple[wire.ToolUse, str, bool]]:
    """Each tool call with the text of its result, and whether that is an error."""
    calls: dict[str, wire.ToolUse] = {}
    for message in messages:
        for block in message.content:
            if isinstance(block, wire.ToolUse):
                calls[block.id] = block
            elif isinstance(block, wire.ToolResult) and block.tool_use_id in calls:
                yield calls[block.tool_use_id], "\n\n".join(texts(block.content)), block.is_error
