"""Who calls: read off the verified claims of an ID token (CONTRACT 3).

API Gateway hands the claim ``cognito:groups`` on as text: ``a,b``, elsewhere ``[a b]``. A group's name may hold
any punctuation, so ``x,admin`` is two groups or one, and ``[admin]`` may be a name. Only the token itself has the
list; it is read from the header that the gateway has verified, and believed if it makes just that text.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.storage.deletions import Deletions

ADMIN_GROUP: Final = "admin"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user (the ``sub`` claim) and the groups of the pool that they are in."""

    user: str
    groups: frozenset[str] = frozenset()

    @property
    def is_admin(self) -> bool:
        """Whether they are in the group `admin`."""
        return ADMIN_GROUP in self.groups

    def require_admin(self) -> None:
        """403 for everybody outside the group `admin`."""
        if not self.is_admin:
            raise ApiError("forbidden", "This needs an administrator.")


def identity_of(claims: Mapping[str, Any], authorizations: Sequence[str] = ()) -> Identity:
    """The identity of an ID token's claims; an access token is refused.

    ``authorizations``: the request's Authorization headers. Of several nobody knows which was verified.
    """
    user = claims.get("sub")
    if not user or claims.get("token_use") != "id":
        raise ApiError("unauthorized", "A valid ID token is needed.")
    listed = _listed_groups(authorizations[0]) if len(authorizations) == 1 else ()
    return Identity(str(user), groups_of(claims.get("cognito:groups"), listed))


def refuse_erased(deletions: Deletions, user: str) -> None:
    """401 for a user who was erased while their token is still valid: nothing may come back under their key."""
    if deletions.is_refused(user):
        raise ApiError("unauthorized", "This user was erased.")


def groups_of(claim: object, listed: Sequence[str] = ()) -> frozenset[str]:
    """The groups of a verified claim: a list, or text that ``listed`` tells how to read; none if it does not.

    Group names are compared whole; a name that merely contains another one is another group.
    """
    if isinstance(claim, list | tuple):
        return frozenset(str(group) for group in claim)
    text = str(claim or "")
    if text and not set(text) & set(",[] "):
        return frozenset({text})
    as_text = (",".join(listed), ", ".join(listed), f"[{' '.join(listed)}]", f"[{', '.join(listed)}]")
    return frozenset(listed) if text in as_text else frozenset()


def _listed_groups(authorization: str) -> tuple[str, ...]:
    """The list in the token of an Authorization header; nothing if it cannot be read."""
    try:
        payload = authorization.rsplit(" ", maxsplit=1)[-1].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        groups = claims.get("cognito:groups")
    except (ValueError, IndexError, AttributeError, RecursionError):
        return ()
    return tuple(map(str, groups)) if isinstance(groups, list) else ()
