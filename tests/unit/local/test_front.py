"""The front port: what it forwards, refuses, limits and serves itself."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack_stack.local import front
from dualtrack_stack.local.front_config import FrontConfig
from dualtrack_stack.local.login import login_name
from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.local.tokens import LocalUsers, SignedInUser
from dualtrack_stack.page import web
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tests.drivers.planted_plugin import HELD, LISTED, SERVED, plug_in

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from starlette.requests import Request


class Upstream:
    """A gateway that shows what reached it, and can hold requests back."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0

    def app(self) -> Starlette:
        async def shown(request: Request) -> Response:
            body = await request.body()
            return JSONResponse(
                {
                    "method": request.method,
                    "path": request.scope["raw_path"].decode(),
                    "query": request.url.query,
                    "host": request.headers["host"],
                    "authorization": request.headers.get("authorization"),
                    "origin": request.headers.get("origin"),
                    "accept": request.headers.get("accept"),
                    "size": len(body),
                },
                status_code=201,
                headers={"Location": "/v1/chats/x"},
            )

        async def held(_: Request) -> Response:
            self.inside += 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(0.05)
            self.inside -= 1
            return Response(status_code=204)

        methods = ["GET", "POST", "DELETE", "OPTIONS"]
        return Starlette(
            routes=[
                Route("/live/v1/held", held, methods=methods),
                Route("/live/{rest:anything}", shown, methods=methods),
            ]
        )


def config(endpoint: str) -> FrontConfig:
    return FrontConfig(
        endpoint_url=endpoint,
        access_key="AKIAEXAMPLE",
        secret_key="example",
        rest_api_id="abcd1234",
        gateway_stage="live",
        user_pool_id="us-east-1_x",
        client_id="client",
        stream_role_arn="arn:aws:iam::000000000000:role/stream",
        stream_environment={},
        user="grace",
        status={"mode": "offline"},
        origins=("https://chat.example.com",),
    )


def asked(
    endpoint: str, use: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]], host: str = "127.0.0.1:8000"
) -> Any:
    """Run ``use`` with a client of a front whose gateway is at ``endpoint``."""

    async def go() -> Any:
        app = front.Front(config(endpoint), PlainTextResponse("events"))
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with (
            app.lifespan(),
            httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client,
        ):
            return await use(client)

    return asyncio.run(go())


def got(path: str, host: str = "127.0.0.1:8000", **more: Any) -> httpx.Response:
    """The answer to a GET of a front whose gateway is unreachable."""

    async def get(client: httpx.AsyncClient) -> httpx.Response:
        return await client.get(path, **more)

    answer: httpx.Response = asked("http://127.0.0.1:9", get, host)
    return answer


def test_a_request_is_forwarded_unchanged() -> None:
    with serve_in_thread(Upstream().app()) as url:
        answer = asked(
            url,
            lambda client: client.post(
                "/v1/chats/a%2Fb?wait=3&x=%20", content=b"{}", headers={"Authorization": "Bearer t"}
            ),
        )
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/chats/x"
    shown = answer.json()
    assert shown["path"] == "/live/v1/chats/a%2Fb"
    assert shown["query"] == "wait=3&x=%20"
    assert shown["host"] == f"abcd1234.execute-api.localhost:{url.rsplit(':', 1)[1]}"
    assert shown["authorization"] == "Bearer t"
    assert shown["size"] == 2


@pytest.mark.parametrize(
    ("path", "accept", "passed"),
    [
        ("/v1/conversations/cv_1/records/q1/attachments/1", "*/*", "application/octet-stream"),
        ("/v1/conversations/cv_1/records/q1/attachments/1", "image/png", "image/png"),
        ("/v1/conversations/cv_1/records/q1/attachments/1", "text/html, */*", "text/html, */*"),
        ("/v1/conversations/cv_1/records/q1", "*/*", "*/*"),
    ],
)
def test_a_file_is_requested_as_bytes_unless_the_client_names_a_type(
    path: str, accept: str, passed: str
) -> None:
    with serve_in_thread(Upstream().app()) as url:
        answer = asked(url, lambda client: client.get(path, headers={"Accept": accept}))
    assert answer.json()["accept"] == passed


def test_an_answer_without_a_body_stays_without() -> None:
    with serve_in_thread(Upstream().app()) as url:
        answer = asked(url, lambda client: client.delete("/v1/held"))
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-length" not in answer.headers


def test_a_request_over_the_gateways_limit_is_refused() -> None:
    with serve_in_thread(Upstream().app()) as url:
        answer = asked(url, lambda client: client.post("/v1/chats", content=b"x" * (front.BODY_LIMIT + 1)))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"


