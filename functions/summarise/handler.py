"""Writes the summarised track of an answered query and closes the chat."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from functools import partial
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.metrics import MetricUnit
    from dualtrack.chat.summarise import summarise
    from dualtrack.knowledge.local_embedder import open_local_embedder
    from dualtrack.memory.summaries import summary_settings
    from dualtrack.models.cost_cap import side_rates
    from dualtrack.models.open_model import open_model
    from dualtrack.requests import chat_ref
    from dualtrack.runtime.metrics import MODEL_DOLLARS, count
    from dualtrack.runtime.secrets import secret
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import SummaryStores, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.knowledge.local_embedder import LocalEmbedder
    from dualtrack.models.receipt_data import SideCalls

logger = Logger()
settings = settings_from()
stores = open_stores(settings, SummaryStores)
summaries = summary_settings(settings)


@logger.inject_lambda_context(correlation_id_path="chat_id")
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"user", "chat_id", "conversation_id"}`` → ``{}``."""
    ref = chat_ref(event)
    outcome = summarise(
        ref,
        stores,
        partial(open_model, settings),
        summaries,
        settings.dualtrack_provider,
        _count_calls,
        embedder=_embedder,
    )
    if settings.otel_exporter_otlp_endpoint:
        from dualtrack.chat.send_spans import send_spans  # noqa: PLC0415 - only if a collector is set

        send_spans(stores, ref, settings, logger)
    return outcome


def _embedder() -> LocalEmbedder | None:
    """The local model, unless searches use Voyage's. Nobody waits for a block's vectors: one call after the other: the
    smallest accounts have ten executions for everything."""
    return None if secret(settings.voyage_secret) else open_local_embedder(settings.embed_function, 1)


def _count_calls(spent: SideCalls) -> None:
    if spent.calls:
        count(MODEL_DOLLARS, side_rates(spent).dollars(spent.usage), MetricUnit.NoUnit)
    if spent.missing:
        count("MissingSummaries", spent.missing)
        logger.warning(
            "Summaries are missing: extracts stand for them", missing=spent.missing, model=spent.model
        )
