"""API keys and the end users of services, in the chats table (CONTRACT 3).

    pk KEY#<key id>       sk KEY           a key: the hash of its secret, what it may do, its requests of this minute
    pk ENDUSERS#<owner>   sk <user id>     an end user for whom a key of the owner has written something

Which keys a user has, and what may be spent under each, is in the user's account (`dualtrack.credits.keys`).

The check of a key is the write that counts its request, so a key that was revoked is refused with the next one:

    the hash is right · it has not expired · there is room in this minute ─► counted, and the key is returned
    the last minute with requests is over                                 ─► one write more begins the new one
    anything else                                                         ─► the item says why
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.codec import APART, decode, encode, stored
from dualtrack.errors import ApiError, Contended, not_found
from dualtrack.storage.dynamo import (
    ConditionFailed,
    batch_get,
    delete,
    delete_all,
    get,
    put,
    put_absent,
    query,
    transact,
    update,
    updated,
)
from dualtrack.vocabulary import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.storage.dynamo import Action, Item

KEY_PREFIX: Final = "KEY#"
"""The prefix of the partition keys of keys; the function `stream` may change no other items."""

WINDOW_SECONDS: Final = 60
KEY_REQUESTS: Final = 600
"""Requests a minute of a key of one user; those of a service's key are a setting."""

_ATTEMPTS: Final = 4


