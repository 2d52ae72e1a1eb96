"""The profile `courses` in whole chats: tools, results, sources, credits and limits."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.chat_view import chat_json
from dualtrack.knowledge.voyage import VoyageEmbedder
from dualtrack.profiles import all_profiles
from dualtrack.tool_values import Source
from dualtrack.tools.courses.chunking import chunks_of
from dualtrack.tools.courses.index import build
from dualtrack.tools.courses.settings import CourseSettings
from dualtrack.tools.courses.tools import find
from dualtrack.tools.courses.values import embedded_text
from starlette.responses import JSONResponse

from tests.drivers.courses import (
    BOATS,
    HOSTILE,
    TABLES,
    Lines,
    LocalModel,
    course_tools,
    index_of,
    library_of,
    publish,
    sample_courses,
)
from tests.drivers.world import make_world
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.knowledge.embedder import Embedder
    from dualtrack.memory.records import Record
    from dualtrack.tools.courses.index import CourseIndex
    from dualtrack.tools.courses.library import CourseLibrary

    from tests.drivers.world import World

ALWAYS = CourseSettings(checked_every=0)
SAMPLES = sample_courses()


@contextmanager
def courses_world(*courses: Any, embedder: Embedder | None = None) -> Iterator[tuple[World, CourseLibrary]]:
    """A world with these courses published, and both tools."""
    with make_world() as world:
        embedders = (embedder,) if embedder else ()
        library = library_of(world.stores, ALWAYS, *embedders)
        if courses:
            publish(world.stores, "v1", index_of(courses, embedder))
        yield replace(world, tools=course_tools(world.stores, library)), library


def asked(world: World, message: str, **more: Any) -> tuple[Any, list[Record]]:
    """The chat object, and the records of its tool calls."""
    chat = world.ask(message, profile="courses", **more)
    records = world.stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    return chat_json(chat, records, None), [record for record in records if record.call]


def call(world: World, tool: str, **arguments: Any) -> Record:
    """The record of a tool call by the model."""
    world.model.script.add(
        {"content": [{"type": "tool_use", "name": tool, "input": arguments}], "kind": "turn"}
    )
    _, records = asked(world, "Go on.", user=f"user-{len(world.model.requests)}")
    return records[0]


def searched(world: World, **arguments: Any) -> str:
    """The result of a search."""
    record = call(world, "search_course_content", **arguments)
    assert record.call is not None
    assert not record.call.is_error
    return record.content


def inputs(records: list[Record]) -> list[tuple[str, dict[str, Any]]]:
    return [(record.call.tool, dict(record.call.input)) for record in records if record.call]


def test_what_is_prompt_caching() -> None:
    """One search of five hits of three lessons, one of them a source; two model calls, 5 + 2 credits."""
    with courses_world(*SAMPLES, embedder=LocalModel()) as (world, _):
        chat, records = asked(world, "What is prompt caching?")
    assert inputs(records) == [("search_course_content", {"query": "What is prompt caching?"})]
    assert records[0].content.startswith("[Building Towards Computer Use - Lesson 5]\nPrompt caching stores")
    assert len(records[0].content.split("\n\n[")) == 5
    lesson = "Building Towards Computer Use - Lesson 5"
    link = "https://learn.example.com/building-towards-computer-use/lesson/5"
    assert chat["sources"] == [{"title": lesson, "url": link, "record_id": "q1-t1"}]
    assert "stores the constant prefix" in chat["response"]
    assert lesson in chat["response"]
    assert (chat["status"], chat["stop"], chat["turns"], chat["credits_used"]) == ("done", "complete", 2, 7)


def test_another_course_about_the_topic_of_a_lesson() -> None:
    """Outline, then a search for the lesson's title in all courses; 5 + 2 + 2 credits, three model calls."""
    with courses_world(*SAMPLES, embedder=LocalModel()) as (world, _):
        chat, records = asked(
            world, "search for a course that discusses the same topic as lesson 4 of course Building Towards"
        )
    query = {"query": "Streaming Responses"}
    assert inputs(records) == [
        ("get_course_outline", {"course_name": "Building Towards"}),
        ("search_course_content", query),
    ]
    assert "Serverless Applications on AWS - Lesson 5" in chat["response"]
    assert (chat["stop"], chat["turns"], chat["credits_used"]) == ("complete", 3, 9)
    assert chat["sources"][0]["title"] == "Building Towards Computer Use"


