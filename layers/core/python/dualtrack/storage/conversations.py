"""The conversations of a user, in the history table: one item each, with its lease.

    pk USER#<user>   sk CONV#<conversation>   title, profile, times, number of queries
                                              title_after: the query after whose answer the model may give it
                                              its title; gone once it has one that the model or its user gave
                                              lease, lease_until: the chat that runs in it, until when
                                              ancestry, forked_from: of a fork (memory/ancestry.py)
                                              forks: how many forks have shared its queries so far (forks.py)
                                              kept: being deleted, except the queries up to this one
                                              listed, latest: USER#<user>, and when its last query came; they
                                              are the keys of the index `listed`, which excludes conversations
                                              that are being deleted: they have no `listed`
                                              asked: beginnings of its latest queries, by their numbers, as JSON,
                                              compressed where that is shorter: each chat writes the item three times
                                              sums: what its turns cost, set by the chat that holds the lease
                                              aside: 10⁻⁹ dollars of summaries and digests, which come later
                                              allowed: the tools that its user lets run in it unasked, by name,
                                              each with its mark (tools/approval.py)

One chat runs in a conversation at a time. A chat takes the lease at its admission and releases it at its end; a
deletion takes it permanently, without a chat.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

from dualtrack.codec import APART, TEXT, decode, dump, encode, stored
from dualtrack.ids import is_id
from dualtrack.memory.ancestry import Ancestry
from dualtrack.memory.full_history import MemorySums
from dualtrack.storage.dynamo import (
    ConditionFailed,
    batch_get,
    check,
    delete,
    get,
    index_pages,
    put_absent,
    query,
    transact,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.dynamo import Action, Item

DELETING: Final = "deleting"
"""In place of a chat's id in the lease: the conversation is being deleted."""

ALIVE: Final = "(attribute_not_exists(lease) OR lease <> :deleting)"

LISTED_INDEX: Final = "listed"
"""An index of the history table: a user's conversations by their last query."""

QueryStarts = tuple[tuple[int, str], ...]
"""Numbers and beginnings of queries (`dualtrack.memory.titles`), oldest first."""

MAX_ALLOWED: Final = 20
"""Tools that a user allows in a conversation."""

_POSITION: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z#(.+)", re.ASCII)


@stored
@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of a user. ``lease`` names the chat that runs in it, until ``lease_until`` (epoch s)."""

    user: Annotated[str, APART]
    conversation_id: Annotated[str, APART]
    title: str
    profile: str
    created_at: str
    updated_at: str
    latest: str = ""
    """Its `list_position`; empty for one that no list has."""
    queries: int = 0
    lease: str = ""
    lease_until: int = 0
    ancestry: Annotated[Ancestry, TEXT] = field(default_factory=Ancestry)
    forked_from: str = ""
    forks: int = 0
    asked: Annotated[QueryStarts, TEXT] = ()
    title_after: int = 0
    """The query after whose answer the model may give it its title; 0: it has the user's, or the model's."""
    key_id: str = ""
    """The API key that began it."""
    facets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What plug-ins keep with it, by the names that they declare (`dualtrack.plugin`)."""
    sums: Annotated[MemorySums, TEXT] = field(default_factory=MemorySums)
    aside: int = 0
    allowed: Annotated[Mapping[str, str], TEXT] = field(default_factory=lambda: MappingProxyType({}))
    chats_gone: bool = False
    """During its deletion: the chats of the queries that forks still show are deleted."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The conversations whose queries it shares, and the one that it was forked from."""
        shared = [part.conversation_id for part in self.ancestry.parts]
        return tuple(dict.fromkeys([*shared, self.forked_from] if self.forked_from else shared))

    @property
    def costs_so_far(self) -> MemorySums:
        """Its running sums, with all summaries and digests so far."""
        return replace(self.sums, aside=self.aside)

    @property
    def is_being_deleted(self) -> bool:
        """Whether its deletion has begun: then its lease is never free again."""
        return self.lease == DELETING

    def is_titled_after(self, query: int) -> bool:
        """Whether the model may give it its title after the answer to this next query."""
        return not self.title or self.title_after == query

    def running_chat(self, now: float) -> str:
        """The id of the chat that runs in it at ``now`` (epoch s); empty if none does."""
        return self.lease if self.lease_until > now and not self.is_being_deleted else ""