@pytest.mark.parametrize("query", ["", "?wait=25"])
def test_requests_in_flight_are_bounded_and_none_is_lost(query: str) -> None:
    upstream = Upstream()
    with serve_in_thread(upstream.app()) as url:

        async def many(client: httpx.AsyncClient) -> list[int]:
            answers = await asyncio.gather(*(client.post(f"/v1/held{query}") for _ in range(30)))
            return [answer.status_code for answer in answers]

        assert asked(url, many) == [204] * 30
    assert upstream.most == front.IN_FLIGHT


def test_an_unreachable_emulator_is_reported() -> None:
    answer = got("/health")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable"


def test_events_are_served_by_the_functions_app_and_not_forwarded() -> None:
    answer = got("/v1/chats/ch_1/events")
    assert answer.text == "events"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000"])
def test_a_foreign_host_name_gets_no_token(host: str) -> None:
    """A foreign page whose host name resolves to this machine must not read tokens."""
    for path in ("/dev/token?user=ann&admin=1", "/v1/chats/ch_1/events", "/"):
        answer = got(path, host)
        assert answer.status_code == 403


OWN_ADDRESS = "127.0.0.1:8000"
CHAT_PAGE = "https://chat.example.com"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}),
        ("/app.js", {"Sec-Fetch-Site": "same-origin"}),
        ("/dev/status", {"Origin": f"http://{OWN_ADDRESS}", "Sec-Fetch-Site": "same-origin"}),
        ("/v1/chats/x", {"Origin": f"http://{OWN_ADDRESS}", "Sec-Fetch-Site": "same-origin"}),
        ("/v1/chats/x", {"Origin": CHAT_PAGE, "Sec-Fetch-Site": "cross-site"}),
        ("/v1/chats/x", {}),
    ],
)
def test_programs_the_stacks_page_and_the_named_origins_are_served(
    path: str, headers: dict[str, str]
) -> None:
    assert got(path, headers=headers).status_code != 403


