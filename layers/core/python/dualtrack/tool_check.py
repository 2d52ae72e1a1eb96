"""Whether a tool keeps the Messages API's rules (`dualtrack.tool_rules`). Pure.

Apart from them, because it needs jsonschema, which only the functions that check tools have.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dualtrack.frozen import dumps, strict_loads
from dualtrack.tool_rules import MAX_SCHEMA, MAX_SCHEMA_DEPTH, NAME, NOT_AT_TOP, PROPERTY

if TYPE_CHECKING:
    from collections.abc import Mapping


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
