"""Keys of services, kept for five minutes so that a new one is taken up.

An id that begins with ``/`` is a SecureString of the Parameter Store, which costs nothing; the stack's own keys are
such (``/dualtrack-prod/anthropic``). Any other is a name or an ARN in Secrets Manager, for keys that an operator has
there already (`dualtrack.tools.mcp.config`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from aws_lambda_powertools.utilities import parameters
from botocore.config import Config

NOT_SET: Final = "none"
"""What an operator puts for a service that needs no key: neither Parameter Store nor Secrets Manager takes an empty
value."""

_SECONDS: Final = 300
_IMPATIENT: Final = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "max_attempts": 3})
"""A network without a way there must not take a tool's whole time."""


class MissingKey(RuntimeError):
    """A key without which nothing works is not set; the message names it and the command that sets it."""


class _Keys(parameters.SSMProvider):
    """A parameter that is not there is an answer like others, empty, and is kept as long."""

    def _get(self, name: str, decrypt: bool = True, **options: Any) -> str:
        try:
            return str(super()._get(name, decrypt, **options))
        except self.client.exceptions.ParameterNotFound:
            return ""


@cache
def _keys() -> _Keys:
    return _Keys(boto_config=_IMPATIENT)


def secret(secret_id: str) -> str:
    """The key without surrounding space; empty where none is set, or none is named.

    Raises `GetParameterError` for one that cannot be read, and for a secret of Secrets Manager that does not exist.
    """
    return _key(_stored(secret_id)) if secret_id else ""


def needed(secret_id: str) -> str:
    """The same for a key without which nothing works. Raises `MissingKey` where the operator has put neither a key
    nor `NOT_SET`."""
    stored = _stored(secret_id)
    if not stored:
        raise MissingKey(
            f"There is no key in the parameter {secret_id}. Put it there: aws ssm put-parameter --name {secret_id}"
            f" --type SecureString --value KEY (or {NOT_SET}, for a service that needs none)."
        )
    return _key(stored)


def _stored(secret_id: str) -> str:
    if secret_id.startswith("/"):
        value = _keys().get(secret_id, max_age=_SECONDS, decrypt=True)
    else:
        value = parameters.get_secret(secret_id, max_age=_SECONDS)
    return str(value).strip()


def _key(stored: str) -> str:
    return "" if stored == NOT_SET else stored
