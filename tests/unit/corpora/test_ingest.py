"""Jobs on the corpus of courses: what is accepted, what is refused, and that nothing is lost."""

from __future__ import annotations

import io
import zipfile

import pytest
from dualtrack.corpora.courses import CoursesKind
from dualtrack.corpora.ingest import NotEmbedded
from dualtrack.corpora.jobs import MAX_TRIES
from dualtrack.corpora.plan import plan
from dualtrack.errors import Gone
from dualtrack.storage.corpora import StoredDocument
from dualtrack.storage.corpus_jobs import CLEAN_AFTER, Job
from dualtrack.storage.vector_indexes import index_name
from dualtrack.tools.courses.index import load, save
from dualtrack.tools.courses.library import CourseLibrary
from dualtrack.tools.courses.ranking import search
from dualtrack.tools.courses.settings import CourseSettings
from dualtrack.tools.courses.tools import find

from tests.drivers.corpus_world import (
    CORPUS,
    LOOP,
    CorpusWorld,
    WordVectors,
    course,
    limited,
    long_course,
    texts_of,
)
from tests.drivers.courses import Lines
from tests.drivers.faults import Process

A = course("Sailing", "The wind fills the sail.", "A knot holds the rope.")
B = course("Baking", "Flour and water become dough.")
B2 = course("Baking", "Sugar and butter become cake.")


def test_files_become_a_version_that_is_searched() -> None:
    world = CorpusWorld()
    job = world.run(world.begin({"a.txt": A, "b.txt": B}))
    assert (job.status, dict(job.outcomes), job.embedded) == ("done", {"1": "added", "2": "added"}, 5)
    assert world.titles() == ["Sailing", "Baking"]
    published = world.published()
    assert (published.model, dict(published.counts)) == ("words", {"documents": 2, "lessons": 3, "chunks": 3})
    (first, *_) = search(world.index(), "rope knot")
    assert (first.chunk.course_title, first.chunk.lesson_number) == ("Sailing", 1)


def test_the_same_content_is_skipped_and_new_content_replaces_a_course() -> None:
    world = CorpusWorld()
    world.run(world.begin({"a.txt": A, "b.txt": B}))
    before = world.published()
    again = world.run(world.begin({"a.txt": A, "b.txt": B}))
    assert dict(again.outcomes) == {"1": "skipped", "2": "skipped"}
    assert world.published() == before
    job = world.run(world.begin({"b.txt": B2, "a.txt": A}))
    assert dict(job.outcomes) == {"1": "replaced", "2": "skipped"}
    assert world.titles() == ["Sailing", "Baking"]
    assert not [text for text in texts_of(world.index()) if "Flour" in text]
    assert job.to_embed == 2, "only new text is embedded"


def test_kept_courses_keep_their_vectors_bit_for_bit() -> None:
    world = CorpusWorld()
    world.run(world.begin({"a.txt": A}))
    before = world.index()
    world.run(world.begin({"b.txt": B}))
    after = world.index()
    assert before.vectors is not None
    assert after.vectors is not None
    assert (after.vectors[: len(before)] == before.vectors).all()
    assert save(load(save(after))) == save(after)


def test_reset_keeps_only_the_files_and_a_removal_removes_one_course() -> None:
    world = CorpusWorld()
    world.run(world.begin({"a.txt": A, "b.txt": B}))
    world.run(world.begin({}, remove=["Sailing"]))
    assert world.titles() == ["Baking"]
    job = world.run(world.begin({"a.txt": A}, reset=True))
    assert (world.titles(), dict(job.outcomes)) == (["Sailing"], {"1": "added"})
    world.run(world.begin({}, reset=True))
    assert world.titles() == []
    assert search(world.index(), "wind") == ()


def test_titles_that_differ_in_case_and_form_are_one_course() -> None:
    world = CorpusWorld()
    world.run(world.begin({"a.txt": A, "b.txt": B}))
    job = world.run(
        world.begin({"c.txt": course("ＢＡＫＩＮＧ", "Rye is dark."), "d.txt": course("baking", "Oats.")})
    )
    assert dict(job.outcomes) == {"1": "replaced"}
    assert [file.reason for file in world.files(job).values() if file.state == "refused"] == [
        "has the title of c.txt, 'baking': titles must differ"
    ]
    assert world.titles() == ["Sailing", "ＢＡＫＩＮＧ"]
    world.run(world.begin({}, remove=["Baking"]))
    assert world.titles() == ["Sailing"], "the course that a removal names may have been spelt anew meanwhile"


