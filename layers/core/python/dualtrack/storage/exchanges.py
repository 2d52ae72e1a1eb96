"""The index of exchanges: where a history stands that a client of OpenAI's API resends (`dualtrack.openai.exchanges`).
In the chats table:

pk USER#<user>          sk SAID#<hash>#<conversation>#<query>   an exchange that was answered, by its hash, which the
                                                                request's API key is part of; with those before it
pk USER#<user>          sk NAMED#<hash>                         the conversation that a client calls by an id of its
                                                                own, whose hash the API key is part of
pk CHAT#<user>#<chat>   sk EXCHANGE…, sk NAMED                  name those items, for the deletion of the chat

Each chat has two: what it was asked, from its admission on, by which an answer is found that its client has left; and
the whole exchange, once it is answered. Only hashes are stored. The first is kept as long as the chat's events, the
second for 90 days; a history that is not found any more is imported.
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

    def note_asked(self, chat: Chat, digest: str, trail: Sequence[str], now: float) -> None:
        """Note what this chat was asked."""
        self._note(chat, "EXCHANGE#ASKED", digest, trail, int(now) + ASKED_SECONDS)

    def note(self, chat: Chat, digest: str, trail: Sequence[str], now: float) -> None:
        """Note that this chat has answered an exchange."""
        self._note(chat, "EXCHANGE", digest, trail, int(now) + KEPT_SECONDS)

    def _note(self, chat: Chat, name: str, digest: str, trail: Sequence[str], until: int) -> None:
        entry = f"SAID#{_hash(chat.key_id, digest)}#{chat.conversation_id}#{chat.query:06d}"
        self._keep(chat, name, entry, until, trail=" ".join(trail))

    def _keep(self, chat: Chat, name: str, entry: str, until: int, **what: str) -> None:
        """An entry of the chat's user, and the chat's own item that names it."""
        found = {"pk": f"USER#{chat.user}", "sk": entry, **what, "ttl": until}
        named = {"pk": chat.pk, "sk": name, "entry": entry, "ttl": until}
        transact(self.client, [put("found", self.table, found), put("named", self.table, named)])

    def is_noted(self, chat: Chat) -> bool:
        """Whether this chat's exchange is noted."""
        return get(self.client, self.table, {"pk": chat.pk, "sk": "EXCHANGE"}) is not None

    def name(self, chat: Chat, foreign_id: str, now: float) -> None:
        """Note that the client calls this chat's conversation by this id; the newest conversation counts."""
        until = int(now) + KEPT_SECONDS
        self._keep(
            chat, "NAMED", _named(chat.key_id, foreign_id), until, conversation_id=chat.conversation_id
        )

    def named(self, user: str, key_id: str, foreign_id: str) -> str:
        """The conversation of this user and API key that the client calls so; empty if there is none."""
        item = get(self.client, self.table, {"pk": f"USER#{user}", "sk": _named(key_id, foreign_id)})
        return item["conversation_id"] if item else ""


def _named(key_id: str, foreign_id: str) -> str:
    return f"NAMED#{_hash(key_id, foreign_id)}"


def _hash(key_id: str, digest: str) -> str:
    return hashlib.sha256(f"{key_id}\n{digest}".encode()).hexdigest()[:32]
