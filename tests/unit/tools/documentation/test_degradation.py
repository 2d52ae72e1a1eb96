"""Every stage of the documentation search when its service fails."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.tools.documentation.cache import embedding_key
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from tests.drivers.documentation_world import (
    LIBRARY,
    PATIENT,
    QUESTION,
    World,
    ads_sections,
    documentation_world,
)
from tests.servers.context7 import FakeContext7, error, library
from tests.servers.voyage import embeddings_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from dualtrack.tools.documentation.settings import RetrievalSettings
    from starlette.requests import Request


@pytest.fixture
def world() -> Iterator[World]:
    with documentation_world() as new_world:
        yield new_world


async def never(_: Request) -> Response:
    """A server that does not answer while the client waits."""
    await asyncio.sleep(60)
    return Response()


def impatient(**limits: float) -> RetrievalSettings:
    """Short limits, so that the test of a silent server is quick."""
    return replace(PATIENT, limits=replace(PATIENT.limits, least=0.01, **limits))


# Context7: search and context


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (error(401, "invalid_api_key"), "does not serve this deployment"),
        (error(402, "spending_limit_exceeded"), "spending limit"),
        (error(400, "validation_error"), "status 400"),
        (error(429, "rate_limited", {"Retry-After": "120"}), "tried again in 120 s"),
        (error(500, "internal"), "status 500"),
        (error(503, "search_failed"), "status 503"),
        (Response("{", media_type="application/json"), "not a list of libraries"),
        (HTMLResponse("<p>Sign in to the network</p>"), "a web page came"),
        (PlainTextResponse("\n<!DOCTYPE html>\n<title>Proxy</title>"), "a web page came"),
        (JSONResponse({"results": "none"}), "not a list of libraries"),
        (JSONResponse({"results": []}), "knows no library"),
        (Response(status_code=302, headers={"Location": "/elsewhere"}), "status 302"),
    ],
)
def test_a_search_that_fails_is_an_error_that_says_why(world: World, answer: Response, reason: str) -> None:
    world.context7.search_answers.extend([answer] * 4)
    result = world.ask()

    assert (result.is_error, result.charged) == (True, False)
    assert result.content.startswith("Tool execution failed: ")
    assert reason in result.content
    assert world.context7.paths == []
    assert world.items() == []


@pytest.mark.parametrize(
    "answer",
    [error(429, "rate_limited", {"Retry-After": "0"}), error(500, "internal"), error(504, "timeout")],
)
def test_a_busy_context7_is_retried_once(world: World, answer: Response) -> None:
    world.context7.search_answers.append(answer)

    assert not world.ask().is_error
    assert len(world.context7.searches()) == 2


@pytest.mark.parametrize("status", [202, 403, 404, 422])
def test_if_a_library_is_unavailable_the_next_is_used(world: World, status: int) -> None:
    world.context7.context_answers.extend([error(status, "library_not_available")] * 3)
    result = world.ask()

    assert not result.is_error
    assert "/someone/ads-widgets" in result.content


def test_after_an_empty_answer_the_next_library_is_used(world: World) -> None:
    world.context7.context_answers.extend([PlainTextResponse("")] * 3)

    assert "/someone/ads-widgets" in world.ask().content


def test_if_no_library_is_available_the_first_reason_is_reported(world: World) -> None:
    world.context7.always_context = error(202, "library_not_finalized")
    result = world.ask()

    assert result.is_error
    assert "still indexing" in result.content
    assert len({context["libraryId"] for context in world.context7.contexts()}) == 3


def test_a_moved_library_is_followed_by_the_id_in_the_body(world: World) -> None:
    moved = error(301, "library_redirected", redirectUrl="/new/home")
    world.context7.sections["/new/home"] = ads_sections
    del world.context7.sections[LIBRARY]
    world.context7.context_answers.extend([moved] * 3)
    result = world.ask()

    assert not result.is_error
    assert "/new/home" in result.content


@pytest.mark.parametrize(
    "target", ["https://evil.example/steal", "//evil.example/x", "/../../x/y", "", "/loop/loop"]
)
def test_a_move_to_nowhere_is_not_followed(world: World, target: str) -> None:
    world.context7.always_context = error(301, "library_redirected", redirectUrl=target)
    result = world.ask()

    assert result.is_error
    assert "moved" in result.content
    assert world.context7.paths == []


def test_after_malformed_json_text_is_requested(world: World) -> None:
    async def broken_as_json(request: Request) -> Response:
        if request.query_params["type"] == "json":
            return Response('{"codeSnippets": [', media_type="application/json")
        return world.context7.data(request)

    world.context7.always_context = broken_as_json
    result = world.ask()

    assert not result.is_error
    assert "oauth.setup()" in result.content
    requests = [(context["query"], context["type"]) for context in world.context7.contexts()]
    phrasings = {query for query, _ in requests}
    assert sorted(requests) == sorted((query, kind) for query in phrasings for kind in ("json", "txt"))


def test_text_instead_of_json_is_read_as_text(world: World) -> None:
    world.context7.always_context = PlainTextResponse(
        "### OAuth\n\nSource: https://docs.example.com/oauth\n\nSet it up.\n\n"
        + "-" * 32
        + "\n\n### Other\n\nText."
    )
    result = world.ask()

    assert result.content.count("<document index=") == 2
    assert result.sources[0].url == "https://docs.example.com/oauth"


@pytest.mark.parametrize(
    "answer",
    [
        HTMLResponse("<h1>502 Bad Gateway</h1>"),
        PlainTextResponse("<html><body>You are offline"),
        PlainTextResponse(" \n"),
        JSONResponse({"error": "upstream"}),
    ],
)
def test_what_is_no_documentation_is_an_error_that_costs_nothing_and_is_not_kept(
    world: World, answer: Response
) -> None:
    world.context7.context_answers.extend([answer] * 30)
    result = world.ask()

    assert (result.is_error, result.charged, result.sources) == (True, False, ())
    world.context7.context_answers.clear()
    again = world.ask()
    assert (again.is_error, again.charged) == (False, True)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_read(world: World, encoding: str) -> None:
    text = "### Sign in\n\nSource: https://example.com/sign\n\nÜberall with OAuth for Twitter ads."
    world.context7.context_answers.extend(
        [Response(text.encode(encoding), media_type="text/plain; charset=utf-8")] * 30
    )
    result = world.ask()

    assert "Überall with OAuth" in result.content
    assert [source.title for source in result.sources] == ["Sign in"]


def test_a_failed_phrasing_is_left_out_and_the_result_is_not_cached(world: World) -> None:
    world.context7.context_answers.append(error(402, "spending_limit_exceeded"))

    assert not world.ask().is_error
    before = len(world.context7.contexts())
    world.ask()
    assert len(world.context7.contexts()) == before + 1, "only the failed phrasing is requested again"


@pytest.mark.parametrize("where", ["search_answers", "context_answers"])
def test_a_silent_context7_is_an_error_within_the_limit(where: str) -> None:
    with documentation_world(settings=impatient(search=0.2, context=0.2)) as world:
        getattr(world.context7, where).extend([never] * 3)
        result = world.ask()

        assert result.is_error
        assert "took longer than it may" in result.content


def test_the_whole_search_ends_within_its_limit_whatever_the_stages_use() -> None:
    settings = impatient(total=0.4, reserve=0.0)
    with documentation_world(settings=settings) as world:
        world.context7.context_answers.extend([never] * 3)

        assert world.ask().is_error


def test_an_unreachable_context7_is_an_error() -> None:
    with documentation_world() as world:
        world.deps.context7._http.base_url = "http://127.0.0.1:9"

        assert "cannot be reached" in world.ask().content


def test_a_body_over_the_limit_is_not_read_to_its_end(world: World) -> None:
    world.context7.always_context = PlainTextResponse("x" * 5_000_000)

    assert "more than can be read" in world.ask().content


# Voyage

VOYAGE_FAILURES: list[Any] = [
    JSONResponse({"detail": "bad"}, status_code=400),
    JSONResponse({"detail": "limit"}, status_code=429, headers={"Retry-After": "30"}),
    JSONResponse({"detail": "down"}, status_code=500),
    Response("<html>", status_code=503),
    Response("{", media_type="application/json"),
    JSONResponse({"object": "list", "data": [], "model": "m", "usage": {"total_tokens": 0}}),
    JSONResponse({"surprise": True}),
    JSONResponse(embeddings_body([[1.0, 0.0]] * 2)),
    JSONResponse(embeddings_body([[float("nan"), 1.0]])),
    RedirectResponse("/trap", status_code=307),
]


@pytest.mark.parametrize("answer", VOYAGE_FAILURES)
def test_without_embeddings_only_keywords_rank(world: World, answer: Response) -> None:
    world.voyage.always = answer
    result = world.ask()

    assert not result.is_error
    assert "oauth.setup()" in result.content
    assert "vectors" not in world.outcomes() or world.outcomes()["vectors"] != "ok"
    assert world.outcomes()["embed"] != "ok"
    assert world.voyage.paths == [], "a redirect is not followed"


def test_a_silent_voyage_is_not_waited_for() -> None:
    with documentation_world(settings=impatient(embed=0.2)) as world:
        world.voyage.always = never

        assert "oauth.setup()" in world.ask().content
        assert world.outcomes()["embed"] != "ok"


@pytest.mark.parametrize("key", ["", "pa-wrong"])
def test_without_a_voyage_key_or_with_a_wrong_one_keywords_rank(key: str) -> None:
    with documentation_world(voyage_key=key) as world:
        assert "oauth.setup()" in world.ask().content
        assert world.voyage.requests == []


def test_embeddings_of_different_lengths_are_not_compared(world: World) -> None:
    world.voyage.embed = lambda texts, kind: [[1.0, 2.0] if kind == "query" else [1.0, 2.0, 3.0]] * len(texts)

    assert not world.ask().is_error
    assert world.outcomes()["embed"] == "embeddings of different lengths"


# Claude

CLAUDE_FAILURES: list[Any] = [
    JSONResponse({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, status_code=529),
    JSONResponse({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}, status_code=429),
    JSONResponse(
        {"type": "error", "error": {"type": "authentication_error", "message": "x"}}, status_code=401
    ),
    Response("<html>", status_code=500),
    Response("{", media_type="application/json"),
    "not JSON at all",
    '{"something": "else"}',
    RedirectResponse("/trap", status_code=307),
]


@pytest.mark.parametrize("answer", CLAUDE_FAILURES)
def test_without_claude_rules_and_the_fused_order_are_used(world: World, answer: Any) -> None:
    world.claude.answers.extend([answer] * 4)
    result = world.ask()

    assert not result.is_error
    assert [search["libraryName"] for search in world.context7.searches()] == ["Twitter ads"]
    assert "oauth.setup()" in result.content
    assert world.outcomes()["understand"] != "ok"
    assert world.outcomes()["rerank"] != "ok"
    assert world.claude.paths == [], "a redirect is not followed"


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
def test_an_unfinished_answer_of_claude_is_not_used(world: World, stop: str) -> None:
    world.claude.stop_reason = stop

    assert not world.ask().is_error
    assert stop in world.outcomes()["rerank"]


@pytest.mark.parametrize("ranking", [[], [0, 99, -1], [1000]])
def test_a_ranking_with_unknown_numbers_leaves_the_fused_order(world: World, ranking: list[int]) -> None:
    world.claude.ranking = {"ranking": ranking}

    assert world.ask().content.count("<document index=") == 6
    assert world.outcomes()["rerank"] == "the ranking names none of the excerpts"


def test_a_choice_not_on_the_list_falls_back_to_the_best_score(world: World) -> None:
    world.context7.libraries = [library(LIBRARY, "Twitter Ads"), library("/b/twitter-ads", "Twitter Ads")]
    world.claude.choice = {"library_id": "/evil/elsewhere"}

    assert not world.ask().is_error
    assert {context["libraryId"] for context in world.context7.contexts()} == {LIBRARY}


def test_a_silent_claude_is_not_waited_for() -> None:
    with documentation_world(settings=impatient(understand=0.2, rerank=0.2)) as world:
        world.claude.answers.extend([never] * 2)

        assert "oauth.setup()" in world.ask().content


def test_a_very_slow_stream_of_claude_is_not_waited_for() -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": '{"library": "Too late", "topic": "x"}'}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }

    async def trickle() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" "
            await asyncio.sleep(0.05)
        yield json.dumps(message).encode()

    async def slow(_: Request) -> Response:
        return StreamingResponse(trickle(), media_type="application/json")

    with documentation_world(settings=impatient(understand=0.3)) as world:
        world.claude.answers.append(slow)

        assert not world.ask().is_error
        assert world.outcomes()["understand"] != "ok"
        assert [search["libraryName"] for search in world.context7.searches()] == ["Twitter ads"]


def test_without_a_configured_model_no_model_is_called() -> None:
    with documentation_world(claude=False) as world:
        assert "oauth.setup()" in world.ask().content
        assert world.claude.requests == []


def test_a_result_without_claude_is_not_cached_as_the_answer(world: World) -> None:
    world.claude.answers.append(CLAUDE_FAILURES[0])
    world.ask()
    world.ask()

    assert [search["libraryName"] for search in world.context7.searches()] == [
        "Twitter ads",
        "Twitter Ads API",
    ]


# The cache


def test_without_its_table_the_search_goes_on(world: World) -> None:
    world.dynamodb.delete_table(TableName="cache")

    assert "oauth.setup()" in world.ask().content
    assert world.outcomes()["recall"] == "cache: ResourceNotFoundException"


def test_damaged_entries_are_fetched_again(world: World) -> None:
    first = world.ask()
    for item in world.items():
        if not item["pk"]["S"].startswith("embedding#"):
            world.dynamodb.put_item(TableName="cache", Item={**item, "body": {"B": b"\x00damaged"}})

    assert world.ask().sources == first.sources


def test_vectors_of_another_length_are_computed_again(world: World) -> None:
    first = world.ask()
    documents = len(world.voyage.texts("document"))
    size = max(len(item["body"]["B"]) for item in world.items() if item["pk"]["S"].startswith("embedding#"))
    query = embedding_key("voyage-3-large", "query", QUESTION)
    for item in world.items():
        if item["pk"]["S"].startswith("embedding#") and item["pk"]["S"] != query:
            world.dynamodb.put_item(TableName="cache", Item={**item, "body": {"B": b"\0" * (size // 2)}})

    assert world.ask() == first
    assert len(world.voyage.texts("document")) == 2 * documents


def test_if_every_service_fails_nothing_is_raised() -> None:
    with documentation_world(FakeContext7(always_context=error(500, "internal"))) as world:
        world.voyage.always = error(500, "internal")
        world.claude.answers.extend([CLAUDE_FAILURES[0]] * 4)
        world.context7.search_answers.extend([error(500, "internal")] * 4)
        world.dynamodb.delete_table(TableName="cache")

        assert world.ask().is_error


# Metrics


def test_a_complete_search_reports_no_missing_part(world: World) -> None:
    assert world.ask().left_out == ()


def test_each_missing_part_is_reported(world: World) -> None:
    failing = Response(status_code=500)
    world.claude.answers.extend([failing] * 9)
    world.voyage.always = failing
    assert world.ask().left_out == ("meaning", "rerank", "understand")


def test_a_missing_choice_is_reported() -> None:
    twins = FakeContext7(
        libraries=[library(LIBRARY, "Twitter Ads API"), library("/other/ads", "Twitter Ads API")],
        sections={LIBRARY: ads_sections, "/other/ads": ads_sections},
    )
    with documentation_world(twins) as world:
        world.claude.choice = Response(status_code=500)
        assert world.ask().left_out == ("choose",)


@pytest.mark.parametrize(
    ("answer", "reported"), [(error(500, "internal"), ("context7",)), (JSONResponse({"results": []}), ())]
)
def test_unavailable_documentation_is_reported_but_an_unknown_library_is_not(
    world: World, answer: Response, reported: tuple[str, ...]
) -> None:
    world.context7.search_answers.extend([answer] * 4)
    assert world.ask().left_out == reported


def test_a_search_without_a_key_is_not_degraded() -> None:
    with documentation_world(voyage_key="", claude=False) as world:
        assert world.ask().left_out == ()