@pytest.mark.parametrize("path", ["/dev/token?user=ann&admin=1", "/dev/status", "/v1/chats/ch_1/events", "/"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:8001"},
        {"Origin": "http://127.0.0.1:8000.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_sites_page_is_refused(path: str, headers: dict[str, str]) -> None:
    answer = got(path, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/dev/token?user=ann", "/dev/status", "/", "/v1x"])
def test_an_origin_that_may_call_the_api_gets_no_tokens(path: str) -> None:
    assert got(path, headers={"Origin": CHAT_PAGE}).status_code == 403


def _get_as(origin: str) -> Callable[[httpx.AsyncClient], Coroutine[Any, Any, httpx.Response]]:
    return lambda client: client.get("/v1/x", headers={"Origin": origin})


def test_the_stacks_own_page_is_accepted_by_the_gateway_too() -> None:
    origins = {f"http://{OWN_ADDRESS}": None, CHAT_PAGE: CHAT_PAGE}
    with serve_in_thread(Upstream().app()) as url:
        for origin, passed_on in origins.items():
            answer = asked(url, _get_as(origin))
            assert answer.json()["origin"] == passed_on


def test_a_name_that_the_pool_would_refuse_is_refused() -> None:
    for name in ("", "a b", "x" * 65, "ä"):
        answer = got("/dev/token", params={"user": name})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")


def test_without_a_name_a_token_is_for_the_default_user(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[tuple[str, bool]] = []

    def identity(_tokens: LocalUsers, user: str, *, admin: bool = False) -> SignedInUser:
        asked_for.append((user, admin))
        return SignedInUser("token", "id", created=True)

    monkeypatch.setattr(LocalUsers, "identity", identity)
    answer = got("/dev/token")
    assert answer.json() == {"token": "token", "user_id": "id", "created": True}
    got("/dev/token", params={"user": "ann", "admin": "1"})
    assert asked_for == [("grace", False), ("ann", True)]


@pytest.mark.parametrize(
    ("login", "name"), [("grace", "grace"), ("CORP\\Zoë K", "CORP-Zo--K"), ("x" * 70, "x" * 64)]
)
def test_a_login_name_becomes_one_that_the_pool_accepts(
    monkeypatch: pytest.MonkeyPatch, login: str, name: str
) -> None:
    monkeypatch.setenv("LOGNAME", login)
    assert login_name() == name


def test_pages_carry_a_policy_and_unknown_paths_are_not_found() -> None:
    answer = got("/")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for path in ("/nothing.js", "/../cdk.json", "/%2e%2e/cdk.json"):
        missing = got(path)
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")


def test_of_a_plug_in_scripts_and_style_sheets_alone_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "PLUGINS", plug_in(tmp_path))
    for path in SERVED:
        answer = got(f"/{path}")
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == got("/").headers["content-security-policy"]
    for path in (*HELD, "", "../panel.js", "../silent/plugin.py", "..%2fsilent/plugin.py"):
        assert got(f"/plugins/planted/{path}").status_code == 404, path
    assert got("/config.json").json()["plugins"] == LISTED


def test_the_page_is_served_without_any_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "PLUGINS", tmp_path / "none")
    assert got("/index.html").status_code == 200
    assert got("/config.json").json() == {
        "api": "",
        "uploads": "",
        "sign_in": {"kind": "local"},
        "plugins": [],
    }


ODD_PATHS = ("%0a", "%0d%0a", "a%0ab", "x/%0a", "%0a/", "%00", "%e2%80%a8", "%ff", "a%0a.js", "index.html%0a")


@pytest.mark.parametrize("path", ODD_PATHS)
def test_a_path_with_a_line_break_is_treated_like_any_other(path: str) -> None:
    """Below ``/v1`` it is forwarded unchanged; elsewhere it is not found."""
    with serve_in_thread(Upstream().app()) as url:
        passed = asked(url, lambda client: client.get(f"/v1/chats/{path}"))
    assert (passed.status_code, passed.json()["path"]) == (201, f"/live/v1/chats/{path}")
    missing = got(f"/{path}")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")


HOSTILE_PATHS = {
    "a segment that no file system takes": "/" + "a" * 256,
    "the same below a folder": "/css/" + "b" * 256 + "/x.css",
    "the same, escaped": "/" + "%61" * 256,
    "a path that no file system takes": "/" + "a/" * 3_000,
    "dots without end": "/" + "../" * 2_000,
    "dots": "/js/../js/main.js",
    "dots out of the API": "/v1/../../bucket/key",
    "a dot in the API": "/v1/./chats",
    "escaped dots": "/js/%2e%2e/web.py",
    "one dot": "/./index.html",
    "backslashes": "/js\\..\\web.py",
    "escaped backslashes": "/js%5c..%5cweb.py",
    "an overlong form of dots": "/%c0%ae%c0%ae/web.py",
    "half a surrogate": "/%ed%a0%80",
    "zero": "/js/main.js%00",
    "zero first": "/%00/index.html",
    "a file as a folder": "/index.html/",
    "a folder": "/js/",
    "an absolute path": "//etc/passwd",
    "a pattern": "/[*",
    "a source": "/web.py",
    "another scheme": "http://127.0.0.1:1/js/web.py",
}


def status_line(url: str, target: str) -> tuple[int, str]:
    """Status and body of a GET of exactly these bytes: no client tidies the path."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        request = f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    return int(answer.split(" ", 2)[1]), answer.split("\r\n\r\n", 1)[1]


def test_a_hostile_path_is_not_found_and_no_error() -> None:
    with serve_in_thread(front.Front(config("http://127.0.0.1:9"), PlainTextResponse("events"))) as url:
        answers = {name: status_line(url, path) for name, path in HOSTILE_PATHS.items()}
    assert got("/js/main.js").status_code == 200
    assert {name for name, (status, _) in answers.items() if status != 404} == set()
    assert all(json.loads(body)["error"]["code"] == "not_found" for _, body in answers.values())


@pytest.mark.parametrize(
    "path", ["/" + "a" * 70_000, "/v1/chats/" + "a" * 70_000, "/v1/conversations?q=" + "a" * 70_000]
)
def test_an_address_over_cloudfronts_limit_is_refused(path: str) -> None:
    with serve_in_thread(front.Front(config("http://127.0.0.1:9"), PlainTextResponse("events"))) as url:
        status, body = status_line(url, path)
    assert (status, json.loads(body)["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "path", ["/", "/dev/token", "/dev/status", "/nothing", "/health/", "/%0a", "/v2/chats"]
)
@pytest.mark.parametrize("method", ["POST", "DELETE", "TRACE"])
def test_a_method_that_is_not_served_is_a_404_in_the_contracts_form(path: str, method: str) -> None:
    answer = asked("http://127.0.0.1:9", lambda client: client.request(method, path))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_an_internal_error_has_the_contracts_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("test")

    monkeypatch.setattr(web, "files", broken)
    answer = got("/nothing.js")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "test" not in answer.text


def test_each_request_counts_as_use_until_its_end(tmp_path: Path) -> None:
    """The file that a background stack looks at; without one nothing is made."""
    used, seen = tmp_path / "guests", []

    async def app(*_: object) -> None:
        seen.append(used.exists() and used.stat().st_mtime_ns)
        if used.exists():
            os.utime(used, (1, 1))

    call = front.counted(app, used)
    asyncio.run(call({}, None, None))  # type: ignore[arg-type]
    used.touch()
    os.utime(used, (1, 1))
    asyncio.run(call({}, None, None))  # type: ignore[arg-type]
    assert seen[0] is False
    assert seen[1] > 10**9
    assert used.stat().st_mtime > 1
