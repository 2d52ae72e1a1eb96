"""Deletes the unused objects of a corpus: replaced versions, and leftovers of ended jobs.

The order of the reads makes it safe: first the objects and vector indexes, then the active jobs, then the current
version. If a job has ended by then, its version is current or never will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.ids import job_id_at
from dualtrack.storage.corpora import owner
from dualtrack.storage.corpus_jobs import CLEAN_AFTER
from dualtrack.storage.vector_indexes import index_name

if TYPE_CHECKING:
    from dualtrack.storage.stores import IndexStores

FORGOTTEN_SECONDS: Final = 30 * 86_400
"""After this time an ended job can no longer be looked up."""


def clean(stores: IndexStores, corpus: str) -> None:
    """Delete what is due; objects of an active job stay, and are checked after it has ended."""
    due, now = stores.corpus_jobs.clean_due(corpus), stores.clock()
    if due is None or due > now:
        return
    objects = stores.corpora.objects(corpus)
    indexes = stores.vector_indexes.names(index_name(corpus, "")) if stores.vector_indexes else []
    active = {job.job_id for job in stores.corpus_jobs.open_jobs(corpus)}
    published = stores.corpora.published(corpus)
    if published and published.at + CLEAN_AFTER > now:
        return  # the replaced version may still be read; the job has postponed the cleanup
    current = published.version if published else None
    stores.corpora.delete(key for key in objects if _is_left(corpus, key, active, current))
    for name in indexes:
        if _is_unused(corpus, name, active, current):
            assert stores.vector_indexes is not None
            stores.vector_indexes.delete(name)
    stores.corpus_jobs.forget(corpus, job_id_at(now - FORGOTTEN_SECONDS))
    stores.corpus_jobs.cleaned(corpus, due)


def _is_unused(corpus: str, name: str, active: set[str], current: str | None) -> bool:
    """Whether a vector index belongs neither to the current version nor to an active job."""
    of_jobs = tuple(index_name(corpus, f"{job}.") for job in active)
    return not name.startswith(of_jobs) and (current is None or name != index_name(corpus, current))


def _is_left(corpus: str, key: str, active: set[str], current: str | None) -> bool:
    kind, name = owner(corpus, key)
    return name.split(".")[0] not in active and (kind == "parts" or name != current)
