"""What a job makes of a corpus: pure decisions about titles and digests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualtrack.storage.corpora import Document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.storage.corpus_jobs import Job, JobFile, Outcome


@dataclass(frozen=True, slots=True)
class Planned:
    """A document of the new version. ``file``: the job's file that it is of, None for one that is there already."""

    document: Document
    file: JobFile | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The documents of the new version in order, and what became of each file that was taken, by its place."""

    documents: tuple[Planned, ...]
    outcomes: Mapping[str, Outcome]
    changes: bool

    def size(self, counted: str) -> int:
        """How much it has in all."""
        return sum(one.document.counts.get(counted, 0) for one in self.documents)

    @property
    def counts(self) -> dict[str, int]:
        """Documents, and what they consist of."""
        names = [name for one in self.documents for name in one.document.counts]
        return {"documents": len(self.documents), **{name: self.size(name) for name in dict.fromkeys(names)}}


def plan(base: Sequence[Document], job: Job, files: Sequence[JobFile], now: int) -> Plan:
    """The version that a job makes of the current one.

    What says the same as a file under its title stays as it is; another document of that title is replaced at
    its place; new ones come last, in the order of their files. Whatever the current version is by then,
    nothing of it is lost but what the job replaces or removes.
    """
    read = {one.title: one for one in files if one.state == "read"}
    outcomes: dict[str, Outcome] = {}
    planned: list[Planned] = []
    for document in base:
        one = read.pop(document.title, None)
        if one is None:
            if not job.reset and document.title not in job.remove:
                planned.append(Planned(document))
        elif one.digest == document.digest:
            outcomes[str(one.place)] = "skipped"
            planned.append(Planned(document))
        else:
            outcomes[str(one.place)] = "replaced"
            planned.append(_new(one, now))
    for one in read.values():
        outcomes[str(one.place)] = "added"
        planned.append(_new(one, now))
    changes = [one.document for one in planned] != list(base)
    return Plan(tuple(planned), outcomes, changes)


def repeated_title(title: str, files: Sequence[JobFile]) -> str:
    """Why a title cannot be taken again in one job; empty if it can."""
    first = next((one.name for one in files if one.state == "read" and one.title == title), "")
    return f"has the title of {first}, '{title}': titles have to differ" if first else ""


def _new(one: JobFile, now: int) -> Planned:
    return Planned(Document(one.title, one.digest, one.name, one.counts, now), one)
