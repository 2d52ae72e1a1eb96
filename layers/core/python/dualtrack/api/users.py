"""The users of the pool, for whoever grants them something: a typo in an id must not cost a payment (CONTRACT 8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.errors import Transient, not_found

_ID: Final = re.compile(r"[\w-]{1,128}", re.ASCII)
"""No quote of a filter and no key of a table can be made of it. Cognito's own are UUIDs."""


@dataclass(frozen=True, slots=True)
class UserPool:
    """Who is in a user pool. ``cognito`` is a cognito-idp client."""

    cognito: Any
    pool_id: str

    def must_have(self, user: str) -> None:
        """Raise 404 unless a user has this id (their ``sub``, which is not their name), `Transient` if the pool
        cannot be asked.

        By ListUsers, because users are looked up by name everywhere else:
        https://docs.aws.amazon.com/cognito/latest/developerguide/how-to-manage-user-accounts.html
        """
        if not _ID.fullmatch(user):
            raise not_found("There is no such user.")
        try:
            found = self.cognito.list_users(UserPoolId=self.pool_id, Filter=f'sub = "{user}"', Limit=1)
        except (ClientError, BotoCoreError) as error:
            raise Transient("The user pool cannot be asked.") from error
        if not found["Users"]:
            raise not_found("There is no such user.")
