"""Schemas of answers: which are taken, and what fits them. Both are hostile: nothing takes long, and nothing is read
from elsewhere."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from dualtrack.models.forced_output import forced_schema
from dualtrack.output_check import misfit, written_json
from dualtrack.output_schema import MAX_BYTES, refused_schema
from dualtrack_stack.local.offline_model.schemas import check_output
from dualtrack_stack.local.offline_model.values import smallest

TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}
ORDER = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"item": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}},
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"},
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1},
        "kind": {"enum": ["new", "old"]},
        "note": {"type": ["string", "null"], "maxLength": 10},
    },
    "required": ["id", "items"],
}  # fmt: skip


def doubling(levels: int) -> dict[str, Any]:
    """Each definition names the next one twice."""
    next_one = lambda level: {"$ref": f"#/$defs/d{level + 1}"}  # noqa: E731
    defs = {f"d{level}": {"allOf": [next_one(level), next_one(level)]} for level in range(levels)}
    return {"$defs": {**defs, f"d{levels}": {"type": "string"}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "nonsense"}, "JSON schema is invalid"),
        ({"$ref": "https://example.com/s.json"}, "$ref must name a part of the schema itself"),
        ({"$ref": "file:///etc/passwd"}, "$ref must name a part"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "$ref must name a part"),
        ({"items": {"$id": "https://example.com/"}}, "$id is not supported"),
        ({"items": {"$schema": "http://json-schema.org/draft-04/schema#"}}, "$schema may stand at the top"),
        ({"patternProperties": {"^(a+)+$": {}}}, "patternProperties is not supported"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties is not supported"),
        ({"pattern": "(?=a)b"}, "linear time"),
        ({"pattern": r"(\w{1,50}\s){1,20}!"}, "linear time"),
        ({"pattern": "a" * 201}, "200 characters"),
        ({"anyOf": [{"pattern": str(number)} for number in range(11)]}, "10 different patterns"),
        ({"description": "é" * (MAX_BYTES // 2)}, "32,768 bytes"),
        ({"const": "\ud800"}, "surrogate"),
    ],
)
def test_what_is_refused(schema: dict[str, Any], said: str) -> None:
    assert said in refused_schema(schema)


def test_a_deep_schema_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(3_000):
        deep = {"not": deep}
    assert "nested" in refused_schema(deep)


@pytest.mark.parametrize(
    "schema", [{}, TREE, ORDER, doubling(20), {"properties": {"$ref": {"type": "string"}}}]
)
def test_what_is_taken(schema: dict[str, Any]) -> None:
    assert refused_schema(schema) == ""


@pytest.mark.parametrize(
    ("schema", "answer", "said"),
    [
        (ORDER, '{"id":"AB-1","items":[{"n":1}],"note":null}', ""),
        (ORDER, '{"id":"AB-1","items":[{"n":0}]}', "$.items[0].n: 0 is less than the minimum"),
        (ORDER, '{"id":"ab","items":[{"n":1}]}', "$.id: 'ab' does not match"),
        (ORDER, '{"id":"AB-1"}', "'items' is a required property"),
        (ORDER, '{"id":"AB-1","items":[],"kind":"x","note":7}', "$.items"),
        (TREE, '{"name":"a","parts":[{"name":"b","parts":[{"name":"c"}]}]}', ""),
        (
            TREE,
            '{"name":"a","parts":[{"name":"b","parts":[{}]}]}',
            "$.parts[0].parts[0]: 'name' is a required",
        ),
        (ORDER, "Here it is: {}", "no JSON"),
        (ORDER, "", "no JSON"),
        ({"type": "number"}, "NaN", "not finite"),
        ({"type": "number"}, "1e999", "not finite"),
        ({"type": "null"}, "null", ""),
        ({}, "[" * 5_000 + "]" * 5_000, "nested"),
    ],
)
def test_what_fits(schema: dict[str, Any], answer: str, said: str) -> None:
    problem = misfit(schema, answer)
    assert (said in problem) if said else problem == ""


def test_at_most_three_problems_of_300_characters_are_told() -> None:
    problem = misfit({"items": {"type": "integer"}}, json.dumps(["x" * 1_000] * 40))
    assert (problem.count("; "), len(problem)) == (2, 904)


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        (doubling(40), '"a"'),
        ({"$ref": "#"}, "1"),
        ({"items": {"uniqueItems": True}}, json.dumps([[[number] for number in range(4_000)]])),
        ({"pattern": r"^(([a-z])+.)+[A-Z]([a-z])+$"}, json.dumps("a" * 400_000)),
        (
            {"items": {"anyOf": [{"pattern": r"\w{99}z"}, {"pattern": "(x+x+)+y"}]}},
            json.dumps(["x" * 9_000] * 40),
        ),
        ({"items": {"allOf": [{"minimum": number} for number in range(1_500)]}}, json.dumps([0] * 5_000)),
    ],
    ids=[
        "references that double",
        "a reference to itself",
        "unique lists",
        "a pattern",
        "patterns",
        "many rules",
    ],
)
def test_no_schema_makes_a_check_long(schema: dict[str, Any], answer: str) -> None:
    """Work that is counted ends as a problem; what a regular expression takes is linear in the text."""
    assert refused_schema(schema) == ""
    began = time.process_time()
    assert misfit(schema, answer) != ""
    assert time.process_time() - began < 20  # for ever, if it were exponential


@pytest.mark.parametrize(
    ("text", "json_text"),
    [
        (' {"a": 1}\n', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ("```\n[1]\n```\n", "[1]"),
        ('Here:\n```json\n{"a": 1}\n```', 'Here:\n```json\n{"a": 1}\n```'),
    ],
)
def test_one_code_fence_around_an_answer_is_taken_off(text: str, json_text: str) -> None:
    assert written_json(text) == json_text


def test_what_the_service_is_asked_to_force_is_what_it_takes() -> None:
    """Its grammars have no bounds and closed objects alone; what would forbid an honest answer is not forced."""
    closed = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    forced = forced_schema(closed)
    assert forced is not None
    check_output(forced)
    assert forced["additionalProperties"] is False
    for schema in (
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "object"},
        {"type": ["string", "null"]},
        {},
        {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{}]}}},
    ):
        assert forced_schema(schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        {"type": "array", "items": {"type": "number", "minimum": 5, "multipleOf": 2}, "minItems": 3},
        {
            "anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}],
            "$defs": {"a": {"type": "string", "minLength": 9}},
        },
        {
            "type": "object",
            "properties": {"day": {"type": "string", "format": "date"}, "ok": {"type": "boolean"}},
        },
        {"type": "integer", "exclusiveMaximum": 0},
    ],
)
def test_the_offline_model_has_a_small_value_for_a_schema(schema: dict[str, Any]) -> None:
    assert misfit(schema, json.dumps(smallest(schema))) == ""
