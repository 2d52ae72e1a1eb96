"""The new version that a job makes: pure decisions by titles and digests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualtrack.storage.corpora import StoredDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.storage.corpus_jobs import Job, JobFile
    from dualtrack.vocabulary import Outcome


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """A document of the new version. ``file``: the job's file that it comes from; None for an existing document."""

    document: StoredDocument
    file: JobFile | None = None


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """The documents of the new version in order, and the outcome of each accepted file, by its number."""

    documents: tuple[PlannedDocument, ...]
    outcomes: Mapping[str, Outcome]
    changes: bool

    def size(self, counted: str) -> int:
        """The total of a count."""
        return sum(entry.document.counts.get(counted, 0) for entry in self.documents)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of documents and of their parts."""
        names = [name for entry in self.documents for name in entry.document.counts]
        return {"documents": len(self.documents), **{name: self.size(name) for name in dict.fromkeys(names)}}


def plan(
    base: Sequence[StoredDocument],
    job: Job,
    files: Sequence[JobFile],
    now: int,
    key: Callable[[str], str] = str,
) -> VersionPlan:
    """The version that a job makes from the current one.

    A document with the same title and content as a file does not change; one with the same title and other content is
    replaced at its position; new documents come last, in the order of their files. Nothing of the current version is
    lost except what the job replaces or removes. Titles are compared by their ``key``; a file that replaces a document
    of another title takes its place, and also that of the document of its own title. What is removed is the document of
    exactly that title; where it has become another spelling meanwhile, that one.
    """
    read = {key(file.title): file for file in files if file.state == "read"}
    gives_way = {key(file.replaces): key(file.title) for file in read.values() if file.replaces}
    exact = {document.title for document in base}
    gone = set(job.remove) & exact
    gone_since = {key(title) for title in job.remove if title not in exact}
    outcomes: dict[str, Outcome] = {}
    planned: list[PlannedDocument] = []
    placed: set[str] = set()
    for document in base:
        own = key(document.title)
        title = own if own in read else gives_way.get(own, own)
        file = read.pop(title, None)
        if file is None:
            is_replaced = own in placed or own in gives_way
            is_gone = document.title in gone or own in gone_since
            if not (is_replaced or is_gone or job.reset):
                planned.append(PlannedDocument(document))
            continue
        placed.add(title)
        if title == own and file.digest == document.digest:
            outcomes[str(file.number)] = "skipped"
            planned.append(PlannedDocument(document))
        else:
            outcomes[str(file.number)] = "replaced"
            planned.append(_new(file, now))
    for file in read.values():
        outcomes[str(file.number)] = "added"
        planned.append(_new(file, now))
    changes = [entry.document for entry in planned] != list(base)
    return VersionPlan(tuple(planned), outcomes, changes)


def repeated_title(title: str, files: Sequence[JobFile], key: Callable[[str], str] = str) -> str:
    """Why a title cannot be used again in a job; empty if it can."""
    same = (file.name for file in files if file.state == "read" and key(file.title) == key(title))
    first = next(same, "")
    return f"has the title of {first}, '{title}': titles must differ" if first else ""


def _new(file: JobFile, now: int) -> PlannedDocument:
    document = StoredDocument(file.title, file.digest, file.name, file.counts, now, file.facts)
    return PlannedDocument(document, file)
