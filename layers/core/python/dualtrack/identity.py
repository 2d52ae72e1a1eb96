"""Who calls: read off the verified claims of an ID token (CONTRACT 3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

ADMIN_GROUP: Final = "admin"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user (the ``sub`` claim) and the groups of the pool that they are in."""

    user: str
    groups: frozenset[str] = frozenset()

    def require_admin(self) -> None:
        """403 for everybody outside the group `admin`."""
        if ADMIN_GROUP not in self.groups:
            raise ApiError("forbidden", "This needs an administrator.")


def identity_of(claims: Mapping[str, Any]) -> Identity:
    """The identity of an ID token's claims; an access token is refused."""
    user = claims.get("sub")
    if not user or claims.get("token_use") != "id":
        raise ApiError("unauthorized", "A valid ID token is needed.")
    return Identity(str(user), groups_of(claims.get("cognito:groups")))


def groups_of(claim: object) -> frozenset[str]:
    """The groups in every shape they arrive in: a list, ``"a,b"`` (API Gateway), ``"[a b]"`` (elsewhere).

    Group names are compared whole; a name that merely contains another one is another group.
    """
    if isinstance(claim, list | tuple):
        return frozenset(str(group) for group in claim)
    text = str(claim or "").strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return frozenset(part for part in re.split(r"[,\s]+", text) if part)
