"""The HTTP API (CONTRACT 4): every route parses, calls one function of the library, returns."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import os
    import re
    import time
    from typing import TYPE_CHECKING, Any, Final

    from aws_lambda_powertools import Logger, single_metric
    from aws_lambda_powertools.event_handler import APIGatewayRestResolver, CORSConfig, Response
    from aws_lambda_powertools.metrics import MetricUnit
    from dualtrack.api import conversations, models
    from dualtrack.api.identity import Identity, identity_of
    from dualtrack.api.openapi import openapi_document
    from dualtrack.api.rate_limit import count_request
    from dualtrack.api.tool_list import tools_json
    from dualtrack.api.users import UserPool
    from dualtrack.chat.cancel_chat import cancel_chat
    from dualtrack.chat.chat_view import chat_json
    from dualtrack.chat.delete_conversation import delete_conversation as delete_whole_conversation
    from dualtrack.chat.executions import Executions
    from dualtrack.chat.start_chat import NewChat, Repeat, fingerprint, first_chat, start_chat
    from dualtrack.errors import ApiError, DualtrackError, invalid_request, not_found
    from dualtrack.frozen import dumps
    from dualtrack.ids import is_chat_id, query_id, response_id
    from dualtrack.profiles import all_profiles
    from dualtrack.settings import settings_from, split_origins
    from dualtrack.storage.leases import WAITS
    from dualtrack.storage.stores import LazyClient, open_stores
    from dualtrack.text import clean
    from dualtrack.tools.mcp.catalogue import load_catalogue
    from dualtrack.tools.mcp.tokens import Connections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.event_handler.exceptions import NotFoundError
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.storage.chats import Chat

MAX_WAIT_SECONDS: Final = 25.0
_POLL_SECONDS: Final = 0.25
_NUMBER: Final = re.compile(r"\d{1,3}", re.ASCII)
_OFFSET: Final = re.compile(r"\d{1,9}", re.ASCII)

logger = Logger()
settings = settings_from(os.environ)
stores = open_stores(settings)
step_functions: Any = LazyClient("stepfunctions")
kms: Any = LazyClient("kms")
cognito: Any = LazyClient("cognito-idp")
user_pool = UserPool(cognito, settings.user_pool_id)
executions = Executions(step_functions, settings.state_machine_arn)
connections = Connections(stores.cache, kms, settings.connections_key)


def _cors(origins: list[str]) -> CORSConfig | None:
    """Pages of these origins may call; without any no page of another origin may."""
    if not origins:
        return None
    return CORSConfig(
        allow_origin=origins[0],
        extra_origins=origins[1:],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
        expose_headers=["Location", "Retry-After"],
        max_age=3600,
    )


app = APIGatewayRestResolver(cors=_cors(split_origins(settings.allowed_origins)), serializer=dumps)


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """An API Gateway REST proxy event → its response."""
    return app.resolve({**event}, context)


# ── chats ─────────────────────────────────────────────────────────────────────────────────────────


@app.post("/v1/chats")
def post_chat() -> Response[str]:
    user = _caller().user
    wait = _wait_seconds()
    raw = _raw_body()
    repeat = _repeat(raw)
    chat = first_chat(stores, executions, user, repeat) if repeat else None
    if chat is None:
        body = models.parse_body(models.ChatBody, raw)
        new = NewChat(
            user,
            body.message,
            body.conversation_id or "",
            body.profile or "",
            models.decode_files(body.attachments),
        )
        chat = start_chat(stores, executions, new, repeat)
        with single_metric(name="ChatsStarted", unit=MetricUnit.Count, value=1):
            pass  # written as the block ends
    return _admitted(_await_answer(chat, wait))


def _admitted(chat: Chat) -> Response[str]:
    if chat.status != "running":
        return _json(200, _view(chat))
    url = f"/v1/chats/{chat.chat_id}"
    body = {
        "chat_id": chat.chat_id,
        "conversation_id": chat.conversation_id,
        "message_id": query_id(chat.query),
        "status": chat.status,
        "url": url,
        "events_url": f"{url}/events",
    }
    return _json(202, body, {"Location": url})


@app.get("/v1/chats/<chat_id>")
def get_chat(chat_id: str) -> Response[str]:
    return _json(200, _view(_chat(_caller().user, chat_id)))


@app.delete("/v1/chats/<chat_id>")
def delete_chat(chat_id: str) -> Response[str]:
    chat = _chat(_caller().user, chat_id)
    return _json(200, _view(cancel_chat(stores, executions, chat)))


# ── conversations ─────────────────────────────────────────────────────────────────────────────────


@app.post("/v1/conversations")
def post_conversation() -> Response[str]:
    user = _caller().user
    body = models.parse_body(models.ConversationBody, _raw_body())
    one = conversations.create_conversation(stores, user, body.title or "", body.profile or "")
    location = f"/v1/conversations/{one.conversation_id}"
    return _json(201, conversations.conversation_json(one), {"Location": location})


@app.get("/v1/conversations")
def get_conversations() -> Response[str]:
    user = _caller().user
    page = conversations.list_conversations(stores, user, _query("cursor"), _limit())
    return _json(200, page.body("conversations"))


@app.get("/v1/conversations/<conversation_id>")
def get_conversation(conversation_id: str) -> Response[str]:
    user = _caller().user
    track = _query("track") or "full"
    if track not in ("full", "summarised"):
        raise invalid_request("track is full or summarised.")
    one = conversations.find_conversation(stores, user, conversation_id)
    page = conversations.list_records(stores, one, track, _query("cursor"))  # type: ignore[arg-type]
    return _json(200, conversations.conversation_json(one) | {"track": track} | page.body("records"))


@app.patch("/v1/conversations/<conversation_id>")
def patch_conversation(conversation_id: str) -> Response[str]:
    user = _caller().user
    body = models.parse_body(models.TitleBody, _raw_body())
    one = conversations.rename_conversation(stores, user, conversation_id, body.title)
    return _json(200, conversations.conversation_json(one))


@app.delete("/v1/conversations/<conversation_id>")
def delete_conversation(conversation_id: str) -> Response[str]:
    delete_whole_conversation(stores, _caller().user, conversation_id)
    return Response(status_code=204, body="")


@app.get("/v1/conversations/<conversation_id>/records/<record_id>")
def get_record(conversation_id: str, record_id: str) -> Response[str]:
    one = conversations.find_conversation(stores, _caller().user, conversation_id)
    return _json(200, conversations.find_record(stores, one, record_id, _offset()))


# ── tools, credits, connections ───────────────────────────────────────────────────────────────────


@app.get("/v1/tools")
def get_tools() -> Response[str]:
    _caller()
    catalogue = load_catalogue(stores.cache, stores.clock())
    return _json(200, tools_json(all_profiles().values(), catalogue))


@app.get("/v1/credits")
def get_credits() -> Response[str]:
    return _json(200, stores.ledger.load(_caller().user).balance(stores.clock()))


@app.get("/v1/credits/ledger")
def get_ledger() -> Response[str]:
    return _json(200, stores.ledger.entries(_caller().user, _query("cursor"), _limit()).body("entries"))


@app.put("/v1/connections/github")
def put_connection() -> Response[str]:
    user = _caller().user
    body = models.parse_body(models.ConnectionBody, _raw_body())
    return _json(200, _connection(connections.connect(user, body.token, stores.clock())))


@app.get("/v1/connections/github")
def get_connection() -> Response[str]:
    return _json(200, _connection(connections.find(_caller().user)))


@app.delete("/v1/connections/github")
def delete_connection() -> Response[str]:
    connections.disconnect(_caller().user)
    return Response(status_code=204, body="")


# ── administration ────────────────────────────────────────────────────────────────────────────────


@app.put("/v1/admin/users/<user_id>/plan")
def put_plan(user_id: str) -> Response[str]:
    user = _managed(user_id)
    body = models.parse_body(models.PlanBody, _raw_body())
    now = stores.clock()
    return _json(200, stores.ledger.set_plan(user, body.plan, now).balance(now))


@app.post("/v1/admin/users/<user_id>/grants")
def post_grant(user_id: str) -> Response[str]:
    user = _managed(user_id)
    body = models.parse_body(models.GrantBody, _raw_body())
    now = stores.clock()
    return _json(200, stores.ledger.grant(user, body.grant_id, body.credits, body.reason, now).balance(now))


@app.get("/v1/admin/users/<user_id>/credits")
def get_user_credits(user_id: str) -> Response[str]:
    return _json(200, stores.ledger.load(_managed(user_id)).balance(stores.clock()))


# ── open to everybody ─────────────────────────────────────────────────────────────────────────────


@app.get("/health")
def get_health() -> Response[str]:
    return _json(200, {"status": "ok"})


@app.get("/openapi.json")
def get_openapi() -> Response[str]:
    return _json(200, openapi_document())


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────


def _answer_error(error: Exception) -> Response[str]:
    """Every error in the contract's form; only those raised on purpose say what they are."""
    if isinstance(error, ApiError):
        wait = error.extra.get("retry_after")
        return _json(error.status, error.body(), {"Retry-After": str(wait)} if wait else {})
    if isinstance(error, DualtrackError):
        logger.exception("Could not be done this time")
        return _answer_error(ApiError("unavailable", "This could not be done right now. Try again."))
    logger.exception("Unexpected error")
    return _answer_error(ApiError("internal", "Something went wrong on our side."))


