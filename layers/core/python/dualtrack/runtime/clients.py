"""boto3 clients. Light: the event stream imports this and no stores."""

from __future__ import annotations

import threading
from typing import Any

import boto3
from botocore.config import Config

_creating = threading.Lock()


def client_config() -> Config:
    """Short timeouts, so that retries fit in the deadline of a step."""
    return Config(
        connect_timeout=2,
        read_timeout=10,
        retries={"mode": "standard", "max_attempts": 5},
        max_pool_connections=50,  # opened as they are needed; more threads than that would connect anew each time
    )


class LazyClient:
    """A boto3 client made at its first use: most steps never touch S3 or Step Functions."""

    def __init__(self, service: str, config: Config | None = None) -> None:
        self._service = service
        self._config = config
        self._client: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._client is None:
            with _creating:  # using a client is thread-safe, creating one is not, nor are two of them
                if self._client is None:
                    self._client = boto3.client(self._service, config=self._config or client_config())  # type: ignore[call-overload]
        return getattr(self._client, name)
