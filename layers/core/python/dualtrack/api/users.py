"""The users of the pool: recipients of grants (a typo in an id must not lose a payment), and erased users
(CONTRACT 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.errors import Transient, not_found
from dualtrack.ids import is_id


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

    def is_member(self, user: str, group: str) -> bool:
        """Whether the user is in this group now."""
        name = self._name_of(user)
        if name is None:
            return False
        try:
            pages = self.cognito.get_paginator("admin_list_groups_for_user").paginate(
                UserPoolId=self.pool_id, Username=name
            )
            return any(listed["GroupName"] == group for page in pages for listed in page["Groups"])
        except (ClientError, BotoCoreError) as error:
            raise Transient("The user pool cannot be reached.") from error

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
        if not is_id("user_id", user):  # it must not break out of the filter
            return None
        try:
            listed = self.cognito.list_users(UserPoolId=self.pool_id, Filter=f'sub = "{user}"', Limit=1)
        except (ClientError, BotoCoreError) as error:
            raise Transient("The user pool cannot be reached.") from error
        return str(listed["Users"][0]["Username"]) if listed["Users"] else None