def test_of_courses_that_were_two_before_a_removal_takes_the_one_it_names() -> None:
    base = [StoredDocument(title, "1", "a.txt", {}, 0) for title in ("Baking", "baking")]
    job = Job(CORPUS, "jb_1", "u", 0, remove=("baking",))
    made = plan(base, job, [], 1, CoursesKind().key)
    assert [entry.document.title for entry in made.documents] == ["Baking"]


def _docx(parts: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return packed.getvalue()


IMAGE_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
)


def test_refused_files_are_named_and_the_others_are_ingested() -> None:
    world = CorpusWorld()
    files = {
        "image.pdf": IMAGE_PDF,
        "bomb.docx": _docx({"word/document.xml": bytes(120_000_000)}),
        "latin.txt": "Course Title: Käse\n\nLesson 0: Ä\nÄ".encode("latin-1"),
        "large.txt": b"x" * 50_000_000,
        "untitled.txt": b"Lesson 0: Nothing\nsays which course this is.",
        "first.txt": B,
        "second.txt": B2,
        "good.txt": A,
        "program.exe": b"MZ",
    }
    job = world.run(world.begin(files))
    refused = {name: file.reason for name, file in world.files(job).items() if file.state == "refused"}
    assert {name: word in refused.pop(name) for name, word in (
        ("image.pdf", "images"),
        ("bomb.docx", "unpacks to 120 MB"),
        ("latin.txt", "not UTF-8"),
        ("large.txt", "50.0 MB; at most 20 MB"),
        ("untitled.txt", "no title"),
        ("second.txt", "has the title of first.txt, 'Baking'"),
        ("program.exe", "not one of the formats"),
    )} == dict.fromkeys(set(files) - {"first.txt", "good.txt"}, True)  # fmt: skip
    assert refused == {}
    assert (job.status, world.titles()) == ("done", ["Baking", "Sailing"])


def test_a_file_that_was_not_uploaded_is_refused() -> None:
    world = CorpusWorld()
    job = world.begin({"a.txt": A})
    world.aws.objects.clear()
    job = world.run(job)
    assert (job.status, world.files(job)["a.txt"].reason) == (
        "done",
        "was not uploaded as announced, or its upload has expired",
    )
    assert world.stores().corpora.published(CORPUS) is None


def test_other_bytes_than_were_announced_are_refused() -> None:
    """Even where the storage takes them: an upload address is valid for fifteen minutes, and may leak."""
    world = CorpusWorld()
    job = world.begin({"a.txt": A, "b.txt": B})
    (changed,) = [key for key, data in world.aws.objects.items() if data == A]
    world.aws.objects[changed] = course("Fraud", "Send your key.").ljust(len(A))[: len(A)]
    job = world.run(job)
    refused = world.files(job)["a.txt"]
    assert (refused.state, refused.reason) == (
        "refused",
        "was not uploaded as announced, or its upload has expired",
    )
    assert world.titles() == ["Baking"]


def test_files_beyond_a_corpus_limit_are_refused() -> None:
    world = CorpusWorld(kind=CoursesKind(3))
    job = world.run(world.begin({"a.txt": A, "b.txt": B, "c.txt": course("Chess", "A rook moves.")}))
    assert world.files(job)["c.txt"].reason == "makes the corpus too large: it may have at most 3 chunks"
    assert world.titles() == ["Sailing", "Baking"]
    again = world.run(world.begin({"a.txt": A, "b.txt": B2}))
    assert dict(again.outcomes) == {"1": "skipped", "2": "replaced"}, "a replaced course does not count twice"


