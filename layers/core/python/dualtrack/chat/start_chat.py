"""POST /v1/chats: every reason to refuse first, then one transaction with everything that an execution relies on.

idempotency key known? ─► return the first chat, or 409
conversation, agent, tools, credits, caps ─► a refusal, before anything of the request is written
a chat that is in the way ends · what is too large for the transaction, for a new conversation that is noted
hold 5 credits · take the conversation's lease · number and store the query · first event
─► one transaction ─► StartExecution(name = chat id.1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from dualtrack.chat.attached_files import attached_files
from dualtrack.chat.chat_base import base_of, free_base, in_the_way, made_with
from dualtrack.chat.continued import answer_to_continue, words_of_continuing
from dualtrack.chat.cost_hold import CostSettings, chat_times, cost_hold
from dualtrack.chat.delete_conversation import delete_leftovers, note_conversation
from dualtrack.chat.end_chat import ChatFailure, end_chat
from dualtrack.chat.executions import start_execution
from dualtrack.chat.fork_conversation import make_final
from dualtrack.chat.latest_queries import asked_up_to
from dualtrack.chat.move_credits import lines_of, move_credits
from dualtrack.clock import iso
from dualtrack.credits.account import HoldRefusal
from dualtrack.credits.keys import UnderKey
from dualtrack.credits.plans import chat_price
from dualtrack.errors import ApiError, Contended, not_found
from dualtrack.events import credits_now, record_stored
from dualtrack.frozen import dumps
from dualtrack.ids import new_chat_id, query_id, response_id
from dualtrack.memory.full_history import ChatMemory
from dualtrack.memory.records import Record
from dualtrack.memory.titles import title_of
from dualtrack.models.receipt_data import ReceiptData
from dualtrack.notices import cap_reached
from dualtrack.profiles import profile_named, profile_of
from dualtrack.requests import ChatRef
from dualtrack.storage.api_requests import REPEAT, FirstRequest
from dualtrack.storage.bodies import INLINE_LIMIT, body_of, partition
from dualtrack.storage.chats import Chat
from dualtrack.storage.dynamo import Action, ConditionFailed
from dualtrack.storage.past_writes import import_records
from dualtrack.tools.client_tools import client_tools
from dualtrack.tools.mcp.catalogue import load_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.chat.attached_files import QueryFiles
    from dualtrack.chat.move_credits import StepWrites
    from dualtrack.chat.new_chat import NewChat, Repeat
    from dualtrack.credits.account import Account, AccountChange
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.bodies import StoredBody, Write
    from dualtrack.storage.conversations import Conversation, QueryStarts
    from dualtrack.storage.stores import AdmissionStores

IDEMPOTENCY_SECONDS: Final = 24 * 3600
CAP_TOLD_SECONDS: Final = 30 * 86_400
"""After so long it is told again that a cap which does not reset is reached."""
_TRIES: Final = 8
_NO_COSTS: Final = CostSettings()


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
        start_execution(executions, chat)
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
    payable: Callable[[], None] = lambda: None,
    noted: Callable[[Chat], Sequence[Action]] = lambda _: (),
    taken_back: Callable[[Chat], None] = lambda _: None,
) -> Chat:
    """Admit the chat and start it. Raises `ApiError`: 400, 401 for a key that was just revoked, 402, 404, 409, 503.

    ``costs``: what decides how much a chat by a key may cost; ``upgrade_message``: what a 402 says about getting more
    credits (`dualtrack_stack.stages.StageSettings`); ``held`` is called with the account once the chat is admitted;
    ``payable`` once nothing speaks against it any more, before anything is written; ``noted``: what is written with it,
    which ``taken_back`` undoes for a chat that cannot be started, before its request can be repeated.
    """
    begun, payable = stores.clock(), _once(payable)
    for _ in range(_TRIES):
        try:
            admission = _admission(stores, new, repeat, costs, begun)
            account = _account(stores, admission, upgrade_message)
            payable()
            if admission.occupied:
                free_base(stores, executions, new, admission.occupied)
                continue
            chat, account = _admit(stores, replace(admission, noted=noted), account, upgrade_message)
        except (ConditionFailed, ApiError) as refusal:
            # the same request may have arrived twice at once: then return the chat of the other
            may_repeat = repeat is not None and (not repeat.is_first or _has_come_again(refusal))
            first = first_chat(stores, executions, new.user, repeat) if repeat and may_repeat else None
            if first:
                return first
            if isinstance(refusal, ApiError):
                raise
            continue
        held(account)
        _start(stores, executions, chat, repeat, taken_back)
        return chat
    raise Contended("The conversation changed too often.")


def _once(act: Callable[[], None]) -> Callable[[], None]:
    """The same; the second time nothing."""
    left = [act]
    return lambda: left.pop()() if left else None


def _has_come_again(refusal: Exception) -> bool:
    """Whether the request was sent again meanwhile, and its repetition was admitted before it."""
    return isinstance(refusal, ConditionFailed) and REPEAT in refusal.items


def _start(
    stores: AdmissionStores,
    executions: Executions,
    chat: Chat,
    repeat: Repeat | None,
    taken_back: Callable[[Chat], None],
) -> None:
    ref = ChatRef(chat.user, chat.chat_id, chat.conversation_id)
    try:
        start_execution(executions, chat)
    except Exception as error:
        end_chat(
            stores, ref, ChatFailure("unavailable", "The chat could not be started. Nothing was charged.")
        )
        taken_back(chat)
        _forget(stores, chat, repeat)
        raise ApiError("unavailable", "The chat could not be started. Try again.") from error


def _forget(stores: AdmissionStores, chat: Chat, repeat: Repeat | None) -> None:
    """Free the key, so that the client can try again."""
    if repeat:
        stores.requests.forget(chat.user, repeat.key, chat.chat_id)


@dataclass(frozen=True, slots=True)
class _Admission:
    """A chat that may begin: its conversation (as it was read, or ``is_new``), the user's message and its files."""

    new: NewChat
    repeat: Repeat | None
    begun: float
    """When the request came, in epoch seconds."""
    now: float
    base: Conversation | None
    conversation: Conversation
    chat: Chat
    query: Record
    attached: QueryFiles
    asked: QueryStarts
    kept: tuple[StoredBody, ...]
    """What the request brings besides, to be kept with the conversation: the answer's schema, tools of its client."""
    noted: Callable[[Chat], Sequence[Action]] = lambda _: ()

    @property
    def is_new(self) -> bool:
        """Whether the conversation is made with the chat."""
        return self.base is None or self.new.past is not None

    @property
    def occupied(self) -> Conversation | None:
        """The base, if a chat has to end in it first."""
        return self.base if self.base and in_the_way(self.new, self.base) else None

    @property
    def imported(self) -> tuple[tuple[Record, ...], ...]:
        """The queries of the past that the request brings itself."""
        return self.new.past.imported if self.new.past else ()

    @property
    def writes_before(self) -> bool:
        """Whether something is written before the conversation exists: if its creation fails, it must be deleted."""
        texts = (self.query, *self.attached.texts)
        return bool(self.kept or self.attached.bodies or self.imported) or any(
            len(record.content.encode()) > INLINE_LIMIT for record in texts
        )

    def paid(self, change: AccountChange) -> Chat:
        """The chat with the credits after its hold."""
        spent = ReceiptData(lines_of(change, self.chat.chat_id))
        remaining = change.account.available(self.now, self.chat.key_id)
        return replace(self.chat, credits_remaining=remaining, spent=spent)