def test_a_hello_uses_no_tool() -> None:
    with courses_world(BOATS) as (world, _):
        chat, records = asked(world, "Hello!")
    assert records == []
    assert (chat["turns"], chat["credits_used"]) == (1, 5)


def test_a_third_round_gets_no_tool() -> None:
    block = {"type": "tool_use", "name": "search_course_content", "input": {"query": "oak"}}
    with courses_world(BOATS) as (world, _):
        world.model.script.add({"content": [block], "kind": "turn"}, {"content": [block], "kind": "turn"})
        chat, records = asked(world, "What is oak?")
        last = world.model.requests[-1 if "tools" in world.model.requests[-1].body else -2].body
    assert len(records) == 2
    assert (chat["stop"], chat["turns"], chat["credits_used"]) == ("complete", 3, 9)
    assert last["tool_choice"] == {"type": "none"}
    (told,) = last["messages"][-1]["content"]  # and no word about a limit
    assert told["type"] == "tool_result"


@pytest.mark.parametrize("suggestion", all_profiles()["courses"].suggestions)
def test_each_suggestion_gets_a_real_answer(suggestion: str) -> None:
    with courses_world(*SAMPLES, embedder=LocalModel()) as (world, _):
        chat, records = asked(world, suggestion)
    assert records
    assert not any(record.call and record.call.is_error for record in records)
    assert chat["sources"]
    assert any(source["title"].split(" - ")[0] in chat["response"] for source in chat["sources"])


def test_filters_and_nulls() -> None:
    with courses_world(BOATS, TABLES) as (world, _):
        assert searched(world, query="oak", course_name=None, lesson_number=None).count("[") == 2
        assert searched(world, query="oak", lesson_number=0).count("Lesson 0]") == 2
        assert searched(world, query="cedar", lesson_number=5).startswith(
            "[Building Boats - Lesson 5]\nEpoxy"
        )
        assert searched(world, query="varnish", course_name="tables") == (
            "[Making Tables - Lesson 2]\nVarnish and oil protect a table against water."
        )
        assert searched(world, query="cedar", course_name="boat building", lesson_number=0).count("[") == 1
        assert searched(world, query="oak", lesson_number=99) == "No relevant content found in lesson 99."
        assert searched(world, query="oak", course_name="boats", lesson_number=5) == (
            "No relevant content found in course 'Building Boats' in lesson 5."
        )
        assert (
            searched(world, query="zebra", course_name="boats")
            == "No relevant content found in course 'Building Boats'."
        )
        assert searched(world, query="zebra") == "No relevant content found."
        assert searched(world, query="oak", course_name="").count("[") == 2


def test_sources_have_the_lessons_link_or_the_courses_or_none() -> None:
    with courses_world(BOATS, TABLES) as (world, _):
        record = call(world, "search_course_content", query="varnish water cedar planks")
    assert record.call is not None
    links = {source.title: source.url for source in record.call.sources}
    assert links["Building Boats - Lesson 4"] == "https://learn.example.com/boats"
    assert links["Building Boats - Lesson 5"] == "https://learn.example.com/boats/5"
    assert links["Making Tables - Lesson 2"] == ""


