"""Chats that wait for decisions: the list of them, and the decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.api import models
from dualtrack.api.chats import paused_turn, show_chat
from dualtrack.api.identity import lacking
from dualtrack.api.route import Ok, Route
from dualtrack.api.routes.chats import CHAT
from dualtrack.chat.agent import AgentDeployment
from dualtrack.chat.chat_view import decided_json, open_calls
from dualtrack.chat.decide_calls import CallDecision, decide_calls
from dualtrack.clock import iso
from dualtrack.errors import not_found
from dualtrack.frozen import freeze
from dualtrack.ids import query_id
from dualtrack.tool_values import NOTHING, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack import answers
    from dualtrack.api.identity import ApiCaller
    from dualtrack.api.request import Request
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.paused_chats import PausedChat
    from dualtrack.vocabulary import DecidedBy


@Route(
    "get",
    "/v1/pauses",
    "List open decisions",
    scopes=("decide", "read"),
    description="The user's chats that wait for decisions, with the tool calls to be decided.",
)
def get_pauses(request: Request) -> Ok[answers.Pauses]:
    listed: answers.Pauses = {"pauses": list(_paused_chats(request))}
    return Ok(listed)


def _waiting(request: Request) -> list[PausedChat]:
    """Those of the caller; the owner of a service's key pays for its end users and sees theirs as well."""
    identity = request.identity
    listed = request.stores.paused.of(identity.payer)
    return listed if identity.user == identity.payer else [one for one in listed if one.user == identity.user]


def _paused_chats(request: Request) -> Iterator[answers.PausedChat]:
    stores = request.stores
    for listed in _waiting(request):
        chat = stores.chats.load(listed.user, listed.chat_id)
        turn = paused_turn(stores.chats, chat) if chat else None
        if chat and chat.pause and turn:
            yield {
                "chat_id": chat.chat_id,
                "conversation_id": chat.conversation_id,
                "message_id": query_id(chat.query),
                "profile": chat.profile,
                "paused_at": iso(chat.pause.since),
                "calls": open_calls(turn),
                "expires_at": iso(chat.pause.until),
            }


@Route(
    "post",
    f"{CHAT}/decisions",
    "Decide on tool calls",
    models.DecisionsBody,
    refused=("not_found", "already_decided", "not_paused", "expired", "key_cap_reached"),
    scopes=("chat", "decide"),
    description="Of a chat that is paused: all open calls at once, or one by one. The chat goes on when none is open. "
    "The same decisions again return the chat as it is. A key needs `decide` to let a call run; `chat` is enough for "
    "results, answers and declining, in a chat that it may read. A key that may not read the chat gets its ids, status "
    "and pause alone, and so does the owner of a service's key for the chat of an end user, which is theirs while it "
    "waits.",
)
def post_decisions(request: Request, chat_id: str) -> Ok[answers.Chat | answers.DecidedChat]:
    body = request.body(models.DecisionsBody)
    wanted = [_wanted(decision) for decision in body.decisions]
    identity, services, stores = request.identity, request.services, request.stores
    chat = _found(request, chat_id)
    is_own = chat.user == identity.user
    _permit(identity, chat, wanted)
    by: DecidedBy = "key" if identity.key else "user" if is_own else "owner"
    decided = decide_calls(stores, services.executions, chat, wanted, by, AgentDeployment(services.model))
    if is_own and identity.sees(chat.key_id):
        return Ok(show_chat(stores, decided))
    return Ok(decided_json(decided, paused_turn(stores.chats, decided)))


def _found(request: Request, chat_id: str) -> Chat:
    """The caller's chat, or one that waits and is paid by them. Raises 404 for any other."""
    chats = request.stores.chats
    if chat := chats.load(request.user, chat_id):
        return chat
    waiting = next((one for one in _waiting(request) if one.chat_id == chat_id), None)
    if waiting and (chat := chats.load(waiting.user, chat_id)):
        return chat
    raise not_found("There is no such chat.")


def _wanted(decision: models.DecisionBody) -> CallDecision:
    return CallDecision(
        decision.id,
        decision.approve is not False,
        decision.reason or "",
        None if decision.input is None else freeze(decision.input),
        decision.lasts is not None,
        None
        if decision.result is None
        else ToolResult(decision.result or NOTHING, decision.is_error is True),
        decision.answer,
    )


def _permit(identity: ApiCaller, chat: Chat, wanted: Sequence[CallDecision]) -> None:
    """Raise 403 for what a key may not do. Without `decide`, a program that may chat may say in its user's own chats
    what its tools found and what its user answers, and may give a call up, as it may cancel the chat; it gives itself
    no leave."""
    identity.require_profile(chat.profile)
    if identity.key is None or "decide" in identity.key.scopes:
        return
    if chat.user != identity.user or any(decision.lets_run for decision in wanted):
        raise lacking("decide")
    identity.require_sight(chat.key_id)
