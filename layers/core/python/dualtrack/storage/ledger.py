"""The accounts and their ledger on DynamoDB.

::

    pk = user#<user>   sk = account               the account (Account), one item
                       sk = entry#<seq, 12 digits>  one immutable line per movement
                       sk = grant#<grant_id>      a grant that was made

A movement writes the account and its entry in one transaction, in 4 write units. The account has the number of its
last movement, and the entry's key is that number. A writer that decided on an account that has moved since loses both
conditions. So no movement can be made twice or on stale figures, and a user's lines are in order without gaps,
whatever the writers' clocks say.

A used account has ``active`` (a shard) and so is in the sparse index of that name (keys ``active``, ``day``) until
the scheduled reset makes it idle.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dualtrack.clock import iso
from dualtrack.codec import decode, encode
from dualtrack.credits.account import Account, AccountChange, HoldRefusal, Movement
from dualtrack.errors import Contended
from dualtrack.storage import dynamo
from dualtrack.storage.dynamo import Action, Backoff, ConditionFailed, Item
from dualtrack.storage.pages import Page, cursor_of, foreign_cursor, position_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.answers import Entry
    from dualtrack.credits.keys import Caps
    from dualtrack.vocabulary import PlanName

    D = TypeVar("D", bound="AccountChange | HoldRefusal")

ACTIVE_INDEX: Final = "active"
ACTIVE_SHARDS: Final = 8
"""Spreads the index, whose partitions take 1,000 writes a second each. Never lower it."""

DECISION_ATTEMPTS: Final = 60
"""Maximum number of tries of a movement when others of the same user are faster. Each round lets at
least one of them through, so a burst of fifty chats of a user succeeds."""

ACCOUNT: Final = "account"
ENTRY: Final = "entry#"
GRANT: Final = "grant#"

_LINES_AT_ONCE: Final = 500
"""Lines per request if only some of them may be needed: about 100 KB."""

# The two halves of the account's condition:  read ──────── decide ──────── write
#                                             seq 0 or n                    unchanged?
_NEVER_MOVED: Final = "attribute_not_exists(pk)"
_NOT_MOVED_SINCE_READ: Final = "seq = :read_seq"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Reads accounts and turns decisions into actions. It commits only grants, plans and expiries; all
    other actions join the transaction of the step that causes them."""

    client: DynamoDBClient
    table: str

    def load(self, user: str) -> Account:
        """The account; a user without one has an unused account on the default plan."""
        item = dynamo.get(self.client, self.table, account_key(user, ACCOUNT))
        return account_from(item) if item else Account(user)

    def actions(self, account: Account, decision: AccountChange) -> list[Action]:
        """The writes of a decision made on ``account``: none, or ``account`` and ``entry`` (further
        entries are ``entry2`` …), and ``grant`` for a grant's marker.

        If only ``account`` and entries are lost, the account has moved (`account_moved`): decide again.
        If ``grant`` is lost, this grant was made before.
        """
        if not decision.movements:
            return []
        first = account.seq + 1
        condition, values = not_moved_since(account)
        item = account_item(decision.account)
        writes = [dynamo.put("account", self.table, item, condition, values)]
        for index, movement in enumerate(decision.movements):
            name = f"entry{index + 1}" if index else "entry"
            item = _entry_item(account.user, first + index, movement)
            writes.append(dynamo.put_absent(name, self.table, item))
        if decision.grant_id:
            key = account_key(account.user, GRANT + decision.grant_id)
            writes.append(dynamo.put_absent("grant", self.table, {**key, "seq": first}))
        return writes

    def grant(self, user: str, grant_id: str, credits: int, reason: str, now: float) -> Account:  # noqa: A002
        """Add a pack once per user and ``grant_id``; a repeat changes nothing. Returns the new account."""
        try:
            return self._move(user, lambda account: account.grant(grant_id, credits, reason, now))
        except ConditionFailed as lost:
            if "grant" not in lost.items:
                raise
            return self.load(user)

    def set_plan(self, user: str, plan: PlanName, now: float) -> Account:
        """Change the plan at once. Returns the new account."""
        return self._move(user, lambda account: account.set_plan(plan, now))

    def add_key(self, user: str, key_id: str, caps: Caps, now: float, also: Sequence[Action] = ()) -> Account:
        """Make the use of a new API key, in one transaction with ``also``. Raises `ConditionFailed` for a condition of
        these, and 400 for one key too many. Returns the new account."""
        return self._move(user, lambda account: account.add_key(key_id, caps, now), also)

    def change_caps(self, user: str, key_id: str, said: Mapping[str, float | None], now: float) -> Account:
        """Change the caps of an API key that are ``said`` at once. Raises 404 for a revoked key. Returns the new
        account."""
        return self._move(user, lambda account: account.change_caps(key_id, said, now))

    def revoke_key(self, user: str, key_id: str, now: float, also: Sequence[Action] = ()) -> Account:
        """Admit no more chats under an API key, in one transaction with ``also``. Returns the new account."""
        return self._move(user, lambda account: account.revoke(key_id, now), also)

    def expire(self, user: str, now: float) -> Account:
        """Free all dead holds of the user, a few in each movement. Returns the new account."""
        account = self._move(user, lambda account: account.expire(now))
        return self.expire(user, now) if account.dead_holds(now) else account

    def _move(
        self, user: str, decide: Callable[[Account], AccountChange], also: Sequence[Action] = ()
    ) -> Account:
        return with_account(self, user, decide, partial(self.commit, also=also)).account

    def commit(self, account: Account, decision: AccountChange, also: Sequence[Action] = ()) -> None:
        """Write a decision in a transaction of its own, with ``also``."""
        actions = [*also, *self.actions(account, decision)]
        if actions:
            dynamo.transact(self.client, actions)

    def entries(self, user: str, cursor: str = "", limit: int = 50) -> Page[Entry]:
        """A page of the user's ledger, newest first."""
        before = ENTRY + _seq_of(cursor) if cursor else ""
        items = dynamo.query(
            self.client,
            self.table,
            account_partition(user),
            prefix=ENTRY,
            before=before,
            descending=True,
            page_size=limit + 1,
        )
        fetched = list(itertools.islice(items, limit + 1))
        more = len(fetched) > limit
        page = fetched[:limit]
        return Page(
            tuple(_entry_view(item) for item in page),
            cursor_of(page[-1]["sk"].removeprefix(ENTRY)) if more else "",
        )

    def lines(self, user: str, numbers: Sequence[int]) -> tuple[Entry, ...]:
        """The user's lines of these numbers, as `entries` shows them, in their order; missing ones are left
        out."""
        keys = [account_key(user, f"{ENTRY}{number:012d}") for number in numbers]
        items = sorted(dynamo.batch_get(self.client, self.table, keys), key=lambda item: str(item["sk"]))
        return tuple(_entry_view(item) for item in items)

    def movements(self, user: str) -> tuple[Movement, ...]:
        """The user's whole ledger, oldest first, for an audit."""
        items = dynamo.query(self.client, self.table, account_partition(user), prefix=ENTRY)
        return tuple(movement_from(item) for item in items)

    def newest_movements(self, user: str, since: float, limit: int) -> tuple[tuple[Movement, ...], bool]:
        """The user's lines from ``since`` (epoch seconds) on, newest first, at most ``limit``; and whether these are
        all of them."""
        items = dynamo.query(
            self.client,
            self.table,
            account_partition(user),
            prefix=ENTRY,
            descending=True,
            page_size=_LINES_AT_ONCE,
        )
        recent = itertools.takewhile(lambda movement: movement.at >= since, map(movement_from, items))
        movements = tuple(itertools.islice(recent, limit + 1))
        return movements[:limit], len(movements) <= limit

    def used_before(self, day: str, page: int) -> Iterator[list[str]]:
        """Users whose account was last used before a day and is in the index, at most ``page`` at a time."""
        for shard in range(ACTIVE_SHARDS):
            pages = dynamo.index_pages(
                self.client, self.table, ACTIVE_INDEX, str(shard), before=("day", day), page_size=page
            )
            yield from ([user_of(item) for item in page_items] for page_items in pages)

    def rest_action(self, account: Account, now: float) -> Action:
        """Put the account as of ``now``; remove it from the index if it has no holds and no usage."""
        current = account.at(now)
        resting = not current.holds and not current.used_day
        condition, values = not_moved_since(account)
        return dynamo.put("account", self.table, account_item(current, resting=resting), condition, values)

    def rest(self, account: Account, now: float) -> None:
        """Bring the account up to date. Raises `ConditionFailed` if it has moved since it was read."""
        dynamo.transact(self.client, [self.rest_action(account, now)])


