"""What the OpenAPI document says about a request's answer, and about an event."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack.event_data import EVENTS
from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from collections.abc import Mapping


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """The operation of a request; ``method`` in lower case; None if there is none."""
    wanted = path.rstrip("/").split("/")
    for template, operations in openapi_document(ROUTES)["paths"].items():
        parts = template.split("/")
        if len(parts) == len(wanted) and all(
            part == segment or part.startswith("{") for part, segment in zip(parts, wanted, strict=True)
        ):
            operation: dict[str, Any] | None = operations.get(method)
            return operation
    return None


@functools.cache
def validator_of(reference: str) -> Draft202012Validator:
    """The validator of a schema of the document, by ``#/components/schemas/…``."""
    return Draft202012Validator({**openapi_document(ROUTES), "$ref": reference})


def references_of(schema: Mapping[str, Any]) -> list[str]:
    """The schemas that an answer may have, the fullest first."""
    return [one["$ref"] for one in schema.get("anyOf", [schema])]


def assert_event_documented(number: int, kind: str, data: Mapping[str, Any]) -> None:
    """Check that the document has this event, and that its data matches the schema."""
    assert number >= 1
    validator_of(f"#/components/schemas/{EVENTS[kind].__name__}").validate(data)
