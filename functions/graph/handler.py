"""Runs a tool call on the graph."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from dualtrack.chat.run_tool import run_tool
    from dualtrack.requests import chat_ref
    from dualtrack.runtime.private import keep_private
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import SearchStores, open_stores
    from dualtrack.tools.graph.opening import open_graph
    from dualtrack.tools.registry import in_house_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext


keep_private()  # the engine is a child process that runs a query written by a model
logger = Logger()
settings = settings_from()
stores = open_stores(settings, SearchStores)
execute = in_house_tools("graph", open_graph(settings, stores.corpora, logger))


@logger.inject_lambda_context(correlation_id_path="chat_id")
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"user", "chat_id", "conversation_id", "turn", "call": {"id", "fn"}}`` → ``{}``."""
    seconds = context.get_remaining_time_in_millis() / 1000
    return run_tool(chat_ref(event), event["call"]["id"], stores, execute, seconds)
