"""Which requests the guard lets through to the emulator, here a plain app."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import botocore.auth
import botocore.session
import httpx
import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as Keys
from dualtrack_stack.local import emulator
from dualtrack_stack.local.credentials import Credentials
from dualtrack_stack.local.guard import Guard
from ministack.services import iam, sts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

HERE = "http://127.0.0.1:4566"
API = "http://abcd1234.execute-api.localhost:4566"
PAGE = "https://chat.example.com"
ROOT = Credentials("AKIAROOTOFTHISSTART0", "the root's secret of this start")
SESSION = Credentials("ASIASESSIONOFAROLE00", "the session's secret", "the session's token")
USER = Credentials("AKIAKEYOFANIAMUSER00", "the user's secret")
POOL_KEYS = "/us-east-1_Pool/.well-known/jwks.json"
TARGET = "AWSCognitoIdentityProviderService"
SECRET = {"X-Amz-Target": "secretsmanager.GetSecretValue"}


@pytest.fixture(autouse=True)
def issued(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Credentials issued by the emulator: a role's session and a user's key. It was started with ``ROOT``."""
    for name, value in ROOT.environment().items():
        monkeypatch.setenv(name, value)
    role = "arn:aws:sts::000000000000:assumed-role/turn/turn"
    session = {"SecretAccessKey": SESSION.secret_key, "SessionToken": SESSION.session_token, "Arn": role}
    sts.register_session(SESSION.access_key, session)
    key = {"UserName": "ann", "Status": "Active", "SecretAccessKey": USER.secret_key}
    iam._access_keys[USER.access_key] = key
    yield
    sts.reset()
    iam.reset()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """The app behind the guard: answers with the body that reached it."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-reached", b"1")]})
    await send({"type": "http.response.body", "body": body})


def sent(request: httpx.Request, app: Any = None) -> httpx.Response:
    """The answer of the guarded app; the pages of ``PAGE`` may call the API."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app or emulator.guarded(echo, [PAGE]))
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.send(request)

    return asyncio.run(send())


def answer(method: str, url: str, **more: Any) -> httpx.Response:
    return sent(httpx.Request(method, url, **more))


OPEN = [
    ("GET", HERE + "/_ministack/health", {}),
    ("GET", "http://localhost:4566/_ministack/health", {}),
    ("GET", "http://[::1]:4566/_ministack/health", {}),
    ("GET", HERE + "/_ministack/health", {"Sec-Fetch-Site": "none"}),
    ("GET", HERE + POOL_KEYS, {}),
    ("GET", HERE + "/us-east-1_Pool/.well-known/openid-configuration", {}),
    ("POST", HERE + "/", {"X-Amz-Target": f"{TARGET}.InitiateAuth"}),
    ("POST", API + "/live/v1/chats", {"Authorization": "Bearer token"}),
    ("GET", API + "/live/v1/chats/a%0Ab", {}),
    ("GET", API + "/live", {}),
    ("GET", HERE + "/_aws/execute-api/abcd1234/live/health", {}),
    ("GET", API + "/live/health", {"Origin": PAGE, "Sec-Fetch-Site": "cross-site"}),
    ("OPTIONS", API + "/live/v1/chats", {"Origin": PAGE}),
]


@pytest.mark.parametrize(("method", "url", "headers"), OPEN)
def test_what_aws_serves_without_a_signature_is_served(
    method: str, url: str, headers: dict[str, str]
) -> None:
    assert answer(method, url, headers=headers, content=b"body").content == b"body"


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "http://127.0.0.1:4566"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Host": "evil.example"},
    {"Host": "evil.example:4566"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "localhost.evil.example:4566"},
    {"Host": "evil.localhost"},
    {"Host": "bucket.s3.localhost:4566"},
    {"Host": "127.0.0.1:4566:80"},
    {"Host": "evil@127.0.0.1"},
    {"Host": ""},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.parametrize("url", [HERE + "/_ministack/health", API + "/live/health", HERE + "/"])
def test_a_page_and_a_strange_host_are_refused(url: str, method: str, headers: dict[str, str]) -> None:
    refused = answer(method, url, headers=headers)
    assert refused.status_code == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_page_or_a_strange_host_is_refused_even_with_a_signature(headers: dict[str, str]) -> None:
    request = signed(ROOT, headers=SECRET)
    request.headers.update(headers)
    assert sent(request).status_code == 403


def test_the_origins_of_the_api_may_call_only_the_api() -> None:
    for path in ("/", POOL_KEYS, "/_ministack/health"):
        assert answer("GET", HERE + path, headers={"Origin": PAGE}).status_code == 403


