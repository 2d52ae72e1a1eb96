"""A job's work, in steps: files are read, their texts embedded in batches, and the new version published as a whole.

Every step can be repeated, even by two runs at once: a file's item and a part's bytes are deterministic, existing ones
are not created again, and a version is published only if the version it was made from is still current. A run that
loses starts again from the new current version. If a run is killed, the next one continues after the existing parts
and items.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from dualtrack.corpora.kinds import CorpusKind, FileRefused, IndexedDocument
from dualtrack.corpora.plan import VersionPlan, plan, repeated_title
from dualtrack.errors import Degraded, Gone, Transient
from dualtrack.ids import new_job_id
from dualtrack.storage.corpora import PublishedVersion, StoredDocument
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dualtrack.knowledge.embedder import Embedder
    from dualtrack.runtime.background_loop import BackgroundLoop
    from dualtrack.storage.corpus_jobs import Job, JobFile
    from dualtrack.storage.stores import CorpusStores

IngestStep = Literal["again", "done"]

BATCH: Final = 256
"""Texts whose vectors are stored in one object: a few seconds of work for the local model."""

EMBED_SECONDS: Final = 60.0
"""Time limit of a batch."""


class NotEmbedded(Transient):
    """The embedding service did not answer; a retry may succeed."""

    def __str__(self) -> str:
        return f"{type(self).__name__}: {super().__str__()}"


@dataclass(frozen=True, slots=True)
class Ingest:
    """What a job needs. Without an ``embedder`` the index has no vectors, and only keywords rank. ``named``: the
    corpus, if there may be others of its kind.

    ``vectors_beside``: writes the vectors of a version's index to a vector index, and returns `PublishedVersion.head`;
    None if they are searched in the index itself.
    """

    stores: CorpusStores
    kind: CorpusKind
    embedder: Embedder | None
    loop: BackgroundLoop
    vectors_beside: Callable[[str, bytes], int] | None = None
    named: str = ""

    @property
    def corpus(self) -> str:
        """Its name."""
        return self.named or self.kind.name

    @property
    def model(self) -> str:
        """The embedding model; empty without vectors."""
        return self.embedder.model if self.embedder else ""


@dataclass(frozen=True, slots=True)
class _Base:
    """The current version at the start of the job, and the plan based on it."""

    published: PublishedVersion | None
    plan: VersionPlan

    @property
    def version(self) -> str | None:
        return self.published.version if self.published else None


def ingest(deps: Ingest, job_id: str, has_time: Callable[[], bool]) -> IngestStep:
    """Work on a job while there is time; returns ``done`` when it has ended.

    Raises `Transient` if a retry may succeed.
    """
    job = deps.stores.corpus_jobs.find(deps.corpus, job_id)
    if job is None or job.ended:
        return "done"
    if not _read_files(deps, job, has_time):
        return "again"
    base = _base(deps, job)
    if too_much := _too_much(deps.kind, base.plan):
        deps.stores.corpus_jobs.fail(job, f"The corpus would be too large: {too_much}.")
        return "done"
    if not _embed(deps, job, base, has_time):
        return "again"
    return _publish(deps, job, base)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def _read_files(deps: Ingest, job: Job, has_time: Callable[[], bool]) -> bool:
    """Read the waiting files; returns whether all are read."""
    stores = deps.stores
    files = list(stores.corpus_jobs.files(job.corpus, job.job_id))
    base = deps.stores.corpora.published_documents(job.corpus)[1]
    for at, file in enumerate(files):
        if file.state != "waiting":
            continue
        if not has_time():
            return False
        files[at] = _file_read(deps, job, file, files[:at], base)
        stores.corpus_jobs.record_file(job, files[at])
    return True


def _file_read(
    deps: Ingest, job: Job, file: JobFile, before: Sequence[JobFile], base: Sequence[StoredDocument]
) -> JobFile:
    kind = deps.kind
    try:
        read = kind.read(file.name, deps.stores.corpora.upload(job.corpus, file.upload_id), file.asked)
    except Gone:
        return replace(
            file, state="refused", reason="was not uploaded as announced, or its upload has expired"
        )
    except FileRefused as refusal:
        return replace(file, state="refused", reason=str(refusal)[:300])
    accepted = replace(
        file, state="read", title=read.title, digest=read.digest, counts=read.counts, facts=read.facts
    )
    reason = repeated_title(read.title, before, kind.key)
    if not reason and (too_much := _too_much(kind, plan(base, job, [*before, accepted], 0, kind.key))):
        reason = f"makes the corpus too large: {too_much}"
    if reason:
        return replace(file, state="refused", reason=reason[:300])
    deps.stores.corpora.write_part(job.corpus, job.job_id, _document_part(file), read.packed)
    return accepted


def _too_much(kind: CorpusKind, planned: VersionPlan) -> str:
    """Of what a version has more than it may; empty if it fits."""
    if planned.size(kind.bounded) > kind.bound:
        return f"it may have at most {kind.bound:,} {kind.bounded}"
    if kind.most_documents and len(planned.documents) > kind.most_documents:
        return f"it may have at most {kind.most_documents:,} documents"
    return ""


def _document_part(file: JobFile) -> str:
    return f"{file.number:04d}/document"


def _base(deps: Ingest, job: Job) -> _Base:
    """The current version, and the plan."""
    published, documents = deps.stores.corpora.published_documents(job.corpus)
    files = deps.stores.corpus_jobs.files(job.corpus, job.job_id)
    return _Base(published, plan(documents, job, files, int(deps.stores.clock()), deps.kind.key))


# ── embedding ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Unit:
    """A document that needs vectors, and the names of its parts."""

    folder: str
    packed: bytes
    texts: Sequence[str]

    def batches(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The name of each batch's part, and its texts."""
        for start in range(0, len(self.texts), BATCH):
            yield f"{self.folder}/{start:06d}", self.texts[start : start + BATCH]


