"""The chats table: state and turns of every chat.

    pk CHAT#<user>#<chat>   sk STATE           the chat; sparse index `open` (shard, deadline) until it is done; a
                                               paused one is in shards of its own, and its deadline is the pause's end
                            sk TURN#002        a recorded turn: the assistant's blocks, its calls
                            sk BEGUN#q1-t3     a call that does more than read was begun, or never will be
                            sk INSTRUCTIONS    what the client's program says to this query alone
                            sk ASKED#000       what a request asks of the answer behind that turn
                            sk RESPONSE#000    what the answer behind that turn says again of its request
                            sk …               of plug-ins, with ``entry``: the item of its user that is deleted with it
                            sk EV#00000001     events (event_log.py)
    pk USER#<user>                             idempotency keys and request counts (api_requests.py)

Statuses move only as `dualtrack.vocabulary.ChatStatus` says (DESIGN 2.5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from botocore.exceptions import ClientError

from dualtrack.chat_times import ChatTimes
from dualtrack.codec import APART, TEXT, As, decode, dump, encode, load, stored
from dualtrack.errors import Gone, Superseded
from dualtrack.frozen import freeze, loads
from dualtrack.memory.ancestry import Ancestry
from dualtrack.memory.full_history import ChatMemory
from dualtrack.memory.sending import Sending
from dualtrack.models.cost_cap import CostHold
from dualtrack.models.receipt_data import Heard, ReceiptData, SideCalls, TurnCall
from dualtrack.models.stops import LastCallReason
from dualtrack.models.turn import ModelReply, ToolCall, TurnDecision, Usage
from dualtrack.models.wanted import Wanted
from dualtrack.requests import ChatRef
from dualtrack.storage.bodies import body_of, partition, put_with_text, with_text
from dualtrack.storage.dynamo import (
    Action,
    ConditionFailed,
    check,
    delete_all,
    from_wire,
    get,
    put,
    put_absent,
    query,
    transact,
    update,
    writer_token,
)
from dualtrack.storage.open_index import listed, partition_of
from dualtrack.tool_values import ToolSpec
from dualtrack.vocabulary import ChatStatus, Stop

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.frozen import JsonObject
    from dualtrack.storage.bodies import BodyStore, StoredBody, Write
    from dualtrack.storage.dynamo import Item
    from dualtrack.tool_values import PriceClass

_BEGUN: Final = "BEGUN#"
_NOBODY: Final = "nobody"
_ONCE: Final = "documentation"
"""The only price class so far that is charged once a chat: so that stored chats keep their field for it, which earlier
releases read."""
"""Who has begun a call that never will be."""
Beginning = Literal["first", "again", "forestalled"]
"""Of a run of a call: another has begun it, or it must not begin."""

ENDED: Final = frozenset({"done", "failed", "cancelled"})
"""The statuses that nothing follows."""


@stored
@dataclass(frozen=True, slots=True)
class Pin:
    """What a query sends beside its own records, decided once when it starts (DESIGN 2.7).

    ``catalogue``: the version of the MCP tool catalogue whose tools are offered.
    ``digest``: the number of the digest that is sent; 0 for none.
    ``agent``: the hash of the chat's agent (agents.py).
    ``whole_from``: the first past query that is sent whole; 0 if all are sent as tracks.
    ``left_out``: the past query whose results are not sent, since the model's service declined them; 0 for none.
    ``summarised``: whether a model is called for summaries behind the answer.
    ``tokens``: what is sent of the past, in cautious tokens; 0 if there is none, or it is unknown.
    """

    catalogue: str = ""
    digest: int = 0
    agent: str = ""
    whole_from: int = 0
    left_out: int = 0
    summarised: bool = False
    tokens: int = 0


@stored
@dataclass(frozen=True, slots=True)
class Pause:
    """A chat's latest pause: the turn whose calls wait for decisions, and its beginning and end in epoch seconds.

    ``calls``: how many wait at its beginning; ``entry``: the turn behind which the execution begins that goes on after
    the pause.
    """

    turn: int
    since: int
    until: int
    calls: int
    entry: int = 0


@stored
@dataclass(frozen=True, slots=True)
class Chat:
    """A chat's state. Times are ISO 8601, ``deadline`` epoch seconds, tokens and credits integers."""

    user: Annotated[str, APART]
    chat_id: Annotated[str, APART]
    conversation_id: Annotated[str, As("conversation")]
    query: Annotated[int, As("query_no")]
    profile: str
    created_at: str
    deadline: int
    status: ChatStatus = "running"
    stop: Stop | Literal[""] = ""
    ended_at: str = ""
    turn: int = 0
    calls: int = 0
    thoughts: int = 0
    held: int = 0
    documentation_paid: bool = False
    limit: LastCallReason = ""
    credits_used: int = 0
    credits_remaining: int = 0
    usage: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    error: Mapping[str, str] | None = None
    pin: Annotated[Pin | None, TEXT] = None
    model: str = ""
    effort: str = ""
    """The model (and effort) of its first recorded turn, which every later turn uses; empty before it."""
    execution: int = 1
    """The number of its execution (`dualtrack.ids.execution_name`): each pause ends one."""
    pause: Pause | None = None
    pauses: int = 0
    """Its pauses so far."""
    sweeps: int = 0
    """How many sweeps have tried to start or to end it; more than 0 means that a sweep has failed to."""
    spent: Annotated[ReceiptData, TEXT] = field(default_factory=ReceiptData)
    """Data for its receipt."""
    heard: Annotated[Heard | None, TEXT] = None
    """The newest answer of which a first byte came: with the first of them the chat has begun (CONTRACT 8)."""
    account: str = ""
    """Whose credits pay, if they are not the user's: the owner of the service's key that acts for him."""
    key_id: str = ""
    """The API key that it was started with."""
    unattended: bool = False
    """Whether nobody waits for it: then nothing that needs approval runs for leave that was given in its
    conversation."""
    facets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What plug-ins keep with it, by the names that they declare (`dualtrack.plugin`)."""
    tells: bool = False
    """Whether its payer had a listener when it was admitted, who is told how it ends."""
    costs: Annotated[CostHold | None, TEXT] = None
    """What it holds under that key."""
    memory: Annotated[ChatMemory, TEXT] = field(default_factory=ChatMemory)
    """What its model calls cost, beside a full history's."""
    instructed: bool = False
    """Whether the client's program says something to its query alone (`ChatStore.instructions`)."""
    fold: Annotated[SideCalls | None, TEXT] = None
    """The call for the digest that was written after it."""
    titling: Annotated[SideCalls | None, TEXT] = None
    """The call for its conversation's title."""
    output: str = ""
    """The body of the JSON Schema that its request brought for the answer, by pointer."""
    misfit: str = ""
    """What did not fit the schema in its first answer: its next call gives the second, which is its last."""
    fits: bool = False
    """Whether its answer is JSON that fits a schema."""
    ancestry: Annotated[Ancestry, TEXT] = field(default_factory=Ancestry)
    """A copy of the conversation's ancestry, so that a step of a fork needs no further read to find its past."""
    unbegun: tuple[str, ...] = ()
    """Its calls that had not begun when it was stopped: they never will, and cost nothing."""
    cuts: int = 0
    """How many of its answers reached their limit of tokens within a tool call."""
    declined: Mapping[str, str] | None = None
    """``category`` and ``explanation``: what the model's service said of the request that it declined."""
    client_tools: str = ""
    """The pointer of the tools that its client runs (`ChatStore.client_tools`); empty for none."""
    call_seconds: int = 120
    """How long one of its model calls may take (`dualtrack.chat_times`)."""
    wants: bool = False
    """Whether its first request asks something of the answer (`ChatStore.wanted`)."""
    message: str = ""
    """The service's id of the newest message whose request later ones begin with; empty if it is not asked."""

    @property
    def pk(self) -> str:
        """The chat's partition."""
        return chat_partition(self.user, self.chat_id)

    @property
    def times(self) -> ChatTimes:
        """How long its parts may take."""
        return ChatTimes(self.call_seconds)

    @property
    def paid(self) -> frozenset[PriceClass]:
        """The price classes that it has been charged for, of those that are charged once a chat."""
        return frozenset({_ONCE}) if self.documentation_paid else frozenset()

    @property
    def payer(self) -> str:
        """Whose credits pay."""
        return self.account or self.user

    @property
    def prefix(self) -> str:
        """A name for all that it sends before the first whole query, or before its own if none is sent whole: system
        and tools, the digest, the summarised queries."""
        pin = self.pin or Pin()
        summarised = pin.whole_from - 1 if pin.whole_from else self.query - 1
        left_out = f" {pin.left_out}" if pin.left_out else ""
        return f"{pin.agent} {pin.catalogue} {self.client_tools} {pin.digest} {summarised}{left_out}"

    @property
    def entry(self) -> int:
        """The last recorded turn that its current execution is told of at its start."""
        return self.pause.entry if self.pause else 0

    @property
    def calls_for_summaries(self) -> bool:
        """Whether a model is called for summaries behind its answer."""
        return self.pin is not None and self.pin.summarised

    @property
    def has_begun(self) -> bool:
        """Whether a byte of an answer has come."""
        return self.turn > 0 or self.heard is not None


