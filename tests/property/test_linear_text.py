"""Every function that reads untrusted text takes time linear in its length.

The limits are out of reach of a quadratic function: 64 KB of every pattern in a second of CPU (a quadratic regular
expression takes twenty), and 1 MB of the worst in twenty (one that copies the rest for each line takes a minute). The
short form takes a quarter and an eighth of them, in as much of the time. The longest text of a pattern has the head
that took longest in a shorter one. A new function is one line of `READERS`.
"""

from __future__ import annotations

import contextlib
import inspect
import time
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack import message_files, text
from dualtrack.knowledge.folding import folded as folded_text
from dualtrack.knowledge.postings import postings_of
from dualtrack.knowledge.words import asked, words
from dualtrack.memory.blocks import SentResult
from dualtrack.memory.budget import fit
from dualtrack.memory.conversation_words import has_words, searched_words, words_of_text
from dualtrack.memory.digest_writing import digest_call, written_by_model
from dualtrack.memory.digests import (
    Digest,
    Past,
    TrackBudget,
    digest_of,
    past_to_send,
)
from dualtrack.memory.extracts import extracts_of
from dualtrack.memory.headings import contents_of
from dualtrack.memory.passages import passages_of, windows
from dualtrack.memory.query_index import index_of
from dualtrack.memory.recall import RETRIEVE_FULL_CONTEXT, history_tokens
from dualtrack.memory.records import QueryTrack, Record, ToolCallDetail, TrackBlock, data_of
from dualtrack.memory.summaries import fitted, summary_requests, track_of
from dualtrack.memory.titles import title_of
from dualtrack.memory.view import PastTurn, TextFile, View, build
from dualtrack.models.thinking import Thinking
from dualtrack.models.turn import Gate, ModelReply, ToolCall, decide
from dualtrack.tools.conversation.excerpt import excerpt
from dualtrack.tools.courses.chunking import pieces
from dualtrack.tools.courses.documents import parse
from dualtrack.tools.courses.index import build as build_index
from dualtrack.tools.courses.names import resolve
from dualtrack.tools.courses.values import Course, DocumentRefused
from dualtrack.tools.documentation import boundaries, chunking, markdown
from dualtrack.tools.documentation.settings import Bounds
from dualtrack.tools.documentation.values import LibraryMatch
from dualtrack.tools.mcp.results import tool_result
from dualtrack_stack.local.offline_model import answer, calls, prose, summary, transcript, values
from dualtrack_stack.local.offline_model.transcript import AttachedText, Outcome, PastRecord, Transcript
from mcp_types import CallToolResult, TextContent

from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

AT: Final = "2026-11-22T00:00:00.000Z"
WHOLE: Final = 1_000
CALL: Final = ToolCallDetail("toolu_1", "kit_echo", MappingProxyType({"q": "x"}), False, 1.0, 1)

UNITS: Final = (
    "\n", "\r", "\r\n", "\u2028", " ", "\t", "\u3000", "\u200b", "\u3164", "\ufe0f", "\x00",
    "[", "［", "[ID", "[ID:", "[I\u200bD", "[ID:q1]", "[ID:q1]\n", "[ID:q1] ", "[\n", "\n[", "]", "](http://", "[a](http://",
    "#", "# ", "#\n", "`", "```", "```a\n", "~~~\n", "-", "- ", "-\n", "*", ">", "> ", "|", "\"", "1.", "1. ", "1.\n",
    "<", "< ", "<document", ".", "a", "A", "a ", "a-", "a.", "a/", "a_", "aA", "é", "💡", "{\"a\":", "(", "Source:", "\n \n",
    "\u0301\u0323", "e\u0301", "\u093c\u0951", "東", "ไ", "é-",
)  # fmt: skip
HEADS: Final[tuple[str, ...]] = ("", "[", "# a", "Source: <")
SIZES: Final = (2_048, 16_384, 65_536) if LONG else (2_048, 16_384)
"""Growing sizes, so that a function worse than quadratic fails instead of hanging."""
LONGEST: Final = 524_288 if LONG else 131_072

WORST: Final = ("\n", " ", "[", "[ID:q1]\n", "\u200b", "[\n", "#", "```a\n", "< ", "a-", "\u0301\u0323")


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


def summarised_track(content: str) -> None:
    """The summaries of a query, mechanical and by the model."""
    records = (Record("q1", "message", "user", content, AT), record(content), response(content))
    summary_requests(records, WHOLE)
    track_of(records, {}, WHOLE, AT)
    track_of(records, {"q1-t1": content, "q1-r": content, "q1": content}, WHOLE, AT)
    fitted(content, 350)


def extracted(content: str) -> None:
    """A result's extract beside an answer of the same words, and beside one that it says once, at its end."""
    for said, of_result in ((content, content), ("A marmot said so.", f"{content} marmot")):
        result = record(of_result)
        extracts_of([result], [Record("q1", "message", "user", said, AT), result, response(said)])


