"""The sample courses are read by the product's code and contain what documentation and tests rely on."""

from __future__ import annotations

from dualtrack.tools.courses.index import build
from dualtrack.tools.courses.ranking import search

from bench.courses.corpora import SAMPLES, samples

CORPUS = samples()
COURSES = {course.title: course for course in CORPUS.courses}


def test_there_are_enough_courses_and_chunks_and_no_duplicate_paragraph() -> None:
    paragraphs = [
        paragraph
        for course in CORPUS.courses
        for lesson in course.lessons
        for paragraph in lesson.text.split("\n\n")
    ]

    assert len(COURSES) == len(CORPUS.courses) >= 4
    assert len(CORPUS.chunks) >= 120
    assert len(set(paragraphs)) == len(paragraphs)


def test_lessons_are_numbered_from_zero_and_each_has_text() -> None:
    for course in CORPUS.courses:
        assert [lesson.number for lesson in course.lessons] == list(range(len(course.lessons)))
        assert all(len(lesson.text) > 500 for lesson in course.lessons), course.title


def test_one_is_markdown_and_one_has_neither_link_nor_instructor() -> None:
    bare = COURSES["Relational Databases for Application Developers"]

    assert {file.suffix for file in SAMPLES.iterdir()} >= {".txt", ".md"}
    assert (bare.link, bare.instructor, {lesson.link for lesson in bare.lessons}) == ("", "", {""})
    assert COURSES["Evaluating Prompts and Agents"].instructor == ""


def test_prompt_caching_is_found_in_lesson_5_by_keywords_alone() -> None:
    index = build(CORPUS.courses, CORPUS.chunks)
    best = search(index, "What is prompt caching?")[0]

    assert best.location == "Building Towards Computer Use - Lesson 5"
    assert best.link == "https://learn.example.com/building-towards-computer-use/lesson/5"


def test_the_topic_of_a_lesson_4_is_found_in_another_course() -> None:
    index = build(CORPUS.courses, CORPUS.chunks)
    lesson = COURSES["Building Towards Computer Use"].lessons[4]
    titles = {hit.chunk.course_title for hit in search(index, lesson.title)}

    assert lesson.title == "Streaming Responses"
    assert "Serverless Applications on AWS" in titles
