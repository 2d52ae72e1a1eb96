"""POST /v1/chats: one transaction writes everything that an execution relies on.

idempotency key known? ─► return the first chat, or 409
hold 5 credits · take the conversation's lease · number and store the query · first event
─► one transaction ─► StartExecution(name = chat id.1)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.chat.attached_files import attached_files
from dualtrack.chat.cancel_chat import freed, is_paused
from dualtrack.chat.continued import answer_to_continue, words_of_continuing
from dualtrack.chat.cost_hold import CostSettings, cost_hold
from dualtrack.chat.delete_conversation import delete_leftovers, note_conversation
from dualtrack.chat.end_chat import TIMED_OUT, ChatFailure, end_chat
from dualtrack.chat.executions import start_execution
from dualtrack.chat.latest_queries import asked_up_to
from dualtrack.chat.move_credits import lines_of, move_credits
from dualtrack.clock import iso
from dualtrack.credits.account import HoldRefusal
from dualtrack.credits.keys import UnderKey
from dualtrack.credits.plans import chat_price
from dualtrack.errors import (
    ApiError,
    Contended,
    conversation_busy,
    conversation_paused,
    invalid_request,
    not_found,
)
from dualtrack.events import credits_now, record_stored
from dualtrack.frozen import dumps
from dualtrack.ids import new_chat_id, new_conversation_id, query_id
from dualtrack.memory.full_history import ChatMemory
from dualtrack.memory.records import Record
from dualtrack.memory.titles import title_of
from dualtrack.models.receipt_data import ReceiptData
from dualtrack.notices import cap_reached
from dualtrack.profiles import DEFAULT_PROFILE, UTILITY, profile_named, profile_of
from dualtrack.requests import CHAT_SECONDS, ChatRef
from dualtrack.storage.api_requests import FirstRequest
from dualtrack.storage.bodies import INLINE_LIMIT, body_of, partition
from dualtrack.storage.chats import Chat
from dualtrack.storage.conversations import Conversation, list_position
from dualtrack.storage.dynamo import Action, ConditionFailed
from dualtrack.tools.client_tools import client_tools
from dualtrack.tools.mcp.catalogue import load_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.chat.attached_files import File, QueryFiles
    from dualtrack.chat.move_credits import StepWrites
    from dualtrack.credits.account import Account, AccountChange
    from dualtrack.frozen import JsonObject
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.bodies import StoredBody, Write
    from dualtrack.storage.conversations import QueryStarts
    from dualtrack.storage.stores import AdmissionStores
    from dualtrack.tools.client_tools import ClientTools

IDEMPOTENCY_SECONDS: Final = 24 * 3600
CAP_TOLD_SECONDS: Final = 30 * 86_400
"""After so long it is told again that a cap which does not reset is reached."""
_TRIES: Final = 8
_NO_COSTS: Final = CostSettings()


@dataclass(frozen=True, slots=True)
class NewChat:
    """A user's request; ``profile`` empty: that of the conversation, else the default. ``payer``: whose credits pay;
    empty: the user's; ``key_id``: the API key of the request; ``cancels_pause``: whether a
    chat of the conversation that waits for decisions is cancelled first; ``instructions``: what the client's program
    says to this message alone."""

    user: str
    message: str
    conversation_id: str = ""
    profile: str = ""
    files: tuple[File, ...] = ()
    payer: str = ""
    key_id: str = ""
    cancels_pause: bool = False
    output: JsonObject | None = None
    """The JSON Schema of the answer, checked before."""
    tools: ClientTools = ()
    """Those that its client runs."""
    schedule_id: str = ""
    """The schedule that asks."""
    instructions: str = ""
    echo: str = ""
    """What a response of OpenAI's API says again of its request, as JSON."""
    continues: Literal["", "cut", "any"] = ""
    """In place of a message: the conversation's last answer goes on, `cut` if it reached its limit of tokens, `any`
    whatever ended it."""
    is_task: bool = False
    """Whether it is a small task (`dualtrack.profiles.UTILITY`), whose conversation is in no list."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """An Idempotency-Key and the fingerprint of its request's body. ``is_first``: no earlier request counts as this
    one; it is what later ones repeat."""

    key: str
    fingerprint: str
    is_first: bool = False


def fingerprint(body: bytes) -> str:
    """A hash of the body."""
    return hashlib.sha256(body).hexdigest()


def first_chat(stores: AdmissionStores, executions: Executions, user: str, repeat: Repeat) -> Chat | None:
    """The chat that this key made in the last 24 hours, or None. Raises 409 for another body.

    If the chat was admitted but its execution was not started, it is started now.
    """
    first = stores.requests.first(user, repeat.key, stores.clock())
    if first is None:
        return None
    if first.fingerprint != repeat.fingerprint:
        raise ApiError("idempotency_conflict", "This Idempotency-Key was used with another body.")
    chat = stores.chats.load(user, first.chat_id)
    if chat is None:
        raise not_found("The chat of this Idempotency-Key was deleted.")
    if chat.status == "running" and chat.turn == 0:
        start_execution(executions, ChatRef(user, chat.chat_id, chat.conversation_id))
    return chat


def start_chat(
    stores: AdmissionStores,
    executions: Executions,
    new: NewChat,
    repeat: Repeat | None,
    *,
    costs: CostSettings = _NO_COSTS,
    upgrade_message: str = "",
    held: Callable[[Account], None] = lambda _: None,
) -> Chat:
    """Admit the chat and start it. Raises `ApiError`: 400, 401 for a key that was just revoked, 402, 404, 409, 503.

    ``costs``: what decides how much a chat by a key may cost; ``upgrade_message``: what a 402 says about getting more
    credits (`dualtrack_stack.stages.StageSettings`); ``held`` is called with the account once the chat is admitted.
    """
    for _ in range(_TRIES):
        try:
            chat, account = _admit(stores, new, repeat, costs, upgrade_message)
        except (ConditionFailed, ApiError) as refusal:
            # the same request may have arrived twice at once: then return the chat of the other
            may_repeat = repeat is not None and not repeat.is_first
            first = first_chat(stores, executions, new.user, repeat) if repeat and may_repeat else None
            if first:
                return first
            if isinstance(refusal, ApiError):
                raise
            continue
        held(account)
        _start(stores, executions, chat, repeat)
        return chat
    raise Contended("The conversation changed too often.")


def _start(stores: AdmissionStores, executions: Executions, chat: Chat, repeat: Repeat | None) -> None:
    ref = ChatRef(chat.user, chat.chat_id, chat.conversation_id)
    try:
        start_execution(executions, ref)
    except Exception as error:
        end_chat(
            stores, ref, ChatFailure("unavailable", "The chat could not be started. Nothing was charged.")
        )
        _forget(stores, chat, repeat)
        raise ApiError("unavailable", "The chat could not be started. Try again.") from error


def _forget(stores: AdmissionStores, chat: Chat, repeat: Repeat | None) -> None:
    """Free the key, so that the client can try again."""
    if repeat:
        stores.requests.forget(chat.user, repeat.key, chat.chat_id)


@dataclass(frozen=True, slots=True)
class _Admission:
    """A chat that may begin: its conversation (as it was read, or ``is_new``), the user's message and its files."""

    repeat: Repeat | None
    now: float
    conversation: Conversation
    is_new: bool
    chat: Chat
    query: Record
    attached: QueryFiles
    asked: QueryStarts
    kept: tuple[StoredBody, ...]
    """What the request brings besides, to be kept with the conversation: the answer's schema, tools of its client."""
    instructions: str
    echo: str

    @property
    def has_bodies(self) -> bool:
        """Whether bodies are written before the conversation exists: if its creation fails, they must be deleted."""
        texts = (self.query, *self.attached.texts)
        return bool(self.kept or self.attached.bodies) or any(
            len(record.content.encode()) > INLINE_LIMIT for record in texts
        )

    def paid(self, change: AccountChange) -> Chat:
        """The chat with the credits after its hold."""
        spent = ReceiptData(lines_of(change, self.chat.chat_id))
        remaining = change.account.available(self.now, self.chat.key_id)
        return replace(self.chat, credits_remaining=remaining, spent=spent)


