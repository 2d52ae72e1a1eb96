"""The users of the pool: recipients of grants (a typo in an id must not lose a payment), and erased users
(CONTRACT 8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.errors import Transient, not_found

_ID: Final = re.compile(r"[\w-]{1,128}", re.ASCII)
"""The form of a user id: it cannot break out of a quoted filter or a table's key. Cognito's own ids are UUIDs."""


def is_user_id(text: str) -> bool:
    """Whether the text has the form of a user id."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class UserPool:
    """A user pool. ``cognito`` is a cognito-idp client. Raises `Transient` if the pool cannot be reached."""

    cognito: Any
    pool_id: str

    def must_have(self, user: str) -> None:
        """Raise 404 unless a user has this id (their ``sub``, which is not their name)."""
        if not self.has(user):
            raise not_found("There is no such user.")

    def has(self, user: str) -> bool:
        """Whether a user has this id."""
        return self._name_of(user) is not None

    def delete(self, user: str) -> bool:
        """Delete the user from the pool, with their refresh tokens; false if there is no such user."""
        name = self._name_of(user)
        if name is None:
            return False
        try:
            self.cognito.admin_delete_user(UserPoolId=self.pool_id, Username=name)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] == "UserNotFoundException":
                return False
            raise Transient("The user could not be deleted from the pool.") from error
        return True

    def _name_of(self, user: str) -> str | None:
        """The user's name, by ListUsers, because all other calls look users up by name:
        https://docs.aws.amazon.com/cognito/latest/developerguide/how-to-manage-user-accounts.html
        """
        if not is_user_id(user):
            return None
        try:
            listed = self.cognito.list_users(UserPoolId=self.pool_id, Filter=f'sub = "{user}"', Limit=1)
        except (ClientError, BotoCoreError) as error:
            raise Transient("The user pool cannot be reached.") from error
        return str(listed["Users"][0]["Username"]) if listed["Users"] else None
