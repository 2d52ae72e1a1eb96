"""The event stream's own app: tokens, origins, refusals, how a stream ends (CONTRACT 3, 5)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import importlib.util
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from dualtrack.api.end_users import end_user_id
from dualtrack.api.key_format import digest_of, new_key, new_key_id, parse_key
from dualtrack.api.request_log import user_hash
from dualtrack.api.route import EVENTS_PATH
from dualtrack.storage.dynamo import transact
from dualtrack.storage.keys import ApiKey
from dualtrack.storage.leases import STREAMS, Leases
from dualtrack.streaming import leased_stream
from dualtrack.streaming.follow_events import HEARTBEAT, EventReader, PollIntervals
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.clients.sse_reader import whole_events
from tests.drivers.world import SETTINGS, World, make_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from types import ModuleType

    from dualtrack.settings import Settings
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.leases import Lease
    from dualtrack.vocabulary import Scope
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from starlette.requests import Request

APP = Path(__file__).parents[3] / "functions" / "stream" / "app.py"
ISSUER = "https://cognito-idp.us-east-1.amazonaws.com/pool"
AUDIENCE, TERMINAL = "client", "terminal"
ORIGIN = "https://chat.example.com"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ANOTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


async def _keys(_: Request) -> JSONResponse:
    """The pool's keys, as Cognito serves them."""
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    return JSONResponse({"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]})


def claims(**changed: Any) -> dict[str, Any]:
    now = int(time.time())
    default = {"sub": "ann", "token_use": "id", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 3600}
    return {key: value for key, value in {**default, **changed}.items() if value is not None}


def signed(payload: Mapping[str, Any], *, key: Any = KEY, kid: str = "one") -> str:
    return jwt.encode(dict(payload), key, algorithm="RS256", headers={"kid": kid})


@dataclass
class Stream:
    """The app over a world, and its client."""

    world: World
    module: ModuleType
    app: Any
    jwks_url: str

    def get(
        self,
        chat_id: str,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        *,
        path: str = EVENTS_PATH,
        fails: bool = False,
    ) -> httpx.Response:
        """Make a request and read its whole answer. ``fails``: raise what the app raises."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=fails)
            async with httpx.AsyncClient(transport=transport, base_url="http://stream") as client:
                return await client.request(method, path.format(chat_id=chat_id), headers=headers)

        return asyncio.run(asyncio.wait_for(ask(), 60))

    def as_ann(self, chat_id: str, **more: str) -> httpx.Response:
        """With Ann's token; headers with underscores for hyphens."""
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        return self.get(chat_id, {"Authorization": f"Bearer {signed(claims())}", **headers})


@pytest.fixture(scope="module")
def stream() -> Iterator[Stream]:
    pool = Starlette(routes=[Route("/keys", _keys)])
    with make_world() as world, serve_in_thread(pool) as url:
        settings = replace(
            SETTINGS,
            jwks_url=f"{url}/keys",
            token_issuer=ISSUER,
            token_audience=f"{AUDIENCE},{TERMINAL}",
            allowed_origins=(ORIGIN, "https://b.example"),
        )
        module = _load()
        yield Stream(
            world,
            module,
            module.create_app(settings, world.stores.chats.client, None, None),
            settings.jwks_url,
        )


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stream_app_under_test", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def create_app(settings: Settings, dynamodb: DynamoDBClient) -> Any:
    return _load().create_app(settings, dynamodb, None, None)


@pytest.fixture(scope="module")
def done(stream: Stream) -> Chat:
    """A chat that has ended just now, by the real clock."""
    return ended_now(stream, "ann")


def ended_now(stream: Stream, user: str) -> Chat:
    stream.world.clock.now = time.time()
    return stream.world.ask("Hello.", user=user)


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


# ── what is sent ──────────────────────────────────────────────────────────────────────────────────


def test_an_ended_chat_is_sent_in_full_and_the_stream_closes(stream: Stream, done: Chat) -> None:
    response = stream.as_ann(done.chat_id)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "no-cache" in response.headers["cache-control"]
    assert response.content.startswith(HEARTBEAT), "the client sees at once that the stream is open"
    events = [event for event in whole_events(response.content) if event.data]
    assert [int(event.id) for event in events] == list(range(1, len(events) + 1))
    assert events[-1].event == "done"
    assert {json.loads(event.data)["chat_id"] for event in events} == {done.chat_id}


@pytest.mark.parametrize("beyond", [0, 1, 1_000])
def test_after_the_last_event_the_stream_closes_without_events(
    stream: Stream, done: Chat, beyond: int
) -> None:
    last = max(int(event.id) for event in whole_events(stream.as_ann(done.chat_id).content) if event.data)
    response = stream.as_ann(done.chat_id, Last_Event_ID=str(last + beyond))
    assert (response.status_code, response.content) == (200, HEARTBEAT)


@pytest.mark.parametrize(
    "last_event_id", ["-1", "x", "1.0", "0x1", " 1 2", "1,2", "9" * 10, "NaN", "1e3", "+1"]
)
def test_an_invalid_last_event_id_is_refused(stream: Stream, done: Chat, last_event_id: str) -> None:
    assert code(stream.as_ann(done.chat_id, Last_Event_ID=last_event_id)) == (400, "invalid_request")


# ── the log ───────────────────────────────────────────────────────────────────────────────────────


def logged(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_a_stream_leaves_a_line_with_its_chat(
    stream: Stream, done: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    stream.as_ann(done.chat_id)
    stream.get(done.chat_id)
    (served, refused) = logged(capsys.readouterr().out)
    route = {"message": "Request", "route": "GET /v1/chats/{chat_id}/events", "correlation_id": done.chat_id}
    assert served.items() >= {**route, "status": 200, "user_hash": user_hash("ann")}.items()
    assert refused.items() >= {**route, "status": 401}.items()
    assert "user_hash" not in refused


def test_a_stream_that_breaks_in_its_middle_is_counted(
    stream: Stream, done: Chat, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> AsyncIterator[bytes]:
        yield b"id: 1\n"
        raise OSError("the table is away")

    monkeypatch.setattr(EventReader, "follow", broken)
    with pytest.raises(OSError, match="the table is away"):
        stream.get(done.chat_id, {"Authorization": f"Bearer {signed(claims())}"}, fails=True)
    lines = logged(capsys.readouterr().out)
    (error,) = [line for line in lines if line.get("level") == "ERROR"]
    assert (error["correlation_id"], error["error"]) == (done.chat_id, "OSError('the table is away')")
    (metric,) = [line for line in lines if "_aws" in line]
    assert metric["BrokenStreams"] == 1


# ── who may read ──────────────────────────────────────────────────────────────────────────────────


def unsigned(header: Mapping[str, Any], payload: Mapping[str, Any], secret: bytes = b"") -> str:
    """A token that names any algorithm; signed with HMAC if there is a secret."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(dict(part)).encode()).rstrip(b"=") for part in (header, payload)
    ]
    text = b".".join(parts)
    mac = hmac.new(secret, text, hashlib.sha256).digest() if secret else b""
    return (text + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()


PUBLIC = json.dumps(json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))).encode()
BAD_TOKENS = {
    "none": unsigned({"alg": "none", "typ": "JWT", "kid": "one"}, claims()),
    "None": unsigned({"alg": "None", "kid": "one"}, claims()),
    "hmac of the public key": unsigned({"alg": "HS256", "kid": "one"}, claims(), PUBLIC),
    "another key": signed(claims(), key=ANOTHER_KEY),
    "unknown key id": signed(claims(), key=ANOTHER_KEY, kid="two"),
    "no key id": jwt.encode(claims(), KEY, algorithm="RS256"),
    "key id no text": unsigned({"alg": "RS256", "kid": {"a": 1}}, claims()),
    "expired": signed(claims(exp=int(time.time()) - 1)),
    "not yet": signed(claims(nbf=int(time.time()) + 86_400)),
    "never expires": signed(claims(exp=None)),
    "another issuer": signed(claims(iss=f"{ISSUER}2")),
    "no issuer": signed(claims(iss=None)),
    "another client": signed(claims(aud="other")),
    "access token": signed(claims(token_use="access", aud=None, client_id=AUDIENCE)),
    "access token with an audience": signed(claims(token_use="access")),
    "no subject": signed(claims(sub=None)),
    "empty subject": signed(claims(sub="")),
    "cut": signed(claims())[:-4],
    "altered": signed(claims()).replace(".", ".e30", 1),
    "empty": "",
    "dots": "..",
    "text": "token",
    "deep": base64.urlsafe_b64encode(b"[" * 20_000).decode().rstrip("=") + ".e30.eA",
    "deep object": base64.urlsafe_b64encode(b'{"alg":' * 5_000).decode().rstrip("=") + ".e30.eA",
    "digits": base64.urlsafe_b64encode(b'{"alg":' + b"1" * 5_000 + b"}").decode().rstrip("=") + ".e30.eA",
    "binary": base64.urlsafe_b64encode(bytes(range(256))).decode().rstrip("=") + ".e30.eA",
}


@pytest.mark.parametrize("token", BAD_TOKENS.values(), ids=list(BAD_TOKENS))
def test_a_token_that_is_not_the_pools_own_id_token_is_refused(
    stream: Stream, done: Chat, token: str
) -> None:
    assert code(stream.get(done.chat_id, {"Authorization": f"Bearer {token}"})) == (401, "unauthorized")


def test_a_token_of_the_terminals_client_is_taken(stream: Stream, done: Chat) -> None:
    token = signed(claims(aud=TERMINAL))
    assert stream.get(done.chat_id, {"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "{}", "Token {}"])
def test_without_a_bearer_token_nothing_is_read(stream: Stream, done: Chat, header: str) -> None:
    assert code(stream.get(done.chat_id, {"Authorization": header.format(signed(claims()))})) == (
        401,
        "unauthorized",
    )
    assert code(stream.get(done.chat_id)) == (401, "unauthorized")


def test_unreadable_keys_are_a_server_error(stream: Stream, done: Chat) -> None:
    settings = replace(
        SETTINGS, jwks_url="http://127.0.0.1:9/keys", token_issuer=ISSUER, token_audience=AUDIENCE
    )
    broken = replace(stream, app=create_app(settings, stream.world.stores.chats.client))
    assert code(broken.as_ann(done.chat_id)) == (503, "unavailable")


def test_another_users_chat_is_not_found(stream: Stream, done: Chat) -> None:
    bob = {"Authorization": f"Bearer {signed(claims(sub='bob'))}"}
    assert code(stream.get(done.chat_id, bob)) == (404, "not_found")
    assert code(stream.as_ann("ch_" + "0" * 26)) == (404, "not_found")


@pytest.mark.parametrize(
    "chat_id", ["x", "%23", "a%23b", "%2e%2e", "%00", "ch_", "ch_" + "0" * 5_000, "%F0%9F%92%A1", "%ff"]
)
def test_an_unknown_chat_id_is_a_404(stream: Stream, chat_id: str) -> None:
    assert code(stream.as_ann(chat_id)) == (404, "not_found")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_only_get_is_served(stream: Stream, done: Chat, method: str) -> None:
    response = stream.get(done.chat_id, {"Authorization": f"Bearer {signed(claims())}"}, method)
    assert code(response) == (404, "not_found")


# ── for how long ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("hours", "is_there"), [(23.99, True), (24.01, False)])
def test_events_can_be_read_for_a_day_after_the_end(stream: Stream, hours: float, is_there: bool) -> None:
    world = stream.world
    chat = world.ask("Hello.", user=f"user-{hours}")
    ended = world.load(chat)
    assert ended.ended_at
    world.clock.now += hours * 3600
    reader = EventReader(world.stores.chats.client, "chats", world.clock)
    if is_there:
        assert reader.chat(chat.user, chat.chat_id) == ended
    else:
        with pytest.raises(Exception, match="its events have expired"):
            reader.chat(chat.user, chat.chat_id)


# ── pages of other origins ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("origin", [ORIGIN, "https://b.example"])
def test_a_page_of_a_configured_origin_reads_events_and_refusals(
    stream: Stream, done: Chat, origin: str
) -> None:
    for response in (
        stream.as_ann(done.chat_id, Origin=origin),
        stream.as_ann("x", Origin=origin),
        stream.get("x", {"Origin": origin}),
    ):
        assert response.headers["access-control-allow-origin"] == origin
    other = stream.as_ann(done.chat_id, Origin="https://evil.example")
    assert "access-control-allow-origin" not in other.headers


def test_the_preflight_allows_what_a_reader_sends(stream: Stream) -> None:
    headers = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization,last-event-id",
    }
    response = stream.get("x", headers, "OPTIONS")
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == ORIGIN


# ── how many at a time ────────────────────────────────────────────────────────────────────────────


def open_streams(stream: Stream, user: str) -> int:
    item = stream.world.stores.chats.client.get_item(
        TableName="cache", Key={"pk": {"S": f"LEASE#{user}"}, "sk": {"S": "STREAMS"}}, ConsistentRead=True
    ).get("Item", {})
    return len(item.get("leases", {"M": {}})["M"])


def take_all(stream: Stream, user: str) -> tuple[Leases, list[Lease]]:
    leases = Leases(stream.world.stores.chats.client, "cache", time.time)
    return leases, [leases.take(user, STREAMS) for _ in range(STREAMS.limit)]


def bearer(user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {signed(claims(sub=user))}"}


def test_the_sixth_stream_of_a_user_is_refused_until_another_closes(stream: Stream) -> None:
    chats = {user: ended_now(stream, user) for user in ("many", "few")}
    leases, held = take_all(stream, "many")
    refused = stream.get(chats["many"].chat_id, {**bearer("many"), "Origin": ORIGIN})
    assert code(refused) == (429, "rate_limited")
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert refused.json()["error"]["retry_after"] == int(refused.headers["retry-after"])
    assert refused.headers["access-control-expose-headers"] == "Retry-After", "a page has to see it"
    assert stream.get(chats["few"].chat_id, bearer("few")).status_code == 200
    leases.free(held[0])
    for _ in range(3):
        assert stream.get(chats["many"].chat_id, bearer("many")).status_code == 200


def test_a_request_refused_for_another_reason_takes_no_lease(stream: Stream, done: Chat) -> None:
    for chat_id, headers in (("x", {}), (done.chat_id, {"Last-Event-ID": "x"}), (done.chat_id, {})):
        stream.get(chat_id, {**bearer("bob"), **headers})
    assert open_streams(stream, "bob") == 0


def test_a_stream_that_cannot_be_counted_is_not_opened(stream: Stream, done: Chat) -> None:
    settings = replace(
        SETTINGS,
        cache_table="none",
        jwks_url=stream.jwks_url,
        token_issuer=ISSUER,
        token_audience=AUDIENCE,
    )
    broken = replace(stream, app=create_app(settings, stream.world.stores.chats.client))
    assert code(broken.as_ann(done.chat_id)) == (503, "unavailable")


@dataclass
class Wire:
    """The server's side of one request, driven by hand to decide what the client does between messages."""

    stream: Stream
    user: str
    chat_id: str
    sent: list[Any] = field(default_factory=list)
    open_at_end: int = -1
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, app: Any) -> None:
        """Run until the app has finished the request."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": f"/v1/chats/{self.chat_id}/events",
            "raw_path": b"",
            "root_path": "",
            "query_string": b"",
            "headers": [(key.lower().encode(), value.encode()) for key, value in bearer(self.user).items()],
            "server": ("stream", 80),
            "client": ("reader", 1),
        }
        await asyncio.wait_for(app(scope, self.receive, self.send), 30)

    async def receive(self) -> dict[str, Any]:
        """Report that the client has disconnected, once it has."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Send to the client."""
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.open_at_end = await asyncio.to_thread(open_streams, self.stream, self.user)
        self.sent.append(message)


def test_a_stream_releases_its_lease_at_its_end(stream: Stream) -> None:
    """Before the client sees the end, since it may reconnect at once."""
    chat = ended_now(stream, "resumer")

    async def serve() -> Wire:
        wire = Wire(stream, "resumer", chat.chat_id)
        await wire.serve(stream.app)
        return wire

    wire = asyncio.run(serve())
    assert wire.sent[0]["status"] == 200
    assert wire.open_at_end == 0


def test_a_client_that_disconnects_releases_its_lease(stream: Stream) -> None:
    chat = stream.world.start("Hello.", user="leaver")

    class Leaving(Wire):
        async def send(self, message: Any) -> None:
            await super().send(message)
            if message["type"] == "http.response.body":
                self.open_at_end = await asyncio.to_thread(open_streams, stream, self.user)
                self.gone.set()
                await asyncio.Event().wait()

    async def serve() -> Wire:
        wire = Leaving(stream, "leaver", chat.chat_id)
        await wire.serve(stream.app)
        return wire

    assert asyncio.run(serve()).open_at_end == 1
    assert open_streams(stream, "leaver") == 0


def test_a_client_that_reads_nothing_is_disconnected_before_its_lease_ends(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PollIntervals().stream < STREAMS.seconds - leased_stream._BEFORE_THE_END
    chat = stream.world.start("Hello.", user="sleeper")
    monkeypatch.setattr(leased_stream, "_BEFORE_THE_END", STREAMS.seconds - 0.1)

    class Sleeping(Wire):
        async def send(self, message: Any) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

    async def serve() -> None:
        await Sleeping(stream, "sleeper", chat.chat_id).serve(stream.app)

    asyncio.run(serve())
    assert open_streams(stream, "sleeper") == 0


# ── how a stream goes on and ends ─────────────────────────────────────────────────────────────────


def follow(world: World, chat: Chat, after: int, pace: PollIntervals) -> AsyncIterator[bytes]:
    return EventReader(world.stores.chats.client, "chats", world.clock, pace).follow(chat, after)


IMPATIENT = PollIntervals(heartbeat=0.0, busy=0.0, idle=0.0, busy_for=0.0)


def test_an_idle_stream_is_kept_open_by_comments(stream: Stream) -> None:
    chat = stream.world.start("Hello.", user="idle")

    async def pieces() -> list[bytes]:
        reading = follow(stream.world, chat, 0, IMPATIENT)
        return [await anext(reading) for _ in range(4)]

    first, *rest = asyncio.run(pieces())
    assert first.startswith(b"id: 1\n")
    assert rest == [HEARTBEAT] * 3


@dataclass
class Counting:
    """A DynamoDB client that counts its queries."""

    client: Any
    queries: int = 0

    def query(self, **request: Any) -> Any:
        """A counted Query."""
        self.queries += 1
        return self.client.query(**request)

    def get_item(self, **request: Any) -> Any:
        """A GetItem."""
        return self.client.get_item(**request)


@pytest.mark.parametrize(
    ("after", "searches"),
    [
        pytest.param(0, 0, id="from the start"),
        pytest.param(2, 1, id="resumed at the end"),
        pytest.param(1, 1, id="resumed within a batch"),
        pytest.param(99, 1, id="resumed behind the end"),
    ],
)
def test_a_reader_makes_one_query_per_poll(stream: Stream, after: int, searches: int) -> None:
    """A reader that reconnects needs one query more to find its position; after that it costs the same."""
    chat = stream.world.start("Hello.", user=f"looks-{after}")
    client: Any = Counting(stream.world.stores.chats.client)
    looks = 8

    async def pieces() -> list[bytes]:
        reading = EventReader(client, "chats", stream.world.clock, IMPATIENT).follow(chat, after)
        return [await anext(reading) for _ in range(looks)]

    asyncio.run(pieces())
    assert client.queries == searches + looks


@pytest.mark.parametrize("end", ["deleted", "ended"])
def test_a_reader_that_waits_for_events_behind_the_end_is_disconnected(stream: Stream, end: str) -> None:
    """It claims to have seen events that never existed; the chat ends, and no event follows."""
    world = stream.world
    chat = world.start("Hello.", user=end)

    async def pieces() -> list[bytes]:
        reading = follow(world, chat, 1_000, IMPATIENT)
        first = await anext(reading)
        if end == "ended":
            await asyncio.to_thread(world.abort, chat)
        else:
            world.stores.chats.client.delete_item(
                TableName="chats", Key={"pk": {"S": chat.pk}, "sk": {"S": "STATE"}}
            )
        return [first, *[piece async for piece in reading]]

    assert set(asyncio.run(asyncio.wait_for(pieces(), 30))) == {HEARTBEAT}


def test_a_long_stream_is_closed_by_the_server(stream: Stream) -> None:
    assert 60 <= PollIntervals().stream <= 120, "CONTRACT 5"
    chat = stream.world.start("Hello.", user="long")

    async def pieces() -> list[bytes]:
        return [piece async for piece in follow(stream.world, chat, 0, replace(IMPATIENT, stream=0.0))]

    assert asyncio.run(pieces()) == []


# ── API keys ──────────────────────────────────────────────────────────────────────────────────────


def made_key(stream: Stream, user: str, *scopes: Scope, for_end_users: bool = False) -> str:
    """A key of the user, stored as the API does."""
    key_id = new_key_id()
    text = new_key(key_id)
    key = ApiKey(key_id, user, "server", digest_of(text), scopes, 1, for_end_users=for_end_users)
    transact(stream.world.stores.chats.client, [stream.world.stores.keys.create_action(key)])
    return text


def test_a_key_follows_events_as_its_scopes_allow(stream: Stream, done: Chat) -> None:
    read, chat, hooks = (made_key(stream, "ann", scope) for scope in ("read", "chat", "hooks"))
    by = [{"Authorization": f"Bearer {key}"} for key in (read, chat, hooks)]
    assert stream.get(done.chat_id, by[0]).status_code == 200
    for headers in by[1:]:  # a chat that another has started, and no scope for chats
        assert code(stream.get(done.chat_id, headers)) == (403, "forbidden")
    presented = parse_key(read)
    assert presented is not None
    stream.world.stores.keys.forget([presented.key_id])
    assert code(stream.get(done.chat_id, by[0])) == (401, "unauthorized")


def test_a_key_of_a_service_follows_its_end_users_chats(stream: Stream) -> None:
    key = made_key(stream, "ann", "read", for_end_users=True)
    chat = ended_now(stream, end_user_id("ann", "Müller"))
    named = {"Authorization": f"Bearer {key}", "X-Dualtrack-User": "M%C3%BCller"}
    assert stream.get(chat.chat_id, named).status_code == 200
    assert code(stream.get(chat.chat_id, {**named, "X-Dualtrack-User": "bob"})) == (404, "not_found")
    assert code(stream.get(chat.chat_id, {"Authorization": f"Bearer {key}"})) == (400, "invalid_request")
    token = f"Bearer {signed(claims())}"
    assert code(stream.get(chat.chat_id, {**named, "Authorization": token})) == (400, "invalid_request")


def test_each_end_user_has_streams_of_their_own(stream: Stream) -> None:
    """And none of the key's owner, whose own are counted apart."""
    key, ann, bob = (made_key(stream, "owner", "read", for_end_users=True), *map(end_user, ("ann", "bob")))
    chats = {user: ended_now(stream, user).chat_id for user in (ann, bob, "owner")}
    leases, held = take_all(stream, ann)

    def read(name: str) -> httpx.Response:
        named = {"Authorization": f"Bearer {key}", "X-Dualtrack-User": name}
        return stream.get(chats[end_user(name)], named)

    assert code(read("ann")) == (429, "rate_limited")
    assert read("bob").status_code == 200
    assert stream.get(chats["owner"], bearer("owner")).status_code == 200
    leases.free(held[0])
    assert read("ann").status_code == 200


def end_user(name: str) -> str:
    return end_user_id("owner", name)


def test_the_path_of_keys_takes_no_token(stream: Stream, done: Chat) -> None:
    for sent in (f"Bearer {signed(claims())}", f"Bearer {new_key(new_key_id())}", "Bearer dt_x"):
        response = stream.get(done.chat_id, {"Authorization": sent}, path=f"/key{EVENTS_PATH}")
        assert code(response) == (401, "unauthorized")
