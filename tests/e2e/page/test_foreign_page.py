"""A page of another origin cannot do anything to a developer's running local stack.

Most of its requests are those that a browser sends without a preflight: a form's content type, credentials in the
query. The emulator alone would answer all of them for the key ``test``, preflights too.
"""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.local.stack import LocalStack
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tests.clients.browser import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

SECRET = "ghp_theSecretOfThisMachine"
ELSEWHERE = "elsewhere.example"
"""A host name that only the browser resolves to this machine."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """An offline stack, with all its ports."""
    with LocalStack(tmp_path_factory.mktemp("visited"), environment={"GITHUB_TOKEN": SECRET}) as running:
        yield running


@pytest.fixture(scope="module")
def ports(stack: LocalStack) -> dict[str, int]:
    """The ports by their names: front, emulator, model, documents."""
    folder: Path = stack._paths.root
    known = json.loads((folder / "ports.json").read_text())
    assert set(known) == {"front", "emulator", "model", "documents"}
    return dict(known)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser that resolves the foreign name to this machine."""
    with chromium(f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1") as running:
        yield running


@pytest.fixture(params=["127.0.0.1", ELSEWHERE])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """A page of another port, and of another site."""
    app = Starlette(routes=[Route("/", lambda _: HTMLResponse("<!doctype html><title>Elsewhere</title>"))])
    with serve_in_thread(app) as url:
        context = browser.new_context()
        opened = context.new_page()
        opened.goto(url.replace("127.0.0.1", request.param))
        yield opened
        context.close()


def asked(
    page: Page, url: str, body: Any = None, mode: str = "cors", *, method: str = "POST", target: str = ""
) -> str:
    """What the page can read of the answer; ``refused`` if nothing."""
    script = """async ([url, body, mode, method, target]) => {
        const headers = {"Content-Type": "text/plain", ...(target && {"X-Amz-Target": target})};
        const options = body === null ? {} : {method, body, headers};
        try {
            const response = await fetch(url, {...options, mode});
            return `${response.status} ${await response.text()}`;
        } catch (error) { return "refused"; }
    }"""
    sent = body if body is None or isinstance(body, str) else json.dumps(body)
    return str(page.evaluate(script, [url, sent, mode, method, target]))


def call(port: int, service: str, path: str = "/") -> str:
    """A URL of the emulator with the credentials that it accepts as root's."""
    credential = f"test/20261122/us-east-1/{service}/aws4_request"
    pairs = {"X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": credential}
    pairs |= {"X-Amz-Date": "20261122T000000Z", "X-Amz-SignedHeaders": "host", "X-Amz-Signature": "0" * 64}
    return f"http://127.0.0.1:{port}{path}?" + "&".join(f"{name}={value}" for name, value in pairs.items())


def code() -> str:
    """A function's code as a zip for Lambda."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "def handler(event, context):\n    return 'it ran'\n")
    return base64.b64encode(packed.getvalue()).decode()


def test_it_reads_no_secret(page: Page, stack: LocalStack, ports: dict[str, int]) -> None:
    key = {"Name": stack.outputs["GithubKeyName"], "WithDecryption": True}
    url = call(ports["emulator"], "ssm")
    assert stack.aws.client("ssm").get_parameter(**key)["Parameter"]["Value"] == SECRET
    assert asked(page, url, key, target="AmazonSSM.GetParameter") == "refused"


def test_it_runs_no_code(page: Page, stack: LocalStack, ports: dict[str, int]) -> None:
    functions = stack.aws.client("lambda")
    role = functions.list_functions()["Functions"][0]["Role"]
    function = {"FunctionName": "theirs", "Runtime": "python3.13", "Handler": "index.handler", "Role": role}
    for mode in ("cors", "no-cors"):
        url = call(ports["emulator"], "lambda", "/2015-03-31/functions")
        assert asked(page, url, {**function, "Code": {"ZipFile": code()}}, mode) in ("refused", "0 ")
        invoke = call(ports["emulator"], "lambda", "/2015-03-31/functions/theirs/invocations")
        assert "it ran" not in asked(page, invoke, {}, mode)
    names = [function["FunctionName"] for function in functions.list_functions()["Functions"]]
    assert "theirs" not in names


def test_it_reads_nothing_at_any_port(page: Page, ports: dict[str, int]) -> None:
    front, model = (f"http://127.0.0.1:{ports[name]}" for name in ("front", "model"))
    documents, emulator = (f"http://127.0.0.1:{ports[name]}" for name in ("documents", "emulator"))
    for url in (
        f"{front}/dev/token?user=ann&admin=1",
        f"{front}/dev/status",
        f"{front}/health",
        f"{model}/health",
        f"{documents}/health",
        f"{emulator}/_ministack/health",
    ):
        assert asked(page, url) == "refused", url
    assert asked(page, f"{model}/v1/messages", {}) == "refused"
    assert asked(page, f"{emulator}/", "", method="PUT") == "refused", "a preflight is refused too"


def test_it_creates_no_user_and_resets_nothing(page: Page, stack: LocalStack, ports: dict[str, int]) -> None:
    """Requests that would take effect even if the page cannot read the answers."""
    stack.token("ann")

    def users() -> list[str]:
        pool = stack.outputs["UserPoolId"]
        listed = stack.aws.client("cognito-idp").list_users(UserPoolId=pool)["Users"]
        return sorted(user["Username"] for user in listed)

    before = users()
    assert "ann" in before
    asked(page, f"http://127.0.0.1:{ports['front']}/dev/token?user=theirs&admin=1", mode="no-cors")
    asked(page, f"http://127.0.0.1:{ports['emulator']}/_ministack/reset", "", "no-cors")
    assert users() == before


@pytest.mark.parametrize("name", ["front", "emulator", "model", "documents"])
def test_dns_rebinding_gives_no_access(browser: Browser, ports: dict[str, int], name: str) -> None:
    """DNS rebinding: the page's own address is this machine's, so the browser sees a single origin."""
    context = browser.new_context()
    opened = context.new_page()
    path = {"front": "/dev/token?user=ann", "emulator": "/_ministack/health"}.get(name, "/health")
    answer = opened.goto(f"http://{ELSEWHERE}:{ports[name]}{path}")
    assert answer is not None
    assert answer.status == 403
    context.close()


def test_the_stacks_own_page_works(browser: Browser, stack: LocalStack) -> None:
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(stack.url)
    script = "async () => (await (await fetch('/dev/token?user=ann')).json()).user_id"
    assert opened.evaluate(script) == stack.token("ann").user_id
    context.close()
