"""DynamoDB engines for the credit simulation; each is a context manager that yields a client."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import boto3
from botocore.config import Config

from tests.drivers.credit_tables import dynamodb_client
from tests.drivers.memory_aws import Client, MemoryAws
from tests.servers.processes import free_port, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from mypy_boto3_dynamodb.client import DynamoDBClient

ROOT: Final = Path(__file__).parents[1]
DYNAMODB_LOCAL: Final = Path(os.environ.get("DYNAMODB_LOCAL_DIR", ROOT / ".build" / "dynamodb-local"))
"""Where .ci/dynamodb_local.sh installs AWS's own engine."""


@contextmanager
def memory() -> Iterator[DynamoDBClient]:
    """Our own engine in memory, the fastest."""
    yield cast("DynamoDBClient", Client(partial(MemoryAws().call, "dynamodb")))


@contextmanager
def dynamodb_local() -> Iterator[DynamoDBClient]:
    """DynamoDB Local, in memory."""
    port = free_port()
    command = ["java", f"-Djava.library.path={DYNAMODB_LOCAL}", "-cp", f"{DYNAMODB_LOCAL}/*"]
    main = "software.amazon.dynamodb.services.local.main.ServerRunner"
    options = ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]
    with running([*command, main, *options], {"AWS_REGION": "us-east-1"}):
        yield _client(port)


def has_dynamodb_local() -> bool:
    """Whether it was fetched and Java is here."""
    return DYNAMODB_LOCAL.is_dir() and shutil.which("java") is not None


ENGINES: Final[Mapping[str, Callable[[], AbstractContextManager[DynamoDBClient]]]] = {
    "memory": memory,
    "ministack": dynamodb_client,
    "dynamodb-local": dynamodb_local,
}


def _client(port: int) -> DynamoDBClient:
    """A client that waits for its engine: refused connections are retried with growing pauses."""
    keys: Any = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    waiting = Config(retries={"mode": "standard", "max_attempts": 10})
    endpoint = f"http://127.0.0.1:{port}"
    boto3.client("dynamodb", "us-east-1", endpoint_url=endpoint, config=waiting, **keys).list_tables()
    once = Config(retries={"mode": "standard", "max_attempts": 1})
    return boto3.client("dynamodb", "us-east-1", endpoint_url=endpoint, config=once, **keys)
