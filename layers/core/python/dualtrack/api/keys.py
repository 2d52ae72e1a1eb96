"""Making, listing, changing and revoking API keys (CONTRACT 3).

A key's use is a part of its owner's account, its secret an item of its own: they are made and revoked in one
transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.api.erasure import REQUEST_SECONDS
from dualtrack.api.key_format import digest_of, new_key, new_key_id
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.executions import owner_of
from dualtrack.clock import iso
from dualtrack.credits.keys import Caps
from dualtrack.errors import ApiError, invalid_request
from dualtrack.profiles import profile_named
from dualtrack.runtime.time_limit import time_for
from dualtrack.storage.dynamo import ConditionFailed, until_kept
from dualtrack.storage.keys import ApiKey, no_such_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack import answers
    from dualtrack.api.models import KeyBody, KeyChangeBody
    from dualtrack.credits.account import Account
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.stores import ApiStores


def key_json(key: ApiKey, account: Account, now: float) -> answers.Key:
    """A key as its owner sees it."""
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": key.scopes,
        "profiles": key.profiles,
        "acts_for": "any" if key.for_end_users else None,
        "created_at": iso(key.created_at),
        "expires_at": iso(key.expires_at) if key.expires_at else None,
        "last_used_at": iso(key.last_used_at) if key.last_used_at else None,
        **account.key_view(key.key_id, now),
    }


def make_key(stores: ApiStores, user: str, body: KeyBody) -> answers.NewKey:
    """A new key. Raises 400; 401 if the user is erased meanwhile."""
    _check(body)
    now, key_id = stores.clock(), new_key_id()
    text = new_key(key_id)
    key = ApiKey(
        key_id,
        user,
        body.name,
        digest_of(text),
        tuple(dict.fromkeys(body.scopes)),
        int(now),
        profiles=tuple(dict.fromkeys(body.profiles)),
        for_end_users=body.acts_for == "any",
        expires_at=int(now) + body.expires_in if body.expires_in else 0,
    )
    caps = Caps().changed(body.caps.said() if body.caps else {})
    also = [stores.keys.create_action(key), stores.deletions.not_refused(user)]
    try:
        account = stores.ledger.add_key(user, key_id, caps, now, also)
    except ConditionFailed as lost:
        raise ApiError("unauthorized", "This user was erased.") from lost
    return {**key_json(key, account, now), "key": text}


def _check(body: KeyBody) -> None:
    for profile in body.profiles:
        profile_named(profile)
    if body.acts_for and any(scope.startswith("admin:") for scope in body.scopes):
        raise invalid_request("acts_for: a key for end users has no scope of administrators.")


def list_keys(stores: ApiStores, user: str) -> Sequence[answers.Key]:
    """The user's keys, the oldest first."""
    now, account = stores.clock(), stores.ledger.load(user)
    return [key_json(key, account, now) for key in stores.keys.named(account.keys)]


def change_key(stores: ApiStores, user: str, key_id: str, body: KeyChangeBody) -> answers.Key:
    """The key with another name or other caps. Raises 400, 404."""
    now, key = stores.clock(), stores.keys.find(user, key_id)
    if body.caps:
        account = stores.ledger.change_caps(user, key_id, body.caps.said(), now)
    else:
        account = stores.ledger.load(user)
    if body.name is not None:
        key = stores.keys.rename(key, body.name)
    return key_json(key, account, now)


def rotate_key(stores: ApiStores, user: str, key_id: str, overlap: int) -> answers.NewKey:
    """The key with a new secret; the old one holds for ``overlap`` seconds more. Raises 404."""

    def rotate() -> answers.NewKey:
        now, key = stores.clock(), stores.keys.find(user, key_id)
        text = new_key(key_id)
        rotated = stores.keys.rotate(key, digest_of(text), int(now) + overlap)
        return {**key_json(rotated, stores.ledger.load(user), now), "key": text}

    return until_kept(rotate, "The key was rotated too often.")


def revoke_key(stores: ApiStores, executions: Executions, user: str, key_id: str, *, cancels: bool) -> None:
    """Refuse the key from the next request on; ``cancels``: also cancel its chats. Raises 404, and 504 if some of
    these still run: the same request goes on."""
    if key_id not in stores.ledger.load(user).keys:
        raise no_such_key()
    account = stores.ledger.revoke_key(user, key_id, stores.clock(), [stores.keys.forget_action(key_id)])
    if not cancels:
        return
    running = [chat_id for chat_id, hold in account.holds.items() if hold.key_id == key_id and hold.parts]
    has_time = time_for(REQUEST_SECONDS)
    left = sum(not (has_time() and _cancelled(stores, executions, user, chat_id)) for chat_id in running)
    if left:
        raise ApiError(
            "timeout", "The key is revoked, but some of its chats still run. Send the request again."
        )


def _cancelled(stores: ApiStores, executions: Executions, owner: str, chat_id: str) -> bool:
    """Whether the chat, of the owner or of an end user, is cancelled, or had ended."""
    chat = stores.chats.load(owner_of(executions, chat_id) or owner, chat_id)
    if chat is not None:
        cancel_chat(stores, executions, chat)
    return chat is not None
