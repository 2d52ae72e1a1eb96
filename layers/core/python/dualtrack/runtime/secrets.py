"""Secrets from Secrets Manager, cached for five minutes so that a rotated one is taken up."""

from __future__ import annotations

from typing import Final

from aws_lambda_powertools.utilities import parameters

NOT_SET: Final = "none"
"""What the template stores until the operator sets a secret: Secrets Manager takes no empty value."""

_SECONDS: Final = 300


def secret(secret_id: str) -> str:
    """The secret's string without surrounding space; empty where none is set, or none is named."""
    value = str(parameters.get_secret(secret_id, max_age=_SECONDS)).strip() if secret_id else ""
    return "" if value == NOT_SET else value
