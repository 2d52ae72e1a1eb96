"""``python -m tests.drivers.recording_emulator``: the local stack's emulator, which also writes calls down.

A line of JSON for each in `CALLS` beside the emulator's state: who, which operation of which service, its parameters.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from dualtrack_stack.local import emulator
from dualtrack_stack.local.guard import headers_of
from ministack.core.iam_evaluator import ResolvedCredential, resolve_credential
from ministack.core.router import extract_access_key_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CALLS: Final = "calls.jsonl"

_SCOPE: Final = re.compile(r"(?:Credential=)?[^/\s]+/\d{8}/[\w-]+/(\w[\w-]*)/aws4_request")
_KEY: Final = re.compile(r"<Key>([^<]+)</Key>")
_INVOKE: Final = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")


class Recorder:
    """ASGI middleware: writes calls down as they come, allowed or not."""

    def __init__(self, app: ASGIApp, calls: Path) -> None:
        self._app = app
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._record(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _record(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        messages: list[Message] = []

        async def heard() -> Message:
            messages.append(await receive())
            return messages[-1]

        role = _role(headers, query)
        await self._app(scope, heard, send)
        if not role:
            return
        body = b"".join(message.get("body", b"") for message in messages)
        call = _operation(_service(headers, query), scope, headers, query, body)
        with self._calls.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"role": role, **call}) + "\n")


def _role(headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    """The name of the role that signed; empty for the account's root and for unsigned requests."""
    key = extract_access_key_id(dict(headers), {name: [value] for name, value in query.items()})
    token = headers.get("x-amz-security-token") or query.get("X-Amz-Security-Token", "")
    credential = resolve_credential(key, session_token=token) if key and token else None
    if not isinstance(credential, ResolvedCredential) or ":assumed-role/" not in credential.principal_arn:
        return ""
    return str(credential.principal_arn).split("/")[1]


def _service(headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    match = _SCOPE.search(headers.get("authorization") or query.get("X-Amz-Credential", ""))
    return match[1] if match else ""


def _operation(
    service: str, scope: Scope, headers: Mapping[str, str], query: Mapping[str, str], body: bytes
) -> dict[str, Any]:
    """``{"service", "operation", "parameters"}``; of S3 and Lambda those that are in the address."""
    if target := headers.get("x-amz-target"):
        return {
            "service": service,
            "operation": target.rpartition(".")[2],
            "parameters": json.loads(body or b"{}"),
        }
    path = unquote(scope["path"])
    if match := _INVOKE.fullmatch(path):
        parameters = {"FunctionName": match[1], "Qualifier": query.get("Qualifier", "")}
        return {"service": service, "operation": "Invoke", "parameters": parameters}
    bucket, _, key = path.lstrip("/").partition("/")
    several = _KEY.findall(body.decode()) if "delete" in query else []
    parameters = {"Bucket": bucket, "Keys": several or [key], "Prefix": query.get("prefix", "")}
    return {
        "service": service,
        "operation": "DELETE" if several else scope["method"],
        "parameters": parameters,
    }


def main() -> None:
    """Serve as `dualtrack_stack.local.emulator` does."""
    guarded, calls = emulator.guarded, Path(os.environ["STATE_DIR"]).with_name(CALLS)
    emulator.guarded = lambda app, origins=(): guarded(Recorder(app, calls), origins)  # type: ignore[bad-assignment] # fewer origins
    emulator.main()


if __name__ == "__main__":
    main()
