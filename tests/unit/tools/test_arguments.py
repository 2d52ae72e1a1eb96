"""Arguments against a schema that may be untrusted: nothing is fetched, nothing stalls, nothing raises."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.frozen import freeze
from dualtrack.tool_check import schema_problem
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.registry import IN_HOUSE
from dualtrack_stack.local.loopback import serve_in_thread
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def problem(schema: Any, **arguments: Any) -> str:
    spec = replace(IN_HOUSE["retrieve_full_context"], input_schema=freeze(schema))
    return invalid_arguments(spec, freeze(arguments))


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_problems_are_few_and_short_and_located() -> None:
    many = {"type": "object", "additionalProperties": {"type": "integer"}}
    message = problem(many, **{f"a{n}": "x" * 1000 for n in range(9)})
    assert message.startswith("bad arguments: $.a0: 'xxx")
    assert message.count("$.a") == 3
    assert len(message) < 1_000


@pytest.mark.parametrize(
    "schema",
    [
        {**of(a={"type": "integer"}), "$schema": DRAFT_7},
        {**of(a={"$ref": "#/$defs/n"}), "$defs": {"n": {"type": "integer"}}},
        {**of(a={"$ref": "#n"}), "$defs": {"n": {"$anchor": "n", "type": "integer"}}},
        of(a={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        {**of(), "additionalProperties": False},
    ],
)
def test_ordinary_schemas_are_checked(schema: Any) -> None:
    assert problem(schema, a="x").startswith("bad arguments: $")


def test_no_reference_leaves_the_schema() -> None:
    """A server is ready to answer, but gets no request."""
    asked: list[str] = []

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"type": "integer"}'})

    with serve_in_thread(answers) as url:
        for keyword in ("$ref", "$dynamicRef"):
            assert problem(of(a={keyword: f"{url}/schema.json"}), a="x") == ""
        assert problem({**of(a={"$ref": "schema.json"}), "$id": f"{url}/"}, a="x") == ""
        assert problem({**of(a={"type": "string"}), "$schema": f"{url}/schema.json"}, a="x") == ""
    assert asked == []


def _doubling() -> dict[str, Any]:
    """Each definition refers twice to the next one: 2^40 visits."""
    steps = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    return {**of(a={"$ref": "#/$defs/d0"}), "$defs": {**steps, "d40": {"type": "string"}}}


EVIL = "^(a+)+$"
EVIL_TEXT = "a" * 40 + "!"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (of(a={"pattern": EVIL}), EVIL_TEXT),
        (of(a={"$schema": DRAFT_7, "pattern": EVIL}), EVIL_TEXT),
        ({**of(), "patternProperties": {EVIL: False}, "additionalProperties": False}, {EVIL_TEXT: 1}),
        (of(a={"patternProperties": {EVIL: False}, "additionalProperties": False}), {EVIL_TEXT: 1}),
        (of(a={"patternProperties": {EVIL: True}, "unevaluatedProperties": False}), {EVIL_TEXT: 1}),
        (of(a={"propertyNames": {"pattern": EVIL}}), {EVIL_TEXT: 1}),
        (_doubling(), "x"),
        ({"type": "object", "$ref": "#"}, "x"),
        (of(a={"uniqueItems": True}), [n if n % 2 else [n] for n in range(40_000)]),
        (of(a={"items": {"enum": [f"v{n}" for n in range(5_000)]}}), ["v4999"] * 40_000),
        (
            {**of(a={"items": {"$ref": "#z"}}), "$defs": {f"d{n}": {"$anchor": f"n{n}"} for n in range(1_500)} | {"z": {"$anchor": "z"}}},
            [1] * 40_000,
        ),
        (of(a={"multipleOf": 0.5}), 10**400),
    ],
    ids=["pattern", "dialect", "names", "inner names", "unevaluated", "propertyNames", "doubling", "itself", "unique", "enum", "anchors", "number"],
)  # fmt: skip
def test_no_schema_stalls_or_breaks_the_check(schema: Any, value: Any) -> None:
    """Only exponential or quadratic work exceeds the limit, in processor time of this thread."""
    began = time.thread_time()
    assert problem(schema, a=value) == ""
    assert time.thread_time() - began < 20


@pytest.mark.parametrize(
    ("schema", "usable"),
    [
        (of(a={"type": "string"}), True),
        ({**of(), "$schema": DRAFT_7}, True),
        (of(a={"type": "strin"}), False),
        (of(a={"pattern": "("}), False),
        (of(a={"default": float("nan")}), False),
        (of(a={"default": "\ud800"}), False),
        (of(a={"enum": ["x" * 60_000]}), False),
    ],
)
def test_a_tool_is_offered_if_the_service_accepts_its_schema(schema: Any, usable: bool) -> None:
    assert (schema_problem(freeze(schema)) == "") is usable
    if not usable:
        assert problem(schema, a=1) == "", "its server decides"


def test_a_schema_too_deep_is_not_usable() -> None:
    for levels, usable in ((20, True), (150, False)):
        schema: dict[str, Any] = {}
        for _ in range(levels):
            schema = {"properties": {"a": schema}}
        assert (schema_problem(freeze({"type": "object", **schema})) == "") is usable


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
KEYWORDS = st.sampled_from(
    ["type", "enum", "pattern", "$ref", "$id", "$schema", "allOf", "items", "required", "multipleOf", "minimum",
     "patternProperties", "additionalProperties", "if", "not", "contains", "uniqueItems", "$anchor", "$dynamicRef"]
)  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(KEYWORDS, ANY | st.just("#")), st.dictionaries(st.text(), ANY))
def test_whatever_the_schema_and_the_arguments_are_the_check_ends(schema: Any, arguments: Any) -> None:
    assert isinstance(problem({"type": "object", "properties": {"a": schema}}, a=arguments), str)
    assert isinstance(problem(schema, a=arguments), str)
