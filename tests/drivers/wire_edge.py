"""The edge of a worker process: an HTTP proxy that names every request by a `Site` and can make it fail.

Workers use it through ``HTTP_PROXY``, so their requests are signed for, and answered by, the emulator itself; the
proxy's user name identifies the worker. The MCP client uses no proxy: it gets an address here instead
(`Edge.direct_address`). tests/drivers/faults.py decides what a fault does to a call; here it becomes bytes: the
service's error, a connection that closes without an answer, a body cut in half.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
import urllib3
from botocore import xform_name
from botocore.exceptions import ClientError

from tests.drivers.faults import Process, detail_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_TARGETS: Final = {
    "DynamoDB_20120810": "dynamodb",
    "AWSStepFunctions": "stepfunctions",
    "AmazonSSM": "ssm",
    "TrentService": "kms",
}
_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "transfer-encoding",
        "content-length",
    }
)
_SERVER_ERRORS: Final = frozenset({"InternalServerError"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a worker."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Named:
    """A request's name: service, operation, and what it is about."""

    service: str
    operation: str
    detail: str


@dataclass
class Edge:
    """A running proxy. ``hosts``: the service behind ``host:port``; ``answer`` names and answers the rest."""

    hosts: Mapping[str, str]
    answer: Callable[[Process, Request, str], tuple[Named, Callable[[], httpx2.Response]]]
    port: int = 0
    processes: dict[str, Process] = field(default_factory=dict)
    _pool: urllib3.PoolManager = field(
        default_factory=lambda: urllib3.PoolManager(16, maxsize=16, retries=False)
    )

    def address_for(self, key: str) -> str:
        """The proxy's address for the worker of this key."""
        return f"http://{key}:x@127.0.0.1:{self.port}"

    def direct_address(self, key: str, host: str) -> str:
        """``host``'s address for a client that uses no proxy; append a path."""
        return f"http://127.0.0.1:{self.port}/direct/{key}/{host}"

    def forward(self, request: Request) -> httpx2.Response:
        """The service's own answer."""
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        got = self._pool.request(
            request.method,
            request.url,
            body=request.body,
            headers=headers,
            redirect=False,
            decode_content=False,
        )
        kept = [(name, value) for name, value in got.headers.items() if name.lower() not in _HOP_BY_HOP]
        return httpx2.Response(got.status, headers=kept, stream=httpx2.ByteStream(got.data))

    def respond(self, key: str, request: Request) -> httpx2.Response | None:
        """The response to a worker's request; None: the connection closes without one."""
        process = self.processes.get(key)
        if process is None:
            return None
        service = self.hosts.get(urlsplit(request.url).netloc, "")
        named, perform = self._aws(request) if service == "aws" else self.answer(process, request, service)
        try:
            answer = process.call(named.service, named.operation, named.detail, perform)
        except ClientError as error:
            return _refusal(named.service, error)
        except Exception:  # noqa: BLE001 - the process has died, or the answer is lost
            return None
        return answer if isinstance(answer, httpx2.Response) else None

    def _aws(self, request: Request) -> tuple[Named, Callable[[], httpx2.Response]]:
        return name_of_aws(request), lambda: self.forward(request)


def name_of_aws(request: Request) -> Named:
    """An AWS request: by its target header, or S3's by method and path."""
    target = request.headers.get("X-Amz-Target", "")
    if target:
        prefix, _, name = target.partition(".")
        operation = xform_name(name)
        service = _TARGETS[prefix]
        return Named(service, operation, detail_of(operation, request.json) if service == "dynamodb" else "")
    parts = urlsplit(request.url)
    asked = parse_qs(parts.query, keep_blank_values=True)
    if request.method == "PUT":
        return Named("s3", "put_object", "")
    if request.method == "POST" and "delete" in asked:
        return Named("s3", "delete_objects", "")
    assert request.method == "GET", request
    return Named("s3", "list_objects_v2" if "list-type" in asked else "get_object", "")


def _refusal(service: str, error: ClientError) -> httpx2.Response:
    """A service's error on the wire."""
    response: Any = error.response
    code, message = response["Error"]["Code"], response["Error"]["Message"]
    if service == "s3":
        body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        return httpx2.Response(503, headers={"content-type": "application/xml"}, text=body)
    more = {name: value for name, value in response.items() if name != "Error"}
    status = 500 if code in _SERVER_ERRORS else 400
    return httpx2.Response(
        status,
        headers={"content-type": "application/x-amz-json-1.0", "x-amzn-errortype": code},
        content=json.dumps({"__type": code, "message": message, **more}).encode(),
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    edge: Edge

    def do_GET(self) -> None:
        """Handle any method."""
        length = int(self.headers.get("Content-Length") or 0)
        body = (
            self._chunks() if self.headers.get("Transfer-Encoding") == "chunked" else self.rfile.read(length)
        )
        key, url = self._addressed()
        response = self.edge.respond(key, Request(self.command, url, dict(self.headers.items()), body))
        if response is None:
            self.close_connection = True
            return
        self._send(response)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - named by the base class

    def _addressed(self) -> tuple[str, str]:
        """Whose request it is, and its true address."""
        parts = self.path.split("/", 4)
        if parts[1] == "direct":
            return parts[2], f"http://{parts[3]}/{parts[4]}"
        credentials = self.headers.get("Proxy-Authorization", "").removeprefix("Basic ")
        return base64.b64decode(credentials).decode().partition(":")[0], self.path

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, response: httpx2.Response) -> None:
        content = b"".join(response.iter_raw()) if not response.is_stream_consumed else response.content
        self.send_response_only(response.status_code)
        for name, value in response.headers.multi_items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        cut = bool(response.extensions.get("cut"))
        # A body that is cut is shorter than what was announced.
        self.send_header("Content-Length", str(len(content) * (2 if cut else 1)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        self.close_connection = self.close_connection or cut

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections of killed workers."""


@contextlib.contextmanager
def serve_edge(edge: Edge) -> Iterator[Edge]:
    """The edge while the block runs."""
    handler = type("Handler", (_Handler,), {"edge": edge})
    with _Server(("127.0.0.1", 0), handler) as server:
        edge.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield edge
        finally:
            server.shutdown()
            thread.join(10)
