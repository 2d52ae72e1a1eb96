"""The JSON Schema of ``output_config.format``, which forces an answer: of the dialect that the service's grammars take.

Its structured output has closed objects alone and no bounds; the SDK writes what it leaves out into descriptions. Where
that would forbid what the schema allows (an object with free keys), or the SDK cannot translate it, nothing is forced.
The answer is checked against the whole schema anyway.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dualtrack.frozen import dumps
from dualtrack.output_schema import subschemas

if TYPE_CHECKING:
    from dualtrack.frozen import JsonObject

_LEFT_OUT = ("not", "if", "dependentSchemas", "prefixItems", "contains", "propertyNames", "definitions")


def forced_schema(schema: JsonObject) -> dict[str, Any] | None:
    """The schema for the service; None if it cannot say what the schema says."""
    from dualtrack.models.anthropic_sdk import anthropic  # noqa: PLC0415 - loaded by now: the model was asked

    plain = json.loads(dumps(schema))
    plain.pop("$schema", None)
    if not all(map(_can_be_forced, subschemas(plain))):
        return None
    try:
        return anthropic.transform_schema(plain)
    except (ValueError, TypeError, AttributeError, AssertionError):
        return None


def _can_be_forced(part: dict[str, Any]) -> bool:
    """Objects have named properties alone, and no keyword is left out that an honest answer may need."""
    if any(keyword in part for keyword in _LEFT_OUT):
        return False
    is_open = part.get("additionalProperties", False) is not False
    return not is_open and (part.get("type") != "object" or "properties" in part)
