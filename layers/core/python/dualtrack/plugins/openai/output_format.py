"""The form of an answer as OpenAI's API asks for it (CONTRACT 10): ``response_format`` of a chat completion,
``text.format`` of a response → the JSON Schema of our own structured output. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.errors import invalid_request
from dualtrack.frozen import freeze
from dualtrack.output_schema import refused_schema

if TYPE_CHECKING:
    from dualtrack.frozen import JsonObject

ANY_OBJECT: Final[JsonObject] = freeze({"type": "object"})
"""What ``json_object`` asks for."""


def output_schema(form: object, field: str) -> JsonObject | None:
    """The schema; None for text. ``field``: what the form is called in a refusal. Raises 400."""
    if form is None:
        return None
    if not isinstance(form, dict):
        raise invalid_request(f"{field}: must be an object.")
    kind = form.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return ANY_OBJECT
    if kind != "json_schema":
        raise invalid_request(f"{field}.type: text, json_object or json_schema.")
    nested = form.get("json_schema")
    schema = (nested if isinstance(nested, dict) else form).get("schema")
    if not isinstance(schema, dict):
        raise invalid_request(f"{field}: json_schema needs a schema, an object.")
    if problem := refused_schema(schema):
        raise invalid_request(f"{field}: {problem}")
    return freeze(schema)
