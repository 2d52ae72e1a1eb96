"""/v1/chats."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from aws_lambda_powertools import Logger

from dualtrack.api import models
from dualtrack.api.chat_fields import chat_body, facets_of
from dualtrack.api.chats import await_answer, find_chat, show_chat, started_json
from dualtrack.api.conversations import find_conversation
from dualtrack.api.key_alarm import KeyAlarm
from dualtrack.api.parameters import IDEMPOTENCY_KEY, LAST_EVENT_ID, WAIT
from dualtrack.api.route import CHAT_READERS, EVENTS_PATH, Accepted, Ok, Route
from dualtrack.api.uploads import files_in, references_in
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.chat_view import operator_text
from dualtrack.chat.executions import owner_of
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.new_chat import NewChat, Repeat, fingerprint
from dualtrack.chat.receipt import receipt_of
from dualtrack.chat.start_chat import first_chat, start_chat
from dualtrack.chat.uploaded_files import discard, reopen, use
from dualtrack.errors import ApiError
from dualtrack.profiles import DEFAULT_PROFILE
from dualtrack.runtime.metrics import count

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request
    from dualtrack.storage.chats import Chat

logger: Final = Logger(child=True)
"""The function's logger; all steps of a chat log with the same ``correlation_id``."""

CHAT: Final = "/v1/chats/{chat_id}"


@Route(
    "post",
    "/v1/chats",
    "Start a chat",
    chat_body(),
    (WAIT, IDEMPOTENCY_KEY),
    (
        "insufficient_credits",
        "key_cap_reached",
        "not_found",
        "conversation_busy",
        "conversation_paused",
        "nothing_to_continue",
        "expired",
        "upload_missing",
        "upload_used",
        "idempotency_conflict",
    ),
    scopes=("chat",),
    admits=True,
    description="Returns at once with the address of its events; with `?wait`, when the chat is answered or paused. Holds 5 "
    "credits. With an `Idempotency-Key`, the request can be repeated safely: it returns the first chat.",
)
def post_chat(request: Request) -> Ok[answers.Chat] | Accepted[answers.StartedChat]:
    """Recognises a repeated request before it validates the body."""
    wait, repeat = request.value(WAIT), _repeat(request)
    services = request.services
    first = first_chat(services.stores, services.executions, request.user, repeat) if repeat else None
    chat = first or _started(request, repeat)
    request.identity.require_sight(chat.key_id)
    chat = await_answer(services.stores.chats, services.stores.leases, chat, min(wait, request.seconds_left))
    if chat.status != "running":
        return Ok(show_chat(services.stores, chat))
    started = started_json(chat)
    return Accepted(started, {"Location": started["url"]})


def _started(request: Request, repeat: Repeat | None) -> Chat:
    """A new chat; or that of the same request, which has come again meanwhile and used the uploads."""
    try:
        return _start(request, repeat)
    except ApiError as refusal:
        if repeat is None or refusal.code != "upload_used":
            raise
        first = first_chat(request.stores, request.services.executions, request.user, repeat)
        if first is None:
            raise
        return first


def _start(request: Request, repeat: Repeat | None) -> Chat:
    body = request.body(chat_body())
    uploads = references_in(body.attachments)
    permit_chat(request, body.conversation_id, body.profile)
    new = NewChat(
        request.user,
        body.message or "",
        body.conversation_id or "",
        body.profile or "",
        files_in(request.stores, request.user, body.attachments),
        payer=request.identity.payer,
        key_id=request.identity.key_id,
        cancels_pause=body.on_pause == "cancel",
        output=body.output.schema_ if body.output else None,
        tools=[tool.model_dump() for tool in body.tools],
        continues="cut" if body.continue_ else "",
        facets=facets_of(request, body),
    )
    alarm = KeyAlarm(request.services.key_percent, request.identity, request.stores.clock())
    try:
        chat = start_chat(
            request.stores,
            request.services.executions,
            new,
            repeat,
            costs=request.services.costs,
            upgrade_message=request.services.upgrade_message,
            held=alarm.admitted,
            noted=partial(use, request.stores, uploads),
            taken_back=partial(reopen, request.stores, uploads),
        )
    except ApiError as refusal:
        alarm.refused(refusal)
        raise
    discard(request.stores, request.user, uploads)
    logger.info("Chat admitted", chat_id=chat.chat_id, correlation_id=chat.chat_id, profile=chat.profile)
    count("ChatsStarted")
    return chat


def permit_chat(request: Request, conversation_id: str | None, profile: str | None) -> None:
    """Raise 403 if the request's key may not continue this conversation, or use its agent."""
    identity, profile = request.identity, profile or DEFAULT_PROFILE
    if conversation_id and identity.is_narrowed:
        conversation = find_conversation(request.stores, request.user, conversation_id)
        identity.require_sight(conversation.key_id)
        profile = conversation.profile
    identity.require_profile(profile)


def _repeat(request: Request) -> Repeat | None:
    raw, key = request.raw_body(), request.value(IDEMPOTENCY_KEY)
    return None if key is None else Repeat(key, fingerprint(models.canonical(raw)))


@Route(
    "get",
    CHAT,
    "Read a chat",
    scopes=CHAT_READERS,
    description="While it runs, and until its conversation is deleted.",
)
def get_chat(request: Request, chat_id: str) -> Ok[answers.Chat]:
    return Ok(show_chat(request.stores, _visible(request, request.user, chat_id)))


def _visible(request: Request, user: str, chat_id: str) -> Chat:
    """The user's chat; 404 for any other, 403 if the request's key may not see it."""
    chat = find_chat(request.stores.chats, user, chat_id)
    request.identity.require_sight(chat.key_id)
    return chat


@Route(
    "delete",
    CHAT,
    "Cancel a chat",
    scopes=("chat",),
    description="The text of the last turn so far is kept. Charges 5 credits if a byte of an answer had come, and the "
    "tools that had begun; before that nothing, up to ten times an hour. Returns an ended chat unchanged.",
)
def delete_chat(request: Request, chat_id: str) -> Ok[answers.Chat]:
    chat = _visible(request, request.user, chat_id)
    cancelled = cancel_chat(request.stores, request.services.executions, chat)
    return Ok(show_chat(request.stores, cancelled))


@Route(
    "get",
    f"{CHAT}/receipt",
    "Read what a chat did and what it cost",
    scopes=CHAT_READERS,
    description="Every model call, tool call, summary and change of credits, with dollars by the price "
    "table. It has no text of messages. Administrators may read the receipt of any chat.",
)
def get_receipt(request: Request, chat_id: str) -> Ok[answers.Receipt]:
    """Of the user's own chat; an administrator's request may name anyone's."""
    owner = request.user
    if request.is_admin:
        owner = owner_of(request.services.executions, chat_id) or request.user
    chat = _visible(request, owner, chat_id)
    receipt = receipt_of(evidence(request.stores, chat, request.stores.ledger), request.services.deployment)
    if text := operator_text(chat, is_admin=request.is_admin):
        receipt["for_operator"] = text
    return Ok(receipt)


get_events: Final = Route(
    "get",
    EVENTS_PATH,
    "Follow a chat's events",
    parameters=(LAST_EVENT_ID,),
    scopes=CHAT_READERS,
    description="Server-sent events after `Last-Event-ID`, during the chat and for 24 hours after it. The "
    "stream ends after `done` or `error`; if it ends sooner, open it again with the id of the last event. A "
    "comment line every 15 seconds keeps it open.",
)
