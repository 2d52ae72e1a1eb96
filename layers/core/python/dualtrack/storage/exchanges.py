"""The index of exchanges: where a history stands that a client of OpenAI's API resends (`dualtrack.openai.exchanges`).
In the chats table:

pk USER#<user>          sk SAID#<hash>#<conversation>#<query>   an exchange that was answered, by its hash, which the
                                                                request's API key is part of; with those before it
pk USER#<user>          sk NAMED#<hash>                         the conversation that a client calls by an id of its
                                                                own, whose hash the API key is part of
pk CHAT#<user>#<chat>   sk EXCHANGE…, sk NAMED                  name those items, for the deletion of the chat

Each chat has two: what it was asked, from its admission on, by which an answer is found that its client has left; and
the whole exchange, once it is answered. The first chat behind an imported history has its newest exchanges, too. Only
hashes are stored. The first is kept as long as the chat's events, the others for 90 days; a history that is not found
any more is imported.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.storage.dynamo import get, put, query, transact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.dynamo import Action

KEPT_SECONDS: Final = 90 * 86_400
ASKED_SECONDS: Final = 86_400
MOST_PLACES: Final = 20
"""Of one exchange, the newest: many conversations begin with the same greeting."""


@dataclass(frozen=True, slots=True)
class ExchangeIndex:
    """Reads and writes of exchanges. Times are epoch seconds."""

    client: DynamoDBClient
    table: str

    def find(self, user: str, key_id: str, digest: str) -> list[tuple[str, int, tuple[str, ...]]]:
        """The newest places of an exchange in conversations of this user and API key: conversation, query, and the
        exchanges before it."""
        prefix = f"SAID#{_hash(key_id, digest)}#"
        items = query(
            self.client, self.table, f"USER#{user}", prefix=prefix, descending=True, page_size=MOST_PLACES
        )
        return [
            (conversation_id, int(number), tuple(item["trail"].split()))
            for item in itertools.islice(items, MOST_PLACES)
            for conversation_id, number in [item["sk"].removeprefix(prefix).split("#")]
        ]

    def asked_actions(self, chat: Chat, digest: str, trail: Sequence[str], now: float) -> Sequence[Action]:
        """Note what this chat was asked."""
        return self._said(chat, "EXCHANGE#ASKED", chat.query, digest, trail, int(now) + ASKED_SECONDS)

    def imported_actions(
        self, chat: Chat, query: int, digest: str, trail: Sequence[str], now: float
    ) -> Sequence[Action]:
        """Note that this exchange was imported with this chat, as that query."""
        name = f"EXCHANGE#PAST#{query:06d}"
        return self._said(chat, name, query, digest, trail, int(now) + KEPT_SECONDS)

    def note(self, chat: Chat, digest: str, trail: Sequence[str], now: float) -> None:
        """Note that this chat has answered an exchange."""
        until = int(now) + KEPT_SECONDS
        transact(self.client, self._said(chat, "EXCHANGE", chat.query, digest, trail, until))

    def _said(
        self, chat: Chat, name: str, query: int, digest: str, trail: Sequence[str], until: int
    ) -> Sequence[Action]:
        entry = f"SAID#{_hash(chat.key_id, digest)}#{chat.conversation_id}#{query:06d}"
        return self._kept(chat, name, entry, until, trail=" ".join(trail))

    def _kept(self, chat: Chat, name: str, entry: str, until: int, **what: str) -> Sequence[Action]:
        """The put of an entry of the chat's user, and of the chat's own item that names it."""
        found = {"pk": f"USER#{chat.user}", "sk": entry, **what, "ttl": until}
        named = {"pk": chat.pk, "sk": name, "entry": entry, "ttl": until}
        return [put(entry, self.table, found), put(name, self.table, named)]

    def is_noted(self, chat: Chat) -> bool:
        """Whether this chat's exchange is noted."""
        return get(self.client, self.table, {"pk": chat.pk, "sk": "EXCHANGE"}) is not None

    def name_actions(self, chat: Chat, foreign_id: str, now: float) -> Sequence[Action]:
        """Note that the client calls this chat's conversation by this id; the newest conversation counts."""
        entry, until = _named(chat.key_id, foreign_id), int(now) + KEPT_SECONDS
        return self._kept(chat, "NAMED", entry, until, conversation_id=chat.conversation_id)

    def named(self, user: str, key_id: str, foreign_id: str) -> str:
        """The conversation of this user and API key that the client calls so; empty if there is none."""
        item = get(self.client, self.table, {"pk": f"USER#{user}", "sk": _named(key_id, foreign_id)})
        return item["conversation_id"] if item else ""


def _named(key_id: str, foreign_id: str) -> str:
    return f"NAMED#{_hash(key_id, foreign_id)}"


def _hash(key_id: str, digest: str) -> str:
    return hashlib.sha256(f"{key_id}\n{digest}".encode()).hexdigest()[:32]