def _hold(admission: _Admission, account: Account) -> AccountChange | HoldRefusal:
    chat = admission.chat
    key = UnderKey(chat.key_id, chat.costs.in_all) if chat.costs else None
    return account.hold(chat.chat_id, chat.held, admission.now, key, chat.times.longer)


def _account(stores: AdmissionStores, admission: _Admission, upgrade_message: str) -> Account:
    """The account, which can pay the chat: so nothing is written for one that is refused. What the chat that is in the
    way holds counts as free. Raises 401, 402, 429."""
    account, base = stores.ledger.load(admission.chat.payer), admission.occupied
    freed = account.release(base.lease, admission.now).account if base else account
    if isinstance(refused := _hold(admission, freed), HoldRefusal):
        raise _refusal(stores, admission, refused, upgrade_message)
    return account


def _refusal(
    stores: AdmissionStores, admission: _Admission, refused: HoldRefusal, upgrade_message: str
) -> ApiError:
    _tell(stores, admission.chat, refused, admission.now)
    return refused.error(upgrade_message.replace("{user}", admission.chat.payer))


def _admit(
    stores: AdmissionStores, admission: _Admission, account: Account, upgrade_message: str
) -> tuple[Chat, Account]:
    """Commit the new chat or raise an error; `ConditionFailed` if the conversation has changed since it was read."""
    chat, log = admission.chat, stores.log(admission.chat)
    log.begin()
    _write_before(stores, admission)
    try:
        held = move_credits(
            stores.ledger,
            log,
            chat.payer,
            partial(_hold, admission),
            partial(_recorded, stores, admission),
            account=account,
        )
        if isinstance(held, HoldRefusal):  # another chat was faster
            raise _refusal(stores, admission, held, upgrade_message)
    except (ApiError, ConditionFailed, Contended):
        # its bodies are written; if the conversation does not exist, no deletion would remove them
        delete_leftovers(stores, chat.user, chat.conversation_id)
        raise
    return admission.paid(held), held.account


