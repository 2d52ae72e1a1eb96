"""A fake of Bedrock's endpoint for Claude on loopback: it checks signatures, refuses what Bedrock refuses, and answers
with the offline model.

Sources: Amazon Bedrock User Guide, "Inference using Anthropic Messages API" (path, ids of models); AWS Signature
Version 4; maximhq/bifrost#5592 and strands-agents/harness-sdk#3833 (no structured output, no ``strict``).
"""

from __future__ import annotations

import hmac
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.local.offline_model.script import Script
from dualtrack_stack.local.offline_model.server import OfflineModel, create_app
from dualtrack_stack.local.offline_model.service import Settings
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REGION: Final = "us-east-1"
KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "AKIABEDROCKTESTS0000",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-tests-alone",
    "AWS_SESSION_TOKEN": "a-session-of-the-tests-alone",
}
"""The access key and secret that the endpoint accepts."""

_PATH: Final = "/anthropic"
_MODEL: Final = re.compile(r"anthropic\.(claude-[a-z]+-\d{1,2}(?:-\d{1,2})?)")
_SIGNED: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)
_MUST_BE_SIGNED: Final = {"host", "x-amz-date", "x-amz-security-token"}


class Refused(Exception):
    """A request that the endpoint refuses: status, type and message of the error."""


@dataclass
class Gate:
    """The checks before the model. ``refusals``: what was refused, in order."""

    app: Any
    refusals: list[str] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_PATH):
            await self.app(
                scope, receive, send
            )  # requests that control the offline model, and the server's start
            return
        body = await _whole(receive)
        if body is None:
            return  # the client has disconnected
        try:
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            passed = self.admit(scope["method"], scope["path"], headers, body)
        except Refused as refusal:
            status, kind, message = refusal.args
            error = {"type": "error", "error": {"type": kind, "message": message}}
            await JSONResponse(error, status)(scope, receive, send)
            return
        await self.app(_inner(scope, len(passed)), _body_again(passed, receive), send)

    def admit(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
        """The body of a request for the model; ``headers`` by their lower-case names.

        Raises `Refused`, and records it.
        """
        try:
            _check_signature(method, path, headers, body)
            return _checked(body)
        except Refused as refusal:
            self.refusals.append(refusal.args[2])
            raise


async def _whole(receive: Any) -> bytes | None:
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def _check_signature(method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
    if "x-api-key" in headers:
        raise Refused(401, "authentication_error", "x-api-key is not taken")
    match = _SIGNED.fullmatch(headers.get("authorization", ""))
    if not match:
        raise Refused(401, "authentication_error", "the request is not signed with SigV4")
    key, region, service, names, signature = match.groups()
    if (region, service) != (REGION, "bedrock-mantle"):
        raise Refused(403, "permission_error", f"signed for {service} in {region}")
    if key != KEYS["AWS_ACCESS_KEY_ID"] or headers.get("x-amz-security-token") != KEYS["AWS_SESSION_TOKEN"]:
        raise Refused(403, "permission_error", "the credentials are unknown")
    if missing := _MUST_BE_SIGNED - set(names.split(";")):
        raise Refused(403, "permission_error", f"not signed: {', '.join(sorted(missing))}")
    if not hmac.compare_digest(signature, _signature(method, path, headers, names.split(";"), body)):
        raise Refused(403, "permission_error", "the signature does not match")


def _signature(method: str, path: str, headers: Mapping[str, str], names: list[str], body: bytes) -> str:
    """The signature that botocore computes for the received request."""
    signer = SigV4Auth(Credentials(*KEYS.values()), "bedrock-mantle", REGION)
    request = AWSRequest(
        method=method,
        url=f"http://{headers['host']}{path}",
        headers={name: headers[name] for name in names if name in headers},
        data=body,
    )
    request.context["timestamp"] = headers["x-amz-date"]
    canonical = signer.canonical_request(request)
    return str(signer.signature(signer.string_to_sign(request, canonical), request))


def _checked(body: bytes) -> bytes:
    """The body for the model, once its model and fields are checked."""
    request = json.loads(body)
    model = _MODEL.fullmatch(request.get("model", ""))
    if not model:
        raise Refused(404, "not_found_error", f"model: {request.get('model')}")
    if "format" in (request.get("output_config") or {}):
        raise Refused(400, "invalid_request_error", "output_config.format: Extra inputs are not permitted")
    for index, tool in enumerate(request.get("tools", ())):
        if "strict" in tool:
            message = f"tools.{index}.custom.strict: Extra inputs are not permitted"
            raise Refused(400, "invalid_request_error", message)
    return json.dumps({**request, "model": model[1]}).encode()


def _inner(scope: Any, length: int) -> dict[str, Any]:
    """The request as the offline model's own client would send it."""
    dropped = (b"authorization", b"content-length", b"x-amz-date", b"x-amz-security-token")
    kept = [(name, value) for name, value in scope["headers"] if name not in dropped]
    added = [(b"authorization", b"Bearer checked"), (b"content-length", str(length).encode())]
    path = scope["path"].removeprefix(_PATH)
    return {**scope, "path": path, "raw_path": path.encode(), "headers": [*kept, *added]}


def _body_again(body: bytes, receive: Any) -> Any:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return waiting.pop() if waiting else await receive()

    return again


@dataclass(frozen=True, slots=True)
class Bedrock(OfflineModel):
    """The running endpoint; ``url`` is what ``BEDROCK_BASE_URL`` is set to."""

    gate: Gate

    @property
    def settings(self) -> dict[str, str]:
        """Settings of a stack that uses it."""
        return {
            **KEYS,
            "AWS_REGION": REGION,
            "DUALTRACK_PROVIDER": "bedrock",
            "BEDROCK_BASE_URL": self.url,
        }


@contextmanager
def serve_bedrock() -> Iterator[Bedrock]:
    """Run it in a thread; it answers without delay and records the accepted requests."""
    app = create_app(Settings(chunk_delay=0.0, control=True), Script())
    gate = Gate(app)
    with serve_in_thread(gate) as url:
        yield Bedrock(f"{url}{_PATH}", app.state.model, gate)
