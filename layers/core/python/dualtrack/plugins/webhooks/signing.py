"""Secrets and signatures of webhooks, as Standard Webhooks has them (specification 1.0.0, "Signature scheme").

A secret is ``whsec_`` and 32 random bytes in base64. The stack has to know it, because it signs with it, so it is
stored encrypted by KMS; the encryption context binds it to its webhook.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mypy_boto3_kms.client import KMSClient

PREFIX: Final = "whsec_"
_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """Encrypts and decrypts. ``key_id``: the KMS key's id or ARN."""

    kms: KMSClient
    key_id: str

    def seal(self, webhook_id: str, secret: str) -> str:
        """The secret as it is stored."""
        answer = self.kms.encrypt(
            KeyId=self.key_id, Plaintext=secret.encode(), EncryptionContext=_context(webhook_id)
        )
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def open(self, webhook_id: str, sealed: str) -> str:
        """The reverse. Raises `ClientError`."""
        answer = self.kms.decrypt(
            CiphertextBlob=base64.b64decode(sealed), KeyId=self.key_id, EncryptionContext=_context(webhook_id)
        )
        return answer["Plaintext"].decode()


def _context(webhook_id: str) -> dict[str, str]:
    return {"purpose": "webhook_secret", "webhook": webhook_id}


def new_secret() -> str:
    """``whsec_…``: shown once."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()


def signed(message_id: str, at: int, body: bytes, keys: Iterable[str]) -> Mapping[str, str]:
    """The headers of a delivery at ``at`` (epoch seconds), with a signature by each secret."""
    content = f"{message_id}.{at}.".encode() + body
    signatures = (
        base64.b64encode(hmac.digest(base64.b64decode(key.removeprefix(PREFIX)), content, hashlib.sha256))
        for key in keys
    )
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{signature.decode()}" for signature in signatures),
    }
