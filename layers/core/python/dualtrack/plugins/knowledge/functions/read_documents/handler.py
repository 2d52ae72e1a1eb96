"""Works on a job that changes a collection: reads documents, embeds their passages, publishes the new version."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from functools import lru_cache
    from typing import TYPE_CHECKING, Any, Final

    from aws_lambda_powertools import Logger
    from dualtrack.corpora.ingest import Ingest, ingest
    from dualtrack.corpora.jobs import fail_job
    from dualtrack.knowledge.local_embedder import open_local_embedder
    from dualtrack.knowledge.voyage_embedder import voyage_embedder
    from dualtrack.plugins.knowledge.kind import DocumentsKind
    from dualtrack.runtime.background_loop import BackgroundLoop
    from dualtrack.runtime.secrets import secret
    from dualtrack.runtime.time_limit import time_for
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import CorpusStores, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.knowledge.embedder import Embedder

logger = Logger()
settings = settings_from()
stores = open_stores(settings, CorpusStores)
local = open_local_embedder(settings.embed_function, settings.dualtrack_embed_calls)
loop = BackgroundLoop()
KIND: Final = DocumentsKind()

RESERVE_SECONDS: Final = 130.0
"""Time reserved for the longest step, a file or a batch, and for publishing."""


@logger.inject_lambda_context(correlation_id_path="job")
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"corpus", "job"}`` → ``{"next": "again" | "done"}``; with ``"error"`` the job is ended as failed."""
    corpus, job_id = event["corpus"], event["job"]
    if "error" in event:
        logger.warning("A collection's job failed", corpus=corpus, job=job_id, error=event["error"])
        fail_job(stores, corpus, job_id, event["error"])
        return {"next": "done"}
    has_time = time_for(context.get_remaining_time_in_millis() / 1000 - RESERVE_SECONDS)
    following = ingest(Ingest(stores, KIND, _embedder(), loop, named=corpus), job_id, has_time)
    logger.info("Worked on a collection", corpus=corpus, job=job_id, next=following)
    return {"next": following}


def _embedder() -> Embedder | None:
    """Voyage if there is a key, else the local model."""
    key = secret(settings.voyage_secret)
    return _voyage(key) or local


@lru_cache(maxsize=1)
def _voyage(key: str) -> Embedder | None:
    return voyage_embedder(settings, key)
