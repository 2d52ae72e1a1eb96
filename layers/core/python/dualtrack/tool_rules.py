"""The Messages API's rules for tools, and our own bounds within them. Pure.

The service refuses a whole request if one of its tools breaks a rule. So what is offered is checked against these rules
before it is offered (`dualtrack.tool_check`), and every server that stands in for the service in a test refuses by the
same ones.
"""

from __future__ import annotations

import re
from typing import Final

NAME: Final = r"^[a-zA-Z0-9_-]{1,128}$"
PROPERTY: Final = r"^[a-zA-Z0-9_.-]{1,64}$"
"""The pattern of a property at the top level of an input schema; the names below it are free."""
NOT_AT_TOP: Final = ("anyOf", "oneOf", "allOf")
"""Keywords that the top level of an input schema may not have."""

MAX_NAME: Final = 64
"""Maximum characters of a name that is offered: half of what Anthropic allows, all that other services do."""
MAX_PROPERTY: Final = 64
MAX_TOOLS: Final = 500
"""Maximum number of tools of a request."""
MAX_SERVER_TOOLS: Final = 1_000
"""Maximum number of tools of an MCP server."""
MAX_DESCRIPTION: Final = 4_000
MAX_SCHEMA: Final = 50_000
"""Maximum characters of a schema; a larger one would also cost a chat more than 12,000 tokens a call."""
MAX_SCHEMA_DEPTH: Final = 60
"""Maximum nesting of its JSON: checking it against the meta-schema takes 8 of Python's 1,000 frames per level."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_NOT_IN_PROPERTIES: Final = re.compile(r"[^A-Za-z0-9_.-]")


def name_of(text: str) -> str:
    """A valid tool name: the first 64 characters of the text, with ``_`` in place of characters not allowed."""
    return _NOT_IN_NAMES.sub("_", text[:MAX_NAME]) or "_"


def property_of(text: str) -> str:
    """A valid property name, likewise."""
    return _NOT_IN_PROPERTIES.sub("_", text[:MAX_PROPERTY]) or "_"