CLOSED = [
    ("POST", HERE + "/", SECRET),
    ("POST", HERE + "/", {"X-Amz-Target": f"{TARGET}.AdminCreateUser"}),
    ("POST", HERE + "/", {"X-Amz-Target": "InitiateAuth"}),
    ("POST", HERE + "/bucket", {"X-Amz-Target": f"{TARGET}.InitiateAuth"}),
    ("POST", API + "/", {"X-Amz-Target": f"{TARGET}.InitiateAuth"}),
    ("GET", HERE + "/", {}),
    ("GET", HERE + "/bucket/key", {}),
    ("GET", HERE + "/a/b/.well-known/jwks.json", {}),
    ("POST", HERE + "/2015-03-31/functions/turn/invocations", {}),
    ("POST", HERE + "/_ministack/reset", {}),
    ("POST", API + "/_ministack/reset", {}),
    ("POST", HERE + "/_ministack/config", {}),
    ("GET", HERE + "/_ministack/lambda-code/turn", {}),
    ("POST", API + "/2015-03-31/functions/turn/invocations", {}),
    ("GET", API + "/oauth2/authorize", {}),
    ("GET", HERE + "/_aws/lambda-url/abcd1234/", {}),
    ("GET", HERE + "/_aws/execute-api/abcd1234/@connections/x", {}),
    ("POST", HERE + "/", {**SECRET, "Authorization": "Bearer token"}),
    ("POST", HERE + "/", {**SECRET, "Authorization": "AWS AKIAROOTOFTHISSTART0:c2lnbmF0dXJl"}),
    ("POST", HERE + "/?AWSAccessKeyId=AKIAROOTOFTHISSTART0&Signature=x&Expires=9999999999", SECRET),
    ("POST", HERE + "/?X-Amz-Credential=test/20261122/us-east-1/secretsmanager/aws4_request", SECRET),
]


@pytest.mark.parametrize(("method", "url", "headers"), CLOSED)
def test_everything_else_needs_a_signature(method: str, url: str, headers: dict[str, str]) -> None:
    assert answer(method, url, headers=headers).status_code == 403


def signed(
    by: Credentials, url: str = HERE + "/", headers: dict[str, str] | None = None, body: bytes = b"{}"
) -> httpx.Request:
    """A POST with a signature in its header."""
    request = AWSRequest("POST", url, headers=headers or {}, data=body)
    keys = Keys(by.access_key, by.secret_key, by.session_token)
    SigV4Auth(keys, "secretsmanager", "us-east-1").add_auth(request)
    return httpx.Request("POST", url, headers=dict(request.headers.items()), content=body)


def presigned(by: Credentials, seconds: int = 60) -> str:
    """The address of an object, with a signature in its query."""
    request = AWSRequest("GET", HERE + "/bucket/a%20key")
    S3SigV4QueryAuth(
        Keys(by.access_key, by.secret_key, by.session_token), "s3", "us-east-1", seconds
    ).add_auth(request)
    return str(request.url)


@pytest.mark.parametrize("by", [ROOT, SESSION, USER])
def test_keys_that_the_stack_issued_are_served_and_the_body_arrives(by: Credentials) -> None:
    assert sent(signed(by, headers=SECRET, body=b"x" * 100_000)).content == b"x" * 100_000
    assert answer("GET", presigned(by)).status_code == 200


def test_an_upload_to_s3_with_spaces_in_its_name_is_served() -> None:
    request = AWSRequest(
        "PUT", HERE + "/bucket/a%20b/%C3%A4+c", data=b"body", headers={"x-amz-meta-a": "1  2"}
    )
    S3SigV4Auth(Keys(ROOT.access_key, ROOT.secret_key), "s3", "us-east-1").add_auth(request)
    headers = dict(request.headers.items())
    assert answer("PUT", str(request.url), headers=headers, content=b"body").content == b"body"


STRANGERS = [
    Credentials("test", "test"),
    Credentials("test", ROOT.secret_key),
    Credentials("000000000000", ROOT.secret_key),
    Credentials("123456789012", "test"),
    Credentials("AKIAROOTOFTHELASTRUN", ROOT.secret_key),
    Credentials(ROOT.access_key, "wrong"),
    Credentials(ROOT.access_key, ROOT.secret_key, "a token"),
    Credentials(SESSION.access_key, "wrong", SESSION.session_token),
    Credentials(SESSION.access_key, SESSION.secret_key, "wrong"),
    Credentials(SESSION.access_key, SESSION.secret_key),
    Credentials(USER.access_key, "wrong"),
]


