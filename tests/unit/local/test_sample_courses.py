"""The sample courses and their prebuilt vectors: complete, those of the local model, and published once."""

from __future__ import annotations

import numpy as np
from dualtrack.corpora.courses import CoursesKind
from dualtrack.knowledge.minilm import NAME, load
from dualtrack.tools.courses.index import load as load_index
from dualtrack.tools.courses.ranking import search
from dualtrack_stack.local.sample_courses import VECTORS, documents, publish

from tests.drivers.corpus_world import CORPUS, CorpusWorld
from tests.drivers.documents import ROOT


def test_there_are_vectors_for_the_current_texts() -> None:
    read = documents()
    with np.load(VECTORS) as stored:
        assert str(stored["model"]) == NAME
        counted = {document.digest: len(CoursesKind().texts(document.packed)) for document in read.values()}
        assert {name: len(stored[name]) for name in stored.files if name != "model"} == counted, (
            "run python -m dualtrack_stack.local.sample_courses"
        )
    assert len(read) >= 4
    assert sum(document.counts["chunks"] for document in read.values()) >= 120


def test_the_vectors_are_those_of_the_local_model() -> None:
    """The first texts of each course; another processor rounds a little differently."""
    model = load(ROOT / "functions" / "embed" / "tokenizer.json")
    with np.load(VECTORS) as stored:
        for document in documents().values():
            for text, row in list(
                zip(CoursesKind().texts(document.packed), stored[document.digest], strict=True)
            )[:2]:
                made, kept = np.frombuffer(model.embed(text), "<f4"), row.astype(np.float32)
                assert made @ kept / np.linalg.norm(kept) > 0.99


def test_they_are_published_once_and_only_into_an_empty_corpus() -> None:
    world = CorpusWorld()
    stores = world.stores()
    assert publish(stores)
    assert len(world.titles()) == len(documents())
    model = load(ROOT / "functions" / "embed" / "tokenizer.json")
    index = load_index(stores.corpora.index(CORPUS, "samples"))
    (first, *_) = search(index, "What is prompt caching?", model.embed("What is prompt caching?"))
    assert (first.chunk.course_title, first.chunk.lesson_number) == ("Building Towards Computer Use", 5)
    world.run(world.begin({}, reset=True))
    assert not publish(stores)
    assert world.titles() == []
