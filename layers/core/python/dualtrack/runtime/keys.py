"""API keys from Secrets Manager, cached for five minutes so that a rotated key is taken up."""

from __future__ import annotations

from aws_lambda_powertools.utilities import parameters


def api_key(secret_id: str) -> str:
    """The key, or ``none`` where no key is set."""
    return str(parameters.get_secret(secret_id, max_age=300))