def _admit(
    stores: AdmissionStores, new: NewChat, repeat: Repeat | None, costs: CostSettings, upgrade_message: str
) -> tuple[Chat, Account]:
    """Commit the new chat or raise an error; `ConditionFailed` if the conversation has changed since it was read."""
    admission = _admission(stores, new, repeat, costs)
    chat = admission.chat
    log = stores.log(chat)
    log.begin()

    def hold(account: Account) -> AccountChange | HoldRefusal:
        key = UnderKey(chat.key_id, chat.costs.in_all) if chat.costs else None
        return account.hold(chat.chat_id, chat.held, admission.now, key)

    if admission.is_new and admission.has_bodies:
        note_conversation(stores, chat.user, chat.conversation_id)
    try:
        held = move_credits(stores.ledger, log, chat.payer, hold, partial(_recorded, stores, admission))
    except (ConditionFailed, Contended):
        # its bodies are written; if the conversation does not exist, no deletion would remove them
        delete_leftovers(stores, chat.user, chat.conversation_id)
        raise
    if isinstance(held, HoldRefusal):
        _tell(stores, chat, held, admission.now)
        raise held.error(upgrade_message.replace("{user}", chat.payer))
    return admission.paid(held), held.account


def _tell(stores: AdmissionStores, chat: Chat, refused: HoldRefusal, now: float) -> None:
    """Tell the owner of a key that a cap of it is reached: once until it resets."""
    if chat.tells and (cap := refused.cap):
        until = int(cap.resets_at or now + CAP_TOLD_SECONDS)
        stores.webhooks.tell_once(chat.payer, cap_reached(chat.key_id, cap.cap, cap.resets_at, now), until)


