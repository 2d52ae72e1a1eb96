"""A job whose embeddings come from Voyage, over the wire: whatever it answers, no vector is lost, duplicated or
mixed up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from dualtrack.corpora.ingest import NotEmbedded
from dualtrack.knowledge.vectors import pack
from dualtrack.knowledge.voyage import VoyageEmbedder
from dualtrack.tools.courses.ranking import search
from starlette.responses import JSONResponse, Response

from tests.drivers.corpus_world import LOOP, CorpusWorld, course, limited, long_course, texts_of
from tests.servers.voyage import FakeVoyage, embeddings_body, serve_voyage, words_as_vector

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = "voyage-3-large"
LONG = long_course("Long", 9_000)
"""About 600 chunks: three batches, each of more tokens than one request may have."""


@pytest.fixture
def voyage() -> Iterator[FakeVoyage]:
    with serve_voyage(FakeVoyage()) as served:
        yield served


@pytest.fixture
def world(voyage: FakeVoyage) -> Iterator[CorpusWorld]:
    embedder = VoyageEmbedder(voyage.api_key, voyage.url, MODEL)
    yield CorpusWorld(model=MODEL, embedder=embedder)
    LOOP.run(embedder.close(), 5)


def embedded(voyage: FakeVoyage) -> list[str]:
    """The texts of all requests that were well-formed, in the order of their arrival."""
    return [text for request in voyage.requests for text in request["input"]]


def assert_each_chunk_has_its_vector(world: CorpusWorld) -> None:
    index = world.index()
    assert index.vectors is not None
    for row, text in enumerate(texts_of(index)):
        exact = np.array(words_as_vector(f"Course Long Lesson 0 content: {text}"))
        kept = index.vectors[row].astype(float)
        assert kept @ exact > 0.99 * np.linalg.norm(kept) * np.linalg.norm(exact), row


def test_texts_go_in_batches_within_the_limits_of_a_request(world: CorpusWorld, voyage: FakeVoyage) -> None:
    job = world.run(world.begin({"long.txt": LONG}))
    index = world.index()
    texts = embedded(voyage)
    assert (job.status, job.embedded, world.published().model) == ("done", len(index) + 1, MODEL)
    assert len(texts) == len(set(texts)) == len(index) + 1, "each chunk once, and the title"
    assert {request["input_type"] for request in voyage.requests} == {"document"}
    for request in voyage.requests:
        assert len(request["input"]) <= 256
        assert sum(len(text) // 3 + 1 for text in request["input"]) <= 60_000
    assert len(voyage.requests) > len(index) // 256
    assert_each_chunk_has_its_vector(world)


REFUSALS = {
    "429": lambda: JSONResponse({"detail": "slow down"}, 429, {"retry-after": "1"}),
    "500": lambda: JSONResponse({"detail": "sorry"}, 500),
    "503 that is no JSON": lambda: Response("<html>", 503),
    "too few vectors": lambda: JSONResponse(embeddings_body([[1.0, 2.0]], MODEL)),
    "no vectors": lambda: JSONResponse({"object": "list", "data": [], "model": MODEL}),
    "no JSON": lambda: Response("data", media_type="application/json"),
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS.keys())
def test_only_a_failed_batch_is_repeated(answer: Any, world: CorpusWorld, voyage: FakeVoyage) -> None:
    job = world.begin({"long.txt": LONG})
    assert world.step(job, limited(2)) == "again", "the file, and the first batch"
    first = embedded(voyage)
    voyage.always = answer()
    with pytest.raises(NotEmbedded, match="Voyage: "):
        world.step(job)
    assert not world.job(job).ended
    assert world.job(job).embedded == len(first) == 256
    voyage.always = None
    voyage.requests.clear()
    assert world.run(job).status == "done"
    assert not set(first) & set(embedded(voyage)), "existing vectors are not embedded again"
    assert_each_chunk_has_its_vector(world)


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [float("nan")] * 64], ids=["another width", "no number"])
def test_an_inconsistent_vector_is_not_stored(
    wrong: list[float], world: CorpusWorld, voyage: FakeVoyage
) -> None:
    """The bytes of a batch are contiguous: a vector of another width would shift all that follow."""
    voyage.embed = lambda texts, _: [*map(words_as_vector, texts[:-1]), wrong]
    job = world.begin({"a.txt": course("Sailing", "The wind fills the sail.", "A knot holds the rope.")})
    with pytest.raises(NotEmbedded):
        world.step(job)
    voyage.embed = lambda texts, _: [*map(words_as_vector, texts)]
    assert world.run(job).status == "done"
    (first, *_) = search(world.index(), "rope knot", pack(words_as_vector("rope knot")))
    assert first.chunk.text == "A knot holds the rope."


def test_without_its_key_the_job_restarts_with_the_local_model(
    world: CorpusWorld, voyage: FakeVoyage
) -> None:
    """With the key revoked Voyage refuses; with the secret emptied the next step has the local model and recomputes
    all vectors with it: two models never mix."""
    world.run(world.begin({"a.txt": course("Sailing", "The wind fills the sail.")}))
    before = world.published()
    job = world.begin({"long.txt": LONG})
    world.step(job, limited(2))
    voyage.api_key = "pa-another"
    with pytest.raises(NotEmbedded, match=r"AuthenticationError \(look at VOYAGE_API_KEY\)"):
        world.step(job)
    assert world.published() == before, "the published version still serves"
    without_key = replace(world, model="words", embedder=None)
    done = without_key.run(job)
    index = without_key.index()
    assert (done.status, without_key.published().model) == ("done", "words")
    assert without_key.titles() == ["Sailing", "Long"]
    assert index.vectors is not None
    assert len(index.vectors) == len(index)
    assert done.to_embed == len(index) + 2, "of both courses, with their titles"
