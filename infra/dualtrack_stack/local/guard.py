"""Who may call a port of the local stack: programs on this machine, and its own page in a browser, but no
other page.

A browser lets any page send requests to the loopback interface, and some of them without asking there
first. But it names the page in ``Origin`` or marks it as another site's in ``Sec-Fetch-Site``, and a page whose own
name points here (DNS rebinding) has that name in ``Host``. A program sends none of these.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")
"""The values of ``Host`` that only this machine can mean."""

_OWN_SITES: Final = frozenset({"none", "same-origin"})
"""``Sec-Fetch-Site`` of an address that the user typed, and of a page for its own server (W3C Fetch Metadata)."""


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers by their names in lower case; the values of a repeated one are joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def foreign(
    headers: Mapping[str, str], hosts: re.Pattern[str] = LOOPBACK, origins: Collection[str] = ()
) -> str:
    """Why a request is foreign; empty if it is not. ``origins`` are the foreign pages that may call (``*``:
    any).
    """
    if not hosts.fullmatch(headers.get("host", "")):
        return "Host is not an address of this machine"
    origin = headers.get("origin")
    if origin is not None:
        return (
            ""
            if origin in origins or "*" in origins
            else "the request is from a page of another origin (Origin)"
        )
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        return "the request is from a page of another site (Sec-Fetch-Site)"
    return ""


class Guard:
    """ASGI middleware: refuses HTTP and WebSocket requests for which ``check`` returns a reason."""

    def __init__(self, app: ASGIApp, check: Callable[[Scope], str] | None = None) -> None:
        self._app = app
        self._check = check or (lambda scope: foreign(headers_of(scope)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = self._check(scope) if scope["type"] in ("http", "websocket") else ""
        if reason:
            await refuse(scope, send, reason)
        else:
            await self._app(scope, receive, send)


async def refuse(scope: Scope, send: Send, reason: str) -> None:
    """403 and the reason, which is also logged; a WebSocket is closed before it opens."""
    print(f"Refused {scope.get('method', 'WebSocket')} {scope['path']!r}: {reason}", file=sys.stderr)
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    body = f"Refused by the local stack: {reason}.\n".encode()
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