@dataclass(frozen=True, slots=True)
class Allowing:
    """A change of `Conversation.allowed`, on condition that nobody else has changed it."""

    before: Mapping[str, str]
    after: Mapping[str, str]

    @property
    def change(self) -> str:
        """For `SET`."""
        return "allowed = :allowed"

    @property
    def condition(self) -> str:
        """That it is as it was read."""
        none = "" if self.before else "attribute_not_exists(allowed) OR "
        return f"({none}allowed = :allowed_before)"

    @property
    def values(self) -> dict[str, Any]:
        """Of both."""
        return {":allowed": dump(self.after), ":allowed_before": dump(self.before)}


def conversation_key(user: str, conversation_id: str) -> dict[str, str]:
    """The item's key."""
    return {"pk": f"USER#{user}", "sk": f"CONV#{conversation_id}"}


def held_check(name: str, table: str, user: str, conversation_id: str, chat_id: str) -> Action:
    """The condition that this chat holds the lease: it has not ended, and no deletion has begun."""
    return check(name, table, conversation_key(user, conversation_id), "lease = :chat", {":chat": chat_id})


def aside_action(table: str, user: str, conversation_id: str, nanodollars: int) -> Action:
    """Add what summaries or a digest cost, as long as the conversation exists. Written with what proves that it is
    added once; a later chat may hold the lease by then."""
    key, condition = conversation_key(user, conversation_id), "attribute_exists(pk)"
    return update("aside", table, key, "ADD aside :cost", condition, {":cost": nanodollars})


def aside_of(client: DynamoDBClient, table: str, user: str, conversation_id: str) -> int:
    """What the conversation's summaries and digests have cost so far, in 10⁻⁹ dollars."""
    item = get(client, table, conversation_key(user, conversation_id))
    return int(item.get("aside", 0)) if item else 0


def title_action(table: str, user: str, conversation_id: str, query: int, title: str) -> Action:
    """Set the title that the model has given it after this query, as long as it has none that its user gave, and is not
    being deleted."""
    key, change = conversation_key(user, conversation_id), "SET title = :title REMOVE title_after"
    values = {":title": title, ":query": query, ":deleting": DELETING}
    return update("title", table, key, change, f"title_after = :query AND {ALIVE}", values)


def title_after(client: DynamoDBClient, table: str, user: str, conversation_id: str) -> int:
    """Its `Conversation.title_after`; 0 once it is gone."""
    item = get(client, table, conversation_key(user, conversation_id))
    return int(item.get("title_after", 0)) if item else 0


def allowed_in(client: DynamoDBClient, table: str, user: str, conversation_id: str) -> Mapping[str, str]:
    """The tools that run in the conversation unasked, by name, with their marks; none once it is gone."""
    item = get(client, table, conversation_key(user, conversation_id))
    return _conversation(user, item).allowed if item else MappingProxyType({})


def alive_check(name: str, table: str, user: str, conversation_id: str) -> Action:
    """The condition that the conversation exists and is not being deleted."""
    condition = f"attribute_exists(pk) AND {ALIVE}"
    return check(name, table, conversation_key(user, conversation_id), condition, {":deleting": DELETING})


def is_list_position(position: str) -> bool:
    """Whether the text has the form of a position in `ConversationStore.by_last_query`."""
    match = _POSITION.fullmatch(position)
    return match is not None and is_id("conversation_id", match[1])


def list_position(at: str, conversation_id: str) -> str:
    """A conversation's position in the list by last query: ``at`` is when that came, else when it was created."""
    return f"{at}#{conversation_id}"


