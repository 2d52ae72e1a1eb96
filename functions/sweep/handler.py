"""Ends or starts abandoned chats, and continues deletions; runs every five minutes."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from dataclasses import asdict
    from typing import TYPE_CHECKING, Any, Final

    from aws_lambda_powertools import Logger
    from dualtrack.api.users import UserPool
    from dualtrack.chat.sweep import sweep
    from dualtrack.chat.sweep_deletions import sweep_deletions
    from dualtrack.chat.uploaded_files import sweep_uploads
    from dualtrack.corpora.jobs import sweep_corpora
    from dualtrack.runtime.clients import LazyClient
    from dualtrack.runtime.environment import trace_header
    from dualtrack.runtime.executions import Executions
    from dualtrack.runtime.metrics import count, count_end
    from dualtrack.runtime.time_limit import within
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import SweepStores, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
settings = settings_from()
stores = open_stores(settings, SweepStores)
step_functions: Any = LazyClient("stepfunctions")
cognito: Any = LazyClient("cognito-idp")
executions = Executions(step_functions, settings.state_machine_arn, trace_header)
corpus_executions = Executions(step_functions, settings.corpus_machine_arn)
users = UserPool(cognito, settings.user_pool_id)

DELETION_SECONDS: Final = 60
"""Time reserved for deletions, however long the chats take."""

CORPORA_SECONDS: Final = 20
"""Time for corpora, which come first: checking open jobs, and sometimes deleting objects."""

UPLOAD_SECONDS: Final = 10
"""Time for uploads that have expired."""


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Returns what was done: ``{"seen", "started", "ended"}`` chats, and whether all were processed:
    ``"complete"``; the numbers of ``"deletions"`` processed, of ``"corpus_jobs"`` restarted and
    of ``"uploads"`` taken away.
    """
    try:
        jobs = within(CORPORA_SECONDS, lambda: sweep_corpora(stores, corpus_executions), "corpora")
    finally:
        try:
            seconds = _seconds_left(context) - DELETION_SECONDS
            swept = sweep(stores, executions, seconds, ended=count_end)
        finally:
            try:
                uploads = sweep_uploads(stores, UPLOAD_SECONDS)
            finally:
                deletions = sweep_deletions(stores, executions, users, _seconds_left(context))
    _tell(OpenChats=swept.seen, SweptChats=swept.started + swept.ended, Deletions=deletions.seen)
    complete = swept.complete and deletions.complete
    done: dict[str, Any] = asdict(swept) | {
        "deletions": deletions.seen,
        "corpus_jobs": jobs,
        "uploads": uploads,
        "complete": complete,
    }
    logger.info("Swept", **done)
    return done


def _tell(**counts: int) -> None:
    """Only non-zero metrics: a metric costs $0.30 for a month in which it is sent, and an idle stage needs
    none."""
    for name, figure in counts.items():
        if figure:
            count(name, figure)


def _seconds_left(context: LambdaContext) -> float:
    return context.get_remaining_time_in_millis() / 1000
