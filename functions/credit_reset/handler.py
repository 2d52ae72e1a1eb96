"""The scheduled reset of 00:00 UTC: brings used accounts up to date."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from dualtrack.chat.credit_reset import WRITERS, ResetReport, ResetUnfinished, reset_accounts
from dualtrack.runtime.metrics import count
from dualtrack.settings import settings_from
from dualtrack.storage.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()

LAST_PAGE_SECONDS: Final = 30
"""Time reserved at the end for a page that is throttled."""


@cache
def ledger() -> Ledger:
    client = boto3.client("dynamodb", config=Config(max_pool_connections=WRITERS))
    return Ledger(client, settings_from().credits_table)


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Returns what was done; raises `ResetUnfinished` so that the invocation is retried."""

    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > LAST_PAGE_SECONDS * 1000

    report = reset_accounts(ledger(), time.time(), has_time)
    _tell(report)
    if report.unfinished:
        raise ResetUnfinished("Accounts are left; the next run continues with them.")
    return {"reset": report.reset, "moved": report.moved}


def _tell(report: ResetReport) -> None:
    for name, figure in (("CreditAccountsReset", report.reset), ("CreditAccountsLeft", report.failed)):
        if figure:  # a metric that is sent every day costs $0.30 a month, even if it is zero
            count(name, figure)
    logger.info(
        "Accounts brought up to date",
        reset=report.reset,
        moved=report.moved,
        failed=report.failed,
        error=report.error,
        out_of_time=report.out_of_time,
    )
