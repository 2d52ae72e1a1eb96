"""AWS in this process: moto, with MiniStack's DynamoDB.

moto undoes a cancelled transaction by a copy of every table that it names, which takes most of a test's time and loses
what another thread has written since. MiniStack checks a transaction before it writes.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any
from unittest import mock

from dualtrack_stack.local.read_once import read_once
from dualtrack_stack.local.testing.aws import finished
from ministack.services import dynamodb
from moto import mock_aws
from moto.core.models import botocore_stubber

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.awsrequest import AWSPreparedRequest

_moto = botocore_stubber.process_request
_one_at_a_time = threading.RLock()
read_once(dynamodb)


@contextlib.contextmanager
def aws_in_process() -> Iterator[None]:
    """An empty account for every client that is made inside; two do not exist at once."""
    dynamodb.reset()
    with mock_aws(), mock.patch.object(botocore_stubber, "process_request", _answer):
        yield


def _answer(request: AWSPreparedRequest) -> Any:
    """Status, headers and body: one request after another, as neither engine is safe for threads."""
    with _one_at_a_time:
        return _of_dynamodb(request) if request.url.startswith("https://dynamodb.") else _moto(request)


def _of_dynamodb(request: AWSPreparedRequest) -> Any:
    target: Any = request.headers["X-Amz-Target"]
    headers = {"x-amz-target": target.decode()}
    body: Any = request.body
    return finished(dynamodb.handle_request("POST", "/", headers, body, {}))