def not_moved_since(read: Account) -> tuple[str, dict[str, Any]]:
    """The condition (and its values) that no movement was made since the account was read."""
    if read.seq == 0:
        return _NEVER_MOVED, {}
    return _NOT_MOVED_SINCE_READ, {":read_seq": read.seq}


def account_moved(lost: ConditionFailed) -> bool:
    """Whether only the account's own conditions were lost: then load it and decide again."""
    return all(name.rstrip("0123456789") in {"account", "entry"} for name in lost.items)


def with_account(
    ledger: Ledger,
    user: str,
    decide: Callable[[Account], D],
    commit: Callable[[Account, AccountChange], None],
    pause: Callable[[int], None] | None = None,
    account: Account | None = None,
) -> D:
    """Load (unless it is given), decide, commit; repeat while the account moves in between.

    ``commit`` gets the account and the decision on it, and raises `ConditionFailed`. A refusal is returned
    without a commit. A `ConditionFailed` that names an action outside the ledger is raised to the caller.
    Raises `Contended` if other writers were faster at each attempt.
    """
    wait = pause or Backoff()
    account = account or ledger.load(user)
    for attempt in range(DECISION_ATTEMPTS):
        decision = decide(account)
        if isinstance(decision, HoldRefusal):
            return decision
        try:
            commit(account, decision)
        except ConditionFailed as lost:
            if not account_moved(lost):
                raise
            wait(min(attempt, 4))
            account = ledger.load(user)
        else:
            return decision
    raise Contended("The account moved too often.")


