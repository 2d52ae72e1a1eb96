"""Users' GitHub connections: their own token, encrypted with KMS, in the cache table.

The encryption context binds a ciphertext to its user, so an item copied to another user cannot be decrypted. A token is
never logged, is never part of state, events or records, and is never returned by the API.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from dualtrack.errors import invalid_request
from dualtrack.storage.cache import StoredToken

if TYPE_CHECKING:
    from mypy_boto3_kms.client import KMSClient

    from dualtrack.storage.cache import CacheStore

MAX_TOKEN: Final = 255
TOKEN_PATTERN: Final = re.compile(r"(?:ghp_|github_pat_|gho_|ghu_|ghs_)[A-Za-z0-9_.-]+|[0-9a-f]{40}")
"""The forms that github-mcp-server accepts in its HTTP mode; it answers 400 to any other."""

_UNREADABLE: Final = {"InvalidCiphertextException", "IncorrectKeyException"}


@dataclass(frozen=True, slots=True)
class StoredConnection:
    """A user's connection, without the token. ``created_at``: epoch seconds."""

    created_at: int


@dataclass(frozen=True, slots=True)
class Connections:
    """The store of connections. ``key_id``: the KMS key's id or ARN."""

    cache: CacheStore
    kms: KMSClient
    key_id: str

    def connect(self, user: str, token: str, now: float) -> StoredConnection:
        """Store the user's token; it replaces an earlier one. Raises 400 if it is not a GitHub token."""
        checked = check_token(token)
        answer = self.kms.encrypt(
            KeyId=self.key_id, Plaintext=checked.encode(), EncryptionContext=_context(user)
        )
        self.cache.save_token(user, StoredToken(answer["CiphertextBlob"], int(now)))
        return StoredConnection(int(now))

    def find(self, user: str) -> StoredConnection | None:
        """The user's connection, or None. Does not decrypt the token."""
        stored = self.cache.token(user)
        return StoredConnection(stored.created_at) if stored else None

    def disconnect(self, user: str) -> None:
        """Delete the user's token, if there is one."""
        self.cache.delete_token(user)

    def token(self, user: str) -> str | None:
        """The user's token, or None if there is none or it cannot be decrypted."""
        stored = self.cache.token(user)
        if stored is None:
            return None
        try:
            answer = self.kms.decrypt(
                CiphertextBlob=stored.token, KeyId=self.key_id, EncryptionContext=_context(user)
            )
        except ClientError as error:
            # Encrypted with a key that has been replaced: the user has to connect again.
            if error.response["Error"]["Code"] in _UNREADABLE:
                return None
            raise
        return answer["Plaintext"].decode()


def check_token(token: str) -> str:
    """The token without surrounding space. Raises 400; the message never repeats what was sent."""
    stripped = token.strip()
    if len(stripped) > MAX_TOKEN or not TOKEN_PATTERN.fullmatch(stripped):
        raise invalid_request(
            "token must be a GitHub token: a fine-grained one (github_pat_…, recommended),"
            " or ghp_…, gho_…, ghu_…, ghs_…"
        )
    return stripped


def _context(user: str) -> dict[str, str]:
    return {"purpose": "github_connection", "user": user}