def _not_served(error: NotFoundError) -> Response[str]:  # noqa: ARG001
    return _answer_error(not_found())


app.exception_handler(Exception)(_answer_error)
app.not_found(_not_served)


# ── parsing ───────────────────────────────────────────────────────────────────────────────────────


def _caller() -> Identity:
    """Who calls, from the claims that the gateway has verified; counts the request."""
    event = app.current_event.raw_event
    claims = (event["requestContext"].get("authorizer") or {}).get("claims") or {}
    headers = (event.get("multiValueHeaders") or {}).items()
    authorizations = [one for name, values in headers if name.lower() == "authorization" for one in values]
    identity = identity_of(claims, authorizations)
    count_request(stores, identity.user)
    return identity


def _managed(user_id: str) -> str:
    """The user that an administrator means."""
    _caller().require_admin()
    user_pool.must_have(user_id)
    return user_id


def _chat(user: str, chat_id: str) -> Chat:
    chat = stores.chats.load(user, chat_id) if is_chat_id(chat_id) else None
    if chat is None:
        raise not_found("There is no such chat.")
    return chat


def _view(chat: Chat) -> dict[str, Any]:
    """The chat object. Only the response's text is read. A chat whose records are gone is being deleted."""
    response = response_id(chat.query)
    records = stores.history.query_records(chat.user, chat.conversation_id, chat.query, texts={response})
    expected = {query_id(chat.query)} | ({response} if chat.status in ("answered", "done") else set())
    if not expected <= {record.record_id for record in records}:
        raise not_found("There is no such chat.")
    track = (
        stores.history.track(chat.user, chat.conversation_id, chat.query) if chat.status == "done" else None
    )
    return chat_json(chat, records, track)