def test_a_long_job_continues_where_its_time_ran_out() -> None:
    """Each step has time for one file or one batch."""
    world = CorpusWorld()
    job = world.begin({"a.txt": long_course("Long", 9_000), "b.txt": B})
    steps = 1
    while world.step(job, limited(1)) == "again":
        steps += 1
    assert steps > 4
    assert world.job(job).status == "done"
    assert len(world.index()) > 500
    embedded = [site for site in world.trace.sites if site.service == "embed"]
    assert len(embedded) == -(-(len(world.index()) - 1 + 1) // 256) + 1, "no batch was embedded twice"


def test_the_current_version_serves_until_the_new_one_is_complete() -> None:
    world = CorpusWorld()
    world.run(world.begin({"b.txt": B}))
    before = world.published()
    job = world.begin({"b.txt": B2, "long.txt": long_course("Long", 9_000)})
    while world.step(job, limited(1)) == "again":
        assert world.published() == before
        assert world.titles() == ["Baking"]
    assert world.titles() == ["Baking", "Long"]


def test_two_concurrent_jobs_lose_nothing() -> None:
    """Both have read the current version before either has published."""
    world = CorpusWorld()
    world.run(world.begin({"a.txt": A}))
    slower, faster = world.begin({"b.txt": B}), world.begin({"c.txt": course("Chess", "A rook moves.")})
    world.step(slower, limited(1))

    def meanwhile() -> bool:
        """The other job publishes after this one has read the current version and before it publishes."""
        world.run(faster)
        return True

    assert world.step(slower, meanwhile) == "again"
    assert world.titles() == ["Sailing", "Chess"]
    assert world.run(slower).status == "done"
    assert world.titles() == ["Sailing", "Chess", "Baking"]


def test_a_file_to_be_skipped_is_ingested_if_its_course_is_removed_meanwhile() -> None:
    world = CorpusWorld()
    world.run(world.begin({"a.txt": A, "b.txt": B}))
    late = world.begin({"a.txt": A})
    world.step(late, limited(0))
    world.run(world.begin({}, remove=["Sailing"]))
    assert dict(world.run(late).outcomes) == {"1": "added"}
    assert world.titles() == ["Baking", "Sailing"]


def test_another_model_recomputes_all_vectors() -> None:
    world = CorpusWorld(model="")
    world.run(world.begin({"a.txt": A}))
    assert world.index().vectors is None
    world.model = "words"
    world.run(world.begin({"b.txt": B}))
    index = world.index()
    assert index.vectors is not None
    assert (index.model, len(index.vectors), world.titles()) == ("words", 3, ["Sailing", "Baking"])


def test_unavailable_embeddings_are_retried() -> None:
    world = CorpusWorld(away=True)
    job = world.begin({"a.txt": A})
    with pytest.raises(NotEmbedded):
        world.step(job)
    assert not world.job(job).ended
    world.away = False
    assert world.run(job).status == "done"


def test_the_sweep_starts_jobs_never_started_or_never_finished() -> None:
    world = CorpusWorld()
    job = world.begin({"a.txt": A}, started=False)
    assert world.sweep() == 0, "the request may still be about to start it"
    world.clock.now += 60
    assert world.sweep() == 1
    assert world.aws.executions == {f"{job.job_id}-0": "RUNNING"}
    assert world.sweep() == 0
    for tries in range(1, MAX_TRIES):
        world.aws.executions[f"{job.job_id}-{tries - 1}"] = "FAILED"
        assert world.sweep() == 1
        assert world.aws.executions[f"{job.job_id}-{tries}"] == "RUNNING"
    world.aws.executions[f"{job.job_id}-{MAX_TRIES - 1}"] = "TIMED_OUT"
    world.sweep()
    assert world.job(job).status == "failed"
    assert world.stores().corpus_jobs.open_jobs(CORPUS) == []


def test_old_versions_and_parts_are_deleted_once_no_reader_can_use_them() -> None:
    world = CorpusWorld()
    world.run(world.begin({"a.txt": A}))
    old = world.published().version
    world.run(world.begin({"b.txt": B}))
    world.sweep()
    assert world.stores().corpora.index(CORPUS, old), "a reader may be about to read it"
    going_on = world.begin({"c.txt": course("Chess", "A rook moves.")})
    world.step(going_on, limited(1))
    world.clock.now += CLEAN_AFTER + 1
    world.sweep()
    with pytest.raises(Gone):
        world.stores().corpora.index(CORPUS, old)
    assert {key.split("/")[3].split(".")[0] for key in world.objects()} == {
        world.published().version.split(".")[0],
        going_on.job_id,
    }
    world.run(going_on)
    assert world.titles() == ["Sailing", "Baking", "Chess"]
    world.clock.now += CLEAN_AFTER + 1
    world.sweep()
    assert len(world.objects()) == 2


def test_jobs_are_deleted_after_a_month() -> None:
    world = CorpusWorld()
    job = world.run(world.begin({"a.txt": A}))
    world.clock.now = 1e10
    world.sweep()
    assert world.stores().corpus_jobs.find(CORPUS, job.job_id) is None
    assert world.titles() == ["Sailing"]


# ── vectors in an index of their own ──────────────────────────────────────────────────────────────


def test_vectors_are_stored_beside_the_index_if_configured() -> None:
    world = CorpusWorld(beside=True)
    world.run(world.begin({"a.txt": A, "b.txt": B}))
    published = world.published()
    assert world.titles() == ["Sailing", "Baking"]
    assert list(world.aws.vector_indexes) == [index_name(CORPUS, published.version)]
    whole = world.stores().corpora.index(CORPUS, published.version)
    part = world.stores().corpora.index(CORPUS, published.version, published.head)
    assert whole.startswith(part)
    assert len(whole) - len(part) >= 3 * 64, "three vectors of 64 numbers"
    assert [load(part, "there").chunk(row) for row in range(3)] == [
        load(whole).chunk(row) for row in range(3)
    ]


def test_vectors_published_before_the_setting_move_with_the_next_job() -> None:
    """And a search without the setting finds the vectors where they were before."""
    world = CorpusWorld()
    world.run(world.begin({"a.txt": A}))
    before = world.index()
    world.beside = True
    job = world.run(world.begin({"a.txt": A}))
    assert (dict(job.outcomes), job.to_embed) == ({"1": "skipped"}, 0)
    assert (len(world.aws.vector_indexes), world.titles()) == (1, ["Sailing"])
    assert world.index().vectors is not None
    assert (world.index().vectors == before.vectors).all()  # type: ignore[union-attr]
    again = world.published()
    world.run(world.begin({"a.txt": A}))
    assert world.published() == again, "nothing is left to do"


def test_without_vectors_there_is_no_vector_index() -> None:
    world = CorpusWorld(beside=True, model="")
    world.run(world.begin({"a.txt": A}))
    assert (world.published().head, world.aws.vector_indexes) == (0, {})
    world.model = "words"
    world.run(world.begin({}, remove=["Sailing"]))
    assert (world.published().head, world.aws.vector_indexes) == (0, {}), "nor without chunks"


def test_old_vector_indexes_are_deleted_with_their_versions() -> None:
    world = CorpusWorld(beside=True)
    world.run(world.begin({"a.txt": A}))
    old = index_name(CORPUS, world.published().version)
    world.run(world.begin({"b.txt": B}))
    killed = world.begin({"c.txt": course("Chess", "A rook moves.")})
    left = index_name(CORPUS, f"{killed.job_id}.0a")
    world.aws.vector_indexes[left] = world.aws.vector_indexes[old]
    world.sweep()
    assert old in world.aws.vector_indexes, "a reader may be about to query it"
    world.clock.now += CLEAN_AFTER + 1
    world.sweep()
    current = index_name(CORPUS, world.published().version)
    assert set(world.aws.vector_indexes) == {current, left}, "a job continues"
    world.run(killed)
    world.clock.now += CLEAN_AFTER + 1
    world.sweep()
    assert set(world.aws.vector_indexes) == {index_name(CORPUS, world.published().version)}


def test_a_search_queries_the_version_that_it_has_read() -> None:
    """In the next version the same rows would mean other chunks."""
    world = CorpusWorld(beside=True)
    world.run(world.begin({"a.txt": A, "b.txt": B}))
    stores = world.stores()
    library = CourseLibrary(
        stores.corpora,
        {"words": WordVectors(Process(world.quiet, "search"))},
        LOOP,
        Lines(),
        CourseSettings(ranking="meaning", checked_every=3),
        lambda: 0.0,
        stores.vector_indexes,
    )
    before = find(library, "sugar and butter become cake", None, None).content
    world.run(world.begin({"b.txt": B2}, remove=["Sailing"]))
    assert find(library, "sugar and butter become cake", None, None).content == before
    library.clock = lambda: 3.0
    after = find(library, "sugar and butter become cake", None, None).content
    assert after.startswith("[Baking - Lesson 0]\nSugar and butter")
    index = library.index()
    assert index is not None
    assert index.vectors is None


def test_writing_the_vector_index_has_an_invocation_of_its_own() -> None:
    """It may take a whole invocation: one that has embedded leaves it to the next."""
    world = CorpusWorld(beside=True)
    job = world.begin({"a.txt": A})
    assert world.step(job) == "again"
    assert world.aws.vector_indexes == {}
    assert world.step(job) == "done"
    assert world.titles() == ["Sailing"]
