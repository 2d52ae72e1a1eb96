"""Sends spans to a collector: OTLP/JSON over HTTP (OTLP specification, "OTLP/HTTP"). No SDK, no retries."""

from __future__ import annotations

import http.client
import json
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.frozen import JsonObject
    from dualtrack.settings import Settings

SECONDS: Final = 2.0
_PATH: Final = "/v1/traces"


class NotSent(Exception):
    """The collector did not accept the spans. The message says why, without the value of a header."""


def within_time(work: Callable[[], None], seconds: float = SECONDS) -> None:
    """Run the work on its own thread and wait at most ``seconds``: a socket's timeout applies to each read, and not
    to DNS lookups. A thread that is left behind ends on its own. Raises what the work raises, and `NotSent`.
    """
    raised: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if thread.is_alive():
        raise NotSent(f"The collector took longer than {seconds:g} s.")


def post(endpoint: str, headers: Mapping[str, str], document: JsonObject) -> None:
    """Post to ``<endpoint>/v1/traces``. No redirect is followed: the headers are for this server. Raises `NotSent`."""
    parts = urlsplit(endpoint)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=SECONDS)
    body = json.dumps(document, separators=(",", ":")).encode()
    try:
        connection.request(
            "POST", parts.path.rstrip("/") + _PATH, body, {**headers, "Content-Type": "application/json"}
        )
        status = connection.getresponse().status
    # ValueError: an invalid header; its message would show the value
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotSent(f"The collector could not be reached: {type(error).__name__}") from None
    finally:
        connection.close()
    if not http.client.OK <= status < http.client.MULTIPLE_CHOICES:
        raise NotSent(f"The collector answered {status}.")


def headers_of(text: str) -> dict[str, str]:
    """``api-key=secret,x-team=a%20b``, as OTEL_EXPORTER_OTLP_HEADERS has them (OpenTelemetry Protocol Exporter,
    "Specifying headers via environment variables"). Raises `NotSent` if the text is not such a list."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not name.strip() or not sign for name, sign, _ in pairs):
        raise NotSent("The collector's headers are not name=value,name=value.")
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def checked_endpoint(endpoint: str, _: Settings) -> str:
    """The collector's base address, to which ``/v1/traces`` is added; empty for none. Raises ValueError."""
    try:
        parts = urlsplit(endpoint)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        parts, has_port = urlsplit(""), False
    is_address = has_port and parts.scheme in ("http", "https") and parts.hostname and endpoint.isascii()
    if endpoint and (not is_address or "@" in parts.netloc or parts.query or parts.fragment):
        raise ValueError("must be http(s)://host, without user, ? and #; /v1/traces is added")
    return endpoint
