"""Who serves the model: names, and what differs by them. Pure.

Claude on Amazon Bedrock: the Messages API of the endpoint ``bedrock-mantle``, signed with IAM credentials (Amazon
Bedrock User Guide, "Inference using Anthropic Messages API"). Its ids of models are ``anthropic.`` and the name without
a date; there are none with a region or a version (``us.``, ``-v1:0``), which are of another endpoint.
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
    """``anthropic.claude-haiku-4-5`` for ``claude-haiku-4-5-20251001``; a name that Bedrock has stays as it is."""
    return model if model.startswith(_PREFIX) else f"{_PREFIX}{_DATE.sub('', model)}"


def bedrock_url(region: str) -> str:
    """The endpoint's address in a region."""
    return f"https://bedrock-mantle.{region}.api.aws/anthropic"


def bedrock_region(base_url: str) -> str:
    """The region that an address names; empty for one of another kind. What is signed is signed for it."""
    found = _HOST.fullmatch(urlsplit(base_url).hostname or "")
    return found[1] if found else ""
