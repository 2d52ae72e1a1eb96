"""Faults at the edge of a step: every outside call passes here, is recorded, and can be made to fail.

A `Process` is one delivery of one step: the life of one worker. Its clients (DynamoDB, S3, Step Functions, the HTTP
transport of the anthropic client, the tools) pass every call to `Process.call`, which names it by a `Site`. A `Fault`
names a site and a kind of failure. A process that has died stays dead: all its later calls raise, whatever the code
under test catches.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx2
from botocore.exceptions import ReadTimeoutError

from tests.drivers.memory_aws import Client, client_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.drivers.memory_aws import MemoryAws

PATIENCE: Final = 120.0
"""Seconds after which a run counts as hanging; far more than any run needs."""

WRITES: Final = frozenset(
    {"put_item", "update_item", "delete_item", "transact_write_items", "batch_write_item", "put_object"}
    | {"delete_objects", "start_execution", "stop_execution", "execute"}
    | {"create_index", "put_vectors", "delete_index"}
)
OVER_HTTP: Final = frozenset({"context7", "voyage", "mcp"})
"""Services that are neither AWS nor the model."""

CONFLICTING: Final = frozenset({"put_item", "update_item", "delete_item", "transact_write_items"})


class Died(Exception):
    """The process is dead."""


class ToolBroke(Exception):
    """A tool raised."""


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """An outside call: step, service, operation, what it is about, and its number among equal calls in the delivery."""

    step: str
    service: str
    operation: str
    detail: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.step}: {self.service}.{self.operation} {self.detail} #{self.nth}"


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at a site. ``always``: in every delivery of the step, not only in the first."""

    site: Site
    kind: str
    always: bool = False

    def __str__(self) -> str:
        return f"{self.kind} at {self.site}{' every time' if self.always else ''}"


@dataclass
class Trace:
    """What the processes of one run did, and the run's one fault."""

    aws: MemoryAws
    fault: Fault | None = None
    sites: list[Site] = field(default_factory=list)
    struck: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def strikes(self, site: Site) -> str:
        """The kind of fault for this call, or None."""
        with self.lock:
            self.sites.append(site)
            fault = self.fault
            if fault is None or fault.site != site or (self.struck and not fault.always):
                return ""
            self.struck = True
            return fault.kind


class Process:
    """One delivery of a step."""

    def __init__(self, trace: Trace, step: str) -> None:
        self.step = step
        self.dead = False
        self.held = threading.Event()
        self.released = threading.Event()
        self._trace = trace
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()
        self.dynamodb: Any = Client(self._aws("dynamodb"))
        self.s3: Any = Client(self._aws("s3"))
        self.step_functions: Any = Client(self._aws("stepfunctions"))
        self.s3_vectors: Any = Client(self._aws("s3vectors"))

    def _aws(self, service: str) -> Callable[[str, dict[str, Any]], Any]:
        def send(operation: str, request: dict[str, Any]) -> Any:
            def perform() -> Any:
                return self._trace.aws.call(service, operation, dict(request))

            return self.call(service, operation, detail_of(operation, request), perform)

        return send

    def call(self, service: str, operation: str, detail: str, perform: Callable[[], Any]) -> Any:
        """Make an outside call, with the fault if it has one."""
        with self._lock:
            self._seen[service, operation, detail] += 1
            nth = self._seen[service, operation, detail]
        self._check_alive()
        site = Site(self.step, service, operation, detail, nth)
        kind = self._trace.strikes(site)
        if not kind:
            return perform()
        return self._strike(kind, site, perform)

    def _check_alive(self) -> None:
        if self.dead:
            raise Died(self.step)

    def _strike(self, kind: str, site: Site, perform: Callable[[], Any]) -> Any:
        answer: Any = None
        if kind == "held":
            self.held.set()
            assert self.released.wait(PATIENCE), f"nobody released {site}"
        if kind in _PERFORMED:
            answer = perform()
        if kind == "sent twice" and site.operation != "transact_write_items":
            # botocore sends the same bytes again; a transaction's token makes that harmless
            answer = perform()
        if kind.startswith("crash"):
            self._die()
        if kind in _ERRORS:
            answer = _ERRORS[kind](site)
        if isinstance(answer, Exception):
            raise answer
        return _broken_stream(kind, answer) if kind in ("cut", "malformed") else answer

    def _die(self) -> None:
        self.dead = True
        raise Died(self.step)


