"""DynamoDB and S3 in memory: boto3 clients whose requests the emulator's own code answers, without a connection.

The tables are those of the data stack's template. Each `stores_in_memory` is an AWS account of its own, which ends with
its block.
"""

from __future__ import annotations

import json
import logging
import secrets
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import import_module
from io import BytesIO
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.awsrequest import AWSResponse
from botocore.config import Config
from dualtrack.settings import settings_from
from dualtrack.storage.stores import build_stores
from dualtrack_stack.local.aws import REGION, emulated_session
from dualtrack_stack.local.read_once import read_once
from dualtrack_stack.local.synth import SHIPPED
from ministack.core.responses import request_scope

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping

    from botocore.awsrequest import AWSPreparedRequest
    from dualtrack.clock import Clock
    from dualtrack.storage.stores import Stores

_TABLES: Final = ("history", "chats", "credits", "cache")
_OF_A_TABLE: Final = ("AttributeDefinitions", "BillingMode", "KeySchema", "GlobalSecondaryIndexes")
_ONE_AT_A_TIME: Final = RLock()
"""The emulator answers on one thread and locks nothing itself; botocore's session makes one client at a time."""


@contextmanager
def stores_in_memory(clock: Clock) -> Iterator[Stores]:
    """Empty stores of a stage, on the semantics of DynamoDB and S3: conditions, transactions, limits."""
    account = str(secrets.randbelow(9 * 10**11) + 10**11)
    tables, objects = _client("dynamodb", account), _Objects(account)
    names = {f"{name.upper()}_TABLE": name for name in _TABLES}
    for name in _TABLES:
        tables.create_table(TableName=name, **_declared()[name])
    try:
        settings = settings_from({**names, "BODIES_BUCKET": objects.bucket})
        yield build_stores(settings, tables, cast("Any", objects), clock)
    finally:
        for name in _TABLES:
            tables.delete_table(TableName=name)
        objects.delete()


class _Objects:
    """S3 with its bucket, made at its first use: few chats store anything there, and its code loads slowly."""

    def __init__(self, account: str) -> None:
        self._account = account
        self.bucket = f"bodies-{account}"  # a bucket's name is one for all accounts

    def __getattr__(self, name: str) -> Any:
        with _ONE_AT_A_TIME:
            return getattr(self._made, name)

    @cached_property
    def _made(self) -> Any:
        client = _client("s3", self._account)
        client.create_bucket(Bucket=self.bucket)
        return client

    def delete(self) -> None:
        """The bucket with what is in it, if it was made."""
        if "_made" not in vars(self):
            return
        for page in self._made.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for found in page.get("Contents", ()):
                self._made.delete_object(Bucket=self.bucket, Key=found["Key"])
        self._made.delete_bucket(Bucket=self.bucket)


@cache
def _declared() -> Mapping[str, Mapping[str, Any]]:
    """What the template declares of each table that its items depend on."""
    resources = json.loads((SHIPPED / "Data.template.json").read_bytes())["Resources"]
    declared = {
        logical_id[:-8].lower(): resource["Properties"]
        for logical_id, resource in resources.items()
        if resource["Type"] == "AWS::DynamoDB::Table"
    }
    return {
        name: {field: properties[field] for field in _OF_A_TABLE if field in properties}
        for name, properties in declared.items()
    }


_session: Final = emulated_session()
"""Caches what clients are made from."""


def _client(service: str, account: str) -> Any:
    with _ONE_AT_A_TIME:
        client = _session.create_client(
            service,
            region_name=REGION,
            endpoint_url="http://memory.invalid",
            aws_access_key_id=account,
            aws_secret_access_key="memory",  # noqa: S106 - nobody checks it
            config=Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required"),
        )
    answer: Any = _Emulated(service, account)
    client.meta.events.register("before-send", answer)
    return client


@cache
def _service(name: str) -> Any:
    """The emulator's code. It sets up the root logger for its own process, which this one is not."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        if name == "s3":
            import_module("ministack.app")  # it would be imported with the first request
        service = import_module(f"ministack.services.{name}")
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
    if name == "dynamodb":
        read_once(service)
    return service


class _Emulated:
    """Answers a client's requests instead of sending them: botocore's event ``before-send``."""

    def __init__(self, service: str, account: str) -> None:
        self._service, self._account = _service(service), account

    def __call__(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        url = urlsplit(request.url)
        headers = {name.lower(): _text(value) for name, value in request.headers.items()}
        query = parse_qs(url.query, keep_blank_values=True)
        body: Any = request.body or b""
        raw = _bytes(body.read() if hasattr(body, "read") else body)
        with _ONE_AT_A_TIME, request_scope(self._account, REGION):
            answered = self._service.handle_request(request.method, unquote(url.path), headers, raw, query)
            status, returned, content = finished(answered)
        return AWSResponse(request.url, status, returned, _Raw(_bytes(content)))


def finished(answering: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine of the emulator returns. It waits for nothing, so it needs no event loop: a test may run one."""
    try:
        answering.send(None)
    except StopIteration as stopped:
        return stopped.value
    raise RuntimeError("The emulator waits for something outside of the process.")


class _Raw(BytesIO):
    """A body as botocore reads it."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _bytes(value: str | bytes | bytearray) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