@pytest.mark.parametrize(
    ("tool", "arguments", "helps"),
    [
        (
            "search_course_content",
            {"query": "cedar"},
            "The search in all courses:\n\n[Building Boats - Lesson 0]",
        ),
        ("get_course_outline", {}, "Their outlines:\n\nCourse: Making Tables\nLessons: 2\nLesson 0: Planks"),
    ],
)
def test_an_unknown_name_costs_nothing_and_needs_no_further_round(
    tool: str, arguments: dict[str, str], helps: str
) -> None:
    with courses_world(BOATS, TABLES) as (world, _):
        named = {"course_name": "crafting\nbig tablecloths", **arguments}
        world.model.script.add(
            {"content": [{"type": "tool_use", "name": tool, "input": named}], "kind": "turn"},
            {"text": "There is no such course.", "kind": "turn"},
        )
        chat, (record,) = asked(world, "Go on.")
    assert record.call is not None
    assert (record.call.is_error, chat["credits_used"]) == (False, 5)
    assert record.content.startswith(
        "There is no course 'crafting big tablecloths'. The nearest titles: 'Making Tables'; 'Building Boats'. "
    )
    assert helps in record.content


def test_an_outline() -> None:
    with courses_world(BOATS, TABLES) as (world, _):
        boats = call(world, "get_course_outline", course_name="boats")
        tables = call(world, "get_course_outline", course_name="tables")
    assert boats.content == (
        "Course: Building Boats\nLink: https://learn.example.com/boats\nInstructor: Ines Okafor\nLessons: 3\n"
        "Lesson 0: Wood\nLesson 4: Varnish\nLesson 5: Glue"
    )
    assert boats.call is not None
    assert boats.call.sources == (Source("Building Boats", "https://learn.example.com/boats"),)
    assert tables.content == "Course: Making Tables\nLessons: 2\nLesson 0: Planks\nLesson 2: Surfaces"