@stored
@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A committed turn: its model call is never repeated. ``sending``: what its call sent."""

    number: Annotated[int, APART]
    content: tuple[Mapping[str, Any], ...]
    calls: tuple[ToolCall, ...]
    next: str
    usage: Usage
    """The usage that the service reported."""
    made: TurnCall
    """Data of its call for the receipt."""
    sending: Sending = field(default_factory=Sending)
    told: str = ""
    """What the model is told behind it, if it is not what the client wants."""
    notes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The notes that it brought, by record id."""

    @property
    def waits(self) -> bool:
        """Whether calls of it wait for decisions."""
        return any(call.is_open for call in self.calls)

    @property
    def runnable(self) -> tuple[ToolCall, ...]:
        """The calls that functions may run: nothing that was approved before every call is decided."""
        waits = self.waits
        return tuple(call for call in self.calls if call.may_run and not (call.asks and waits))


def charged(chat: Chat, classes: Collection[PriceClass]) -> Chat:
    """The chat that is charged for calls of these price classes."""
    return replace(chat, documentation_paid=chat.documentation_paid or _ONCE in classes)


def chat_partition(user: str, chat_id: str) -> str:
    """``CHAT#<user>#<chat>``: the key has the user's id, so other users cannot reach the chat."""
    return f"CHAT#{user}#{chat_id}"


