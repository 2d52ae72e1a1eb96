"""The users of the pool: whom a grant is for (a typo in an id must not cost a payment), and who is erased
(CONTRACT 8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.errors import Transient, not_found

_ID: Final = re.compile(r"[\w-]{1,128}", re.ASCII)
"""No quote of a filter and no key of a table can be made of it. Cognito's own are UUIDs."""


def is_user_id(text: str) -> bool:
    """Whether it can be a user's id at all."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class UserPool:
    """Who is in a user pool. ``cognito`` is a cognito-idp client. What cannot be asked or done raises `Transient`."""

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
        """Take the user out of the pool, with their refresh tokens; false if there is none."""
        name = self._name_of(user)
        if name is None:
            return False
        try:
            self.cognito.admin_delete_user(UserPoolId=self.pool_id, Username=name)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] == "UserNotFoundException":
                return False
            raise Transient("The user cannot be taken out of the pool.") from error
        return True

    def _name_of(self, user: str) -> str | None:
        """By ListUsers, because users are looked up by name everywhere else:
        https://docs.aws.amazon.com/cognito/latest/developerguide/how-to-manage-user-accounts.html
        """
        if not is_user_id(user):
            return None
        try:
            found = self.cognito.list_users(UserPoolId=self.pool_id, Filter=f'sub = "{user}"', Limit=1)
        except (ClientError, BotoCoreError) as error:
            raise Transient("The user pool cannot be asked.") from error
        return str(found["Users"][0]["Username"]) if found["Users"] else None