def _admission(
    stores: AdmissionStores, new: NewChat, repeat: Repeat | None, costs: CostSettings
) -> _Admission:
    existing = _conversation(stores, new)
    now = stores.clock()
    conversation = existing or _new_conversation(new, now)
    tools, query_no = _tools(stores, new, conversation), conversation.queries + 1
    titled = conversation.is_titled_after(query_no)
    chat = Chat(
        user=new.user,
        chat_id=new_chat_id(),
        conversation_id=conversation.conversation_id,
        query=query_no,
        profile=conversation.profile,
        created_at=iso(now),
        deadline=int(now) + CHAT_SECONDS,
        held=chat_price(conversation.profile),
        spent=ReceiptData(),
        account=new.payer if new.payer != new.user else "",
        key_id=new.key_id,
        schedule_id=new.schedule_id,
        tells=stores.webhooks.tells(new.payer or new.user) and not new.is_task,
        costs=cost_hold(profile_of(conversation.profile), costs, titled=titled) if new.key_id else None,
        memory=ChatMemory(conversation.costs_so_far),
        instructed=bool(new.instructions),
        ancestry=conversation.ancestry,
        client_tools=tools.pointer if tools else "",
    )
    schema = (
        body_of(partition(chat.user, chat.conversation_id), dumps(new.output).encode())
        if new.output is not None
        else None
    )
    chat = replace(chat, output=schema.pointer if schema else "")
    attached = attached_files(stores.history, chat, new.files)
    query = _query(stores, new, conversation, chat, attached)
    asked = asked_up_to(stores.history, conversation, conversation.queries, query.content)
    kept = tuple(body for body in (schema, tools) if body)
    return _Admission(
        repeat,
        now,
        conversation,
        existing is None,
        chat,
        query,
        attached,
        asked,
        kept,
        new.instructions,
        new.echo,
    )


def _query(
    stores: AdmissionStores, new: NewChat, conversation: Conversation, chat: Chat, attached: QueryFiles
) -> Record:
    """The query's record: the user's message, or the wish that the answer before goes on. Raises 409."""
    query = Record(
        query_id(chat.query), "message", "user", new.message, chat.created_at, attachments=attached.listed
    )
    if not new.continues:
        return query
    profile = profile_of(conversation.profile)
    if profile.output is not None:
        raise ApiError("nothing_to_continue", "An answer that has to fit a schema does not go on: ask again.")
    continued = answer_to_continue(stores.history, conversation, is_any=new.continues == "any")
    return replace(query, content=words_of_continuing(continued), continues=continued)