def _wanted_item(chat: Chat, after: int, wanted: Wanted) -> Item:
    return {"pk": chat.pk, "sk": f"ASKED#{after:03d}", "text": dump(wanted)}


def _echo_key(after: int) -> str:
    return f"RESPONSE#{after:03d}"


_USAGE_FIELDS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "summary_tokens",
)


@dataclass(frozen=True, slots=True)
class ChatStore:
    """Reads and write-actions of the chats table."""

    client: DynamoDBClient
    table: str
    bodies: BodyStore

    def load(self, user: str, chat_id: str) -> Chat | None:
        """The chat if it is this user's."""
        return load_chat(self.client, self.table, user, chat_id)

    def open_chats(self) -> Iterator[ChatRef]:
        """All chats that are not done, failed or cancelled, by deadline; the shards of the index are read in turn."""
        return map(_ref_of, listed(self.client, self.table, "open"))

    def overdue_pauses(self, now: float) -> Iterator[ChatRef]:
        """The paused chats whose pause has ended; the others are not read."""
        return map(_ref_of, listed(self.client, self.table, "paused", int(now)))

    def delete(self, user: str, chat_id: str, keep: str = "") -> bool:
        """Delete all items of a chat except the one with the sort key ``keep``; returns whether there were any."""
        pk = chat_partition(user, chat_id)
        items = [item for item in query(self.client, self.table, pk) if item["sk"] != keep]
        keys = [{"pk": pk, "sk": item["sk"]} for item in items]
        found = [{"pk": f"USER#{user}", "sk": item["entry"]} for item in items if "entry" in item]
        delete_all(self.client, self.table, [*found, *keys])
        return bool(items)

    @staticmethod
    def tools_body(user: str, conversation_id: str, tools: tuple[ToolSpec, ...]) -> StoredBody:
        """The tools that a client runs, to be kept with the conversation as long as it is."""
        return body_of(partition(user, conversation_id), dump(tools).encode())

    def client_tools(self, chat: Chat) -> tuple[ToolSpec, ...]:
        """The tools that the chat's client runs, by name. Raises `Gone`."""
        if not chat.client_tools:
            return ()
        return load(tuple[ToolSpec, ...], self.bodies.load(_bodies_of(chat), chat.client_tools))

    def create_action(self, chat: Chat) -> Action:
        """The put of a new chat."""
        item = {
            "pk": chat.pk,
            "sk": "STATE",
            "open": open_shard(chat),
            "status": chat.status,
            "turn": chat.turn,
            **_stored(chat),
        }
        return put_absent("chat", self.table, item)

    def instruct_action(self, chat: Chat, instructions: str) -> Action:
        """The put of what the client's program says to the chat's query alone."""
        item = {"pk": chat.pk, "sk": "INSTRUCTIONS", "text": instructions}
        return put_absent("instructions", self.table, item)

    def instructions(self, chat: Chat) -> str:
        """What the client's program says to the chat's query alone; empty for nothing."""
        item = (
            get(self.client, self.table, {"pk": chat.pk, "sk": "INSTRUCTIONS"}) if chat.instructed else None
        )
        return item["text"] if item else ""

    def want_action(self, chat: Chat, wanted: Wanted) -> Action:
        """The put of what the chat's first request asks of the answer."""
        return put_absent("wanted", self.table, _wanted_item(chat, 0, wanted))

    def keep_wanted(self, chat: Chat, after: int, wanted: Wanted) -> None:
        """The same of a request whose answer begins behind the turn ``after``."""
        transact(self.client, [put("wanted", self.table, _wanted_item(chat, after, wanted))])

    def wanted(self, chat: Chat) -> tuple[int, Wanted]:
        """What the chat's newest request asks of its answer, and behind which turn that begins."""
        if not (chat.wants or chat.client_tools):
            return 0, Wanted()
        newest = next(
            query(self.client, self.table, chat.pk, prefix="ASKED#", descending=True, page_size=1), None
        )
        if newest is None:
            return 0, Wanted()
        return int(newest["sk"].removeprefix("ASKED#")), load(Wanted, newest["text"])

    def echo_action(self, chat: Chat, echo: str) -> Action:
        """The put of what an answer says again of its request, as JSON."""
        return put_absent("response", self.table, {"pk": chat.pk, "sk": _echo_key(0), "text": echo})

    def keep_echo(self, chat: Chat, after: int, echo: str) -> None:
        """The same of an answer that begins behind the turn ``after``."""
        item = {"pk": chat.pk, "sk": _echo_key(after), "text": echo}
        transact(self.client, [put("response", self.table, item)])

    def echo(self, chat: Chat, after: int) -> str:
        """What an answer says again of its request; empty for nothing."""
        item = get(self.client, self.table, {"pk": chat.pk, "sk": _echo_key(after)})
        return item["text"] if item else ""

    def pin(self, chat: Chat, pin: Pin) -> Chat:
        """Pin the chat's view; the first pin wins. Returns the chat with the pin in force. Raises `Gone`."""
        try:
            answer = self.client.update_item(
                TableName=self.table,
                Key={"pk": {"S": chat.pk}, "sk": {"S": "STATE"}},
                UpdateExpression="SET pin = if_not_exists(pin, :pin)",
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeValues={":pin": {"S": dump(pin)}},
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            raise Gone(chat.chat_id) from error
        return chat_of(from_wire(answer["Attributes"]))

    def move_pin(self, chat: Chat, pin: Pin) -> Chat:
        """Replace the pin of a running chat. Raises `Superseded` if it has another pin by now, or has ended."""
        try:
            transact(self.client, [self.move_pin_action(chat, pin)])
        except ConditionFailed as lost:
            raise Superseded("the pin") from lost
        return replace(chat, pin=pin)

    def move_pin_action(self, chat: Chat, pin: Pin) -> Action:
        """Replace the pin of a running chat if it still has this one."""
        key = {"pk": chat.pk, "sk": "STATE"}
        before = dump(chat.pin) if chat.pin else ""
        values = {":pin": dump(pin), ":before": before, ":running": "running"}
        condition = "pin = :before AND #status = :running"
        return update("pin", self.table, key, "SET pin = :pin", condition, values, {"#status": "status"})

    def pin_action(self, chat: Chat, pin: Pin) -> Action:
        """The pin of a chat without a pin or a turn, to be written together with what it names."""
        key = {"pk": chat.pk, "sk": "STATE"}
        condition = "attribute_exists(pk) AND attribute_not_exists(pin) AND #turn = :none"
        values = {":pin": dump(pin), ":none": 0}
        return update("pin", self.table, key, "SET pin = :pin", condition, values, {"#turn": "turn"})

    def aside_action(self, chat: Chat, name: Literal["fold", "titling"], call: SideCalls) -> Action:
        """Store the usage of a call that was made after the chat, once, on condition that the chat exists: then its
        conversation is not being deleted."""
        key, values = {"pk": chat.pk, "sk": "STATE"}, {":call": dump(call)}
        condition = f"attribute_exists(pk) AND attribute_not_exists({name})"
        return update("there", self.table, key, f"SET {name} = :call", condition, values)

    def hear(self, chat: Chat, heard: Heard) -> None:
        """Note the first byte of an answer. Raises `Superseded` if the chat has ended, or the turn is recorded."""
        key = {"pk": chat.pk, "sk": "STATE"}
        values = {":heard": dump(heard), ":running": "running", ":before": heard.turn - 1}
        condition, names = "#status = :running AND #turn = :before", {"#status": "status", "#turn": "turn"}
        action = update("chat", self.table, key, "SET heard = :heard", condition, values, names)
        try:
            transact(self.client, [action])
        except ConditionFailed as lost:
            raise Superseded("the chat has moved on") from lost

    def count_sweep(self, chat: Chat) -> None:
        """Note that a sweep tries to start or to end the chat. Raises `ConditionFailed` if the chat was deleted."""
        key = {"pk": chat.pk, "sk": "STATE"}
        values = {":sweeps": chat.sweeps + 1}
        change = update("chat", self.table, key, "SET sweeps = :sweeps", "attribute_exists(pk)", values)
        transact(self.client, [change])

    def load_with_turns(self, user: str, chat_id: str) -> tuple[Chat, tuple[RecordedTurn, ...]] | None:
        """The chat and all its recorded turns, in one query (their keys are adjacent). Raises `Gone`."""
        pk = chat_partition(user, chat_id)
        items = list(query(self.client, self.table, pk, after="S"))
        if not items or items[0]["sk"] != "STATE":
            return None
        chat = chat_of(items[0])
        texts = self.bodies.load_texts(_bodies_of(chat), items[1:])
        present = [text for text in texts if text is not None]
        if len(present) < len(texts):
            raise Gone(chat.chat_id)
        turns = (_turn_of(item, text) for item, text in zip(items[1:], present, strict=True))
        return chat, tuple(turns)

    def turn(self, chat: Chat, number: int) -> RecordedTurn | None:
        """A recorded turn. Raises `Gone`."""
        if number < 1:
            return None
        item = get(self.client, self.table, {"pk": chat.pk, "sk": turn_key(number)})
        return _turn_of(item, self.bodies.load_text(_bodies_of(chat), item)) if item else None

    def output_schema(self, chat: Chat) -> JsonObject | None:
        """The JSON Schema that the chat's request brought. Raises `Gone`."""
        return loads(self.bodies.load(_bodies_of(chat), chat.output)) if chat.output else None

    def turn_writes(
        self,
        chat: Chat,
        number: int,
        reply: ModelReply,
        decision: TurnDecision,
        after: Chat,
        sending: Sending,
        made: TurnCall,
    ) -> list[Write]:
        """The put of a turn and the change of the chat, which must still be running, to ``after``."""
        turn = RecordedTurn(
            number,
            reply.content,
            decision.calls,
            decision.next,
            reply.usage,
            made,
            sending,
            decision.told,
            decision.notes,
        )
        item = {"pk": chat.pk, "sk": turn_key(number)}
        recorded = put_with_text("turn", self.table, item, _bodies_of(chat), dump(turn))
        return [*recorded, self.change_action(chat, after)]

    def decide_writes(self, chat: Chat, read: RecordedTurn, after: RecordedTurn) -> list[Write]:
        """Replace a recorded turn by the same with decisions on its calls, on condition that none was made since it was
        read."""
        item = {"pk": chat.pk, "sk": turn_key(after.number), "decided": _decided(after)}
        text, body = with_text(_bodies_of(chat), dump(after))
        before = _decided(read)
        condition = (
            "decided = :before" if before else "attribute_exists(pk) AND attribute_not_exists(decided)"
        )
        values = {":before": before} if before else None
        return [*body, put("turn", self.table, {**item, **text}, condition, values)]

    def same_check(self, chat: Chat) -> Action:
        """The condition that the chat is as it was read: running, or in this pause."""
        key = {"pk": chat.pk, "sk": "STATE"}
        values = {":was": chat.status, ":deadline": chat.deadline}
        condition = "#status = :was AND deadline = :deadline"
        return check("chat", self.table, key, condition, values, {"#status": "status"})

    def end_action(self, before: Chat, after: Chat) -> Action:
        """The change of a chat that ends without an answer. Its price and its costs depend on what had come of one, so
        no other first byte may have come since the step read it."""
        if before.heard is None:
            return self.change_action(before, after, "attribute_not_exists(heard)")
        return self.change_action(before, after, "heard = :heard", {":heard": dump(before.heard)})

    def change_action(
        self, before: Chat, after: Chat, also: str = "", more: Mapping[str, Any] = MappingProxyType({})
    ) -> Action:
        """The change of a chat's state, on condition that its status has not changed since the step read it, and
        that its view is pinned exactly if it was pinned then: another first attempt may have pinned another view
        than the one that this answer is based on. ``also``: a further condition, with its values.

        The chat leaves the index of open chats when it is done, failed or cancelled, and changes its shard there when a
        pause begins or ends.
        """
        stored = _stored(after)
        values: dict[str, Any] = {
            ":was": before.status,
            ":status": after.status,
            ":turn": after.turn,
            ":calls": after.calls,
            ":held": after.held,
            ":rest": stored["rest"],
            ":spent": stored.get("spent", "{}"),
            ":memory": stored.get("memory", "{}"),
            ":deadline": after.deadline,
        }
        sets = "SET #status = :status, #turn = :turn, calls = :calls, held = :held, #rest = :rest, spent = :spent"
        sets += ", memory = :memory, deadline = :deadline"
        names = {"#status": "status", "#turn": "turn", "#rest": "rest"}
        removes = ""
        if after.status in ENDED:
            removes, names["#open"] = " REMOVE #open", "open"
        elif "paused" in (before.status, after.status):
            sets, names["#open"] = f"{sets}, #open = :open", "open"
            values[":open"] = open_shard(after)
        key = {"pk": before.pk, "sk": "STATE"}
        same_view = "attribute_exists(pin)" if before.pin else "attribute_not_exists(pin)"
        condition = f"#status = :was AND {same_view}{f' AND {also}' if also else ''}"
        return update("chat", self.table, key, sets + removes, condition, {**values, **more}, names)

    def begin(self, chat: Chat, call_id: str) -> Beginning:
        """Mark a call as begun, before it has an effect."""
        token = writer_token()
        try:
            transact(self.client, [put_absent("begun", self.table, _mark(chat, call_id, token))])
        except ConditionFailed as lost:
            if lost.only_to_itself("begun", token):
                return "first"
            return "forestalled" if lost.only_to_itself("begun", _NOBODY) else "again"
        return "first"

    def forestall(self, chat: Chat, call_id: str) -> bool:
        """Mark a call as one that will never begin; false if it has begun."""
        try:
            transact(self.client, [self.forestall_action(chat, call_id)])
        except ConditionFailed as lost:
            return lost.only_to_itself(f"begun {call_id}", _NOBODY)
        return True

    def forestall_action(self, chat: Chat, call_id: str) -> Action:
        """The same, on condition that the call has no mark."""
        return put_absent(f"begun {call_id}", self.table, _mark(chat, call_id, _NOBODY))

    def marks(self, chat: Chat) -> Mapping[str, bool]:
        """The calls that have a mark: whether each has begun, else it never will."""
        items = query(self.client, self.table, chat.pk, prefix=_BEGUN)
        return {item["sk"].removeprefix(_BEGUN): item.get("by") != _NOBODY for item in items}


def _mark(chat: Chat, call_id: str, by: str) -> Item:
    return {"pk": chat.pk, "sk": f"{_BEGUN}{call_id}", "by": by, "ttl": chat.deadline + 86_400}


def load_chat(client: DynamoDBClient, table: str, user: str, chat_id: str) -> Chat | None:
    """The chat if it is this user's."""
    item = get(client, table, {"pk": chat_partition(user, chat_id), "sk": "STATE"})
    return chat_of(item) if item else None


def _turn_of(item: Item, text: str) -> RecordedTurn:
    return load(RecordedTurn, text, number=int(item["sk"].removeprefix("TURN#")))


def turn_key(number: int) -> str:
    """``TURN#003``."""
    return f"TURN#{number:03d}"


def open_shard(chat: Chat) -> str:
    """The chat's partition of the index of open chats."""
    return partition_of("paused" if chat.status == "paused" else "open", chat.chat_id)


def _ref_of(item: Item) -> ChatRef:
    _, user, chat_id = item["pk"].split("#", 2)
    return ChatRef(user, chat_id, "")


def _decided(turn: RecordedTurn) -> int:
    """How many of its calls waited for a decision and have one."""
    return sum(bool(call.asks) and not call.is_open for call in turn.calls)


def with_usage(chat: Chat, usage: Usage) -> Chat:
    """The chat after a model call."""
    added = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    return replace(chat, usage=add_usage(chat.usage, added))


def with_summaries(chat: Chat, usage: Usage) -> Chat:
    """The chat after its summaries."""
    before = chat.usage.get("summary_tokens", 0)
    return replace(chat, usage={**chat.usage, "summary_tokens": before + usage.tokens})


def add_usage(usage: Mapping[str, int], added: Mapping[str, int]) -> Mapping[str, int]:
    """Usage summed by field, every field present."""
    summed: Mapping[str, int] = freeze(
        {name: usage.get(name, 0) + added.get(name, 0) for name in _USAGE_FIELDS}
    )
    return summed


def _bodies_of(chat: Chat) -> str:
    return partition(chat.user, chat.conversation_id)


_REST: Final = (
    "stop",
    "ended_at",
    "thoughts",
    "documentation_paid",
    "limit",
    "credits_used",
    "credits_remaining",
    "usage",
    "error",
    "model",
    "effort",
    "execution",
    "pause",
    "pauses",
    "misfit",
    "fits",
    "unbegun",
    "cuts",
    "declined",
    "message",
)
"""Fields that no condition uses and that change with each step: one attribute, as JSON text."""


def _stored(chat: Chat) -> Item:
    """The attributes of a STATE item that have no default."""
    item: Item = encode(chat)
    rest = {name: item.pop(name) for name in _REST if name in item}
    return {**item, "rest": dump(rest)}


def chat_of(item: Item) -> Chat:
    """The chat of a STATE item."""
    _, user, chat_id = item["pk"].split("#", 2)
    return decode(Chat, {**item, **json.loads(item["rest"])}, user=user, chat_id=chat_id)


def notes_of(turns: Sequence[RecordedTurn]) -> Mapping[str, str]:
    """The notes that a chat's turns brought, by record id; a later one on the same record wins."""
    return {record_id: note for turn in turns for record_id, note in turn.notes.items()}


def calls_to_run(turn: RecordedTurn) -> Sequence[ToolCall]:
    """The calls that a function has to run now: once there are decisions, those that were approved, since the others
    were run before."""
    is_decided = any(call.verdict for call in turn.calls) and not turn.waits
    return [call for call in turn.runnable if not is_decided or call.verdict]