@dataclass(frozen=True, slots=True)
class ConversationStore:
    """Reads, writes and write-actions of conversations."""

    client: DynamoDBClient
    table: str

    def find(self, user: str, conversation_id: str) -> Conversation | None:
        """The conversation if it is this user's; None also for text that is not an id."""
        if not is_id("conversation_id", conversation_id):
            return None
        item = get(self.client, self.table, conversation_key(user, conversation_id))
        return _conversation(user, item) if item else None

    def newest(self, user: str, *, before: str = "", limit: int = 50) -> Iterator[Conversation]:
        """A user's conversations, newest first; only those created before the conversation ``before``."""
        edge = f"CONV#{before}" if before else ""
        pages = query(
            self.client,
            self.table,
            f"USER#{user}",
            prefix="CONV#",
            before=edge,
            descending=True,
            page_size=limit,
        )
        return (_conversation(user, item) for item in pages)

    def by_last_query(
        self, user: str, *, before: str = "", page_size: int
    ) -> Iterator[tuple[str, Conversation | None]]:
        """A user's conversations by their last query, latest first, each with its position; starts after ``before``.

        The index may be a moment behind: it may have positions whose conversations are gone.
        """
        pages = index_pages(
            self.client,
            self.table,
            LISTED_INDEX,
            f"USER#{user}",
            before=("latest", before) if before else None,
            descending=True,
            page_size=page_size,
        )
        for entries in pages:
            positions = {entry["latest"]: entry["sk"].removeprefix("CONV#") for entry in entries}
            conversations = self.find_all(user, list(positions.values()))
            yield from (
                (position, conversations.get(conversation_id))
                for position, conversation_id in positions.items()
            )

    def create(self, conversation: Conversation) -> None:
        """Store a new conversation. Its id is new: an existing item was stored by the first try of this request."""
        with contextlib.suppress(ConditionFailed):
            transact(self.client, [put_absent("conversation", self.table, _item(conversation))])

    def create_action(self, conversation: Conversation) -> Action:
        """The put of a conversation that is created with its first chat."""
        return put_absent("conversation", self.table, _item(conversation))

    def take_action(self, conversation: Conversation, chat: Chat, title: str, asked: QueryStarts) -> Action:
        """Take the lease for this chat and count its query; ``title`` if it has none yet; ``asked`` with the query.

        The parts of the condition: the lease is free ──── no query came in since the conversation was read ──── nor a
        title, if it had none
        """
        condition = "attribute_not_exists(lease) AND queries = :before"
        values: dict[str, Any] = {
            ":before": conversation.queries,
            ":query": chat.query,
            ":chat": chat.chat_id,
            ":until": chat.deadline,
            ":now": chat.created_at,
            ":asked": _packed(asked),
            ":user": f"USER#{conversation.user}",
            ":latest": list_position(chat.created_at, conversation.conversation_id),
        }
        change = "SET queries = :query, lease = :chat, lease_until = :until, updated_at = :now"
        change += f", asked = :asked, {LISTED_INDEX} = :user, latest = :latest"
        if not conversation.title:
            change += ", title = :title, title_after = :query"
            condition += " AND title = :untitled"
            values |= {":title": title, ":untitled": ""}
        return self._update(conversation, change, condition, values)

    def free_action(self, chat: Chat, now: str) -> Action:
        """Release the lease and set the sums, on condition that this chat holds the lease."""
        key = conversation_key(chat.user, chat.conversation_id)
        change = "SET updated_at = :now, sums = :sums REMOVE lease, lease_until"
        values = {":now": now, ":chat": chat.chat_id, ":sums": dump(chat.memory.sums)}
        return update("lease", self.table, key, change, "lease = :chat", values)

    def hold_action(
        self, user: str, conversation_id: str, chat_id: str, until: int, allowing: Allowing | None = None
    ) -> Action:
        """Extend the lease, on condition that this chat holds it; with what the user allows besides."""
        key, values = conversation_key(user, conversation_id), {":until": until, ":chat": chat_id}
        change, condition = "SET lease_until = :until", "lease = :chat"
        if allowing:
            change, condition = f"{change}, {allowing.change}", f"{condition} AND {allowing.condition}"
            values |= allowing.values
        return update("lease", self.table, key, change, condition, values)

    def disallow(self, conversation: Conversation, tool: str) -> None:
        """Take back what the user has allowed; nothing if that is not allowed. Raises `ConditionFailed` if it was
        changed since the conversation was read."""
        left = {name: mark for name, mark in conversation.allowed.items() if name != tool}
        allowing = Allowing(conversation.allowed, left)
        condition = f"attribute_exists(pk) AND {ALIVE} AND {allowing.condition}"
        values = {**allowing.values, ":deleting": DELETING}
        if len(left) < len(conversation.allowed):
            action = self._update(conversation, f"SET {allowing.change}", condition, values)
            transact(self.client, [action])

    def lock_action(self, conversation: Conversation, until: int, *, take_over: bool = False) -> Action:
        """Take the lease for a deletion, on condition that no chat has run since the conversation was read and none
        holds the lease; ``take_over`` takes it from the chat that held it when it was read."""
        change = f"SET lease = :deleting, lease_until = :until REMOVE {LISTED_INDEX}, asked"
        values = {":deleting": DELETING, ":until": until, ":queries": conversation.queries}
        free = "attribute_not_exists(lease) OR lease = :deleting"
        if take_over and conversation.lease:
            free += " OR lease = :held"
            values[":held"] = conversation.lease
        return self._update(conversation, change, f"queries = :queries AND ({free})", values)

    def rename(self, conversation: Conversation, title: str, now: str) -> None:
        """Change the title for good. Raises `ConditionFailed` if the conversation is deleted or being deleted."""
        change = "SET title = :title, updated_at = :now REMOVE title_after"
        values = {":title": title, ":now": now, ":deleting": DELETING}
        exists = f"attribute_exists(pk) AND {ALIVE}"
        transact(self.client, [self._update(conversation, change, exists, values)])

    def find_all(self, user: str, conversation_ids: Sequence[str]) -> dict[str, Conversation]:
        """The user's conversations of these ids, as far as they exist."""
        keys = [conversation_key(user, conversation_id) for conversation_id in conversation_ids]
        conversations = (_conversation(user, item) for item in batch_get(self.client, self.table, keys))
        return {conversation.conversation_id: conversation for conversation in conversations}

    def note_chats_gone(self, conversation: Conversation) -> None:
        """Note that the chats of the kept queries are deleted; does nothing for a conversation that is gone."""
        change, values = "SET chats_gone = :yes", {":yes": True, ":deleting": DELETING}
        with contextlib.suppress(ConditionFailed):
            transact(self.client, [self._update(conversation, change, "lease = :deleting", values)])

    def remove(self, conversation: Conversation) -> None:
        """Delete the item itself."""
        key = conversation_key(conversation.user, conversation.conversation_id)
        transact(self.client, [delete("conversation", self.table, key)])

    def _update(
        self, conversation: Conversation, change: str, condition: str, values: dict[str, Any]
    ) -> Action:
        key = conversation_key(conversation.user, conversation.conversation_id)
        return update("conversation", self.table, key, change, condition, values)


def _item(conversation: Conversation) -> Item:
    key = conversation_key(conversation.user, conversation.conversation_id)
    # the number of queries is compared, even if it is none yet
    also = {LISTED_INDEX: key["pk"]} if conversation.latest else {}
    also |= {"asked": _packed(conversation.asked)} if conversation.asked else {}
    return {**key, **encode(conversation), "queries": conversation.queries, **also}


def _packed(asked: QueryStarts) -> str | bytes:
    text = dump(asked)
    data = zlib.compress(text.encode())
    return data if len(data) < len(text.encode()) else text


def _conversation(user: str, item: Item) -> Conversation:
    if isinstance(item.get("asked"), bytes):
        item = {**item, "asked": zlib.decompress(item["asked"]).decode()}
    return decode(Conversation, item, user=user, conversation_id=item["sk"].removeprefix("CONV#"))
