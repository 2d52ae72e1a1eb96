"""What the ledger keeps of an erased user: the amounts, without the person (docs/privacy.md).

Every line moves to the account of an alias, a name made up for this erasure, with its number, day, kind, amount and
parts. The time of day, the free text of a grant, the chat's id and the API key's are dropped. Chats and keys are
renamed with a salt that is not kept, so that the lines of a chat still belong together. The account moves last, without
its keys, on condition that it has not changed: so the alias's account is the sum of its lines, and no movement is lost
or repeated.

    user#<user>   entry 1 … n      copied, then deleted, as often as it takes      user#<alias>  entry 1 … n
                  account, seq n   moved in one transaction when no line is left                 account, seq n
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.storage.dynamo import Item, delete, delete_all, put, put_all, query, transact
from dualtrack.storage.ledger import (
    ACCOUNT,
    ENTRY,
    GRANT,
    account_item,
    account_key,
    account_partition,
    not_moved_since,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.credits.account import Account
    from dualtrack.storage.deletions import ErasureTerms

_AT_ONCE: Final = 25
_DAY: Final = 86_400_000
_OWN_WORDS: Final = ("settle", "plan")
"""Kinds whose reason is written by this program; an operator writes that of a grant, which may name a person."""


@dataclass(frozen=True, slots=True)
class KeptLedger:
    """Moves an account to its alias, in the credits table."""

    client: DynamoDBClient
    table: str

    def move_lines(self, user: str, terms: ErasureTerms, has_time: Callable[[], bool]) -> bool:
        """Move the lines and delete the grants' ids while there is time; returns whether there were any."""
        any_moved = False
        for prefix in (ENTRY, GRANT):
            items = query(self.client, self.table, account_partition(user), prefix=prefix)
            while has_time() and (batch := list(itertools.islice(items, _AT_ONCE))):
                any_moved = True
                if prefix == ENTRY:
                    put_all(self.client, self.table, (_without_the_person(item, terms) for item in batch))
                delete_all(self.client, self.table, ({"pk": item["pk"], "sk": item["sk"]} for item in batch))
        return any_moved

    def close(self, account: Account, terms: ErasureTerms) -> None:
        """Give the account to the alias. Raises `Lost` if it has moved since it was read."""
        condition, values = not_moved_since(account)
        # a user without an account has nothing to keep
        if account.seq:
            kept = account_item(replace(account, free_cancels=(), keys={}), resting=True)
            kept |= account_key(terms.alias, ACCOUNT)
            transact(
                self.client,
                [
                    put("kept", self.table, {**kept, "ttl": terms.keep_until}),
                    delete("account", self.table, account_key(account.user, ACCOUNT), condition, values),
                ],
            )


def _without_the_person(item: Item, terms: ErasureTerms) -> Item:
    named: dict[str, Any] = {name: item[name] for name in ("kind", "amount", "available_after")}
    named |= {name: item[name] for name in ("parts", "key_parts", "kept") if name in item}
    if "reason" in item and item["kind"] in _OWN_WORDS:
        named["reason"] = item["reason"]
    for name in ("chat_id", "key_id"):
        if name in item:
            named[name] = hashlib.sha256(f"{terms.salt}{item[name]}".encode()).hexdigest()[:20]
    day = item["at"] - item["at"] % _DAY
    return {**account_key(terms.alias, item["sk"]), **named, "at": day, "ttl": terms.keep_until}
