"""Limits what a user may hold open at a time: event streams and requests that wait for an answer (CONTRACT 4).

Each takes a lease first and releases it at its end; a lease that is not released expires. One item of the cache table
has a user's leases of one kind, ``{lease id: when it ends, in epoch seconds}``. It is replaced on condition that it is
unchanged since it was read, so only one of two requests gets the last lease. A lease costs two writes, and one more
for each other lease that is taken at the same time.

A stage limits what all its users hold open together (`Leases.most_streams`): a stream takes a lease of the stage too.
Those are spread over items of `_SHARD` leases, so that users seldom meet on one; a stream that finds two full items is
refused, so slightly before the limit, never beyond it.

If the leases cannot be read, none is given: a user who makes this item throttle must not escape the limit.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.errors import ApiError, Contended
from dualtrack.storage.dynamo import ConditionFailed, transact, update

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.storage.dynamo import Action

KEY_PREFIX: Final = "LEASE#"
"""The prefix of the partition keys of leases; the functions that take leases may change no other items."""

_ATTEMPTS: Final = 12
_LONGEST_RETRY: Final = 10
_SHARD: Final = 20
_STAGE: Final = "stage "
"""In place of a user, whose id has no space."""


@dataclass(frozen=True, slots=True)
class LeaseLimit:
    """``limit`` leases of a kind for each user; ``seconds`` is longer than any stream or request lasts. ``is_stream``:
    it holds an execution open for as long as it lasts."""

    kind: str
    what: str
    limit: int
    seconds: int
    is_stream: bool = False


STREAMS: Final = LeaseLimit("STREAMS", "event streams", limit=5, seconds=120, is_stream=True)
WAITS: Final = LeaseLimit("WAITS", "waiting requests", limit=3, seconds=35)


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that was taken and has to be released."""

    user: str
    bound: LeaseLimit
    lease_id: str
    of_stage: Lease | None = None
    """The stage's own that goes with it."""

    @property
    def key(self) -> dict[str, str]:
        """The item of all leases of this user and kind."""
        return {"pk": f"{KEY_PREFIX}{self.user}", "sk": self.bound.kind}


def with_lease(held: Mapping[str, int], lease: Lease, now: int) -> Mapping[str, int]:
    """The leases with the new one added and expired ones removed.

    Raises `ApiError` ``rate_limited`` with ``retry_after`` (1 to 10 seconds) if the limit is reached.
    """
    # the lease is stored already if the answer to a write was lost and the write was repeated
    current = {key: ends for key, ends in held.items() if ends > now and key != lease.lease_id}
    if len(current) >= lease.bound.limit:
        raise _all_taken(lease.bound, min(current.values()) - now)
    return MappingProxyType({**current, lease.lease_id: now + lease.bound.seconds})


def _all_taken(bound: LeaseLimit, seconds: int) -> ApiError:
    # a lease may be released before the first of them expires
    wait = min(max(seconds, 1), _LONGEST_RETRY)
    message = f"At most {bound.limit} {bound.what} can be open at a time; try again in {wait} s."
    return ApiError("rate_limited", message, {"retry_after": wait})


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases of all users in the cache table."""

    client: DynamoDBClient
    table: str
    clock: Clock
    most_streams: int = 0
    """How many streams all users together may have open; 0: any number."""

    def take(self, user: str, bound: LeaseLimit) -> Lease:
        """Take a lease for the user; `ApiError` 429 if all are taken, 503 if the leases cannot be read."""
        lease = self._taken(Lease(user, bound, uuid4().hex))
        if not (bound.is_stream and self.most_streams):
            return lease
        try:
            return replace(lease, of_stage=self._of_stage(bound))
        except ApiError:
            self.free(lease)
            raise

    def _of_stage(self, bound: LeaseLimit) -> Lease:
        """A lease in one of the stage's items, which divide the limit among them."""
        shards = -(-self.most_streams // _SHARD)
        *first, last = random.sample(range(shards), min(2, shards))
        for shard in first:
            try:
                return self._in_shard(shard, shards, bound)
            except ApiError as refusal:
                if refusal.code != "rate_limited":
                    raise
        return self._in_shard(last, shards, bound)

    def _in_shard(self, shard: int, shards: int, bound: LeaseLimit) -> Lease:
        limit = self.most_streams // shards + (shard < self.most_streams % shards)
        whole = LeaseLimit("STAGE", "streams of all users", limit, bound.seconds)
        return self._taken(Lease(f"{_STAGE}{shard}", whole, uuid4().hex))

    def _taken(self, lease: Lease) -> Lease:
        try:
            self._add(lease)
        except (BotoCoreError, ClientError, Contended) as error:
            raise ApiError("unavailable", "This could not be done right now. Try again.") from error
        return lease

    def _add(self, lease: Lease) -> None:
        """Assume first that no lease is taken; if one is, the failed write returns the item, without a read."""
        held: Mapping[str, int] = {}
        for _ in range(_ATTEMPTS):
            after = with_lease(held, lease, int(self.clock()))
            try:
                return transact(self.client, [self._replacement(lease, held, after)])
            except ConditionFailed as lost:
                held = (lost.items["leases"] or {}).get("leases", {})
        raise _all_taken(lease.bound, 1)  # by other requests, which were faster each time

    def _replacement(self, lease: Lease, held: Mapping[str, int], after: Mapping[str, int]) -> Action:
        unchanged = "leases = :held"
        return update(
            "leases",
            self.table,
            lease.key,
            "SET leases = :after, #ttl = :ttl",
            unchanged if held else f"attribute_not_exists(leases) OR {unchanged}",
            {":held": dict(held), ":after": dict(after), ":ttl": max(after.values())},
            {"#ttl": "ttl"},
        )

    def free(self, lease: Lease) -> None:
        """Release it. If that fails, the lease expires."""
        if lease.of_stage:
            self.free(lease.of_stage)
        removal = update(
            "lease",
            self.table,
            lease.key,
            "REMOVE leases.#id",
            "attribute_exists(leases.#id)",
            names={"#id": lease.lease_id},
        )
        try:
            transact(self.client, [removal])
        except (BotoCoreError, ClientError, Contended, ConditionFailed):
            return
