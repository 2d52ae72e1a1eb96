"""Vectors in an index of S3 Vectors: the same results as in memory, on our own engine and on a real server."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from botocore.exceptions import ClientError
from dualtrack.runtime.background_loop import BackgroundLoop
from dualtrack.storage.stores import build_stores
from dualtrack.storage.vector_indexes import AT_ONCE, VectorEntry, VectorIndexes, index_name
from dualtrack.tools.courses.index import head, load, save
from dualtrack.tools.courses.library import CORPUS, CourseLibrary
from dualtrack.tools.courses.ranking import search
from dualtrack.tools.courses.settings import CourseSettings
from dualtrack.tools.courses.vector_index import nearest, write
from dualtrack_stack.local import sample_courses

from tests.drivers.courses import Lines
from tests.drivers.memory_aws import Client, MemoryAws
from tests.drivers.world import SETTINGS
from tests.servers.s3mock import has_s3mock, s3mock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.tools.courses.index import CourseIndex

BUCKET = "vectors"
LESSONS: tuple[int | None, ...] = (None, 0, 5, 99)


@cache
def samples() -> bytes:
    """The index of the sample courses, whose vectors are the local model's."""
    aws = MemoryAws()
    stores = build_stores(SETTINGS, Client(partial(aws.call, "dynamodb")), Client(partial(aws.call, "s3")))  # type: ignore[arg-type]
    assert sample_courses.publish(stores)
    return stores.corpora.index(CORPUS, "samples")


@contextmanager
def memory(bucket: str) -> Iterator[Any]:
    """Our own engine, as strict as the service."""
    yield Client(partial(MemoryAws().call, "s3vectors"))


def queries(index: CourseIndex) -> list[bytes]:
    """Directions between two chunks: none is as near to one chunk as to another."""
    assert index.vectors is not None
    rows = np.random.default_rng(7).choice(len(index), (12, 2))
    return [(index.vectors[a] + 0.5 * index.vectors[b]).astype("<f4").tobytes() for a, b in rows]


@pytest.mark.parametrize(
    "engine",
    [
        memory,
        pytest.param(
            s3mock,
            marks=pytest.mark.skipif(not has_s3mock(), reason="no S3Mock: .ci/install_s3mock.sh fetches it"),
        ),
    ],
)
def test_its_results_are_those_of_a_search_in_memory(engine: Any) -> None:
    whole, version = load(samples()), "jb_0a.1b"
    part = load(samples()[: head(samples())], index_name(CORPUS, version))
    with engine(BUCKET) as client:
        indexes = VectorIndexes(client, BUCKET)
        write(indexes, CORPUS, version, whole)
        write(indexes, CORPUS, version, whole)  # repeating a put changes nothing
        write(indexes, CORPUS, "jb_0b.1b", load(samples()))
        titles = (None, whole.catalogue[2].title)
        for query in queries(whole):
            for title in titles:
                for lesson in LESSONS:
                    near = nearest(indexes, part, query, title, lesson, 100)
                    there, here = (
                        search(searched, "prompt caching", query, title, lesson, near=hits)
                        for searched, hits in ((part, near), (whole, None))
                    )
                    assert there == here
                    meaning = CourseSettings(ranking="meaning")
                    there = search(part, "", query, title, lesson, meaning, near)
                    assert there == search(whole, "", query, title, lesson, meaning)
        assert indexes.names(index_name(CORPUS, "")) == [
            index_name(CORPUS, version),
            index_name(CORPUS, "jb_0b.1b"),
        ]
        assert indexes.names("graph-") == []
        indexes.delete(index_name(CORPUS, version))
        indexes.delete(index_name(CORPUS, version))
        assert len(indexes.names(index_name(CORPUS, ""))) == 1
        with pytest.raises(ClientError, match="NotFoundException"):
            nearest(indexes, part, queries(whole)[0], None, None, 5)


def test_vectors_are_put_in_batches_of_five_hundred() -> None:
    aws = MemoryAws()
    sizes: list[int] = []

    def send(operation: str, request: dict[str, Any]) -> Any:
        sizes.append(len(request.get("vectors", ())))
        return aws.call("s3vectors", operation, request)

    entries = (VectorEntry(str(n), [1, n], {"course_title": "T"}, {"chunk_index": n}) for n in range(1_001))
    VectorIndexes(Client(send), BUCKET).write("many", entries, 2, ["chunk_index"])
    assert sizes == [0, AT_ONCE, AT_ONCE, 1]


@pytest.mark.parametrize(
    ("numbers", "title", "problem"),
    [(0, "T", "0 numbers"), (4_097, "T", "4097 numbers"), (2, "ß" * 1_024, "to filter by")],
)
def test_vectors_that_the_service_would_refuse_are_refused(numbers: int, title: str, problem: str) -> None:
    entry = VectorEntry("0", [1] * numbers, {"course_title": title}, {"chunk_index": 0})
    with memory(BUCKET) as client, pytest.raises(ValueError, match=problem):
        VectorIndexes(client, BUCKET).write("refused", [entry], numbers, ["chunk_index"])


def test_the_longest_title_can_be_filtered_by() -> None:
    """300 characters of four bytes (docs/courses.md, "Hostile text")."""
    entry = VectorEntry("0", [1.0], {"course_title": "😀" * 300, "lesson_number": 10**9}, {"chunk_index": 0})
    with memory(BUCKET) as client:
        indexes = VectorIndexes(client, BUCKET)
        indexes.write("long-titles", [entry], 1, ["chunk_index"])
        assert indexes.nearest("long-titles", [1.0], {"course_title": "😀" * 300}, 5) == {"0": 1.0}


def test_vectors_without_direction_are_left_out() -> None:
    """The service refuses zero vectors, and a query may be one too."""
    with memory(BUCKET) as client:
        indexes = VectorIndexes(client, BUCKET)
        index = load(samples())
        assert index.vectors is not None
        silent = np.zeros_like(index.vectors)
        silent[3] = index.vectors[3]
        write(indexes, CORPUS, "v", _with(index, silent))
        part = load(samples()[: head(samples())], index_name(CORPUS, "v"))
        width = index.vectors.shape[1]
        assert set(nearest(indexes, part, np.ones(width, "<f4").tobytes(), None, None, 5)) == {3}
        for query in (np.zeros(width, "<f4"), np.full(width, np.nan, "<f4")):
            assert nearest(indexes, part, query.tobytes(), None, None, 5) == {}


def _with(index: CourseIndex, vectors: Any) -> CourseIndex:
    return load(save(replace(index, vectors=vectors)))


def test_without_the_service_keywords_rank() -> None:
    def refuse(operation: str, request: dict[str, Any]) -> Any:
        raise ClientError({"Error": {"Code": "TooManyRequestsException", "Message": ""}}, operation)

    part = load(samples()[: head(samples())], index_name(CORPUS, "v"))
    store: Any = None
    indexes, loop = VectorIndexes(Client(refuse), BUCKET), BackgroundLoop()
    library = CourseLibrary(store, {}, loop, Lines(), vector_indexes=indexes)
    vector = queries(load(samples()))[0]
    assert library.nearest(part, vector, None, None) is None
    assert library.lacks_meaning(part, vector, None)
    assert not library.lacks_meaning(part, vector, {0: 0.5})
    assert isinstance(library.logger, Lines)
    assert library.logger.lines[0][0] == "course search without meaning"
    assert search(part, "prompt caching", near=None) == search(load(samples()), "prompt caching")
