"""What admits chats, over the clients of the function `stream`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.chat.cost_hold import cost_settings
from dualtrack.openai.admission import Admission
from dualtrack.runtime.environment import trace_header
from dualtrack.runtime.executions import Executions
from dualtrack.storage.exchanges import ExchangeIndex
from dualtrack.storage.stores import build_stores

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_stepfunctions.client import SFNClient

    from dualtrack.settings import Settings


def open_admission(
    settings: Settings, dynamodb: DynamoDBClient, s3: S3Client, step_functions: SFNClient
) -> Admission:
    """As the function `api` admits chats."""
    return Admission(
        build_stores(settings, dynamodb, s3),
        ExchangeIndex(dynamodb, settings.chats_table),
        Executions(step_functions, settings.state_machine_arn, trace_header),
        cost_settings(settings),
        settings.upgrade_message,
    )