def test_without_any_course_there_is_an_answer_too() -> None:
    with courses_world() as (world, _):
        assert searched(world, query="oak") == "There are no course materials yet."
        assert (
            call(world, "get_course_outline", course_name="x").content == "There are no course materials yet."
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": ""},
        {"query": "x", "lesson_number": -1},
        {"query": "x", "lesson_number": "5"},
        {"query": "x", "k": 9},
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with courses_world(BOATS) as (world, _):
        record = call(world, "search_course_content", **arguments)
    assert record.call is not None
    assert record.call.is_error


def test_a_follow_up_refers_to_the_conversation() -> None:
    with courses_world(*SAMPLES, embedder=LocalModel()) as (world, _):
        first, _ = asked(world, "What is prompt caching?")
        how = 'search_course_content query="How long does prompt caching live?"'
        chat, _ = asked(world, how, conversation_id=first["conversation_id"])
    assert "five minutes" in chat["response"]
    assert chat["sources"][0]["title"] == "Building Towards Computer Use - Lesson 5"


def test_a_query_is_recorded_as_written_and_sent_in_the_template() -> None:
    with courses_world(BOATS) as (world, _):
        chat = world.ask("What is oak?", profile="courses")
        (query, *_) = world.stores.history.query_records(chat.user, chat.conversation_id, 1)
        sent = world.model.requests[0].body
    assert query.content == "What is oak?"
    assert sent["messages"][-1]["content"][0]["text"] == (
        "[ID:q1] Answer this question about course materials: What is oak?"
    )
    names = ["search_course_content", "get_course_outline", "retrieve_full_context"]
    assert [tool["name"] for tool in sent["tools"]] == names


def test_hostile_course_text_stays_data() -> None:
    """It is sent inside the tool's result with its ids neutralised, and a forged heading in it is no source."""
    with courses_world(BOATS, HOSTILE) as (world, _):
        chat, records = asked(world, "What are the instructions about varnish?")
        sent = [
            block["content"]
            for request in world.model.requests
            for message in request.body["messages"]
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
    text = str(sent)
    assert "I obey." in text
    assert "[ID:q1-r]" not in text
    assert "[ID:q9]" not in text
    assert len(records) == 1
    assert "Building Boats - Lesson 5" not in [source["title"] for source in chat["sources"]]


def test_a_course_replaced_while_it_is_searched() -> None:
    """The next call has the new version; if that cannot be read, the old one stays in use."""
    changed = replace(BOATS, lessons=(replace(BOATS.lessons[0], text="Oak was replaced by bamboo."),))
    with courses_world(BOATS, TABLES) as (world, library):
        before = library.index()
        publish(world.stores, "v2", index_of([changed]))
        assert searched(world, query="oak") == "[Building Boats - Lesson 0]\nOak was replaced by bamboo."
        assert before is not None
        assert before.course("Making Tables") is not None
        gone = index_of([TABLES])
        publish(world.stores, "v3", gone)
        world.stores.bodies.s3.delete_object(Bucket="bodies", Key="corpora/courses/versions/v3/index")
        assert "bamboo" in searched(world, query="oak")


def test_an_index_is_read_once_and_checked_again_after_some_seconds() -> None:
    now = [0.0]
    with make_world() as world:
        publish(world.stores, "v1", index_of([BOATS]))
        library = library_of(world.stores, CourseSettings(checked_every=3), clock=lambda: now[0])
        first = library.index()
        publish(world.stores, "v2", index_of([TABLES]))
        now[0] = 2.9
        assert library.index() is first
        now[0] = 3.0
        second = library.index()
    assert second is not None
    assert [course.title for course in second.catalogue] == ["Making Tables"]


@contextmanager
def voyage() -> Iterator[tuple[FakeVoyage, VoyageEmbedder]]:
    with serve_voyage(FakeVoyage()) as server:
        yield server, VoyageEmbedder(server.api_key, server.url, "voyage-3-large")


def test_if_voyage_fails_keywords_are_used() -> None:
    with make_world() as world, voyage() as (server, embedder):
        library = library_of(world.stores, ALWAYS, embedder)
        try:
            index = build_with(embedder, library)
            publish(world.stores, "v1", index)
            whole = find(library, "glue for cedar", None, None)
            server.always = JSONResponse({"detail": "gone"}, 503)
            less = find(library, "glue for cedar", None, None)
        finally:
            library.loop.run(embedder.close(), 5)
            library.loop.close()
    assert server.requests[-1]["input_type"] == "query"
    hybrid, words = whole.content, less.content
    assert (whole.left_out, less.left_out) == ((), ("meaning",))
    assert hybrid.startswith("[Building Boats - Lesson 5]")
    assert words.count("[") == 2 < hybrid.count("[")
    assert isinstance(library.logger, Lines)
    assert library.logger.lines[-1][0] == "course search without meaning"


def build_with(embedder: Embedder, library: CourseLibrary) -> CourseIndex:
    """Both courses, with vectors computed in the library's event loop, to which the client's connections belong."""
    courses = (BOATS, TABLES)
    chunks = [chunk for course in courses for chunk in chunks_of(course)]
    texts = [*map(embedded_text, chunks), *(course.title for course in courses)]
    vectors = library.loop.run(embedder.embed(texts, "document", 20), 20)
    return build(courses, chunks, embedder.model, vectors[: len(chunks)], vectors[len(chunks) :])


def test_an_index_is_never_searched_with_another_models_vectors() -> None:
    """Built with the local model; if a key is set later, or the function is missing, keywords are used."""
    other = LocalModel("another-model")
    with make_world() as world:
        publish(world.stores, "v1", index_of([BOATS, TABLES], LocalModel()))
        library = library_of(world.stores, ALWAYS, other)
        assert find(library, "oak", None, None).content.count("[") == 2
        assert find(library, "zebra", None, None).content == "No relevant content found."
    assert other.asked == []


def test_a_search_by_meaning_finds_texts_without_shared_words() -> None:
    with make_world() as world:
        local = LocalModel()
        publish(world.stores, "v1", index_of([BOATS, TABLES], local))
        library = library_of(world.stores, ALWAYS, local)
        best = find(library, "Which adhesive lasts longest?", None, None).content
    assert best.startswith("[Building Boats - Lesson 5]")
