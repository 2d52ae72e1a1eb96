"""Works on a job that changes the graph: checks files, builds one database from them, publishes it."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from typing import TYPE_CHECKING, Any, Final

    from aws_lambda_powertools import Logger
    from dualtrack.corpora.graph.load import load_graph
    from dualtrack.corpora.jobs import fail_job
    from dualtrack.runtime.time_limit import time_for
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import IndexStores, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
stores = open_stores(settings_from(), IndexStores)

RESERVE_SECONDS: Final = 600.0
"""Time reserved for building and publishing a database of the largest size."""


@logger.inject_lambda_context(correlation_id_path="job")
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"corpus", "job"}`` → ``{"next": "again" | "done"}``; with ``"error"`` the job is ended as failed."""
    corpus, job_id = event["corpus"], event["job"]
    if "error" in event:
        logger.warning("A graph job failed", job=job_id, error=event["error"])
        fail_job(stores, corpus, job_id, event["error"])
        return {"next": "done"}
    has_time = time_for(context.get_remaining_time_in_millis() / 1000 - RESERVE_SECONDS)
    following = load_graph(stores, job_id, has_time)
    logger.info("Worked on the graph", job=job_id, next=following)
    return {"next": following}
