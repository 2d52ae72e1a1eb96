"""The end of a chat, whatever ended it: idempotent, and read off the status (DESIGN 2.5).

running  ──► failed | cancelled   hold released or settled, fixed no-answer record, terminal event
answered ──► done                 with mechanical summaries: a delivered answer stays delivered
ended    ──► nothing
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.chat.chat_view import chat_json
from dualtrack.clock import iso
from dualtrack.credits.plans import CHAT_PRICE
from dualtrack.errors import ChatClosed, Contended, Superseded
from dualtrack.events import Event, credits_now, done, error, record_stored
from dualtrack.ids import response_id
from dualtrack.memory.records import QueryTrack, Record
from dualtrack.memory.summaries import NO_ANSWER, track_of
from dualtrack.storage.dynamo import Action, Lost
from dualtrack.storage.ledger import with_account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.credits.account import Account
    from dualtrack.credits.account import Decision as Credits
    from dualtrack.events import StoredEvent
    from dualtrack.requests import ChatRef
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import Stores

_TRIES = 8


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a chat failed, for its `error` event."""

    code: str
    message: str


TIMED_OUT: Final = Failure("timeout", "The chat took too long. Nothing was charged.")
"""A chat past its deadline, whoever finds it."""


INCOMPLETE: Final = Failure("internal", "Something of this conversation is missing. Nothing was charged.")
"""A chat that cannot go on, because what it has to send is gone."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The user stopped it."""


def end_chat(stores: Stores, ref: ChatRef, how: Failure | Cancelled) -> Chat | None:
    """End the chat if it has not ended; the chat as it is then, or None if there is none.

    Raises `Contended` if it goes on and on meanwhile.
    """
    for _ in range(_TRIES):
        log = stores.log(ref)
        try:
            # The tail comes before the state: what is committed behind it takes the slot, and is noticed.
            log.next_slot()
        except ChatClosed:
            return stores.chats.load(ref.user, ref.chat_id)
        chat = stores.chats.load(ref.user, ref.chat_id)
        if chat is None or _too_late(chat, how):
            return chat
        try:
            if chat.status == "answered":
                records = stores.history.query_records(chat.user, chat.conversation_id, chat.query)
                finish(stores, chat, records, {}, 0)
            else:
                _end_running(stores, log, chat, how)
        except (Superseded, Lost):
            continue
    raise Contended("The chat moved on every time that it was to be ended.")


def _too_late(chat: Chat, how: Failure | Cancelled) -> bool:
    """An answer that is delivered is not cancelled: its summaries are on their way."""
    return chat.status in ("done", "failed", "cancelled") or (
        chat.status == "answered" and isinstance(how, Cancelled)
    )


def finish(
    stores: Stores,
    chat: Chat,
    records: tuple[Record, ...],
    summaries: Mapping[str, str],
    summary_tokens: int,
) -> None:
    """Answered → done: the short track of the query's ``records``, and the terminal event with the chat object."""
    log = stores.log(chat)
    log.next_slot()
    # none are left when the conversation was deleted meanwhile: then the closed log refuses what follows
    track = track_of(records, summaries, iso(stores.clock())) if records else QueryTrack(chat.query, (), 0)
    usage = {**chat.usage, "summary_tokens": chat.usage.get("summary_tokens", 0) + summary_tokens}
    after = replace(chat, status="done", usage=usage)
    events = [*_summary_events(track), done(chat_json(after, records, track))]
    log.append(events, lambda: [stores.chats.change_action(chat, after), _track_action(stores, chat, track)])


def _end_running(stores: Stores, log: EventLog, chat: Chat, how: Failure | Cancelled) -> None:
    """Close a running chat: everything about it in one transaction."""
    status: Literal["failed", "cancelled"] = "failed" if isinstance(how, Failure) else "cancelled"
    charge = _charge(stores, chat, how)
    now = stores.clock()
    response = Record(
        response_id(chat.query), "message", "assistant", NO_ANSWER[status], iso(now), chat.turn + 1
    )
    records = (*stores.history.query_records(chat.user, chat.conversation_id, chat.query), response)
    track = track_of(records, {}, iso(now))

    def decide(account: Account) -> Credits:
        return account.settle(chat.chat_id, charge, now) if charge else account.release(chat.chat_id, now)

    def commit(account: Account, credits: Credits) -> None:  # noqa: A002
        left = credits.account.available(now)
        spent = credits.amount if charge else 0
        after = replace(
            chat,
            status=status,
            stop="cancelled" if status == "cancelled" else "",
            ended_at=iso(now),
            held=0,
            credits_used=spent,
            credits_remaining=left,
            error={"code": how.code, "message": how.message} if isinstance(how, Failure) else None,
        )
        events = [
            record_stored(response.record_id, "assistant", "message"),
            *_summary_events(track),
            credits_now(spent, 0, left),
            _terminal(after, records, track, how),
        ]

        def actions() -> list[Action]:
            return [
                stores.chats.change_action(chat, after),
                stores.history.record_action(chat.user, chat.conversation_id, response, "response"),
                _track_action(stores.while_open(log), chat, track),
                stores.conversations.free_action(chat.user, chat.conversation_id, chat.chat_id, iso(now)),
                *stores.ledger.actions(account, credits),
            ]

        log.append(events, actions, _decide_anew)

    with_account(stores.ledger, chat.user, decide, commit)


def _decide_anew(event: StoredEvent) -> None:
    """Something happened while the end was being written: look at the chat again."""
    if event.event != "delta":
        raise Superseded(event.event)


def _charge(stores: Stores, chat: Chat, how: Failure | Cancelled) -> int:
    """A failure costs nothing; a cancelled chat its tools begun, and 5 once a model call had begun."""
    if isinstance(how, Failure):
        return 0
    begun = chat.turn > 0 or any(event.event == "turn" for event in stores.log(chat).events())
    return chat.held if begun else max(chat.held - CHAT_PRICE, 0)


def _terminal(after: Chat, records: tuple[Record, ...], track: QueryTrack, how: Failure | Cancelled) -> Event:
    if isinstance(how, Failure):
        return error(how.code, how.message)
    return done(chat_json(after, records, track))


def _summary_events(track: QueryTrack) -> list[Event]:
    return [record_stored(block.record_id, block.role, "summary") for block in track.blocks if block.ref]


def _track_action(stores: Stores, chat: Chat, track: QueryTrack) -> Action:
    return stores.history.track_action(chat.user, chat.conversation_id, track)


def failure_of(cause: Mapping[str, Any] | None) -> Failure:
    """The `error` event's code and message from what Step Functions says of an error."""
    told = f"{(cause or {}).get('Error', '')} {(cause or {}).get('Cause', '')}"
    if "ModelUnavailable" in told:
        return Failure("unavailable", "The model's service could not be reached. Nothing was charged.")
    if "Timeout" in told or "TIMED_OUT" in told or "timed out" in told:
        return TIMED_OUT
    return Failure("internal", "The chat could not be finished. Nothing was charged.")