def digested(content: str) -> tuple[Digest, tuple[QueryTrack, ...]]:
    """A digest of the query before, and the tracks of two after it."""
    records = (Record("q2", "message", "user", content, AT), record(content), response(content))
    tracks = (track_of(records, {}, WHOLE, AT), QueryTrack(3, (TrackBlock("q3", "user", content, AT),)))
    return Digest(1, 1, content, AT), tracks


def folded(content: str) -> None:
    """The digest grows, mechanically."""
    past_to_send(Past(*digested(content)), TrackBudget(400), AT, cold=False)


def folded_by_the_model(content: str) -> None:
    """The digest grows by what the model writes."""
    base, tracks = digested(content)
    digest_call(base, tracks, "claude-haiku-5-5", Thinking())
    written = written_by_model(f"ADD q3 {content}\nDROP 1 q3 {content}\n{content}")
    digest_of(base, tracks, written, TrackBudget(24_000), AT)


def indexed(content: str) -> None:
    """The search index of records."""
    records = (Record("q1", "message", "user", content, AT), record(content), response(content))
    index_of(records, track_of(records, {"q1-t1": content, "q1-r": content}, WHOLE, AT)).spots()


def found(content: str) -> None:
    """The passages that a search shows."""
    records = (Record("q1", "message", "user", content, AT), record(content), response(content))
    track = track_of(records, {"q1-t1": content, "q1-r": content}, WHOLE, AT)
    wanted = frozenset(words(content[:1_000]))
    for passage, whole in zip(passages_of(records, track), records, strict=True):
        excerpt(passage.text, wanted, 240)
        parts = list(windows(passage, whole.content))
        excerpt(max((text for _, text in parts), key=len, default=""), wanted, 240)
    excerpt(content, wanted, 240)


def sent(content: str) -> None:
    """What is sent to the model: a past query, a query and a result."""
    records = (Record("q1", "message", "user", content, AT), record(content), response(content))
    past = track_of(records, {}, WHOLE, AT)
    call = ToolCall("q2-t1", "toolu_1", "kit_echo", MappingProxyType({}))
    content_block = MappingProxyType({"type": "text", "text": content})
    turn = PastTurn((content_block,), (call,), MappingProxyType({"q2-t1": SentResult(content)}))
    files = (TextFile("q2-f1", message_files.clean_name(content), content),)
    build(View((past,), TrackBlock("q2", "user", content, AT), files=files, turns=(turn,)))


def within_budget(content: str) -> None:
    """A query and a result within a budget."""
    call = ToolCall("q2-t1", "toolu_1", "kit_echo", MappingProxyType({}))
    turn = PastTurn((), (call,), MappingProxyType({"q2-t1": SentResult(content)}))
    files = (TextFile("q2-f1", "notes.txt", content),)
    view = fit(View((), TrackBlock("q2", "user", content, AT), files=files), 5_000)
    fit(replace(view, turns=(turn,)), 5_000)


def decided(content: str) -> None:
    """The decision on a model's reply."""
    reply = ModelReply((MappingProxyType({"type": "text", "text": content}),), "end_turn")
    decide(
        reply,
        query=1,
        calls_before=0,
        offered={},
        limit="",
        invalid=lambda *_: "",
        gates=lambda _: Gate(),
        max_tokens=1,
    )


def documents(content: str) -> None:
    """Sections of a documentation page, as text and as JSON, cut and rendered."""
    bounds = Bounds()
    chunks = chunking.chunks_of_text(content, bounds)
    chunking.chunks_of_json(
        {
            "codeSnippets": [{"codeTitle": content, "codeList": [{"code": content, "language": content}]}],
            "infoSnippets": [{"breadcrumb": content, "content": content, "pageId": content}],
        },
        bounds,
    )
    markdown.documentation_result(LibraryMatch("/a/b", content), chunks, ())


def answered(content: str) -> None:
    """The offline model reads a result, an earlier record and a document."""
    outcome = Outcome("kit_echo", {}, content, is_error=False)
    answer.write(Transcript("How do I set this up?", (), (outcome,)), {}, content)
    answer.write(Transcript("When?", (), (), files=(AttachedText("q1-f1", "a.txt", content),)), {}, "")
    answer.write(Transcript("Show the full code", (PastRecord("q1-r", content, whole=True),), ()), {}, "")


