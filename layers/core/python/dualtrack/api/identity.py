"""Who calls: of an ID token its user, of an API key the account that pays and the user whose data it is (CONTRACT 3).

API Gateway passes on the claim ``cognito:groups`` as text: ``a,b``, or in some cases ``[a b]``. Group names may have
any punctuation, so ``x,admin`` may be two groups or one, and ``[admin]`` may be a name. Only the token has the list: it
is read from the header that the gateway has verified, and accepted only if it results in exactly this text.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.frozen import JsonObject
    from dualtrack.storage.deletions import Deletions
    from dualtrack.vocabulary import Scope

ADMIN_GROUP: Final = "admin"


@dataclass(frozen=True, slots=True)
class UsedKey:
    """The API key of a request, checked and counted. ``profiles``: those that its chats may have; none for any."""

    key_id: str
    scopes: frozenset[Scope]
    profiles: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ApiCaller:
    """Who calls. ``user``: whose conversations, records and limits it is about, the ``sub`` claim of a token.
    ``payer``: whose account pays, another one for the end users of a service's key. ``groups``: the user's in the
    pool. ``key``: None for a token.
    """

    user: str
    payer: str
    groups: frozenset[str] = frozenset()
    key: UsedKey | None = None

    @property
    def is_admin(self) -> bool:
        """Whether they are in the group `admin`."""
        return ADMIN_GROUP in self.groups

    @property
    def key_id(self) -> str:
        """The key's id; empty for a token."""
        return self.key.key_id if self.key else ""

    @property
    def is_counted(self) -> bool:
        """Whether the request counts for the user: the check of a key has counted it for the key, whose end users have
        a limit each besides."""
        return self.key is None or self.payer != self.user

    @property
    def is_narrowed(self) -> bool:
        """Whether not all of the user's conversations may be continued: a key is for some profiles, or reads only what
        it has begun."""
        return self.key is not None and (bool(self.key.profiles) or "read" not in self.key.scopes)

    @property
    def may_be_many(self) -> bool:
        """Whether many people may stand behind this caller: a key that does not say for whom it asks."""
        return self.key is not None and self.payer == self.user

    def require_admin(self) -> None:
        """Raise 403 unless the user is in the group `admin`."""
        if not self.is_admin:
            raise ApiError("forbidden", "This needs an administrator.")

    def require_scope(self, scopes: Sequence[Scope]) -> None:
        """Raise 403 for a key with none of these scopes. There are things that no key may do: they have no scope."""
        if self.key is None or self.key.scopes & set(scopes):
            return
        if not scopes:
            raise ApiError("forbidden", "No API key may do this: sign in, and send the ID token.")
        raise lacking(scopes[-1])

    def require_sight(self, key_id: str) -> None:
        """Raise 403 for what this caller may not see of their user's: with a key that lacks `read`, what was not
        started with the key. ``key_id``: the key that started it, empty for none."""
        if not self.sees(key_id):
            raise lacking("read")

    def sees(self, key_id: str) -> bool:
        """Whether this caller may read what was started with a key; ``key_id`` is empty for none."""
        if self.key is None or "read" in self.key.scopes:
            return True
        return "chat" in self.key.scopes and self.key.key_id == key_id

    def require_profile(self, profile: str) -> None:
        """Raise 403 for an agent that the key may not use."""
        if self.key and self.key.profiles and profile not in self.key.profiles:
            allowed = ", ".join(sorted(self.key.profiles))
            raise ApiError("forbidden", f"This key is for the profiles {allowed}, not for {profile}.")


def lacking(scope: Scope) -> ApiError:
    """403 that names the scope which a key lacks."""
    return ApiError("forbidden", f"This key lacks the scope {scope}.", {"scope": scope})


def bearer_token(authorizations: Sequence[str]) -> str:
    """The token of a request's Authorization headers. Raises 401 unless there is one header, ``Bearer <token>``.

    Both ways in read it: the gateway's authorizer accepts a token without its scheme, and of several headers it is
    unknown which it has verified.
    """
    scheme, _, token = authorizations[0].partition(" ") if len(authorizations) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise ApiError("unauthorized", "A valid ID token is needed.")
    return token.strip()


def identity_of(claims: JsonObject, token: str) -> ApiCaller:
    """The identity from the verified claims of an ID token. Raises 401 for an access token."""
    user = claims.get("sub")
    if not user or claims.get("token_use") != "id":
        raise ApiError("unauthorized", "A valid ID token is needed.")
    return ApiCaller(str(user), str(user), groups_of(claims.get("cognito:groups"), _listed_groups(token)))


def refuse_erased(deletions: Deletions, identity: ApiCaller) -> None:
    """Raise 401 for an erased user with a token that is still valid, and 403 for a service's end user who is being
    erased: nothing may be written under their key again."""
    if deletions.is_refused(identity.user):
        if identity.payer == identity.user:
            raise ApiError("unauthorized", "This user was erased.")
        raise ApiError(
            "forbidden", "This end user was erased. The name can be used again when all is deleted."
        )


def groups_of(claim: object, listed: Sequence[str] = ()) -> frozenset[str]:
    """The groups of a verified claim: a list, or text that matches ``listed``; none if it does not match.

    Group names are compared whole: a name that contains another is a different group.
    """
    if isinstance(claim, (list, tuple)):
        return frozenset(str(group) for group in claim)
    text = str(claim or "")
    if text and not set(text) & set(",[] "):
        return frozenset({text})
    as_text = (",".join(listed), ", ".join(listed), f"[{' '.join(listed)}]", f"[{', '.join(listed)}]")
    return frozenset(listed) if text in as_text else frozenset()


def _listed_groups(token: str) -> tuple[str, ...]:
    """The groups in a token; empty if it cannot be read."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        groups = claims.get("cognito:groups")
    except (ValueError, IndexError, AttributeError, RecursionError):
        return ()
    return tuple(map(str, groups)) if isinstance(groups, list) else ()