def _await_answer(chat: Chat, seconds: float) -> Chat:
    """The chat once it is answered or ended; as it is when the time is up, or too many wait already."""
    if chat.status != "running" or not seconds:
        return chat
    try:
        lease = stores.leases.take(chat.user, WAITS)
    except ApiError:
        return chat  # it has been started, and that is what the answer says
    try:
        return _poll(chat, seconds)
    finally:
        stores.leases.free(lease)


def _poll(chat: Chat, seconds: float) -> Chat:
    deadline = time.monotonic() + seconds
    while chat.status == "running" and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        chat = stores.chats.load(chat.user, chat.chat_id) or chat
    return chat


def _raw_body() -> bytes:
    event = app.current_event
    try:
        body = event.decoded_body if event.body else ""
    except ValueError:
        raise invalid_request("The body is not valid UTF-8.") from None
    return (body or "").encode("utf-8", "surrogatepass")


def _repeat(raw: bytes) -> Repeat | None:
    key = app.current_event.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 1 <= len(key) <= 255 or clean(key) != key:
        raise invalid_request("Idempotency-Key must have 1 to 255 characters.")
    return Repeat(key, fingerprint(models.canonical(raw)))


def _wait_seconds() -> float:
    text = _query("wait") or "0"
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise invalid_request("wait must be a number of seconds from 0 to 25.")
    return seconds


def _limit() -> int:
    text = _query("limit") or "50"
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= 100:
        raise invalid_request("limit must be a whole number from 1 to 100.")
    return int(text)


def _offset() -> int:
    text = _query("offset") or "0"
    if not _OFFSET.fullmatch(text):
        raise invalid_request("offset must be a whole number from 0 on.")
    return int(text)


def _query(name: str) -> str:
    return (app.current_event.query_string_parameters or {}).get(name) or ""


def _connection(found: Any) -> dict[str, Any]:
    return {"connected": found is not None}


def _json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(status, "application/json", dumps(body), {"Cache-Control": "no-store", **(headers or {})})