@pytest.mark.parametrize("by", STRANGERS)
def test_other_keys_and_wrong_secrets_are_refused(by: Credentials) -> None:
    assert sent(signed(by, headers=SECRET)).status_code == 403
    assert answer("GET", presigned(by)).status_code == 403


def test_signed_content_cannot_be_changed() -> None:
    request = signed(ROOT, headers=SECRET)
    other = httpx.Request("POST", request.url, headers=request.headers, content=b'{"SecretId": "x"}')
    other.headers["content-length"] = str(len(other.content))
    assert sent(other).status_code == 403
    request.headers["X-Amz-Target"] = "secretsmanager.DeleteSecret"
    assert sent(request).status_code == 403
    assert answer("DELETE", presigned(ROOT)).status_code == 403
    assert answer("GET", presigned(ROOT).replace("a%20key", "other")).status_code == 403


def test_a_second_key_beside_the_signed_one_is_refused() -> None:
    """The emulator reads the first, so the second one's signature must not vouch for it."""
    request = signed(USER, headers=SECRET)
    scope = "20261122/us-east-1/secretsmanager/aws4_request"
    request.headers["Authorization"] = request.headers["Authorization"].replace(
        "Credential=", f"Credential=test/{scope}, Credential=", 1
    )
    assert sent(request).status_code == 403
    query = urlencode({"X-Amz-Credential": f"test/{scope}"})
    moved = httpx.Request(
        "POST", f"{HERE}/?{query}", headers=signed(USER, headers=SECRET).headers, content=b"{}"
    )
    assert sent(moved).status_code == 403


def test_an_old_signature_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_, **__: long_ago)
    assert sent(signed(ROOT, headers=SECRET)).status_code == 403
    assert answer("GET", presigned(ROOT, 60)).status_code == 403
    assert answer("GET", presigned(ROOT, 7200)).status_code == 200


def test_the_emulators_administration_is_blocked() -> None:
    for path in ("/_ministack/reset", "/_ministack/config", "/_localstack/init"):
        assert sent(signed(ROOT, HERE + path)).status_code == 403


def test_the_public_operations_are_those_that_aws_accepts_unsigned() -> None:
    model = botocore.session.get_session().get_service_model("cognito-idp")
    for name in emulator.COGNITO_PUBLIC:
        assert model.operation_model(name).auth_type == "none", name


def opened(path: str, *headers: tuple[bytes, bytes]) -> list[dict[str, Any]]:
    """What a client that opens a WebSocket receives."""
    messages: list[dict[str, Any]] = []
    scope = {"type": "websocket", "path": path, "query_string": b"", "headers": headers}

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(emulator.guarded(echo)(scope, receive, send))
    return messages


def test_no_websocket_is_opened() -> None:
    api = (b"host", b"abcd1234.execute-api.localhost:4566")
    for headers in ((api,), (api, (b"origin", b"https://evil.example")), ((b"host", b"evil.example"),)):
        assert opened("/live", *headers) == [{"type": "websocket.close", "code": 1008}]


def test_the_functions_secrets_cannot_be_derived() -> None:
    def derived(_: Any) -> dict[str, str]:
        sts.register_session(
            "ASIADERIVED", {"Arn": "role", "SecretAccessKey": "known", "SessionToken": "known"}
        )
        return {
            "AWS_ACCESS_KEY_ID": "ASIADERIVED",
            "AWS_SECRET_ACCESS_KEY": "known",
            "AWS_SESSION_TOKEN": "known",
        }

    first, second = (emulator.secretly(derived, salt)({}) for salt in (b"one", b"two"))
    assert first["AWS_ACCESS_KEY_ID"] == second["AWS_ACCESS_KEY_ID"]
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        assert len({first[name], second[name], "known"}) == 3
    assert sts._sessions["ASIADERIVED"]["SecretAccessKey"] == second["AWS_SECRET_ACCESS_KEY"]
    assert sts._sessions["ASIADERIVED"]["Arn"] == "role"


@pytest.mark.parametrize("headers", FOREIGN)
def test_the_stand_ins_refuse_pages_and_strange_hosts(headers: dict[str, str]) -> None:
    stand_in = Guard(echo)
    assert sent(httpx.Request("POST", HERE + "/v1/messages"), stand_in).status_code == 200
    assert sent(httpx.Request("POST", HERE + "/v1/messages", headers=headers), stand_in).status_code == 403
