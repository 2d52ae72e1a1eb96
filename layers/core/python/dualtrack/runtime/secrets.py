"""Keys of services, cached for five minutes, so that a new key takes effect soon.

An id that begins with ``/`` is a SecureString in the Parameter Store, which is free; the stack's own keys are there
(``/dualtrack-prod/anthropic``). Any other id is a name or an ARN in Secrets Manager, for keys that an operator
already keeps there (`dualtrack.tools.mcp.config`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from aws_lambda_powertools.utilities import parameters
from botocore.config import Config

from dualtrack.settings import NOT_SET

_SECONDS: Final = 300
_IMPATIENT: Final = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "max_attempts": 3})
"""An unreachable service must not use up the whole time of a tool."""


class MissingKey(RuntimeError):
    """A required key is not set; the message names it and the command that sets it."""


class _Keys(parameters.SSMProvider):
    """A missing parameter counts as an empty value, and is cached like any other."""

    def _get(self, name: str, decrypt: bool = True, **options: Any) -> str:
        try:
            return str(super()._get(name, decrypt, **options))
        except self.client.exceptions.ParameterNotFound:
            return ""


@cache
def _keys() -> _Keys:
    return _Keys(boto_config=_IMPATIENT)


def secret(secret_id: str) -> str:
    """The key without surrounding space; empty if it is not set, or if ``secret_id`` is empty.

    Raises `GetParameterError` if the key cannot be read, or a secret in Secrets Manager does not exist.
    """
    return _key(_stored(secret_id)) if secret_id else ""


def needed(secret_id: str) -> str:
    """The same for a required key. Raises `MissingKey` if the operator has set neither a key nor `NOT_SET`."""
    stored = _stored(secret_id)
    if not stored:
        raise MissingKey(
            f"There is no key in the parameter {secret_id}. Put it there: aws ssm put-parameter --name {secret_id}"
            f" --type SecureString --value KEY (or {NOT_SET} if the service needs no key)."
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
