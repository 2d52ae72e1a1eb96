"""Chats that wait for decisions: the list of them, and the decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.api import models
from dualtrack.api.chats import find_chat, paused_turn, show_chat
from dualtrack.api.identity import lacking
from dualtrack.api.route import Ok, Route
from dualtrack.api.routes.chats import CHAT
from dualtrack.chat.agent import Deployed
from dualtrack.chat.chat_view import open_calls
from dualtrack.chat.decide_calls import Wanted, decide_calls
from dualtrack.clock import iso
from dualtrack.frozen import freeze
from dualtrack.ids import query_id
from dualtrack.tool_values import NOTHING, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack import answers
    from dualtrack.api.identity import Identity
    from dualtrack.api.request import Request
    from dualtrack.storage.chats import Chat
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


def _paused_chats(request: Request) -> Iterator[answers.PausedChat]:
    """Those of the caller; the owner of a service's key pays for its end users and sees theirs as well."""
    stores, identity = request.stores, request.identity
    listed_for = stores.paused.of(identity.payer)
    own = (
        listed_for
        if identity.user == identity.payer
        else [one for one in listed_for if one.user == identity.user]
    )
    for listed in own:
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
    "results, answers and declining, in a chat that it may read.",
)
def post_decisions(request: Request, chat_id: str) -> Ok[answers.Chat]:
    body = request.body(models.DecisionsBody)
    wanted = [_wanted(decision) for decision in body.decisions]
    chat = find_chat(request.stores.chats, request.user, chat_id)
    _permit(request.identity, chat, wanted)
    services = request.services
    by: DecidedBy = "key" if request.identity.key else "user"
    decided = decide_calls(request.stores, services.executions, chat, wanted, by, Deployed(services.model))
    return Ok(show_chat(request.stores, decided))


def _wanted(decision: models.DecisionBody) -> Wanted:
    return Wanted(
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


def _permit(identity: Identity, chat: Chat, wanted: Sequence[Wanted]) -> None:
    """Raise 403 for what a key without `decide` may not do. A program that may chat may say what its tools found and
    what its user answers, and may give a call up, as it may cancel the chat; it gives itself no leave."""
    if identity.key is None or "decide" in identity.key.scopes:
        return
    if any(decision.lets_run for decision in wanted):
        raise lacking("decide")
    identity.require_sight(chat.key_id)
