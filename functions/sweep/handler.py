"""Ends or starts the chats that nobody looks after; runs every five minutes."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import os
    from dataclasses import asdict
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger, Metrics
    from aws_lambda_powertools.metrics import MetricUnit
    from dualtrack.chat.executions import Executions
    from dualtrack.chat.sweep import sweep
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import LazyClient, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
metrics = Metrics()
settings = settings_from(os.environ)
stores = open_stores(settings)
step_functions: Any = LazyClient("stepfunctions")
executions = Executions(step_functions, settings.state_machine_arn)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Returns what was done: ``{"seen", "started", "ended"}`` chats, and whether all were seen: ``"complete"``."""
    swept = sweep(stores, executions, context.get_remaining_time_in_millis() / 1000)
    metrics.add_metric("OpenChats", MetricUnit.Count, swept.seen)
    metrics.add_metric("SweptChats", MetricUnit.Count, swept.started + swept.ended)
    done = asdict(swept)
    logger.info("Swept", **done)
    return done