def picked(content: str, start: str = "kit_echo a=") -> None:
    """The offline model reads a question of at most 32,000 characters: such a start once, and again and again."""
    named = (
        "count_related_by_name",
        "list_related_by_name",
        "get_node_connections",
        "count_breakdown",
        "find_path",
    )
    courses = ("get_course_outline", "search_course_content", "retrieve_documentation", RETRIEVE_FULL_CONTEXT)
    offered: dict[str, dict[str, Any]] = {name: {} for name in (*named, *courses)}
    offered["kit_echo"] = {"required": ["a"], "properties": {"a": {"type": "integer"}}}
    for question in (start + content, start * (len(content) // 20)):
        calls.pick(Transcript(question[:32_000], (), ()), offered)


SAMPLE_QUESTIONS: Final = (
    "how many assets in ", "list assets in ", "what is connected to ", "breakdown of ", "path from a to ", "how is ",
    "outline of the course on ", "lesson 3 of ", "another course ",
)  # fmt: skip


COURSES: Final = build_index((Course("A course about lessons", "", "", ()),), ())


def course_document(content: str) -> None:
    """A document with it as text, and one with it as title."""
    for text_of_document in (content, f"Course Title: {content}", f"Course Title: A\nLesson 1: {content}"):
        with contextlib.suppress(DocumentRefused):
            parse(text_of_document)


READERS: Final[Mapping[str, Callable[[str], Any]]] = MappingProxyType(
    {
        "neutralise": text.neutralise,
        "one_line": text.one_line,
        "strip_echoes": text.strip_echoes,
        "EchoStripper": in_small_pieces,
        "cut": lambda content: text.cut(content, 1_000, "…"),
        "preview": text.preview,
        "clean": text.clean,
        "readable": text.readable,
        "in_form": partial(text.in_form, "NFKC"),
        "folded_name": text.folded_name,
        "estimate_tokens": text.estimate_tokens,
        "cautious_tokens": text.cautious_tokens,
        "within_tokens": lambda content: text.within_tokens(content, len(content) // 5),
        "tokens_of": lambda content: text.tokens_of(len(content)),
        "a track's block": lambda content: TrackBlock("q1", "user", content, AT).text,
        "data_of": lambda content: data_of(CALL, content),
        "history_tokens": lambda content: history_tokens((record(content),), 100_000),
        "contents_of": contents_of,
        "an extract": extracted,
        "a file's name": message_files.clean_name,
        "whether it is text": lambda content: message_files.not_text(content.encode()),
        "whether it is a type of text": message_files.is_text_type,
        "the summarised track": summarised_track,
        "a digest": folded,
        "a digest by the model": folded_by_the_model,
        "what is searched": indexed,
        "what a search shows": found,
        "what is sent": sent,
        "what is sent within a budget": within_budget,
        "the meaning of a reply": decided,
        "title_of": title_of,
        "an MCP result": lambda content: tool_result(
            CallToolResult(content=[TextContent(type="text", text=content)])
        ),
        "sections of documentation": chunking.sections,
        "documentation": documents,
        "one_line of a heading": lambda content: chunking.one_line(content, 200),
        "web_address": lambda content: chunking.web_address(content, 2_000),
        "words": words,
        "asked": asked,
        "words of a conversation": words_of_text,
        "a search of conversations": lambda content: has_words(
            searched_words(content), folded_text(content), set()
        ),
        "tagged": lambda content: boundaries.tagged("document", content, source=content),
        "a course document": course_document,
        "chunks of a course": lambda content: list(pieces(content)),
        "the words of chunks": lambda content: postings_of([content]),
        "a course's name": lambda content: resolve(COURSES, content),
        "offline: without_ids": transcript.without_ids,
        "offline: sections": prose.sections,
        "offline: sentences": prose.sentences,
        "offline: words": prose.words,
        "offline: extract": lambda content: summary.extract(content, 3),
        "offline: answer": answered,
        "offline: tools": picked,
        "offline: the documentation's questions": lambda content: values.chosen({}, f"<question>{content}"),
        **{f"offline: {start}": partial(picked, start=start) for start in SAMPLE_QUESTIONS},
    }
)


def seconds(reader: Callable[[str], Any], content: str, most: float) -> float:
    """CPU seconds of this thread. What shares the processor makes them more, up to four times as many, and nothing
    makes them fewer: beyond ``most`` the least of five measurements counts."""

    def measured() -> float:
        started = time.thread_time()
        reader(content)
        return time.thread_time() - started

    first = measured()
    return first if first < most else min(first, *(measured() for _ in range(4)))


def repeated(head: str, unit: str, size: int) -> str:
    """The pattern repeated to at least ``size`` characters, with an end that does not match."""
    return head + unit * (size // len(unit) + 1) + "x"


@pytest.mark.parametrize("name", READERS)
def test_time_is_linear_in_the_length(name: str) -> None:
    """Every pattern, and the worst ones at full length."""
    reader = READERS[name]
    for unit in UNITS:
        heads = HEADS
        for size in SIZES:
            most = SIZES[-1] / 65_536
            taken = {head: seconds(reader, repeated(head, unit, size), most) for head in heads}
            head = max(taken, key=taken.__getitem__)
            assert taken[head] < most, (
                f"{taken[head]:.1f} s for {size} characters of {head!r} and then {unit!r}"
            )
            if size == SIZES[-2]:
                heads = (head,)
    for unit in WORST:
        longest = seconds(reader, repeated("[", unit, LONGEST), LONGEST / 52_429)
        assert longest < LONGEST / 52_429, f"{longest:.1f} s for {LONGEST} characters of {unit!r}"


def test_every_function_for_texts_is_tested() -> None:
    """Every public function of `text` is in `READERS`."""
    public = {
        name
        for name, value in vars(text).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == text.__name__
        if inspect.isfunction(value) or inspect.isclass(value)
    }
    assert public <= set(READERS), f"not in READERS: {sorted(public - set(READERS))}"
