"""Credentials of the emulated account; apart from its clients, because botocore loads slowly."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Credentials:
    """Temporary or root credentials of the emulated account."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def random(cls) -> Credentials:
        """A new key in the form of AWS's long-lived ones."""
        return cls(f"AKIA{base64.b32encode(secrets.token_bytes(10)).decode()}", secrets.token_urlsafe(30))

    def environment(self) -> Mapping[str, str]:
        """As the variables that every SDK reads."""
        values = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}
        return {**values, "AWS_SESSION_TOKEN": self.session_token} if self.session_token else values
