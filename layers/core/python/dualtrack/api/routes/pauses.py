"""Chats that wait for decisions: the list of them, and the decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.api import models
from dualtrack.api.chats import find_chat, paused_turn, show_chat
from dualtrack.api.route import Ok, Route
from dualtrack.api.routes.chats import CHAT
from dualtrack.chat.agent import Deployed
from dualtrack.chat.chat_view import open_calls
from dualtrack.chat.decide_calls import Wanted, decide_calls
from dualtrack.clock import iso
from dualtrack.frozen import freeze
from dualtrack.ids import query_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack import answers
    from dualtrack.api.request import Request
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
    scopes=("decide",),
    description="Of a chat that is paused: all open calls at once, or one by one. The chat goes on when none is open. "
    "The same decisions again return the chat as it is.",
)
def post_decisions(request: Request, chat_id: str) -> Ok[answers.Chat]:
    body = request.body(models.DecisionsBody)
    wanted = [
        Wanted(
            decision.id,
            decision.approve is not False,
            decision.reason or "",
            None if decision.input is None else freeze(decision.input),
            decision.lasts is not None,
        )
        for decision in body.decisions
    ]
    chat = find_chat(request.stores.chats, request.user, chat_id)
    services = request.services
    by: DecidedBy = "key" if request.identity.key else "user"
    decided = decide_calls(request.stores, services.executions, chat, wanted, by, Deployed(services.model))
    return Ok(show_chat(request.stores, decided))
