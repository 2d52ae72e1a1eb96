"""``dualtrack webhooks`` against the function `api` itself."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from dualtrack_stack.cli.main import main
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from tests.clients.api_client import Api, make_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.testing import Result
    from starlette.requests import Request

URL = "https://hooks.example.com/in"


@contextlib.contextmanager
def served(api: Api) -> Iterator[str]:
    """The function at an address, called by its user whatever the token."""

    async def answer(request: Request) -> Response:
        body = await request.body()
        query = f"?{request.url.query}" if request.url.query else ""
        given = api.call(request.method, request.url.path + query, raw=body.decode() or None)
        return Response(given.text, given.status, media_type="application/json")

    methods = ["GET", "POST", "DELETE"]
    with serve_in_thread(Starlette(routes=[Route("/{path:path}", answer, methods=methods)])) as url:
        yield url


@pytest.fixture
def run() -> Iterator[Callable[..., Result]]:
    with make_api() as api, served(api.of_new_user()) as url:

        def call(*arguments: str) -> Result:
            return CliRunner().invoke(main, ["webhooks", *arguments, "--url", url, "--token", "t"])

        yield call


def test_a_webhook_from_its_beginning_to_its_end(run: Callable[..., Result]) -> None:
    assert "There is no webhook" in run("list").output
    made = run("create", URL, "--event", "chat.done", "--json")
    webhook: dict[str, Any] = json.loads(made.stdout)
    assert (webhook["url"], webhook["events"]) == (URL, ["chat.done"])
    where = webhook["webhook_id"]
    assert where in (listed := run("list").stdout)
    assert webhook["secret"] not in listed
    assert "told nothing" in run("deliveries", where).output
    assert "within a minute" in run("test", where).stdout
    assert "webhook.test      pending    not tried yet" in run("deliveries", where).stdout
    assert run("rotate", where, "--overlap", "1h").stdout.startswith("whsec_")
    assert run("delete", where).exit_code == 0
    assert run("delete", where).exit_code != 0


def test_what_is_refused_is_said(run: Callable[..., Result]) -> None:
    refused = run("create", "https://127.0.0.1/")
    assert refused.exit_code != 0
    assert "no public address" in refused.output
    wrong = run("test", "wh_1")
    assert wrong.exit_code == 2
    assert "dualtrack webhooks list" in wrong.output