def _tools(stores: AdmissionStores, new: NewChat, conversation: Conversation) -> StoredBody | None:
    """The tools that the client runs. Raises 400."""
    if not new.tools:
        return None
    catalogue = load_catalogue(stores.cache, stores.clock())
    tools = client_tools(new.tools, profile_named(conversation.profile), catalogue)
    return stores.chats.tools_body(new.user, conversation.conversation_id, tools)


def _recorded(stores: AdmissionStores, admission: _Admission, change: AccountChange) -> StepWrites:
    chat, query, texts = admission.paid(change), admission.query, admission.attached.texts
    events = [
        *(record_stored(record.record_id, "user", "message") for record in (query, *texts)),
        credits_now(0, chat.held, chat.credits_remaining),
    ]
    writes = [
        *admission.attached.bodies,
        *admission.kept,
        _lease(stores, admission),
        stores.chats.create_action(chat),
        *([stores.chats.instruct_action(chat, admission.instructions)] if chat.instructed else ()),
        *([stores.chats.echo_action(chat, admission.echo)] if admission.echo else ()),
        *stores.history.record_writes(chat.user, chat.conversation_id, query, "query", chat.chat_id),
        *_text_writes(stores, chat, texts),
        *_repeat_actions(stores, chat, admission.repeat, admission.now),
    ]
    return events, writes


def _text_writes(stores: AdmissionStores, chat: Chat, texts: tuple[Record, ...]) -> list[Write]:
    return [
        write
        for record in texts
        for write in stores.history.record_writes(chat.user, chat.conversation_id, record, record.record_id)
    ]


def _conversation(stores: AdmissionStores, new: NewChat) -> Conversation | None:
    """The conversation to continue, free for a chat; None if a new one has to be created."""
    if not new.conversation_id:
        if not new.is_task:
            profile_named(new.profile or DEFAULT_PROFILE)
        return None
    conversation = stores.conversations.find(new.user, new.conversation_id)
    # what was begun by a task has no second query: it would have a task's price
    if conversation is None or conversation.is_being_deleted or conversation.profile == UTILITY.name:
        raise not_found("There is no such conversation.")
    if new.profile and conversation.profile != new.profile:
        raise invalid_request(f"This conversation's profile is {conversation.profile}.")
    if not conversation.lease:
        return conversation
    if is_paused(stores, conversation):
        if not new.cancels_pause:
            raise conversation_paused(conversation.lease)
        return freed(stores, conversation)
    if conversation.lease_until > stores.clock():
        raise conversation_busy(conversation.lease)
    dead = ChatRef(new.user, conversation.lease, conversation.conversation_id)
    end_chat(stores, dead, TIMED_OUT)
    return stores.conversations.find(new.user, new.conversation_id)


def _new_conversation(new: NewChat, now: float) -> Conversation:
    conversation_id, at = new_conversation_id(), iso(now)
    return Conversation(
        user=new.user,
        conversation_id=conversation_id,
        title=title_of(new.message),
        profile=UTILITY.name if new.is_task else new.profile or DEFAULT_PROFILE,
        created_at=at,
        updated_at=at,
        latest="" if new.is_task else list_position(at, conversation_id),
        title_after=0 if new.is_task else 1,
        key_id=new.key_id,
        schedule_id=new.schedule_id,
    )


def _lease(stores: AdmissionStores, admission: _Admission) -> Action:
    """Take the conversation's lease for this chat and count its query."""
    conversation, chat, asked = admission.conversation, admission.chat, admission.asked
    if not admission.is_new:
        title = title_of(admission.query.content)
        return stores.conversations.take_action(conversation, chat, title, asked)
    taken = replace(
        conversation, queries=chat.query, lease=chat.chat_id, lease_until=chat.deadline, asked=asked
    )
    return stores.conversations.create_action(taken)


def _repeat_actions(stores: AdmissionStores, chat: Chat, repeat: Repeat | None, now: float) -> list[Action]:
    if repeat is None:
        return []
    first = FirstRequest(chat.chat_id, repeat.fingerprint)
    until = int(now) + IDEMPOTENCY_SECONDS
    return [
        stores.requests.remember_action(
            chat.user, repeat.key, first, int(now), until, replaces=repeat.is_first
        )
    ]