# ── items ─────────────────────────────────────────────────────────────────────────────────────


def account_partition(user: str) -> str:
    """The partition of an account, its lines and its grants."""
    return f"user#{user}"


def account_key(user: str, sk: str) -> dict[str, str]:
    """The key of an item of the account."""
    return {"pk": account_partition(user), "sk": sk}


def account_item(account: Account, *, resting: bool = False) -> Item:
    """The account as stored. ``resting`` leaves it out of the index of used accounts."""
    item = {**account_key(account.user, ACCOUNT), **encode(account)}
    return item if resting else {**item, "active": shard_of(account.user)}


def account_from(item: Mapping[str, Any]) -> Account:
    """The account from its item."""
    return decode(Account, item, user=user_of(item))


def user_of(item: Mapping[str, Any]) -> str:
    """The user id in an item's partition key."""
    return str(item["pk"]).removeprefix("user#")


def shard_of(user: str) -> str:
    """The user's shard of the index of used accounts: ``0`` … ``7``."""
    return str(hashlib.sha256(user.encode()).digest()[0] % ACTIVE_SHARDS)


def _entry_item(user: str, seq: int, movement: Movement) -> Item:
    line = {**encode(movement), "at": int(movement.at * 1000)}
    return {**account_key(user, f"{ENTRY}{seq:012d}"), **line}


def movement_from(item: Mapping[str, Any]) -> Movement:
    """A ledger line from its item."""
    return decode(Movement, item, at=item["at"] / 1000)


def _entry_view(item: Mapping[str, Any]) -> Entry:
    entry: Entry = {
        "entry_id": f"le_{item['sk'].removeprefix(ENTRY)}",
        "at": iso(item["at"] / 1000),
        "kind": item["kind"],
        "amount": item["amount"],
        "available_after": item["available_after"],
    }
    if "chat_id" in item:
        entry["chat_id"] = item["chat_id"]
    if "key_id" in item:
        entry["key_id"] = item["key_id"]
    if "reason" in item:
        entry["reason"] = item["reason"]
    return entry


def _seq_of(cursor: str) -> str:
    seq = position_of(cursor)
    if len(seq) != 12 or not (seq.isascii() and seq.isdigit()):
        raise foreign_cursor()
    return seq