def _write_before(stores: AdmissionStores, admission: _Admission) -> None:
    """What the transaction has no room for, of a conversation that nobody sees yet. It is noted first, so that the
    sweep deletes what a crash leaves."""
    chat, base, past = admission.chat, admission.base, admission.new.past
    if base and past:
        make_final(stores, base, admission.conversation.ancestry)
    if admission.is_new and admission.writes_before:
        note_conversation(stores, chat.user, chat.conversation_id)
    import_records(stores, chat.user, chat.conversation_id, admission.imported)


def _tell(stores: AdmissionStores, chat: Chat, refused: HoldRefusal, now: float) -> None:
    """Tell the owner of a key that a cap of it is reached: once until it resets."""
    if chat.tells and (cap := refused.cap):
        until = int(cap.resets_at or now + CAP_TOLD_SECONDS)
        stores.outbox.tell_once(chat.payer, cap_reached(chat.key_id, cap.cap, cap.resets_at, now), until)


def _admission(
    stores: AdmissionStores, new: NewChat, repeat: Repeat | None, costs: CostSettings, begun: float
) -> _Admission:
    """Reads alone. Raises 400, 404, 409."""
    base, now = base_of(stores, new), stores.clock()
    conversation = base if base and not new.past else made_with(stores, new, base, now)
    tools, query_no = _tools(stores, new, conversation), conversation.queries + 1
    titled = conversation.is_titled_after(query_no)
    profile = profile_of(conversation.profile)
    times = chat_times(profile, costs)
    chat = Chat(
        user=new.user,
        chat_id=new_chat_id(),
        conversation_id=conversation.conversation_id,
        query=query_no,
        profile=conversation.profile,
        created_at=iso(now),
        deadline=int(now) + times.chat,
        call_seconds=times.call,
        held=chat_price(conversation.profile),
        spent=ReceiptData(),
        account=new.payer if new.payer != new.user else "",
        key_id=new.key_id,
        unattended=new.unattended,
        facets=new.facets,
        tells=stores.outbox.tells(new.payer or new.user) and not new.is_task,
        costs=cost_hold(profile, costs, titled=titled) if new.key_id else None,
        memory=ChatMemory(conversation.costs_so_far),
        instructed=bool(new.instructions),
        wants=new.wanted is not None,
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
    return _Admission(new, repeat, begun, now, base, conversation, chat, query, attached, asked, kept)


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
    if new.past and new.past.imported and new.continues == "any":
        continued = response_id(conversation.queries)  # which is not written yet
    else:
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
        *_lease(stores, admission),
        stores.chats.create_action(chat),
        *([stores.chats.instruct_action(chat, admission.new.instructions)] if chat.instructed else ()),
        *([stores.chats.echo_action(chat, admission.new.echo)] if admission.new.echo else ()),
        *([stores.chats.want_action(chat, admission.new.wanted)] if admission.new.wanted else ()),
        *stores.history.record_writes(chat.user, chat.conversation_id, query, "query", chat.chat_id),
        *_text_writes(stores, chat, texts),
        *_repeat_actions(stores, chat, admission),
        *([stores.keys.end_user_action(chat.payer, chat.user)] if chat.account else ()),
        *admission.noted(chat),
    ]
    return events, writes


def _text_writes(stores: AdmissionStores, chat: Chat, texts: tuple[Record, ...]) -> list[Write]:
    return [
        write
        for record in texts
        for write in stores.history.record_writes(chat.user, chat.conversation_id, record, record.record_id)
    ]


def _lease(stores: AdmissionStores, admission: _Admission) -> Sequence[Action]:
    """Take the conversation's lease for this chat and count its query."""
    conversation, chat, asked = admission.conversation, admission.chat, admission.asked
    if not admission.is_new:
        title = title_of(admission.query.content)
        return [stores.conversations.take_action(conversation, chat, title, asked)]
    taken = replace(
        conversation, queries=chat.query, lease=chat.chat_id, lease_until=chat.deadline, asked=asked
    )
    return [stores.conversations.create_action(taken), *stores.forks.share_actions(taken)]


def _repeat_actions(stores: AdmissionStores, chat: Chat, admission: _Admission) -> list[Action]:
    repeat, now = admission.repeat, admission.now
    if repeat is None:
        return []
    first = FirstRequest(chat.chat_id, repeat.fingerprint)
    since = admission.begun if repeat.is_first else None
    return [
        stores.requests.remember_action(
            chat.user, repeat.key, first, now, int(now) + IDEMPOTENCY_SECONDS, since=since
        )
    ]
