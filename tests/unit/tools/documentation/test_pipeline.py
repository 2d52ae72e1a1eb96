"""The whole documentation search against strict loopback servers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from dualtrack.storage.cache import CacheStore

from tests.drivers.documentation_world import LIBRARY, PATIENT, QUESTION, World, documentation_world
from tests.servers.context7 import FakeContext7, library, snippet

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[World]:
    with documentation_world() as new_world:
        yield new_world


def test_the_example_question_gives_sections_with_their_sources(world: World) -> None:
    result = world.ask()

    assert not result.is_error
    assert result.content.count("<document index=") == 6
    assert "oauth.setup()" in result.content
    assert result.sources[0].url.startswith("https://docs.example.com/")
    assert len({source.url for source in result.sources}) == len(result.sources) == 6


def test_a_search_calls_claude_twice_and_context7_once_per_phrasing(world: World) -> None:
    world.ask()

    assert [search["libraryName"] for search in world.context7.searches()] == ["Twitter Ads API"]
    contexts = world.context7.contexts()
    assert len(contexts) == len({context["query"] for context in contexts}) == 3
    assert {context["libraryId"] for context in contexts} == {LIBRARY}
    assert len(world.claude.asked("topic")) == len(world.claude.asked("ranking")) == 1
    assert world.claude.asked("library_id") == []


def test_at_most_thirty_excerpts_are_reranked_and_the_question_is_the_original(world: World) -> None:
    world.ask()

    (prompt,) = world.claude.asked("ranking")
    assert QUESTION in prompt
    assert prompt.count("<excerpt ") == 30


def test_the_rerank_decides_which_sections_are_shown(world: World) -> None:
    world.claude.ranking = {"ranking": [30, 29]}
    last_first = world.ask().content
    (prompt,) = world.claude.asked("ranking")

    thirtieth = prompt.split('<excerpt number="30">\n')[1].splitlines()[0]
    first = prompt.split('<excerpt number="1">\n')[1].splitlines()[0]
    assert last_first.index(f"### {thirtieth}") < last_first.index(f"### {first}")


def test_a_search_without_the_rerank_shows_the_fused_order(world: World) -> None:
    world.claude.ranking = {"ranking": [30, 29]}
    reranked = world.ask()
    before = len(world.claude.requests)
    shown = world.ask(rerank=False)

    assert len(world.claude.requests) == before, "the question is cached, and nothing ranks"
    assert "rerank" not in world.outcomes()
    assert shown.left_out == ()
    assert shown.sources != reranked.sources
    world.claude.ranking = {"ranking": []}
    assert world.ask().sources == shown.sources, "what a failed rerank leaves"


def test_the_same_question_again_makes_no_context7_and_no_embedding_call(world: World) -> None:
    first = world.ask()
    before = (len(world.context7.requests), len(world.voyage.requests), len(world.claude.requests))
    second = world.ask()

    assert second == first
    assert (len(world.context7.requests), len(world.voyage.requests)) == before[:2]
    assert len(world.claude.requests) == before[2] + 1, "only the rerank"


def test_cached_results_expire(world: World) -> None:
    world.ask()
    before = len(world.context7.requests)
    world.now[0] += world.deps.settings.response_ttl + 1
    world.ask()

    assert len(world.context7.requests) == 2 * before


def test_another_question_embeds_only_sections_it_has_not_seen(world: World) -> None:
    world.ask()
    world.ask("How are OAuth requests to Twitter ads signed?")

    documents = world.voyage.texts("document")
    assert len(documents) == len(set(documents))


def test_no_word_of_the_question_is_in_the_cache_keys_or_plan(world: World) -> None:
    world.ask("How does AcmeSecretProject set up OAuth for Twitter ads?")

    keys = json.dumps([item["pk"] for item in world.items()])
    assert "AcmeSecretProject" not in keys
    assert all(int(item["ttl"]["N"]) > world.now[0] for item in world.items())
    cache = world.deps.cache
    assert isinstance(cache, CacheStore)
    plans = cache.get_many(item["pk"]["S"] for item in world.items() if item["pk"]["S"].startswith("plan#"))
    assert len(plans) == 1


def test_without_a_clear_winner_claude_chooses_the_library(world: World) -> None:
    world.context7.libraries = [
        library("/a/twitter-ads", "Twitter Ads"),
        library("/b/twitter-ads", "Twitter Ads"),
    ]
    world.context7.sections["/b/twitter-ads"] = world.context7.sections[LIBRARY]
    world.claude.choice = {"library_id": "/b/twitter-ads"}
    world.ask()

    assert {context["libraryId"] for context in world.context7.contexts()} == {"/b/twitter-ads"}
    assert len(world.claude.asked("library_id")) == 1


def test_more_phrasings_are_sent_only_while_they_find_new_sections() -> None:
    ways: dict[str, int] = {}

    def growing(query: str) -> list[dict[str, object]]:
        number = ways.setdefault(query, len(ways))
        return [snippet(f"Part {number}-{n}", f"Text {number} {n}") for n in range(6)]

    few = [snippet(f"Only {n}", f"The same text {n}") for n in range(9)]
    for sections, asked, shown in ((growing, 5, 30), (lambda _: few, 3, 9)):
        context7 = FakeContext7(libraries=[library(LIBRARY, "Twitter Ads API")], sections={LIBRARY: sections})
        with documentation_world(context7) as world:
            result = world.ask()
            (prompt,) = world.claude.asked("ranking")
            assert len(context7.contexts()) == asked
            assert prompt.count("<excerpt ") == shown
            assert ("only 9 distinct sections" in result.content) == (shown == 9)


def test_sections_that_all_fit_are_shown_without_reranking() -> None:
    few = [snippet(f"Only {n}", f"The OAuth text {n}") for n in range(4)]
    context7 = FakeContext7(
        libraries=[library(LIBRARY, "Twitter Ads API")], sections={LIBRARY: lambda _: few}
    )
    with documentation_world(context7) as world:
        result = world.ask()

        assert result.content.count("<document index=") == 4
        assert "only 4 distinct sections" in result.content
        assert world.claude.asked("ranking") == []


@pytest.mark.parametrize("changes", [{"fusion": "min_max_sum"}, {"distance": "euclidean"}, {"top_final": 2}])
def test_the_settings_are_obeyed(changes: dict[str, object]) -> None:
    settings = replace(PATIENT, **changes)  # type: ignore[arg-type]
    with documentation_world(settings=settings) as world:
        result = world.ask()

        assert result.content.count("<document index=") == settings.top_final
        assert world.outcomes()["vectors"] == "ok"


def test_every_stage_is_timed_and_no_text_is_logged(world: World) -> None:
    world.ask()

    assert {"understand", "search", "context", "keywords", "embed", "fusion", "rerank", "format"} <= set(
        world.outcomes()
    )
    assert "OAuth" not in json.dumps([extra for _, extra in world.logger.lines])


def test_queries_are_cut_to_the_limit_of_context7(world: World) -> None:
    assert not world.ask("OAuth for Twitter ads " + "x" * 2_000).is_error
    assert world.ask("  \n ").content == "Tool execution failed: the query is empty"


FILLERS = {
    f"Über {n}": f"Rücklauf und Öffnung Nummer {n}; 系统设置第{n}章; การตั้งค่าระบบ {n}; İzmir {n}"
    for n in range(12)
}
TALKS = {
    "Überdruckventil": "Das Überdruckventil öffnet bei acht Bar.",
    "数据库备份": "如何备份数据库：使用导出命令。",
    "Yedekleme": "İstanbul sunucusunda yedekleme her gece yapılır.",
    "ค่าเฉลี่ย": "คำนวณค่าเฉลี่ยของข้อมูล",
}


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("uberdruckventil", "Überdruckventil"),
        ("怎么备份数据库", "数据库备份"),
        ("istanbul", "Yedekleme"),
        ("ค่าเฉลี่ย", "ค่าเฉลี่ย"),
    ],
)
def test_a_question_in_any_language_puts_its_section_first(question: str, title: str) -> None:
    sections = [snippet(name, text) for name, text in {**FILLERS, **TALKS}.items()]
    context7 = FakeContext7(
        libraries=[library("/a/b", "Kit", trustScore=9)], sections={"/a/b": lambda _: sections}
    )
    with documentation_world(context7, voyage_key="") as world:
        shown = world.ask(f"Kit: {question}", rerank=False).content
    assert shown.split("### ")[1].splitlines()[0] == title
