"""Starts the chats of schedules that are due; runs every minute."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from dataclasses import asdict
    from typing import TYPE_CHECKING, Any, Final

    from aws_lambda_powertools import Logger
    from dualtrack.chat.cost_hold import cost_settings
    from dualtrack.plugins.schedules.run import Starting, run_schedules
    from dualtrack.runtime.clients import LazyClient
    from dualtrack.runtime.executions import Executions
    from dualtrack.runtime.metrics import count
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import AdmissionStores, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
settings = settings_from()
stores = open_stores(settings, AdmissionStores)
step_functions: Any = LazyClient("stepfunctions")
starting = Starting(
    Executions(step_functions, settings.state_machine_arn), cost_settings(settings), settings.upgrade_message
)

ONE_SCHEDULE_SECONDS: Final = 10
"""Time reserved for the last one."""


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Returns the numbers of schedules: ``{"started", "refused", "waiting"}``, and whether all were tried:
    ``"complete"``."""

    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > ONE_SCHEDULE_SECONDS * 1000

    report = run_schedules(stores, starting, has_time)
    # only non-zero metrics: one costs $0.30 for a month in which it is sent
    for name, figure in (("ScheduledChats", report.started), ("SchedulesRefused", report.refused)):
        if figure:
            count(name, figure)
    if any((report.started, report.refused, report.waiting, not report.complete)):
        logger.info("Schedules", **asdict(report))
    return asdict(report)
