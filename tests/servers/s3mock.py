"""Adobe's S3Mock as a server of Amazon S3 Vectors, in its own process (.ci/install_s3mock.sh installs it)."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config

from tests.servers.processes import free_ports, running

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(os.environ.get("S3MOCK_DIR", ROOT / ".build" / "s3mock"))
PATIENCE: Final = 60
"""Seconds for its start on a busy machine."""


def has_s3mock() -> bool:
    """Whether it was fetched and Java is here."""
    return any(FOLDER.glob("*.jar")) and shutil.which("java") is not None


@contextmanager
def s3mock(bucket: str) -> Iterator[Any]:
    """A client of the service ``s3vectors``, with this vector bucket. It does not retry."""
    (jar,) = FOLDER.glob("*.jar")
    ports = free_ports(4)
    names = ("vectors.http.port", "vectors.https.port", "http.port", "server.port")
    options = [f"--{name}={port}" for name, port in zip(names, ports, strict=True)]
    command = [
        "java",
        "-XX:TieredStopAtLevel=1",
        "-jar",
        str(jar),
        "--spring.profiles.active=vectors",
        *options,
    ]
    with running(command, {}):
        yield _client(ports[0], bucket)


def _client(port: int, bucket: str) -> Any:
    """A client that has waited for the server: refused connections are retried with growing pauses."""
    connection: dict[str, Any] = {
        "region_name": "us-east-1",
        "endpoint_url": f"http://127.0.0.1:{port}",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }
    waiting = Config(retries={"mode": "standard", "max_attempts": 12}, read_timeout=PATIENCE)
    boto3.client("s3vectors", config=waiting, **connection).create_vector_bucket(vectorBucketName=bucket)
    return boto3.client("s3vectors", config=Config(retries={"total_max_attempts": 1}), **connection)
