"""Which forks share queries with a conversation, in the history table (CONTRACT 4).

    pk USER#<user>   sk FORK#<conversation>#<fork>   through, digests: what the fork shares of its own; 0: nothing
                                                     direct: the fork was made of this conversation

A fork writes such an item for each conversation whose queries it shares, and for the one that it was made of. What
the items name is kept when the conversation is deleted; the deletion of a fork removes its items. Each new item
increments ``forks`` in the conversation's item, so a deletion can check that none was added since it read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.storage.conversations import ALIVE, DELETING, conversation_key
from dualtrack.storage.dynamo import check, delete, get, put_absent, query, transact, update

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.dynamo import Action

PARENT: Final = "parent"
"""The name of the condition that the parent of a new fork exists."""


@dataclass(frozen=True, slots=True)
class SharedExtent:
    """What existing forks show of a deleted conversation: its queries and digests up to these numbers."""

    through: int = 0
    digests: int = 0


@dataclass(frozen=True, slots=True)
class ForkStore:
    """Reads and write-actions of the items above."""

    client: DynamoDBClient
    table: str

    def share_actions(self, fork: Conversation) -> Sequence[Action]:
        """Note what a new fork shares, on condition that its parent exists and is not being deleted, and that no
        deletion has released what it shares. Two writes for each conversation, whatever its length."""
        shared = {shown.conversation_id: shown for shown in fork.ancestry.parts}
        actions: list[Action] = []
        for other in fork.sources:
            part = shared.get(other)
            through, digests = (part.through, part.digests) if part else (0, 0)
            is_direct = other == fork.forked_from
            note = {
                "pk": f"USER#{fork.user}",
                "sk": f"{_prefix(other)}{fork.conversation_id}",
                "through": through,
                "digests": digests,
                "direct": is_direct,
            }
            condition = "attribute_exists(pk) AND (attribute_not_exists(kept) OR kept >= :through)"
            values = {":one": 1, ":through": through}
            if is_direct:
                condition = f"{condition} AND {ALIVE}"
                values[":deleting"] = DELETING  # type: ignore[assignment]
            actions += [
                put_absent(f"fork of {other}", self.table, note),
                update(
                    PARENT if is_direct else other,
                    self.table,
                    conversation_key(fork.user, other),
                    "ADD forks :one",
                    condition,
                    values,
                ),
            ]
        return actions

    def made_of(self, user: str, conversation_id: str, *, before: str = "") -> Iterator[str]:
        """The ids of the direct forks of this conversation, newest first; only those before an id."""
        prefix = _prefix(conversation_id)
        edge = f"{prefix}{before}" if before else ""
        for item in query(
            self.client, self.table, f"USER#{user}", prefix=prefix, before=edge, descending=True
        ):
            if item["direct"]:
                yield item["sk"].removeprefix(prefix)

    def kept_of(self, user: str, conversation_id: str) -> SharedExtent:
        """What the forks of a conversation show of it."""
        listed = list(query(self.client, self.table, f"USER#{user}", prefix=_prefix(conversation_id)))
        through = max((item["through"] for item in listed), default=0)
        return SharedExtent(through, max((item["digests"] for item in listed), default=0))

    def shares(self, user: str, conversation_id: str, fork: str) -> bool:
        """Whether there is a note that the fork shares queries of the conversation or was made of it."""
        return get(self.client, self.table, self._key(user, conversation_id, fork)) is not None

    def release_actions(
        self, user: str, conversation_id: str, fork: str, as_read: Conversation | None
    ) -> Sequence[Action]:
        """Note that the fork no longer shows queries of the conversation, on condition that the conversation is in the
        state in which it was read: existing, being deleted, or gone."""
        key = conversation_key(user, conversation_id)
        if as_read is None:
            unchanged = check("as read", self.table, key, "attribute_not_exists(pk)")
        else:
            condition = (
                "lease = :deleting" if as_read.is_being_deleted else f"attribute_exists(pk) AND {ALIVE}"
            )
            unchanged = check("as read", self.table, key, condition, {":deleting": DELETING})
        return [delete("fork", self.table, self._key(user, conversation_id, fork)), unchanged]

    def keep_action(self, conversation: Conversation, kept: SharedExtent) -> Action:
        """Release what no fork shows, and the title, on condition that no fork was added since ``one`` was read."""
        since = "forks = :forks AND lease = :deleting"
        values = {":kept": kept.through, ":forks": conversation.forks, ":deleting": DELETING, ":none": ""}
        change = "SET kept = :kept, title = :none"
        return update(
            "kept",
            self.table,
            conversation_key(conversation.user, conversation.conversation_id),
            change,
            since,
            values,
        )

    def commit(self, actions: Sequence[Action]) -> None:
        """Write all actions or none. Raises `Lost` if a condition is false."""
        transact(self.client, actions)

    @staticmethod
    def _key(user: str, conversation_id: str, fork: str) -> dict[str, str]:
        return {"pk": f"USER#{user}", "sk": f"{_prefix(conversation_id)}{fork}"}


def _prefix(conversation_id: str) -> str:
    return f"FORK#{conversation_id}#"
