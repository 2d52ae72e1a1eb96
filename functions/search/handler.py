"""Runs a search: of documentation, of the current conversation, of course materials."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from functools import lru_cache
    from typing import TYPE_CHECKING, Any, Final

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.metrics import MetricUnit
    from dualtrack.chat.run_tool import run_tool
    from dualtrack.knowledge.local_embedder import open_local_embedder
    from dualtrack.models.cost_cap import asked_dollars
    from dualtrack.models.open_model import open_model
    from dualtrack.requests import chat_ref
    from dualtrack.runtime.metrics import MODEL_DOLLARS, count, count_degraded
    from dualtrack.runtime.secrets import secret
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import SearchStores, open_stores
    from dualtrack.tools.courses.library import CourseLibrary
    from dualtrack.tools.courses.settings import course_settings
    from dualtrack.tools.documentation.dependencies import (
        Dependencies,
        SearchNeeds,
        build_dependencies,
    )
    from dualtrack.tools.registry import in_house_tools

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
SECRETS: Final = (settings.voyage_secret, settings.context7_secret)


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
    """Runs the search with clients for the current keys."""
    model, secrets = open_model(settings), tuple(map(secret, SECRETS))
    return SearchNeeds(_dependencies(model, secrets), stores, _courses(model, secrets), local)


@lru_cache(maxsize=1)
def _dependencies(model: Model, secrets: tuple[str, ...]) -> Dependencies:
    """Clients for these keys: once per container, and again when a key has changed."""
    return build_dependencies(
        settings,
        model=model,
        secret=dict(zip(SECRETS, secrets, strict=True)).__getitem__,
        cache=stores.cache,
        logger=logger,
    )


@lru_cache(maxsize=1)
def _courses(model: Model, secrets: tuple[str, ...]) -> CourseLibrary:
    """The index of the course materials, which stays in memory."""
    documentation = _dependencies(model, secrets)
    known = (documentation.embedder, local)
    return CourseLibrary(
        stores.corpora,
        {embedder.model: embedder for embedder in known if embedder},
        documentation.loop,
        logger,
        course_settings(settings.dualtrack_course_ranking),
        vector_indexes=stores.vector_indexes,
    )


execute = in_house_tools("search", _needs)
