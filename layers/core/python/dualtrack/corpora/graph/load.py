"""A job on the graph, in steps: each file is checked on its own, then all files of the new version become a
database.

A file's name is its title: a file of the same name replaces it, and the database is always rebuilt from all files, so
that it is consistent. A job is all or nothing: a single bad row in any file prevents publishing. Every step can be
repeated, even by two runs at once. A version is published only if the version it was made from is still current; a run
that loses starts again from the new current version (as in `corpora.ingest`).
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.codec import dump
from dualtrack.corpora.graph.database import build, write_tables
from dualtrack.corpora.graph.rows import Node, Problem, rows_of
from dualtrack.corpora.graph.survey import Problems, Survey
from dualtrack.corpora.jobs import GRAPH
from dualtrack.corpora.kinds import FileRefused
from dualtrack.corpora.plan import plan, repeated_title
from dualtrack.errors import Gone
from dualtrack.ids import new_job_id
from dualtrack.storage.corpora import PublishedVersion
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.corpora.graph.rows import Row
    from dualtrack.corpora.plan import VersionPlan
    from dualtrack.storage.corpora import StoredDocument
    from dualtrack.storage.corpus_jobs import Job, JobFile
    from dualtrack.storage.stores import CorpusStores
    from dualtrack.tools.graph.schema import StoredSchema

LoadStep = Literal["again", "done"]

MAX_NODES: Final = 1_000_000
MAX_EDGES: Final = 5_000_000
MAX_BYTES: Final = 1_000_000_000
"""Maximum size of all files together: the function's disk needs room for them, their tables and the database."""


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A file of the graph, on the local disk while a version is made."""

    name: str
    path: Path

    def rows(self) -> Iterator[Row]:
        """Its rows, read again each time."""
        return rows_of(self.name, self.path.read_bytes())


def load_graph(stores: CorpusStores, job_id: str, has_time: Callable[[], bool]) -> LoadStep:
    """Work on a job while there is time; returns ``done`` when it has ended."""
    job = stores.corpus_jobs.find(GRAPH, job_id)
    if job is None or job.ended:
        return "done"
    files = _checked(stores, job, has_time)
    if files is None:
        return "again"
    if any(file.state == "refused" for file in files):
        stores.corpus_jobs.fail(job, f"Nothing was loaded: {_named(files)}.")
        return "done"
    return _make_version(stores, job, files) if has_time() else "again"


# ── each file on its own ──────────────────────────────────────────────────────────────────────────


def _checked(stores: CorpusStores, job: Job, has_time: Callable[[], bool]) -> Sequence[JobFile] | None:
    """The files after all of them were checked; None if there was not enough time."""
    files = list(stores.corpus_jobs.files(job.corpus, job.job_id))
    for at, file in enumerate(files):
        if file.state != "waiting":
            continue
        if not has_time():
            return None
        files[at] = _file_read(stores, job, file, files[:at])
        stores.corpus_jobs.record_file(job, files[at])
    return files


def _file_read(stores: CorpusStores, job: Job, file: JobFile, before: Sequence[JobFile]) -> JobFile:
    try:
        data = stores.corpora.upload(job.corpus, file.upload_id)
        counts, problems = counted(file.name, data)
    except Gone:
        return _refused(file, "was not uploaded as announced, or its upload has expired")
    except FileRefused as refusal:
        return _refused(file, str(refusal))
    if problems.count:
        return _with_problems(file, problems)
    reason = repeated_title(file.name, before)
    if reason:
        return _refused(file, reason)
    return replace(
        file, state="read", title=file.name, digest=hashlib.sha256(data).hexdigest(), counts=counts
    )


def counted(name: str, data: bytes) -> tuple[Mapping[str, int], Problems]:
    """How many nodes and relationships a file has, and its bad rows. Raises `FileRefused`."""
    nodes = edges = 0
    problems = Problems()
    for row in rows_of(name, data):
        if isinstance(row, Problem):
            problems.add(row)
        elif isinstance(row, Node):
            nodes += 1
        else:
            edges += 1
    if not nodes and not edges and not problems.count:
        raise FileRefused("has no rows")
    counts = {key: number for key, number in (("nodes", nodes), ("edges", edges)) if number}
    return MappingProxyType(counts), problems


def _refused(file: JobFile, reason: str) -> JobFile:
    return replace(file, state="refused", reason=reason[:300])


def _with_problems(file: JobFile, problems: Problems) -> JobFile:
    rows = f"{problems.count:,} bad row{'s' if problems.count > 1 else ''}"
    return replace(file, state="refused", reason=f"has {rows}", problems=problems.lines)


def _named(files: Sequence[JobFile]) -> str:
    refused = [file for file in files if file.state == "refused"]
    more = f", and {len(refused) - 1} more files were refused" if len(refused) > 1 else ""
    return f"{refused[0].name} {refused[0].reason}{more}"


# ── all files together ────────────────────────────────────────────────────────────────────────────


def _make_version(stores: CorpusStores, job: Job, files: Sequence[JobFile]) -> LoadStep:
    published, documents = stores.corpora.published_documents(GRAPH)
    planned = plan(documents, job, files, int(stores.clock()))
    if not planned.changes:
        stores.corpus_jobs.end(_done(stores, job, planned))
        return "done"
    too_much = _too_much(planned)
    if too_much:
        stores.corpus_jobs.fail(job, f"The graph would be too large: {too_much}.")
        return "done"
    with tempfile.TemporaryDirectory(prefix="graph-") as scratch:
        folder = Path(scratch)
        sources = _fetch(stores, published, documents, planned, folder)
        if sum(source.path.stat().st_size for source in sources) > MAX_BYTES:
            stores.corpus_jobs.fail(
                job,
                f"The graph would be too large: its files may have at most {MAX_BYTES // 10**6:,} MB in total.",
            )
            return "done"
        survey = Survey()
        problems = taken_in(survey, sources)
        if problems:
            _fail_with(stores, job, files, problems)
            return "done"
        database = make_database(folder, sources, survey)
        return _publish(stores, job, planned, published, sources, database, survey.schema())


def _too_much(planned: VersionPlan) -> str:
    for name, most in (("nodes", MAX_NODES), ("edges", MAX_EDGES)):
        if planned.size(name) > most:
            return f"it may have at most {most:,} {name}"
    return ""


def _fetch(
    stores: CorpusStores,
    published: PublishedVersion | None,
    documents: Sequence[StoredDocument],
    planned: VersionPlan,
    folder: Path,
) -> list[GraphFile]:
    """The files of the new version: those of the job, and those kept from the current version."""
    sources = []
    positions = {document.title: at for at, document in enumerate(documents)}
    for at, entry in enumerate(planned.documents):
        source = GraphFile(entry.document.name, folder / f"source-{at}")
        with source.path.open("wb") as file:
            if entry.file is not None:
                file.write(stores.corpora.upload(GRAPH, entry.file.upload_id))
            else:
                assert published is not None
                stores.corpora.fetch(GRAPH, published.version, _source(positions[entry.document.title]), file)
        sources.append(source)
    return sources


def _source(position: int) -> str:
    return f"sources/{position:04d}"


def taken_in(survey: Survey, sources: Sequence[GraphFile]) -> Mapping[str, Problems]:
    """Read all files; returns the problems of those with bad rows, by name."""
    by_name = [(source.name, survey.nodes(source.name, source.rows())) for source in sources]
    # after bad nodes, relationships would report them as missing
    if not any(problems.count for _, problems in by_name):
        by_name = [(source.name, survey.edges(source.name, source.rows())) for source in sources]
    return {name: problems for name, problems in by_name if problems.count}


def make_database(folder: Path, sources: Sequence[GraphFile], survey: Survey) -> Path:
    """Build the database from files that were read; intermediate files are written to ``folder``."""
    schema, path = survey.schema(), folder / "graph.lbug"
    write_tables(folder, schema, (row for source in sources for row in source.rows()), survey.label_of)
    build(path, folder, schema)
    return path


def _fail_with(
    stores: CorpusStores, job: Job, files: Sequence[JobFile], problems: Mapping[str, Problems]
) -> None:
    """Store each file's problems; those of files that were loaded before are in the job's error."""
    refused = [_with_problems(file, problems[file.name]) for file in files if file.name in problems]
    for file in refused:
        stores.corpus_jobs.record_file(job, file)
    before = [name for name in problems if all(file.name != name for file in files)]
    parts = [f"{file.name} {file.reason}" for file in refused[:1]]
    for name in before[:1]:
        first = problems[name].shown[0]
        parts.append(
            f"{name}, which was loaded before, would have {problems[name].count:,} bad rows ({first})"
        )
    stores.corpus_jobs.fail(job, f"Nothing was loaded: {'; '.join(parts)}.")


# ── publishing ────────────────────────────────────────────────────────────────────────────────────


def write_version(
    stores: CorpusStores,
    version: str,
    sources: Sequence[GraphFile],
    database: Path,
    schema: StoredSchema,
    documents: Sequence[StoredDocument],
) -> None:
    """Write all objects of a version before it is published."""
    corpora = stores.corpora
    for position, source in enumerate(sources):
        corpora.write_file(GRAPH, version, _source(position), source.path)
    corpora.write_schema(GRAPH, version, dump(schema).encode())
    corpora.write_file(GRAPH, version, "index", database)
    corpora.write_documents(GRAPH, version, documents)


def _publish(
    stores: CorpusStores,
    job: Job,
    planned: VersionPlan,
    base: PublishedVersion | None,
    sources: Sequence[GraphFile],
    database: Path,
    schema: StoredSchema,
) -> LoadStep:
    """Write the version, then make it current and end the job. Returns ``again`` if another job was faster."""
    version = f"{job.job_id}.{new_job_id()[-8:]}"
    documents = [entry.document for entry in planned.documents]
    write_version(stores, version, sources, database, schema, documents)
    ended = replace(_done(stores, job, planned), version=version)
    new = PublishedVersion(version, "", planned.counts, ended.ended)
    try:
        stores.corpora.publish(
            GRAPH, new, base.version if base else None, stores.corpus_jobs.end_actions(ended)
        )
    except ConditionFailed as lost:
        return "done" if "job" in lost.items else "again"
    return "done"


def _done(stores: CorpusStores, job: Job, planned: VersionPlan) -> Job:
    return replace(job, status="done", outcomes=planned.outcomes, ended=int(stores.clock()))
