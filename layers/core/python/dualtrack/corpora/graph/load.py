"""A job on the graph, in steps: each file is checked on its own, then all files of the new version become a
database.

A file's name is its title: a file of the same name replaces it, and the database is always rebuilt from all files, so
that it is consistent. A job is all or nothing: a single bad row in any file, and nothing is published. Every step can
be repeated, also by two runs at once. A version is published on condition that the one it was made from is still
current; a run that loses starts again from the new current version (as in `corpora.ingest`).
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.corpora.graph.database import build, write_tables
from dualtrack.corpora.graph.rows import Node, Problem, rows_of
from dualtrack.corpora.graph.survey import Problems, Survey
from dualtrack.corpora.jobs import GRAPH
from dualtrack.corpora.kinds import Refused
from dualtrack.corpora.plan import plan, repeated_title
from dualtrack.errors import Gone
from dualtrack.ids import new_job_id
from dualtrack.storage.corpora import Published
from dualtrack.storage.dynamo import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.corpora.graph.rows import Row
    from dualtrack.corpora.plan import Plan
    from dualtrack.storage.corpora import Document
    from dualtrack.storage.corpus_jobs import Job, JobFile
    from dualtrack.storage.stores import Stores
    from dualtrack.tools.graph.schema import Schema

Next = Literal["again", "done"]

MAX_NODES: Final = 1_000_000
MAX_EDGES: Final = 5_000_000
MAX_BYTES: Final = 1_000_000_000
"""Maximum size of all files together: the function's disk needs room for them, their tables and the database."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the graph, on the local disk while a version is made."""

    name: str
    path: Path

    def rows(self) -> Iterator[Row]:
        """Its rows, read again each time."""
        return rows_of(self.name, self.path.read_bytes())


def load_graph(stores: Stores, job_id: str, has_time: Callable[[], bool]) -> Next:
    """Work on a job while there is time; returns ``done`` when it has ended."""
    job = stores.corpus_jobs.find(GRAPH, job_id)
    if job is None or job.ended:
        return "done"
    files = _looked_at(stores, job, has_time)
    if files is None:
        return "again"
    if any(one.state == "refused" for one in files):
        stores.corpus_jobs.fail(job, f"Nothing was loaded: {_named(files)}.")
        return "done"
    return _make_version(stores, job, files) if has_time() else "again"


# ── each file on its own ──────────────────────────────────────────────────────────────────────────


def _looked_at(stores: Stores, job: Job, has_time: Callable[[], bool]) -> Sequence[JobFile] | None:
    """The files, all of them checked; None if there was not enough time."""
    files = list(stores.corpus_jobs.files(job.corpus, job.job_id))
    for at, one in enumerate(files):
        if one.state != "waiting":
            continue
        if not has_time():
            return None
        files[at] = _file_read(stores, job, one, files[:at])
        stores.corpus_jobs.record_file(job, files[at])
    return files


def _file_read(stores: Stores, job: Job, one: JobFile, before: Sequence[JobFile]) -> JobFile:
    try:
        data = stores.corpora.upload(job.corpus, one.upload_id)
        counts, problems = counted(one.name, data)
    except Gone:
        return _refused(one, "was not uploaded, or too long ago")
    except Refused as refusal:
        return _refused(one, str(refusal))
    if problems.count:
        return _with_problems(one, problems)
    reason = repeated_title(one.name, before)
    if reason:
        return _refused(one, reason)
    return replace(one, state="read", title=one.name, digest=hashlib.sha256(data).hexdigest(), counts=counts)


def counted(name: str, data: bytes) -> tuple[Mapping[str, int], Problems]:
    """How many nodes and relationships a file has, and its bad rows. Raises `Refused`."""
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
        raise Refused("has no rows")
    counts = {key: number for key, number in (("nodes", nodes), ("edges", edges)) if number}
    return MappingProxyType(counts), problems


def _refused(one: JobFile, reason: str) -> JobFile:
    return replace(one, state="refused", reason=reason[:300])


def _with_problems(one: JobFile, problems: Problems) -> JobFile:
    rows = f"{problems.count:,} bad row{'s' if problems.count > 1 else ''}"
    return replace(one, state="refused", reason=f"has {rows}", problems=problems.lines)


def _named(files: Sequence[JobFile]) -> str:
    refused = [one for one in files if one.state == "refused"]
    more = f", and {len(refused) - 1} more files were refused" if len(refused) > 1 else ""
    return f"{refused[0].name} {refused[0].reason}{more}"


# ── all files together ────────────────────────────────────────────────────────────────────────────


