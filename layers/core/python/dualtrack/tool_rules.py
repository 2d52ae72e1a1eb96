"""The Messages API's rules for tools, and our own bounds within them. Pure.

The service refuses a whole request if one of its tools breaks a rule. So what is offered is checked against these rules
before it is offered, and every server that stands in for the service in a test refuses by the same ones.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps, strict_loads

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = r"^[a-zA-Z0-9_-]{1,128}$"
PROPERTY: Final = r"^[a-zA-Z0-9_.-]{1,64}$"
"""The pattern of a property at the top level of an input schema; the names below it are free."""
NOT_AT_TOP: Final = ("anyOf", "oneOf", "allOf")
"""Keywords that the top level of an input schema may not have."""

MAX_NAME: Final = 64
"""Maximum characters of a name that is offered: half of what the service allows, all that Bedrock does."""
MAX_PROPERTY: Final = 64
MAX_TOOLS: Final = 500
"""Maximum number of tools of a request."""
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


def broken_rule(name: str, schema: Mapping[str, Any]) -> str:
    """The rule that a tool breaks, as the service names it behind ``tools.N.custom.``; empty if it breaks none.

    ``input_schema.properties: Property keys should match pattern '…'``
    """
    if not re.fullmatch(NAME, name):
        return f"name: String should match pattern '{NAME}'"
    if schema.get("type") != "object":
        return "input_schema.type: Input should be 'object'"
    if any(keyword in schema for keyword in NOT_AT_TOP):
        return "input_schema: does not support oneOf, allOf, or anyOf at the top level"
    if problem := schema_problem(schema):
        return f"input_schema: {problem}"
    if not all(re.fullmatch(PROPERTY, key) for key in schema.get("properties", ())):
        return f"input_schema.properties: Property keys should match pattern '{PROPERTY}'"
    return ""


def schema_problem(schema: Mapping[str, Any]) -> str:
    """Why a schema is none of JSON Schema 2020-12, or is too large or too deep; empty if it can be used."""
    try:
        return _problem(dumps(schema))
    except RecursionError:
        return f"it is nested more than {MAX_SCHEMA_DEPTH} levels deep"


@lru_cache(maxsize=256)
def _problem(text: str) -> str:
    """Kept: the schemas of a chat are those of the chat before, and the check takes milliseconds."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - heavy, and not needed to offer a tool
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(strict_loads(text, MAX_SCHEMA, MAX_SCHEMA_DEPTH))
    except ValueError as error:
        return str(error)
    except (SchemaError, RecursionError):
        return "JSON schema is invalid. It must match JSON Schema draft 2020-12"
    return ""
