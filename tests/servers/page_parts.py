"""The page's files under the page's policy, and an empty document for testing parts of the page without a stack."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.page import web
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

STYLES: Final = ("base", "layout", "chat", "answer")
EMPTY: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Parts</title><link rel="icon" href="favicon.svg">'
    '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
    + "".join(f'<link rel="stylesheet" href="css/{name}.css">' for name in STYLES)
    + '<link rel="stylesheet" href="css/print.css" media="print">'
    '<body><p id="status"></p><main class="thread"><h1>Parts</h1><ol id="exchanges" class="exchanges"></ol></main>'
)


class _Files(StaticFiles):
    """As the front serves them: every file with the page's headers."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(web.headers(path))
        return response


async def _empty(_: Request) -> HTMLResponse:
    return HTMLResponse(EMPTY, headers=web.headers())


@contextlib.contextmanager
def serve_page_parts() -> Iterator[str]:
    """Serve them; the URL of the empty document, which has an empty list ``#exchanges``."""
    files = _Files(directory=web.FOLDER)
    with serve_in_thread(Starlette(routes=[Route("/parts", _empty), Mount("/", files)])) as url:
        yield f"{url}/parts"
