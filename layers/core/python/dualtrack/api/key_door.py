"""Checking the API key of a request: the one function behind every way in (CONTRACT 3).

`api` calls it for its own path of keys, `stream` for events; neither needs cryptography for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualtrack.api.end_users import HEADER, end_user_id, named_in
from dualtrack.api.identity import ApiCaller, UsedKey
from dualtrack.api.key_format import parse_key
from dualtrack.errors import ApiError, invalid_request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.settings import Settings
    from dualtrack.storage.keys import ApiKey, KeyStore

    Headers = Callable[[str], Sequence[str]]
    """The values of a header."""


@dataclass(frozen=True, slots=True)
class KeyDoor:
    """Checks keys. ``user_headers``: the headers that may name a service's end user."""

    keys: KeyStore
    user_headers: tuple[str, ...]

    def identify(self, token: str, headers: Headers, *, for_owner: bool = False) -> ApiCaller:
        """The caller of a request with this key, which is counted. Raises 401, 429, 503, and 400 unless the request
        names an end user exactly if its key is a service's; ``for_owner``: what it asks for is the owner's own, so a
        service need not name one."""
        presented = parse_key(token)
        if presented is None:
            raise ApiError("unauthorized", "This is not an API key: it is cut short or mistyped.")
        key = self.keys.use(presented.key_id, presented.digest)
        user = self._user(key, headers, for_owner=for_owner)
        used = UsedKey(key.key_id, frozenset(key.scopes), frozenset(key.profiles))
        return ApiCaller(user, payer=key.user, key=used)

    def _user(self, key: ApiKey, headers: Headers, *, for_owner: bool) -> str:
        if not key.for_end_users:
            self.refuse_name(headers)
        if for_owner or not key.for_end_users:
            return key.user
        name = named_in(headers, self.user_headers)
        if name is None:
            raise invalid_request(f"This key acts for end users: name one in the header {HEADER}.")
        return end_user_id(key.user, name)

    def refuse_name(self, headers: Headers) -> None:
        """Raise 400 for a request that names an end user without the key of a service: it would not be kept apart."""
        if any(headers(name) for name in self.user_headers):
            raise invalid_request(f'{HEADER} is for keys with "acts_for": "any".')


def key_door(settings: Settings, keys: KeyStore) -> KeyDoor:
    """The door of a stage."""
    return KeyDoor(keys, (HEADER, *settings.dualtrack_user_headers))
