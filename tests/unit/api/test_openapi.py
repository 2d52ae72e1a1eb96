"""The OpenAPI document describes everything, and docs/api.md agrees with it (CONTRACT 4, 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack import events
from dualtrack.api.openapi import CODES, TAGS, answers_of, bodies_of, openapi_document
from dualtrack.api.table import ROUTES
from dualtrack.errors import STATUS_OF_CODE
from dualtrack.event_data import EVENTS
from jsonschema import ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from tests.clients.documented import assert_event_documented, validator_of
from tests.drivers import api_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT = openapi_document(ROUTES)
OPERATIONS = {
    f"{method} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
SCHEMAS = DOCUMENT["components"]["schemas"]
GUIDE = api_samples.without_the_gone(api_samples.GUIDE.read_text())


def test_it_is_valid_openapi_3_1() -> None:
    validate(DOCUMENT, cls=OpenAPIV31SpecValidator)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_route_is_described(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert operation["description"]
    assert len(operation["tags"]) == 1
    assert all(answer["description"] for answer in operation["responses"].values())
    assert operation.get("requestBody", {"description": "none"})["description"]


def test_tags_are_described_and_each_is_used() -> None:
    assert {tag["name"] for tag in DOCUMENT["tags"] if tag["description"]} == {name for name, _, _ in TAGS}
    assert {tag for operation in OPERATIONS.values() for tag in operation["tags"]} == {
        name for name, _, _ in TAGS
    }


def _undescribed() -> Iterator[str]:
    for name, schema in SCHEMAS.items():
        if not schema.get("description"):
            yield name
        yield from (
            f"{name}.{field}"
            for field, declared in schema.get("properties", {}).items()
            if not declared.get("description")
        )
    yield from (
        name
        for name, parameter in DOCUMENT["components"]["parameters"].items()
        if not parameter["description"]
    )


def test_every_type_field_and_parameter_is_described() -> None:
    assert list(_undescribed()) == []


def test_every_error_code_is_described_there_and_in_the_guide() -> None:
    assert set(CODES) == set(STATUS_OF_CODE)
    for code, status in STATUS_OF_CODE.items():
        assert f"| {status} | `{code}` |" in GUIDE
    for field in SCHEMAS["Refusal"]["properties"].keys() - {"code", "message"}:
        assert f"`{field}`" in GUIDE, field


# ── events ────────────────────────────────────────────────────────────────────────────────────────


def test_the_document_has_the_events_that_are_written() -> None:
    source = events.__file__
    with open(source, encoding="utf-8") as file:  # noqa: PTH123 - as a reader would
        text = file.read()
    written = {part.partition('"')[0] for part in text.split('_event(\n        "')[1:]}
    written |= {part.partition('"')[0] for part in text.split('_event("')[1:]}
    assert written == set(EVENTS)
    listed = SCHEMAS["Event"]["oneOf"]
    assert [event["properties"]["event"]["const"] for event in listed] == list(EVENTS)
    assert all(f"### `{name}`" in GUIDE for name in EVENTS)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("turn", {"turn": 0, "max_turns": 15, "final": False}),
        ("turn", {"turn": 1, "max_turns": 15}),
        ("delta", {"turn": 1, "text": "a", "more": 1}),
        ("retrying", {"turn": 1, "reason": "asleep", "seconds": 1}),
        ("tool_result", {"id": "q1-t1", "tool": "a", "is_error": False, "seconds": 0, "preview": "x" * 501}),
    ],
)
def test_an_event_with_other_fields_is_invalid(kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        assert_event_documented(1, kind, {"chat_id": "ch_1", "at": "2026-11-22T18:00:00Z", **data})


# ── samples ───────────────────────────────────────────────────────────────────────────────────────


def test_every_body_and_every_event_has_a_sample_that_fits() -> None:
    samples = api_samples.stored()
    for kind, sample in samples["bodies"].items():
        validator_of(f"#/components/schemas/{kind}").validate(sample)
    for sample in samples["errors"].values():
        validator_of("#/components/schemas/Error").validate(sample)
    for sample in (*samples["events"].values(), *samples["stream"]):
        assert_event_documented(int(sample["id"]), sample["event"], sample["data"])
    assert {event["event"] for event in samples["events"].values()} == set(EVENTS)
    answered = {bodies_of(kind)[0] for route in ROUTES for kind in answers_of(route).values()}
    shown = {kind.__name__ for kind in (*answered, *(route.body for route in ROUTES)) if kind}
    assert shown - set(samples["bodies"]) == {"Event", "OpenAPI", "bytes", "NoneType"}


def test_the_guide_shows_the_samples_and_every_route() -> None:
    """To regenerate it, see tests/e2e/test_api_samples.py."""
    assert api_samples.filled(GUIDE, api_samples.stored()) == GUIDE
    shown = set(api_samples.shown_in(GUIDE))
    assert {f"events.{name}" for name in api_samples.stored()["events"]} <= shown
    assert len(shown) == GUIDE.count("<!-- sample ")
