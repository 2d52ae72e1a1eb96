"""The index: saved and loaded unchanged; keyword scores as in documentation search; filters before ranking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dualtrack.knowledge.array_file import BadIndex
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.postings import postings_of
from dualtrack.knowledge.vectors import cosines
from dualtrack.tools.courses.chunking import chunks_of
from dualtrack.tools.courses.documents import parse
from dualtrack.tools.courses.index import build, load, save
from dualtrack.tools.courses.names import resolve
from dualtrack.tools.courses.ranking import search
from dualtrack.tools.courses.settings import CourseSettings
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.courses import BOATS, TABLES, LocalModel, index_of, sample_courses, vector

COURSES = (BOATS, TABLES)
WORDS = st.lists(
    st.sampled_from(["oak", "Cedar", "setAccessToken", "the", "3.14", "été", "mot-clé"]), max_size=12
)


def headings(*hits: object) -> list[str]:
    return [hit.location for hit in hits]  # type: ignore[attr-defined]


@pytest.mark.parametrize("embedder", [None, LocalModel()])
def test_a_saved_index_is_loaded_unchanged(embedder: LocalModel | None) -> None:
    index = index_of(COURSES, embedder)
    again = load(save(index))
    assert [again.chunk(row) for row in range(len(again))] == [
        chunk for course in COURSES for chunk in chunks_of(course)
    ]
    assert again.catalogue == index.catalogue
    assert again.model == (embedder.model if embedder else "")
    assert save(again) == save(index)


def test_an_empty_index_is_valid() -> None:
    empty = load(save(build((), ())))
    assert search(empty, "oak") == ()
    assert resolve(empty, "boats") is None


@pytest.mark.parametrize("data", [b"", b"DTCOURS1", b"DTCOURS0" + b"\0" * 99, save(build((), ()))[:-20]])
def test_other_bytes_are_not_an_index(data: bytes) -> None:
    with pytest.raises(BadIndex):
        load(data)


def test_a_truncated_object_is_not_an_index() -> None:
    whole = save(index_of(COURSES))
    for size in range(0, len(whole) - 64, 97):
        with pytest.raises(BadIndex):
            load(whole[:size])


@given(st.lists(WORDS.map(" ".join), min_size=1, max_size=8), WORDS.map(" ".join))
def test_words_score_as_in_documentation_search(texts: list[str], query: str) -> None:
    scores = postings_of(texts).scores(query, 1.5, 0.75)
    assert scores == pytest.approx(keyword_scores(query, texts, k1=1.5, b=0.75), rel=1e-4, abs=1e-5)


def test_vectors_keep_their_direction_in_a_quarter_of_the_space() -> None:
    index = index_of(COURSES, LocalModel())
    query = vector("How long does glue last?")
    exact = [
        float(np.frombuffer(vector(f"Course {chunk.course_title} Lesson {chunk.lesson_number} content: {chunk.text}"), "<f4") @ np.frombuffer(query, "<f4"))
        for chunk in (index.chunk(row) for row in range(len(index)))
    ]  # fmt: skip
    assert index.vectors is not None
    assert cosines(index.vectors, query) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("ranking", ["hybrid", "keywords", "meaning"])
def test_filters_come_before_the_ranking(ranking: str) -> None:
    settings = CourseSettings(ranking=ranking, limit=1)  # type: ignore[arg-type]
    index, query = index_of(COURSES, LocalModel()), "varnish against water"
    near = vector(query)

    def best(title: str | None = None, lesson: int | None = None) -> list[str]:
        return headings(*search(index, query, near, title, lesson, settings))

    assert best("Making Tables") == ["Making Tables - Lesson 2"]
    assert best("Building Boats") == ["Building Boats - Lesson 4"]
    assert best(lesson=4) == ["Building Boats - Lesson 4"]
    assert best("Building Boats", 2) == []
    assert best(lesson=99) == []
    assert best("No such title") == []


def test_a_lesson_filter_applies_to_all_courses_and_lesson_0_counts() -> None:
    hits = search(index_of(COURSES), "oak", lesson_number=0)
    assert sorted(headings(*hits)) == ["Building Boats - Lesson 0", "Making Tables - Lesson 0"]


def test_a_vector_of_another_width_is_not_compared() -> None:
    index = index_of(COURSES, LocalModel())
    assert search(index, "glue", b"\0" * 64) == search(index, "glue")


def test_what_is_far_in_meaning_and_has_few_of_the_words_is_left_out() -> None:
    index = index_of(sample_courses(), LocalModel())
    for thanks in ("Thanks!", "What is the capital of France?", "Who painted the Mona Lisa?"):
        assert search(index, thanks, vector(thanks)) == ()
    query = "What is prompt caching?"
    assert len(search(index, query, vector(query))) == 5
    rare = "the quarterly zebra report on partition keys"
    assert any("partition key" in hit.chunk.text for hit in search(index, rare, vector(rare)))


def test_at_most_five_hits_are_returned() -> None:
    assert len(search(index_of(sample_courses()), "model")) == 5


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Building Towards Computer Use", "Building Towards Computer Use"),
        ("computer use", "Building Towards Computer Use"),
        ("the course on BUILDING TOWARDS computer", "Building Towards Computer Use"),
        ("bulding towards computr use", "Building Towards Computer Use"),
        ("prompt caching", "Building Towards Computer Use"),
        ("MCP", "Connecting Models with the Model Context Protocol"),
        ("mcp servers", "Connecting Models with the Model Context Protocol"),
        ("serverless", "Serverless Applications on AWS"),
        ("serverles", "Serverless Applications on AWS"),
        ("step functions", "Serverless Applications on AWS"),
        ("lambda course", "Serverless Applications on AWS"),
        ("DynamoDB", "Serverless Applications on AWS"),
        ("SQL", "Relational Databases for Application Developers"),
        ("SQL injection", "Relational Databases for Application Developers"),
        ("the postgres course", "Relational Databases for Application Developers"),
        ("backups", "Relational Databases for Application Developers"),
        ("RAG", "Retrieval and Vector Search from First Principles"),
        ("embeddings course", "Retrieval and Vector Search from First Principles"),
        ("embedings", "Retrieval and Vector Search from First Principles"),
        ("retreival", "Retrieval and Vector Search from First Principles"),
        ("bm25", "Retrieval and Vector Search from First Principles"),
        ("asyncio", "Asynchronous Python in Practice"),
    ],
)
def test_a_part_of_a_title_a_lesson_a_subject_or_initials_are_enough(name: str, title: str) -> None:
    assert resolve(index_of(sample_courses()), name) == title


@pytest.mark.parametrize(
    "name",
    [
        *("quantum basket weaving", "history of Rome", "gardening", "cooking", "photography", "French"),
        *("xyz", "", "...", "course", "the best course", "introduction", "lesson 3"),
        # subjects of several courses
        *("streaming", "testing", "browser", "tokens"),
        # subjects of no course, though the texts have some of their words
        *("machine learning", "data science", "statistics", "neural networks", "TypeScript", "JavaScript"),
        *(
            "Java",
            "Docker",
            "Kubernetes",
            "React",
            "Go",
            "Rust",
            "git",
            "LLM",
            "AI",
            "security course",
            "money",
        ),
        # words of two courses
        *("vector databases", "Python on Lambda", "MCP in Postgres", "SQL agents"),
        " ".join(["SQL"] * 13),
    ],
)
def test_a_name_of_no_course_or_of_several_matches_none(name: str) -> None:
    assert resolve(index_of(sample_courses()), name) is None


def test_a_word_of_another_title_outweighs_the_letters_of_the_rest() -> None:
    """``databases`` alone has most letters of ``vector databases``, but no passage there speaks of vectors."""
    index = index_of(sample_courses(), LocalModel())
    assert resolve(index, "databases") == "Relational Databases for Application Developers"
    assert resolve(index, "vector databases", vector("vector databases")) == (
        "Retrieval and Vector Search from First Principles"
    )


def test_a_name_is_matched_by_meaning_too() -> None:
    courses = [
        course for course in sample_courses() if course.title.startswith(("Asynchronous", "Relational"))
    ]
    index = index_of(courses, LocalModel())
    assert resolve(index, "concurrency in py") is None
    assert (
        resolve(index, "concurrency in py", vector("concurrency in py")) == "Asynchronous Python in Practice"
    )
    assert resolve(index, "gardening", vector("gardening")) is None


LANGUAGES = (
    "Course Title: Einführung in die Pumpentechnik\n\nLesson 1: Sicherheit\nDas Überdruckventil öffnet bei acht Bar.\n",
    "Course Title: 機械学習入門\n\nLesson 1: 準備\n訓練データを用意して、モデルを評価する。\n",
    "Course Title: Δίκτυα υπολογιστών\n\nLesson 1: Πρωτόκολλα\nΗ διεύθυνση IP είναι μοναδική.\n",
    "Course Title: วิทยาการข้อมูล\n\nLesson 1: สถิติ\nค่าเฉลี่ยของข้อมูลทั้งหมด\n",
)


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("uberdruckventil", "Einführung in die Pumpentechnik"),
        ("ÖFFNET", "Einführung in die Pumpentechnik"),
        ("モデルの評価", "機械学習入門"),
        ("ΔΙΕΥΘΥΝΣΗ", "Δίκτυα υπολογιστών"),
        ("ค่าเฉลี่ย", "วิทยาการข้อมูล"),
    ],
)
def test_courses_are_searched_in_any_language(query: str, title: str) -> None:
    index = index_of(map(parse, LANGUAGES))
    assert [hit.chunk.course_title for hit in search(index, query)] == [title]


@pytest.mark.parametrize("query", ["Überlaufrohr", "量子力学", "Ελλάδα", "รถไฟฟ้า"])
def test_a_word_of_no_course_finds_none_in_any_language(query: str) -> None:
    assert search(index_of(map(parse, LANGUAGES)), query) == ()


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("einfuhrung pumpentechnik", "Einführung in die Pumpentechnik"),
        ("überdruckventil", "Einführung in die Pumpentechnik"),
        ("機械学習", "機械学習入門"),
        ("ΔΙΚΤΥΑ ΥΠΟΛΟΓΙΣΤΩΝ", "Δίκτυα υπολογιστών"),
        ("วิทยาการข้อมูล", "วิทยาการข้อมูล"),
        ("量子力学", None),
    ],
)
def test_a_name_is_resolved_in_any_language(name: str, title: str | None) -> None:
    settings = CourseSettings(chunks_of_subject=1)
    assert resolve(index_of(map(parse, LANGUAGES)), name, settings=settings) == title


def test_words_of_another_rule_are_found_anew() -> None:
    """As in an object that was written before there was one rule: `über` was `ü` and `ber`."""
    index = index_of(map(parse, LANGUAGES))
    old = replace(index, postings=postings_of(["ü berdruckventil ö ffnet"] * len(index)))
    data = save(old).replace(b'"rule":2', b'"made":0')
    assert b'"made":0' in data
    assert [hit.chunk.course_title for hit in search(load(data), "Überdruckventil")] == [
        "Einführung in die Pumpentechnik"
    ]
    assert search(load(save(old)), "Überdruckventil") == (), "what today's rule has written is not read again"


def test_meaning_does_not_count_in_a_script_that_the_model_does_not_know() -> None:
    """It would put some course first for any Chinese question."""
    index = index_of(map(parse, LANGUAGES), LocalModel())
    found = search(index, "モデルの評価", vector("モデルの評価"))
    assert [hit.chunk.course_title for hit in found] == ["機械学習入門"]
    assert search(index, "量子力学", vector("量子力学")) == ()
    assert resolve(index, "量子力学", vector("量子力学")) is None
    known = "adhesives"  # no text has the word
    assert search(index_of(COURSES, LocalModel()), known, vector(known))
