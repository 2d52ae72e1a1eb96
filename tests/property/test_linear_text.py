"""Every function that reads a stranger's text takes time in proportion to its length.

A function is held to what a quadratic one cannot meet: 64 KB of every pattern in a second of CPU (a quadratic
regular expression takes twenty), and 1 MB of the worst in ten (one that copies the rest for each line takes
a minute). A new function is one line of `READERS`.
"""

from __future__ import annotations

import inspect
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack import text
from dualtrack.chat.start_chat import title_of
from dualtrack.memory.records import Block, Record, ToolCallDetail, data_of, full_tokens
from dualtrack.memory.summaries import extract, summary_requests, track_of
from dualtrack.memory.view import PastTurn, Result, View, build, stand_in
from dualtrack.models.turn import ModelReply, ToolCall, decide
from dualtrack.tools.documentation import boundaries, chunking, keywords, markdown
from dualtrack.tools.documentation.settings import Bounds
from dualtrack.tools.documentation.values import Library
from dualtrack.tools.full_context import RETRIEVE_FULL_CONTEXT
from dualtrack.tools.mcp.results import tool_result
from mcp_types import CallToolResult, TextContent

from infra.local.offline_model import answer, prose, summary, tool_picking, transcript
from infra.local.offline_model.transcript import Outcome, PastRecord, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

AT: Final = "2026-11-22T00:00:00.000Z"
CALL: Final = ToolCallDetail("toolu_1", "kit_echo", MappingProxyType({"q": "x"}), False, 1.0, 1)

UNITS: Final = (
    "\n", "\r", "\r\n", "\u2028", " ", "\t", "\u3000", "\u200b", "\u3164", "\ufe0f", "\x00",
    "[", "［", "[ID", "[ID:", "[I\u200bD", "[ID:q1]", "[ID:q1]\n", "[ID:q1] ", "[\n", "\n[", "]", "](http://", "[a](http://",
    "#", "# ", "#\n", "`", "```", "```a\n", "~~~\n", "-", "- ", "-\n", "*", ">", "> ", "|", "\"", "1.", "1. ", "1.\n",
    "<", "< ", "<document", ".", "a", "A", "a ", "a-", "a.", "a/", "a_", "aA", "é", "💡", "{\"a\":", "(", "Source:", "\n \n",
)  # fmt: skip
HEADS: Final = ("", "[", "# a", "Source: <")
SIZES: Final = (2_048, 16_384, 65_536)
"""Growing, so that what is worse than quadratic fails and does not hang."""

WORST: Final = ("\n", " ", "[", "[ID:q1]\n", "\u200b", "[\n", "#", "```a\n", "< ", "a-")


def record(content: str) -> Record:
    """A tool call's record."""
    return Record("q1-t1", "tool_call", "user", content, AT, 1, call=CALL)


def response(content: str) -> Record:
    """A response's record."""
    return Record("q1-r", "message", "assistant", content, AT, 2, stop="complete")


def in_small_pieces(content: str) -> None:
    """The stripper, fed as a model streams."""
    stripper = text.EchoStripper()
    for start in range(0, len(content), 7):
        stripper.feed(content[start : start + 7])
    stripper.end()


def short_track(content: str) -> None:
    """The summaries of a query, mechanical and by the model."""
    records = (Record("q1", "message", "user", content, AT), record(content), response(content))
    summary_requests(records)
    track_of(records, {}, AT)
    track_of(records, {"q1-t1": content, "q1-r": content}, AT)


def sent(content: str) -> None:
    """What goes to the model: a past query standing in, a query and a result."""
    records = (Record("q1", "message", "user", content, AT), record(content), response(content))
    past = stand_in(records, 1, 100_000)
    call = ToolCall("q2-t1", "toolu_1", "kit_echo", MappingProxyType({}))
    content_block = MappingProxyType({"type": "text", "text": content})
    turn = PastTurn((content_block,), (call,), MappingProxyType({"q2-t1": Result(content)}))
    build(View((past,), Block("q2", "user", content, AT), turns=(turn,)))


def decided(content: str) -> None:
    """What the model wrote."""
    reply = ModelReply((MappingProxyType({"type": "text", "text": content}),), "end_turn")
    decide(reply, query=1, calls_before=0, offered={}, limit="", invalid=lambda *_: "")


