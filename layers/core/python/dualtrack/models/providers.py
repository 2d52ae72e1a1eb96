"""Providers of the model: their names and differences. Pure.

Claude on Amazon Bedrock: the Messages API of the endpoint ``bedrock-mantle``, signed with IAM credentials (Amazon
Bedrock User Guide, "Inference using Anthropic Messages API"). Its model ids are ``anthropic.`` and the name without
a date; ids with a region or a version (``us.``, ``-v1:0``) belong to another endpoint.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

ANTHROPIC: Final = "anthropic"
BEDROCK: Final = "bedrock"
PROVIDERS: Final = (ANTHROPIC, BEDROCK)

_PREFIX: Final = "anthropic."
_DATE: Final = re.compile(r"-20\d{6}$")
_HOST: Final = re.compile(r"bedrock-mantle\.([a-z0-9-]+)\.api\.aws")


def bedrock_model(model: str) -> str:
    """``anthropic.claude-haiku-4-5`` for ``claude-haiku-4-5-20251001``; a Bedrock id is not changed."""
    return model if model.startswith(_PREFIX) else f"{_PREFIX}{_DATE.sub('', model)}"


def bedrock_url(region: str) -> str:
    """The endpoint's URL in a region."""
    return f"https://bedrock-mantle.{region}.api.aws/anthropic"


def bedrock_region(base_url: str) -> str:
    """The region in a URL of the endpoint, for which requests are signed; empty for other URLs."""
    match = _HOST.fullmatch(urlsplit(base_url).hostname or "")
    return match[1] if match else ""
