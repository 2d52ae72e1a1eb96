"""The index of exchanges: where a history stands that a client resends (`exchanges`). In the chats table:

pk USER#<user>          sk SAID#<hash>#<conversation>#<query>   an exchange that was answered, by its hash, which the
                                                                request's scope is part of; with those before it
pk USER#<user>          sk NAMED#<hash>                         the conversation that a client calls by an id of its
                                                                own, whose hash the API key is part of
pk CHAT#<user>#<chat>   sk EXCHANGE…, sk NAMED                  name those items, for the deletion of the chat; with
                                                                what is noted of it

A scope is an API key, and the person whom its client names (`place.scope_of`). Each chat has two: what it was asked,
from its admission on, by which an answer is found that its client has left; and the whole exchange, once it is
answered. The first chat behind an imported history has its newest exchanges, too. Only hashes are stored. The first is
kept as long as the chat's events, the others for 90 days; a history that is not found any more is imported.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.storage.dynamo import Item, get, put, query, transact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.dynamo import Action

KEPT_SECONDS: Final = 90 * 86_400
ASKED_SECONDS: Final = 86_400
MOST_PLACES: Final = 20
"""Of one exchange, the newest: many conversations begin with the same greeting."""
_ASKED, _ANSWERED = "EXCHANGE#ASKED", "EXCHANGE"
_NOTHING: Final[Item] = {}


@dataclass(frozen=True, slots=True)
class Noted:
    """What is noted of a chat: its scope, short hashes of the exchanges before its own, of its own (empty before it is
    answered), and of the files that came with what was asked."""

    scope: str
    trail: tuple[str, ...] = ()
    own: str = ""
    files: tuple[str, ...] = ()
    before: int | None = None
    """How many exchanges are before it, if that is not one a query."""

    @property
    def stored(self) -> dict[str, str]:
        """As it is stored."""
        trail, files = " ".join(self.trail), " ".join(self.files)
        return {"scope": self.scope, "trail": trail, "own": self.own, "files": files}


@dataclass(frozen=True, slots=True)
class ExchangeIndex:
    """Reads and writes of exchanges. Times are epoch seconds."""

    client: DynamoDBClient
    table: str

    def find(self, user: str, scope: str, digest: str) -> list[tuple[str, int, tuple[str, ...], int | None]]:
        """The newest places of an exchange in conversations of this user and scope: conversation, query, the
        exchanges before it, and how many those are (None: one a query)."""
        prefix = f"SAID#{_hash(scope, digest)}#"
        items = query(
            self.client, self.table, f"USER#{user}", prefix=prefix, descending=True, page_size=MOST_PLACES
        )
        return [
            (conversation_id, int(number), tuple(item["trail"].split()), item.get("before"))
            for item in itertools.islice(items, MOST_PLACES)
            for conversation_id, number in [item["sk"].removeprefix(prefix).split("#")]
        ]

    def asked_actions(self, chat: Chat, digest: str, noted: Noted, now: float) -> Sequence[Action]:
        """Note what this chat was asked."""
        return self._said(chat, _ASKED, chat.query, digest, noted, int(now) + ASKED_SECONDS)

    def imported_actions(
        self, chat: Chat, query: int, digest: str, noted: Noted, now: float
    ) -> Sequence[Action]:
        """Note that this exchange was imported with this chat, as that query."""
        name = f"EXCHANGE#PAST#{query:06d}"
        return self._said(chat, name, query, digest, noted, int(now) + KEPT_SECONDS)

    def note(self, chat: Chat, digest: str, noted: Noted, now: float, *, is_found: bool) -> None:
        """Note that this chat has answered an exchange; ``is_found``: whether it is found by that."""
        until = int(now) + KEPT_SECONDS
        found, named = self._said(chat, _ANSWERED, chat.query, digest, noted, until)
        alone = put(_ANSWERED, self.table, {"pk": chat.pk, "sk": _ANSWERED, **noted.stored, "ttl": until})
        transact(self.client, [found, named] if is_found else [alone])

    def asked(self, chat: Chat) -> Noted:
        """What was noted as this chat was admitted."""
        return self._noted(chat.pk, _ASKED) or Noted(chat.key_id)

    def answered(self, pk: str) -> Noted | None:
        """What is noted of an answered chat, by its partition; None if nothing is."""
        return self._noted(pk, _ANSWERED)

    def _noted(self, pk: str, name: str) -> Noted | None:
        """None, too, for an item of an earlier release, of which nothing else is known."""
        item = get(self.client, self.table, {"pk": pk, "sk": name})
        if item is None or "scope" not in item:
            return None
        return Noted(item["scope"], tuple(item["trail"].split()), item["own"], tuple(item["files"].split()))

    def _said(
        self, chat: Chat, name: str, query: int, digest: str, noted: Noted, until: int
    ) -> Sequence[Action]:
        entry = f"SAID#{_hash(noted.scope, digest)}#{chat.conversation_id}#{query:06d}"
        before = {} if noted.before is None else {"before": noted.before}
        return self._kept(chat, name, entry, until, {"trail": noted.stored["trail"], **before}, noted.stored)

    def _kept(
        self, chat: Chat, name: str, entry: str, until: int, what: Item, own: Item = _NOTHING
    ) -> Sequence[Action]:
        """The put of an entry of the chat's user, and of the chat's own item that names it."""
        found = {"pk": f"USER#{chat.user}", "sk": entry, **what, "ttl": until}
        named = {"pk": chat.pk, "sk": name, "entry": entry, **own, "ttl": until}
        return [put(entry, self.table, found), put(name, self.table, named)]

    def name_actions(self, chat: Chat, foreign_id: str, now: float) -> Sequence[Action]:
        """Note that the client calls this chat's conversation by this id; the newest conversation counts."""
        entry, until = _named(chat.key_id, foreign_id), int(now) + KEPT_SECONDS
        return self._kept(chat, "NAMED", entry, until, {"conversation_id": chat.conversation_id})

    def named(self, user: str, key_id: str, foreign_id: str) -> str:
        """The conversation of this user and API key that the client calls so; empty if there is none."""
        item = get(self.client, self.table, {"pk": f"USER#{user}", "sk": _named(key_id, foreign_id)})
        return item["conversation_id"] if item else ""


def _named(key_id: str, foreign_id: str) -> str:
    return f"NAMED#{_hash(key_id, foreign_id)}"


def _hash(scope: str, digest: str) -> str:
    return hashlib.sha256(f"{scope}\n{digest}".encode()).hexdigest()[:32]