def _units(deps: Ingest, job: Job, base: _Base) -> Iterator[_Unit]:
    """Every document of the plan whose vectors are not in the current version."""
    of_model = hashlib.sha256(deps.model.encode()).hexdigest()[:12]
    index: bytes | None = None
    for entry in base.plan.documents:
        if entry.file is not None:
            packed = deps.stores.corpora.part(job.corpus, job.job_id, _document_part(entry.file))
            folder = f"{entry.file.number:04d}/{of_model}"
        elif _is_of_another_model(deps, base):
            index = index or deps.stores.corpora.index(job.corpus, str(base.version))
            packed = deps.kind.unpacked(index, entry.document.title)
            folder = f"again-{entry.document.digest[:32]}/{of_model}"
        else:
            continue
        yield _Unit(folder, packed, deps.kind.texts(packed) if deps.model else ())


def _is_of_another_model(deps: Ingest, base: _Base) -> bool:
    return base.published is not None and base.published.model != deps.model


def _embed(deps: Ingest, job: Job, base: _Base, has_time: Callable[[], bool]) -> bool:
    """Create the missing vectors; returns whether all exist and time is left to publish."""
    stores = deps.stores
    stored = stores.corpora.part_names(job.corpus, job.job_id)
    batches = [batch for unit in _units(deps, job, base) for batch in unit.batches()]
    done = sum(len(texts) for name, texts in batches if name in stored)
    total = sum(len(texts) for _, texts in batches)
    before = done
    stores.corpus_jobs.progress(job, done, total)
    for name, texts in batches:
        if name in stored:
            continue
        if not has_time():
            return False
        stores.corpora.write_part(job.corpus, job.job_id, name, b"".join(_vectors(deps, texts)))
        done += len(texts)
        stores.corpus_jobs.progress(job, done, total)
    # writing all vectors to a vector index may take all the time of a call
    return deps.vectors_beside is None or done == before


def _vectors(deps: Ingest, texts: Sequence[str]) -> Sequence[bytes]:
    assert deps.embedder is not None
    try:
        vectors = deps.loop.run(deps.embedder.embed(texts, "document", EMBED_SECONDS), EMBED_SECONDS + 1)
    except (Degraded, TimeoutError) as error:
        raise NotEmbedded(str(error)[:200]) from error
    if len({len(vector) for vector in vectors}) != 1 or not _are_finite(vectors):
        raise NotEmbedded("vectors of different widths, or not finite")
    return vectors


def _are_finite(vectors: Sequence[bytes]) -> bool:
    return bool(np.isfinite(np.frombuffer(b"".join(vectors), "<f4")).all())


def _added(deps: Ingest, job: Job, unit: _Unit) -> IndexedDocument:
    vectors: list[bytes] = []
    for name, texts in unit.batches():
        data = deps.stores.corpora.part(job.corpus, job.job_id, name)
        width = len(data) // len(texts)
        vectors += [data[at : at + width] for at in range(0, len(data), width)]
    return IndexedDocument(unit.packed, vectors)


# ── publishing ────────────────────────────────────────────────────────────────────────────────────


def _publish(deps: Ingest, job: Job, base: _Base) -> IngestStep:
    """Write the version, then make it current and end the job. Returns ``again`` if another job was faster."""
    stores = deps.stores
    now = int(stores.clock())
    ended = replace(job, status="done", outcomes=base.plan.outcomes, ended=now)
    if not base.plan.changes and not _needs_new_vectors(deps, base):
        stores.corpus_jobs.end(ended)
        return "done"
    version = f"{job.job_id}.{new_job_id()[-8:]}"
    documents = [entry.document for entry in base.plan.documents]
    index = _index(deps, job, base)
    head = deps.vectors_beside(version, index) if deps.vectors_beside else 0
    stores.corpora.write_version(job.corpus, version, index, documents)
    new = PublishedVersion(version, deps.model, base.plan.counts, now, head)
    end = stores.corpus_jobs.end_actions(replace(ended, version=version))
    try:
        stores.corpora.publish(job.corpus, new, base.version, end)
    except ConditionFailed as lost:
        return "done" if "job" in lost.items else "again"
    return "done"


def _needs_new_vectors(deps: Ingest, base: _Base) -> bool:
    """Whether unchanged documents need a new version: their vectors are of another model, or missing."""
    if base.published is None:
        return False
    unplaced = deps.vectors_beside is not None and bool(deps.model) and not base.published.head
    return _is_of_another_model(deps, base) or (unplaced and bool(base.plan.size(deps.kind.bounded)))


def _index(deps: Ingest, job: Job, base: _Base) -> bytes:
    corpora = deps.stores.corpora
    added = [_added(deps, job, unit) for unit in _units(deps, job, base)]
    same = not _is_of_another_model(deps, base)
    kept = [entry.document.title for entry in base.plan.documents if same and entry.file is None]
    current = corpora.index(job.corpus, base.version) if kept and base.version else None
    order = [entry.document.title for entry in base.plan.documents]
    return deps.kind.index(current, kept, added, order, deps.model)
