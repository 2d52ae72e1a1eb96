"""Runs a search: of documentation, of the current conversation, of course materials."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from functools import lru_cache
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.metrics import MetricUnit
    from dualtrack.chat.run_tool import run_tool
    from dualtrack.knowledge.local_embedder import open_local_embedder
    from dualtrack.knowledge.voyage_embedder import voyage_embedder
    from dualtrack.models.cost_cap import asked_dollars
    from dualtrack.models.open_model import open_model
    from dualtrack.requests import chat_ref
    from dualtrack.runtime.background_loop import BackgroundLoop
    from dualtrack.runtime.metrics import MODEL_DOLLARS, count, count_degraded
    from dualtrack.runtime.secrets import secret
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import SearchStores, open_stores
    from dualtrack.tools.courses.library import CourseLibrary
    from dualtrack.tools.courses.settings import course_settings
    from dualtrack.tools.registry import in_house_tools
    from dualtrack.tools.search_needs import SearchNeeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.models.protocol import Model
    from dualtrack.models.receipt_data import ToolSideCalls
    from dualtrack.tool_values import ToolResult

logger = Logger()
settings = settings_from()
stores = open_stores(settings, SearchStores)
local = open_local_embedder(settings.embed_function, settings.dualtrack_embed_calls)
loop = BackgroundLoop()


@logger.inject_lambda_context(correlation_id_path="chat_id")
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"user", "chat_id", "conversation_id", "turn", "call": {"id", "fn"}}`` → ``{}``."""
    seconds = context.get_remaining_time_in_millis() / 1000
    return run_tool(chat_ref(event), event["call"]["id"], stores, execute, seconds, _count)


def _count(result: ToolResult, asked: Sequence[ToolSideCalls]) -> None:
    """Metrics: the parts that failed and the cost of model calls; the chat's receipt keeps the latter."""
    count_degraded(result.left_out)
    if asked:
        count(MODEL_DOLLARS, sum(map(asked_dollars, asked)), MetricUnit.NoUnit)


def _needs() -> SearchNeeds:
    """With clients for the current keys."""
    return _kept_needs(open_model(settings), secret(settings.voyage_secret))


@lru_cache(maxsize=1)
def _kept_needs(model: Model, voyage_key: str) -> SearchNeeds:
    """Once per container, and again when a key has changed: the index of the course materials stays in memory."""
    voyage = voyage_embedder(settings, voyage_key)
    courses = CourseLibrary(
        stores.corpora,
        {embedder.model: embedder for embedder in (voyage, local) if embedder},
        loop,
        logger,
        course_settings(settings.dualtrack_course_ranking),
        vector_indexes=stores.vector_indexes,
    )
    return SearchNeeds(settings, stores, courses, loop, logger, model, voyage, local)


execute = in_house_tools("search", _needs)
