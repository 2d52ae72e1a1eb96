"""Runs a documentation search: the tool ``retrieve_documentation``."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import os
    from functools import lru_cache
    from typing import TYPE_CHECKING, Any, Final

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.utilities.parameters import get_secret
    from dualtrack.chat.run_tool import run_tool
    from dualtrack.clock import system_clock
    from dualtrack.models.open_model import open_model
    from dualtrack.requests import chat_ref
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import open_stores
    from dualtrack.tool import ToolResult, unknown
    from dualtrack.tools.documentation.dependencies import (
        Dependencies,
        build_dependencies,
        search_environment,
    )
    from dualtrack.tools.documentation.pipeline import retrieve_documentation
    from dualtrack.tools.documentation.spec import RETRIEVE_DOCUMENTATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.tools.running import Running

SECRET_SECONDS: Final = 300
"""How long a secret that an operator has changed may still be used."""

logger = Logger()
settings = settings_from(os.environ)
stores = open_stores(settings)
environment = search_environment(os.environ)


@logger.inject_lambda_context(correlation_id_path="chat_id")
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"user", "chat_id", "conversation_id", "turn", "call": {"id", "fn"}}`` → ``{}``."""
    seconds = context.get_remaining_time_in_millis() / 1000
    return run_tool(chat_ref(event), event["call"]["id"], stores, execute, seconds)


def execute(running: Running) -> ToolResult:
    """What `run_tool` runs."""
    if running.call.tool != RETRIEVE_DOCUMENTATION.name:
        return unknown(running.call.tool)
    names = (settings.anthropic_secret, environment.voyage_secret, environment.context7_secret)
    return retrieve_documentation(running.call.input["query"], _dependencies(tuple(map(_secret, names))))


def _secret(name: str) -> str:
    """The secret's string, read at most every five minutes; "" for one that is not named."""
    return str(get_secret(name, max_age=SECRET_SECONDS)) if name else ""


@lru_cache(maxsize=1)
def _dependencies(secrets: tuple[str, ...]) -> Dependencies:
    """Clients for these keys: once per container, and again when a key has changed."""
    _, voyage, context7 = secrets
    return build_dependencies(
        environment,
        model=open_model(settings),
        secret={environment.voyage_secret: voyage, environment.context7_secret: context7}.__getitem__,
        dynamodb=stores.dynamodb,
        clock=system_clock,
        logger=logger,
    )
