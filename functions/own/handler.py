"""Runs a call of one of the project's own tools, which are packaged beside this file."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from functools import partial
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from dualtrack.chat.run_tool import run_tool
    from dualtrack.requests import chat_ref
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import ToolStores, open_stores
    from dualtrack.tools.project_settings import project_settings
    from dualtrack.tools.registry import in_house_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
settings = settings_from()
stores = open_stores(settings, ToolStores)
told = partial(project_settings, settings)
told()  # before the tools are imported: a package may read its key then
execute = in_house_tools("own", settings=told)


@logger.inject_lambda_context(correlation_id_path="chat_id")
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"user", "chat_id", "conversation_id", "turn", "call": {"id", "fn"}}`` → ``{}``."""
    logger.info("Runs a tool", call=event["call"]["id"])  # so `dualtrack logs` knows whose lines follow
    seconds = context.get_remaining_time_in_millis() / 1000
    return run_tool(chat_ref(event), event["call"]["id"], stores, execute, seconds)
