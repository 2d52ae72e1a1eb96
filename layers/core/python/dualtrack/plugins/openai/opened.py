"""The routes over what the function `stream` has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.chat.cost_hold import cost_settings
from dualtrack.plugins.openai.admission import Admission
from dualtrack.plugins.openai.app import OpenAIDoor
from dualtrack.plugins.openai.store import ExchangeIndex
from dualtrack.runtime.environment import trace_header
from dualtrack.runtime.executions import Executions
from dualtrack.storage.stores import build_stores

if TYPE_CHECKING:
    from dualtrack.api.streamed import StreamServices


def open_door(services: StreamServices) -> OpenAIDoor:
    """It admits chats as the function `api` does."""
    settings = services.settings
    admission = Admission(
        build_stores(settings, services.dynamodb, services.s3),
        ExchangeIndex(services.dynamodb, settings.chats_table),
        Executions(services.step_functions, settings.state_machine_arn, trace_header),
        cost_settings(settings),
        settings.upgrade_message,
    )
    return OpenAIDoor(
        admission,
        services.reader,
        services.identify,
        settings.dualtrack_task_headers,
        settings.dualtrack_conversation_headers,
    )