def start_late(name: str, body: Callable[[], object]) -> tuple[threading.Thread, list[Any]]:
    """Start a step that may be held, in its own thread; its outcome becomes the list's only entry."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(body())
        except Exception as error:  # noqa: BLE001 - handed over
            outcome.append(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread, outcome


def deliver(trace: Trace, quiet: Trace, step: str, body: Callable[[Process], object]) -> Any:
    """Return or raise what the step does; if it is held, it continues after the same step has run beside it."""
    process = Process(trace, step)
    late, outcome = start_late(step, partial(body, process))
    while late.is_alive() and not process.held.wait(0.001):
        pass
    if process.held.is_set():
        with contextlib.suppress(Exception):
            body(Process(quiet, f"{step} beside"))
        process.released.set()
    late.join(PATIENCE)
    assert not late.is_alive(), step
    return outcome[0]


def _throttled(site: Site) -> httpx2.Response | Exception:
    if site.service == "model":
        body = {"type": "error", "error": {"type": "overloaded_error", "message": "test"}}
        return httpx2.Response(529, json=body)
    if site.service == "tool":
        return ToolBroke()
    if site.service in OVER_HTTP:
        return httpx2.Response(429, json={"error": "slow down"}, headers={"retry-after": "1"})
    return client_error("SlowDown" if site.service == "s3" else "ThrottlingException", site.operation)


def _conflict(site: Site) -> Exception:
    if site.operation == "transact_write_items":
        reasons = [{"Code": "TransactionConflict"}] + [{"Code": "None"}] * (site.detail.count(",") or 0)
        return client_error("TransactionCanceledException", site.operation, CancellationReasons=reasons)
    return client_error("TransactionConflictException", site.operation)


def _lost_answer(site: Site) -> Exception:
    if site.service == "model":
        return httpx2.ReadTimeout("test")
    if site.service == "tool":
        return TimeoutError()
    return ReadTimeoutError(endpoint_url="test")


def _server_error(site: Site) -> Exception:
    return client_error("InternalServerError", site.operation)


_PERFORMED: Final = frozenset(
    {"held", "crash after", "answer lost", "sent twice", "500 after the commit", "cut", "malformed"}
)
_ERRORS: Final[Mapping[str, Callable[[Site], Any]]] = {
    "throttled": _throttled,
    "conflict": _conflict,
    "answer lost": _lost_answer,
    "500 after the commit": _server_error,
}


def _broken_stream(kind: str, whole: httpx2.Response) -> httpx2.Response:
    """Half of a response; if malformed, with an invalid end."""
    half = whole.content[: len(whole.content) // 2]
    if kind == "malformed":
        half = half.rsplit(b"\n\n", 1)[0] + b'\n\nevent: content_block_delta\ndata: {"type": "conte\n\n'
    return httpx2.Response(
        200,
        headers={"content-type": whole.headers["content-type"]},
        content=half,
        extensions={"cut": kind == "cut"},
    )


def kinds_at(site: Site) -> tuple[str, ...]:
    """Every way in which a call can go wrong once."""
    kinds = ["crash before", "crash after", "throttled", "answer lost"]
    if site.operation in CONFLICTING:
        kinds += ["conflict", "500 after the commit"]
    if site.operation in WRITES and site.service != "tool":
        kinds.append("sent twice")
    if site.service == "model" or site.service in OVER_HTTP:
        kinds += ["cut", "malformed"]
    return tuple(kinds)


def detail_of(operation: str, request: Mapping[str, Any]) -> str:
    """What a call is about, named the same in every run: tables and kinds of items."""
    if operation == "transact_write_items":
        actions = [next(iter(action.values())) for action in request["TransactItems"]]
        return ",".join(_kind_of(action.get("Item") or action["Key"]) for action in actions)
    if operation in ("get_item", "update_item", "delete_item"):
        return _kind_of(request["Key"])
    if operation == "put_item":
        return _kind_of(request["Item"])
    if operation == "query":
        values = request["ExpressionAttributeValues"]
        return str(values.get(":low", values.get(":shard"))["S"]).split("#")[0]
    return ""


def _kind_of(item: Mapping[str, Any]) -> str:
    head, _, rest = str(item["sk"]["S"]).partition("#")
    if head == "F":
        return "record" + ("/" + rest.split("#", 1)[1] if "#" in rest else "/query")
    return {"EV": "events", "B": "body", "S": "track", "CONV": "conversation"}.get(head, head)


class ModelTransport(httpx2.BaseTransport):
    """The model behind a process's edge: ``reply`` makes the whole response, in this process."""

    def __init__(
        self, process: Process, reply: Callable[[bytes], tuple[str, Callable[[], httpx2.Response]]]
    ) -> None:
        self._process = process
        self._reply = reply

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request to the Messages API."""
        detail, perform = self._reply(request.read())
        response: httpx2.Response = self._process.call("model", "messages", detail, perform)
        return response
