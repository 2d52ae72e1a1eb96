"""Dropping a corpus that belongs to somebody: at once it is found by nobody and its jobs have ended; the sweep deletes
its objects when no writer can be left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.storage.corpus_jobs import CLEAN_AFTER

if TYPE_CHECKING:
    from dualtrack.storage.owned_corpora import OwnedCorpora, OwnedCorpus
    from dualtrack.storage.stores import CorpusStores

_DROPPED: Final = "It was deleted while the job ran."


def owned_in(stores: CorpusStores) -> OwnedCorpora:
    """The store of owned corpora beside the versions."""
    from dualtrack.storage.owned_corpora import OwnedCorpora  # noqa: PLC0415 - not every function has them

    return OwnedCorpora(stores.corpora.dynamodb, stores.corpora.table)


def drop(stores: CorpusStores, owned: OwnedCorpus) -> bool:
    """Remove the corpus; false if it was gone."""
    noted = stores.corpus_jobs.dropped(owned.corpus, int(stores.clock()) + CLEAN_AFTER)
    is_dropped = owned_in(stores).drop(owned, noted)
    end_jobs(stores, owned.corpus)
    return is_dropped


def end_jobs(stores: CorpusStores, corpus: str) -> None:
    """End the jobs of a dropped corpus: a job that has ended publishes nothing."""
    for job in stores.corpus_jobs.open_jobs(corpus):
        stores.corpus_jobs.fail(job, _DROPPED)


def drop_all(stores: CorpusStores, owner: str) -> bool:
    """Remove all that belongs to an erased user; returns whether anything was left."""
    listed = owned_in(stores).every(owner)
    for owned in listed:
        drop(stores, owned)
    if not listed:
        owned_in(stores).forget(owner)
    return bool(listed)