def documents(content: str) -> None:
    """Sections of a documentation page, as text and as JSON, and what becomes of them."""
    bounds = Bounds()
    chunks = chunking.chunks_of_text(content, bounds)
    chunking.chunks_of_json(
        {
            "codeSnippets": [{"codeTitle": content, "codeList": [{"code": content, "language": content}]}],
            "infoSnippets": [{"breadcrumb": content, "content": content, "pageId": content}],
        },
        bounds,
    )
    markdown.documentation_result(Library("/a/b", content), chunks, ())


def answered(content: str) -> None:
    """The built-in model reads a result, an earlier record and a document."""
    outcome = Outcome("kit_echo", {}, content, is_error=False)
    answer.write(Transcript("How do I set this up?", (), (outcome,)))
    answer.write(Transcript("Show the full code", (PastRecord("q1-r", content, whole=True),), ()))


def picked(content: str) -> None:
    """The built-in model reads a question, which has at most 32,000 characters."""
    offered: dict[str, dict[str, Any]] = {
        RETRIEVE_FULL_CONTEXT.name: {"type": "object"},
        "retrieve_documentation": {"type": "object"},
        "github_search_code": {"type": "object"},
        "github_get_file_contents": {"type": "object"},
        "kit_echo": {"required": ["a"], "properties": {"a": {"type": "integer"}}},
    }
    question = f"kit_echo octo/hello github repo file {content}"[:32_000]
    tool_picking.pick(Transcript(question, (), ()), offered)


READERS: Final[Mapping[str, Callable[[str], Any]]] = MappingProxyType(
    {
        "neutralise": text.neutralise,
        "one_line": text.one_line,
        "strip_echoes": text.strip_echoes,
        "EchoStripper": in_small_pieces,
        "cut": lambda content: text.cut(content, 1_000, "…"),
        "preview": text.preview,
        "clean": text.clean,
        "estimate_tokens": text.estimate_tokens,
        "tokens_of": lambda content: text.tokens_of(len(content)),
        "a track's block": lambda content: Block("q1", "user", content, AT).text,
        "data_of": lambda content: data_of(CALL, content),
        "full_tokens": lambda content: full_tokens((record(content),)),
        "extract": lambda content: extract(record(content)),
        "the short track": short_track,
        "what is sent": sent,
        "the meaning of a reply": decided,
        "title_of": title_of,
        "an MCP result": lambda content: tool_result(
            CallToolResult(content=[TextContent(type="text", text=content)])
        ),
        "sections of documentation": chunking.sections,
        "documentation": documents,
        "one_line of a heading": lambda content: chunking.one_line(content, 200),
        "web_address": lambda content: chunking.web_address(content, 2_000),
        "words": keywords.words,
        "tagged": lambda content: boundaries.tagged("document", content, source=content),
        "offline: without_ids": transcript.without_ids,
        "offline: sections": prose.sections,
        "offline: sentences": prose.sentences,
        "offline: words": prose.words,
        "offline: extract": lambda content: summary.extract(content, 3),
        "offline: answer": answered,
        "offline: tools": picked,
    }
)


def seconds(reader: Callable[[str], Any], content: str) -> float:
    """CPU of this thread: a busy machine makes nothing slower."""
    started = time.thread_time()
    reader(content)
    return time.thread_time() - started


def repeated(head: str, unit: str, size: int) -> str:
    """A pattern of at least ``size`` characters, with something behind it that fits nothing."""
    return head + unit * (size // len(unit) + 1) + "x"


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_length_and_no_faster(name: str) -> None:
    """Every pattern at 64 KB, the worst at 1 MB."""
    reader = READERS[name]
    for head in HEADS:
        for unit in UNITS:
            for size in SIZES:
                taken = seconds(reader, repeated(head, unit, size))
                assert taken < 1, f"{taken:.1f} s for {size} characters of {head!r} and then {unit!r}"
    for unit in WORST:
        taken = seconds(reader, repeated("[", unit, 1_048_576))
        assert taken < 10, f"{taken:.1f} s for 1 MB of {unit!r}"


def test_every_function_for_texts_is_held_to_it() -> None:
    """What `text` offers is in the table."""
    public = {
        name
        for name, value in vars(text).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == text.__name__
        if inspect.isfunction(value) or inspect.isclass(value)
    }
    assert public <= set(READERS), f"not in READERS: {sorted(public - set(READERS))}"