def _make_version(stores: Stores, job: Job, files: Sequence[JobFile]) -> Next:
    published, documents = stores.corpora.published_documents(GRAPH)
    planned = plan(documents, job, files, int(stores.clock()))
    if not planned.changes:
        stores.corpus_jobs.end(_done(stores, job, planned))
        return "done"
    too_much = _too_much(planned)
    if too_much:
        stores.corpus_jobs.fail(job, f"This makes it too much: {too_much}.")
        return "done"
    with tempfile.TemporaryDirectory(prefix="graph-") as scratch:
        folder = Path(scratch)
        sources = _fetch(stores, published, documents, planned, folder)
        if sum(one.path.stat().st_size for one in sources) > MAX_BYTES:
            stores.corpus_jobs.fail(
                job, f"This makes it too much: the files may have {MAX_BYTES // 10**6:,} MB."
            )
            return "done"
        survey = Survey()
        problems = taken_in(survey, sources)
        if problems:
            _fail_with(stores, job, files, problems)
            return "done"
        database = make_database(folder, sources, survey)
        return _publish(stores, job, planned, published, sources, database, survey.schema())


def _too_much(planned: Plan) -> str:
    for name, most in (("nodes", MAX_NODES), ("edges", MAX_EDGES)):
        if planned.size(name) > most:
            return f"a graph may have {most:,} {name}"
    return ""


def _fetch(
    stores: Stores,
    published: Published | None,
    documents: Sequence[Document],
    planned: Plan,
    folder: Path,
) -> list[Source]:
    """The files of the new version: those of the job, and those kept from the current version."""
    sources = []
    places = {one.title: at for at, one in enumerate(documents)}
    for at, one in enumerate(planned.documents):
        source = Source(one.document.name, folder / f"source-{at}")
        with source.path.open("wb") as file:
            if one.file is not None:
                file.write(stores.corpora.upload(GRAPH, one.file.upload_id))
            else:
                assert published is not None
                stores.corpora.fetch(GRAPH, published.version, _source(places[one.document.title]), file)
        sources.append(source)
    return sources


def _source(place: int) -> str:
    return f"sources/{place:04d}"


def taken_in(survey: Survey, sources: Sequence[Source]) -> Mapping[str, Problems]:
    """Read all files; returns the problems of those with bad rows, by name."""
    found = [(one.name, survey.nodes(one.name, one.rows())) for one in sources]
    if not any(
        problems.count for _, problems in found
    ):  # otherwise relationships would report bad nodes as missing
        found = [(one.name, survey.edges(one.name, one.rows())) for one in sources]
    return {name: problems for name, problems in found if problems.count}


def make_database(folder: Path, sources: Sequence[Source], survey: Survey) -> Path:
    """Make the database from files that were read; ``folder`` gets the intermediate files."""
    schema, path = survey.schema(), folder / "graph.lbug"
    write_tables(folder, schema, (row for one in sources for row in one.rows()), survey.label_of)
    build(path, folder, schema)
    return path


def _fail_with(stores: Stores, job: Job, files: Sequence[JobFile], problems: Mapping[str, Problems]) -> None:
    """Store each file's problems; those of files from before are in the error of the job."""
    told = [_with_problems(one, problems[one.name]) for one in files if one.name in problems]
    for one in told:
        stores.corpus_jobs.record_file(job, one)
    before = [name for name in problems if all(one.name != name for one in files)]
    parts = [f"{one.name} {one.reason}" for one in told[:1]]
    for name in before[:1]:
        first = problems[name].shown[0]
        parts.append(
            f"{name}, which was loaded before, would have {problems[name].count:,} bad rows ({first})"
        )
    stores.corpus_jobs.fail(job, f"Nothing was loaded: {'; '.join(parts)}.")


# ── publishing ────────────────────────────────────────────────────────────────────────────────────


def write_version(
    stores: Stores,
    version: str,
    sources: Sequence[Source],
    database: Path,
    schema: Schema,
    documents: Sequence[Document],
) -> None:
    """Write all objects of a version before it is published."""
    corpora = stores.corpora
    for place, source in enumerate(sources):
        corpora.write_file(GRAPH, version, _source(place), source.path)
    corpora.write_schema(GRAPH, version, schema.to_json().encode())
    corpora.write_file(GRAPH, version, "index", database)
    corpora.write_documents(GRAPH, version, documents)


def _publish(
    stores: Stores,
    job: Job,
    planned: Plan,
    base: Published | None,
    sources: Sequence[Source],
    database: Path,
    schema: Schema,
) -> Next:
    """Write the version, then make it current and end the job. Returns ``again`` if another job was faster."""
    version = f"{job.job_id}.{new_job_id()[-8:]}"
    documents = [one.document for one in planned.documents]
    write_version(stores, version, sources, database, schema, documents)
    ended = replace(_done(stores, job, planned), version=version)
    new = Published(version, "", planned.counts, ended.ended)
    try:
        stores.corpora.publish(
            GRAPH, new, base.version if base else None, stores.corpus_jobs.end_actions(ended)
        )
    except Lost as lost:
        return "done" if "job" in lost.items else "again"
    return "done"


def _done(stores: Stores, job: Job, planned: Plan) -> Job:
    return replace(job, status="done", outcomes=planned.outcomes, ended=int(stores.clock()))
