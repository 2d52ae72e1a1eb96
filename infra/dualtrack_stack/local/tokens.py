"""Real tokens of the local user pool, for this machine's user (CONTRACT 3)."""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dualtrack_stack.local.aws import Aws

ADMIN_GROUP: Final = "admin"
_NAME: Final = re.compile(r"[\w.@+-]{1,64}", re.ASCII)


class BadName(ValueError):
    """A user name that the pool would refuse."""


@dataclass(frozen=True, slots=True)
class SignedInUser:
    """An ID token, its ``sub`` claim, and whether the user was just created for it."""

    token: str
    user_id: str
    created: bool = False


class LocalUsers:
    """Makes users of the local pool on demand and signs them in."""

    def __init__(self, aws: Aws, pool_id: str, client_id: str) -> None:
        self._cognito = aws.client("cognito-idp")
        self._pool_id = pool_id
        self._client_id = client_id
        self._making = threading.Lock()

    def identity(self, user: str, *, admin: bool = False) -> SignedInUser:
        """The user's identity; the user is created, and put into the group ``admin``, if need be.

        Raises `BadName` for a name that is not 1 to 64 letters, digits or ``._@+-``.
        """
        password = _password(user)
        with self._making:  # the emulator makes two of one that is asked for twice at once
            user_id, created = self._ensure(user, password)
        if admin:
            self._cognito.admin_add_user_to_group(
                UserPoolId=self._pool_id, Username=user, GroupName=ADMIN_GROUP
            )
        answer = self._cognito.admin_initiate_auth(
            UserPoolId=self._pool_id,
            ClientId=self._client_id,
            AuthFlow="ADMIN_USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": user, "PASSWORD": password},
        )
        return SignedInUser(answer["AuthenticationResult"]["IdToken"], user_id, created)

    def user_id(self, user: str) -> str:
        """The user's ``sub``; the user is created if need be. Raises `BadName`."""
        return self._ensure(user, _password(user))[0]

    def _ensure(self, user: str, password: str) -> tuple[str, bool]:
        """The user's ``sub``, and whether this call has created the user."""
        if not _NAME.fullmatch(user):
            raise BadName("A user name has 1 to 64 letters, digits or the characters . _ @ + -")
        try:
            found = self._cognito.admin_get_user(UserPoolId=self._pool_id, Username=user)
            user_id, created = _sub(found["UserAttributes"]), False
            # a concurrent request, or one that was cut off, has made the user and not yet the password
            if found["UserStatus"] == "CONFIRMED":
                return user_id, created
        except self._cognito.exceptions.UserNotFoundException:
            try:
                made = self._cognito.admin_create_user(
                    UserPoolId=self._pool_id, Username=user, MessageAction="SUPPRESS"
                )
            except self._cognito.exceptions.UsernameExistsException:  # a concurrent request was first
                return self._ensure(user, password)
            user_id, created = _sub(made["User"]["Attributes"]), True
        self._cognito.admin_set_user_password(
            UserPoolId=self._pool_id, Username=user, Password=password, Permanent=True
        )
        return user_id, created


def _password(user: str) -> str:
    """Never used by a person: any program that reaches the local stack can request any token."""
    return f"Aa1!{hashlib.sha256(user.encode()).hexdigest()}"


def _sub(attributes: list[dict[str, Any]]) -> str:
    return next(str(item["Value"]) for item in attributes if item["Name"] == "sub")
