"""Legal forms of what servers list, and the way back to their own names."""

from __future__ import annotations

from typing import Any

import pytest
from dualtrack.tool_check import broken_rule
from dualtrack.tool_rules import PROPERTY, name_of, property_of
from dualtrack.tools.mcp.legal import NoLegalFormError, legal_names, legal_schema, own_arguments
from hypothesis import given
from hypothesis import strategies as st

DRIVE = {
    "type": "object",
    "properties": {
        "$top": {"type": "integer", "description": "How many."},
        "_top": {"type": "string"},
        "@microsoft.graph.conflictBehavior": True,
        "item.id": {"$ref": "#/properties/$top/x~1y"},
    },
    "required": ["$top", "item.id"],
    "dependentRequired": {"$top": ["_top", "$top"]},
    "if": {"required": ["$top"]},
    "additionalProperties": False,
}


def test_properties_get_legal_names_and_their_own_as_titles() -> None:
    schema, renamed = legal_schema(DRIVE)
    (top,) = (legal for legal, own in renamed.items() if own == "$top")
    assert top.startswith("_top_"), "the server's own _top keeps its name"
    assert renamed == {top: "$top", "_microsoft.graph.conflictBehavior": "@microsoft.graph.conflictBehavior"}
    assert schema == {
        "type": "object",
        "properties": {
            top: {"title": "$top", "type": "integer", "description": "How many."},
            "_top": {"type": "string"},
            "_microsoft.graph.conflictBehavior": {"title": "@microsoft.graph.conflictBehavior"},
            "item.id": {"$ref": f"#/properties/{top}/x~1y"},
        },
        "required": [top, "item.id"],
        "dependentRequired": {top: ["_top", top]},
        "additionalProperties": False,
    }
    assert own_arguments({top: 3, "_top": "a", "other": 1}, renamed) == {"$top": 3, "_top": "a", "other": 1}


def test_a_legal_schema_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"properties": {"$b": {}}}}, "if": {"required": ["a"]}}
    assert legal_schema(schema) == (schema, {})
    assert broken_rule("tool", schema) == ""


@pytest.mark.parametrize("target", ["#", "", "#self", "https://example.org/schema"])
def test_a_schema_that_refers_to_itself_as_a_whole_has_no_legal_form(target: str) -> None:
    inner: dict[str, Any] = {"$top": {}, "next": {"items": {"$ref": target}}}
    with pytest.raises(NoLegalFormError, match="refers to itself"):
        legal_schema({"type": "object", "properties": inner})


@given(st.lists(st.text(max_size=80), max_size=12), st.sampled_from([property_of, name_of]))
def test_legal_names_are_legal_distinct_and_the_same_in_any_order(own: list[str], legal: Any) -> None:
    names = legal_names(own, legal)
    assert set(names) == set(own)
    assert len(set(names.values())) == len(names)
    assert all(legal(name) == name for name in names.values())
    assert names == legal_names(reversed(own), legal)


@given(st.dictionaries(st.text(max_size=70), st.integers(), max_size=8))
def test_every_argument_gets_its_own_name_back(arguments: dict[str, int]) -> None:
    schema, renamed = legal_schema({"type": "object", "properties": dict.fromkeys(arguments, True)})
    assert broken_rule("tool", schema) == ""
    by_own = {renamed.get(legal, legal): legal for legal in schema["properties"]}
    sent = {by_own[own]: value for own, value in arguments.items()}
    assert own_arguments(sent, renamed) == arguments


@pytest.mark.parametrize(
    ("name", "schema", "rule"),
    [
        ("a b", {"type": "object"}, "name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
        ("a" * 129, {"type": "object"}, "name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
        ("a\n", {"type": "object"}, "name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
        ("a", {"type": "array"}, "input_schema.type: Input should be 'object'"),
        (
            "a",
            {"type": "object", "anyOf": []},
            "input_schema: does not support oneOf, allOf, or anyOf at the top level",
        ),
        (
            "a",
            {"type": "object", "properties": {"$top": {}}},
            f"input_schema.properties: Property keys should match pattern '{PROPERTY}'",
        ),
        (
            "a",
            {"type": "object", "properties": {"x" * 65: {}}},
            f"input_schema.properties: Property keys should match pattern '{PROPERTY}'",
        ),
        (
            "a",
            {"type": "object", "properties": 3},
            "input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
        ),
    ],
)
def test_a_broken_rule_is_named_as_the_service_names_it(name: str, schema: Any, rule: str) -> None:
    assert broken_rule(name, schema) == rule
