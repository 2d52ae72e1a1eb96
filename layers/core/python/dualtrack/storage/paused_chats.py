"""Paused chats by who pays for them, in the chats table: for the list of open decisions, and for its limits.

pk USER#<payer>   sk PAUSED#<chat>   whose chat it is, and until when it waits (epoch seconds)

An entry is written and deleted in the transactions that begin and end a pause, each of which also moves the payer's
account: so two of them never count the same entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from dualtrack.codec import APART, decode, encode, stored
from dualtrack.storage.dynamo import delete, put, query

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.dynamo import Action

_PREFIX: Final = "PAUSED#"


@stored
@dataclass(frozen=True, slots=True)
class PausedChat:
    """A chat that waits."""

    chat_id: Annotated[str, APART]
    user: str
    until: int


@dataclass(frozen=True, slots=True)
class PausedChats:
    """Reads and write-actions."""

    client: DynamoDBClient
    table: str

    def of(self, payer: str) -> list[PausedChat]:
        """Those that the user pays for, oldest chat first; `MAX_OF_ACCOUNT` at most."""
        items = query(self.client, self.table, _partition(payer), prefix=_PREFIX)
        return [decode(PausedChat, item, chat_id=item["sk"].removeprefix(_PREFIX)) for item in items]

    def put_action(self, payer: str, chat: Chat, until: int) -> Action:
        """Note a chat that pauses."""
        entry = encode(PausedChat(chat.chat_id, chat.user, until))
        return put("paused", self.table, {**_key(payer, chat.chat_id), **entry})

    def delete_action(self, payer: str, chat: Chat) -> Action:
        """Its pause is over."""
        return delete("paused", self.table, _key(payer, chat.chat_id))


def _partition(payer: str) -> str:
    return f"USER#{payer}"


def _key(payer: str, chat_id: str) -> dict[str, str]:
    return {"pk": _partition(payer), "sk": f"{_PREFIX}{chat_id}"}
