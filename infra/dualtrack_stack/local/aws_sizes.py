"""How large a request and its answer are on AWS, where API Gateway passes both on as JSON (API Gateway Developer Guide,
"Input format of a Lambda function for proxy integration"). The emulator has no limit. Pure."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from dualtrack.api.attachments import BINARY_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Headers = Iterable[tuple[bytes, bytes]]

_CONTEXT: Final = 1_500
"""Bytes of a ``requestContext`` besides its path and the claims: account, ids, times, address, user agent."""


def event_bytes(method: str, path: str, query: str, headers: Headers, body: bytes) -> int:
    """The size of the event that a function gets of a request."""
    sent: dict[str, list[str]] = {}
    for name, value in headers:
        sent.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    asked: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        asked.setdefault(name, []).append(value)
    is_binary = sent.get("content-type", [""])[-1].split(";")[0].strip().lower() in BINARY_TYPES
    return _CONTEXT + _size(
        {
            "resource": path,
            "path": path,
            "httpMethod": method,
            "headers": {name: values[-1] for name, values in sent.items()},
            "multiValueHeaders": sent,
            "queryStringParameters": {name: values[-1] for name, values in asked.items()} or None,
            "multiValueQueryStringParameters": asked or None,
            "pathParameters": {"proxy": path},
            "stageVariables": None,
            "requestContext": {"path": path, "authorizer": {"claims": _claims(sent)}},
            "body": (base64.b64encode(body).decode() if is_binary else body.decode(errors="replace")) or None,
            "isBase64Encoded": is_binary,
        }
    )


def answer_bytes(status: int, headers: Headers, body: bytes) -> int:
    """The size of what a function returns for an answer."""
    told = {name.decode("latin-1"): [value.decode("latin-1")] for name, value in headers}
    kind = told.get("content-type", [""])[0].split(";")[0].strip().lower()
    is_text = kind.startswith("text/html") or kind.endswith(("json", "javascript"))
    text = body.decode(errors="replace") if is_text else base64.b64encode(body).decode()
    return _size(
        {"statusCode": status, "multiValueHeaders": told, "body": text, "isBase64Encoded": not is_text}
    )


def _claims(sent: Mapping[str, list[str]]) -> dict[str, Any]:
    """Those of the token, which the authorizer adds; none for a key."""
    payload = sent.get("authorization", [""])[0].split(".")[1:2]
    try:
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload[0] + "==")) if payload else {}
    except ValueError:
        return {}
    return claims


def _size(event: Mapping[str, Any]) -> int:
    return len(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