@stored(whole=True)
@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, without its secret. Times are epoch seconds, 0 for none; ``digest``: the SHA-256 of its text in hex, and
    ``replaced``, until ``replaced_until``, of its text before the last rotation. ``for_end_users``: each request has
    to name one. ``window``, ``requests``: the minute of its last request, and how many there were in it."""

    key_id: Annotated[str, APART]
    user: str
    name: str
    digest: str
    scopes: tuple[Scope, ...]
    created_at: int
    profiles: tuple[str, ...] = ()
    for_end_users: bool = False
    expires_at: int = 0
    replaced: str = ""
    replaced_until: int = 0
    window: int = 0
    requests: int = 0
    last_used_at: int = 0

    def accepts(self, digest: str, now: int) -> bool:
        """Whether it may be used with this text now; compared in constant time."""
        is_current = hmac.compare_digest(self.digest, digest)
        is_replaced = hmac.compare_digest(self.replaced, digest) and now < self.replaced_until
        return (is_current or is_replaced) and (not self.expires_at or now < self.expires_at)

    def rotated(self, digest: str, replaced_until: int) -> ApiKey:
        """With a new text; that before it holds until ``replaced_until``, any older one no more."""
        return replace(self, digest=digest, replaced=self.digest, replaced_until=replaced_until)


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Reads and writes of keys. ``service_requests``: requests a minute of a key that names its end users."""

    client: DynamoDBClient
    table: str
    clock: Clock
    service_requests: int

    def use(self, key_id: str, digest: str) -> ApiKey:
        """Check a key and count its request. Raises 401, 429 with ``retry_after``, or 503 if it cannot be checked."""
        try:
            return self._use(key_id, digest)
        except (BotoCoreError, ClientError, Contended) as error:
            raise ApiError("unavailable", "The key could not be checked. Try again.") from error

    def _use(self, key_id: str, digest: str) -> ApiKey:
        for _ in range(_ATTEMPTS):
            now = int(self.clock())
            try:
                return self._counted(key_id, digest, now)
            except ConditionFailed as lost:
                found = lost.items["key"]
            key = _key_of(found) if found else None
            if key is None or not key.accepts(digest, now):
                raise ApiError(
                    "unauthorized", "This API key is not valid: it is unknown, revoked or expired."
                )
            if key.window >= _window(now):
                raise _too_many(now)
            try:
                return self._first_of_window(key, now)
            except ConditionFailed:
                continue  # another request has begun this minute, or the key has changed
        raise Contended("The key changed too often.")

    def _counted(self, key_id: str, digest: str, now: int) -> ApiKey:
        """The same conditions as `ApiKey.accepts`, and that its minute has room."""
        is_right = "(digest = :digest OR (replaced = :digest AND replaced_until > :now))"
        is_alive = "(expires_at = :never OR expires_at > :now)"
        has_room = "requests < :few OR (for_end_users = :yes AND requests < :many)"
        values = {
            ":digest": digest, ":now": now, ":never": 0, ":window": _window(now), ":one": 1, ":yes": True,
            ":few": KEY_REQUESTS, ":many": self.service_requests,
        }  # fmt: skip
        return self._changed(
            key_id,
            "SET last_used_at = :now, requests = requests + :one",
            f"{is_right} AND {is_alive} AND #window >= :window AND ({has_room})",
            values,
        )

    def _first_of_window(self, key: ApiKey, now: int) -> ApiKey:
        unchanged = "digest = :digest AND #window = :before"
        values = {
            ":digest": key.digest,
            ":before": key.window,
            ":now": now,
            ":window": _window(now),
            ":one": 1,
        }
        change = "SET last_used_at = :now, #window = :window, requests = :one"
        return self._changed(key.key_id, change, unchanged, values)

    def _changed(self, key_id: str, change: str, condition: str, values: dict[str, Any]) -> ApiKey:
        names = {"#window": "window"} if "#window" in change + condition else None
        action = update("key", self.table, _key(key_id), change, condition, values, names)
        return _key_of(updated(self.client, action))

    def create_action(self, key: ApiKey) -> Action:
        """The put of a new key."""
        return put_absent("key", self.table, {**_key(key.key_id), **encode(key)})

    def named(self, key_ids: Iterable[str]) -> Sequence[ApiKey]:
        """The keys with these ids, the oldest first; what does not exist is left out."""
        items = batch_get(self.client, self.table, [_key(key_id) for key_id in key_ids])
        return sorted(map(_key_of, items), key=lambda key: (key.created_at, key.key_id))

    def find(self, user: str, key_id: str) -> ApiKey:
        """The user's key. Raises 404."""
        item = get(self.client, self.table, _key(key_id))
        if item is None or item["user"] != user:
            raise no_such_key()
        return _key_of(item)

    def rename(self, key: ApiKey, name: str) -> ApiKey:
        """Raises 404 if it was revoked meanwhile."""
        try:
            action = update(
                "key", self.table, _key(key.key_id), "SET #name = :name", "attribute_exists(pk)",
                {":name": name}, {"#name": "name"},
            )  # fmt: skip
            return _key_of(updated(self.client, action))
        except ConditionFailed:
            raise no_such_key() from None

    def rotate(self, key: ApiKey, digest: str, replaced_until: int) -> ApiKey:
        """Give it a new text. Raises `ConditionFailed` if it was rotated or revoked meanwhile."""
        after = key.rotated(digest, replaced_until)
        values = {":before": key.digest, ":digest": digest, ":until": replaced_until}
        change = "SET digest = :digest, replaced = :before, replaced_until = :until"
        self._changed(key.key_id, change, "digest = :before", values)
        return after

    def forget(self, key_ids: Iterable[str]) -> None:
        """Delete keys: the next request with one is refused."""
        delete_all(self.client, self.table, map(_key, key_ids))

    def forget_action(self, key_id: str) -> Action:
        """The deletion of a key, whether or not it exists."""
        return delete("key", self.table, _key(key_id))

    def note_end_user(self, owner: str, user: str) -> None:
        """Note an end user before anything is stored for them, so that the owner can erase them."""
        transact(self.client, [self.end_user_action(owner, user)])

    def end_user_action(self, owner: str, user: str) -> Action:
        """The same with what is stored."""
        return put("end user", self.table, _end_user_key(owner, user))

    def has_end_user(self, owner: str, user: str) -> bool:
        """Whether something may be stored for this end user of the owner."""
        return get(self.client, self.table, _end_user_key(owner, user)) is not None

    def end_users(self, owner: str) -> Iterator[str]:
        """The ids of the owner's end users."""
        return (item["sk"] for item in query(self.client, self.table, f"ENDUSERS#{owner}"))

    def forget_end_user(self, owner: str, user: str) -> None:
        """Forget that there was this end user."""
        delete_all(self.client, self.table, [_end_user_key(owner, user)])


def no_such_key() -> ApiError:
    """404."""
    return not_found("There is no such key.")


def _window(now: int) -> int:
    return now - now % WINDOW_SECONDS


def _too_many(now: int) -> ApiError:
    wait = _window(now) + WINDOW_SECONDS - now
    return ApiError(
        "rate_limited", f"Too many requests with this key; try again in {wait} s.", {"retry_after": wait}
    )


def _key(key_id: str) -> dict[str, str]:
    return {"pk": f"{KEY_PREFIX}{key_id}", "sk": "KEY"}


def _end_user_key(owner: str, user: str) -> dict[str, str]:
    return {"pk": f"ENDUSERS#{owner}", "sk": user}


def _key_of(item: Item) -> ApiKey:
    return decode(ApiKey, item, key_id=item["pk"].removeprefix(KEY_PREFIX))
