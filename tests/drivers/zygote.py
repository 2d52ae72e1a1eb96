"""Workers for the crash matrix: a process that has imported every handler's libraries, and forks.

``python -m tests.drivers.zygote SOCKET [HANDLER ...]``. Each connection is one invocation in a process of its own: the
child gets the fields of a `Job`, sends its pid, waits for the go-ahead, imports the handler under the job's
environment, and sends ``("returned", value)`` or ``("raised", type, text)``. A child that is killed sends nothing.
Forking saves the second that importing the SDK takes; everything that a container keeps (clients, caches of secrets) is
the child's own.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, replace
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
from dualtrack.profiles import ApprovalPolicy, all_profiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.connection import Connection
    from types import ModuleType

ROOT: Final = Path(__file__).parents[2]
PLUGINS: Final = ROOT / "layers" / "core" / "python" / "dualtrack" / "plugins"
FUNCTIONS: Final = {
    path.parent.name: path.parent
    for root in (ROOT, *PLUGINS.iterdir())
    for path in sorted(root.glob("functions/*/*.py"))
}
"""The code of each function. As in `dualtrack_stack.roots`, which a process with its own layers alone cannot import."""

HANDLERS: Final = tuple(
    sorted(name for name, folder in FUNCTIONS.items() if (folder / "handler.py").is_file())
)
SECONDS: Final = 60.0
"""Milliseconds that an invocation may take, by its context."""

SWEEP_SECONDS: Final = 280.0
"""The sweep's: it shares its time between chats and deletions."""

BLANK: Final = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "blank",
    "AWS_SECRET_ACCESS_KEY": "blank",
    "POWERTOOLS_SERVICE_NAME": "blank",
    "POWERTOOLS_METRICS_NAMESPACE": "dualtrack",
    "CREDITS_TABLE": "none",
    "CACHE_TABLE": "none",
    "CONTEXT7_BASE_URL": "http://127.0.0.1:9",
    "VOYAGE_BASE_URL": "http://127.0.0.1:9",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "LEDGER_RETENTION_DAYS": "30",
    "TOKEN_HOURS": "1",
}
"""Environment that any handler needs to be imported; its addresses lead nowhere."""


@dataclass(frozen=True, slots=True)
class Job:
    """One invocation. ``ahead``: seconds by which the worker's clock is ahead."""

    handler: str
    environment: Mapping[str, str]
    event: Mapping[str, Any]
    ahead: float


class Context:
    """The context that Lambda passes beside the event."""

    function_name = "worker"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:worker"
    aws_request_id = "worker"

    def __init__(self, handler: str) -> None:
        self._deadline = time.monotonic() + (SWEEP_SECONDS if handler == "sweep" else SECONDS)

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds."""
        return int((self._deadline - time.monotonic()) * 1000)


def load(handler: str) -> ModuleType:
    """A fresh import of a handler's module."""
    spec = importlib.util.spec_from_file_location("handler", FUNCTIONS[handler] / "handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["handler"] = module
    spec.loader.exec_module(module)
    return module


def main(address: str, handlers: Sequence[str] = HANDLERS) -> None:
    """Serve until killed. The profiles let every tool run, as those of `World.deployed` do without ``asks``."""
    for name, profile in all_profiles().items():
        all_profiles()[name] = replace(profile, approval=ApprovalPolicy("never"))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    os.environ.update(BLANK)
    for handler in handlers:
        load(handler)
    for service in ("dynamodb", "s3", "stepfunctions", "kms", "ssm"):
        boto3.client(service)  # the session keeps what it has parsed
    with Listener(address, "AF_UNIX", backlog=16) as listener:
        while True:
            connection = listener.accept()
            if os.fork() == 0:
                _work(connection)
            connection.close()


def _work(connection: Connection) -> None:
    """In the child: run one invocation, then exit."""
    try:
        job = Job(*connection.recv())
        connection.send(os.getpid())
        connection.recv()
        connection.send(_invoke(job))
    except BaseException:  # noqa: BLE001 - a child must not go on as a second zygote
        traceback.print_exc()
    finally:
        os._exit(0)


def _invoke(job: Job) -> tuple[str, ...]:
    os.environ.clear()
    os.environ.update(job.environment)
    true_time = time.time
    time.time = lambda: true_time() + job.ahead
    assert boto3.DEFAULT_SESSION is not None
    # Keep the zygote's session for what it has parsed; the credentials come from the job.
    boto3.DEFAULT_SESSION._session._credentials = None  # type: ignore[attr-defined]
    for name in list(logging.Logger.manager.loggerDict):
        logging.getLogger(name).handlers.clear()  # the zygote's own Logger objects
    try:
        return ("returned", load(job.handler).handler(job.event, Context(job.handler)))
    except Exception as error:  # noqa: BLE001 - Lambda reports every one
        return ("raised", type(error).__name__, "".join(traceback.format_exception(error)))


def connect(address: str) -> Connection:
    """A connection for one invocation."""
    return Client(address, "AF_UNIX")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or HANDLERS)
