"""Types of a tool's parameters: the schema that the model sees, and the value that the function gets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, NewType, NotRequired, TypedDict

import pytest
from annotated_types import Ge, Gt, Interval, Le, Len, Lt, MaxLen, MinLen, MultipleOf, Predicate
from dualtrack import tool
from dualtrack.frozen import freeze, thaw
from dualtrack.tool_declaration import Declaration, declared
from dualtrack.tool_signature import ToolDeclarationError
from dualtrack.tool_values import ToolSpec
from dualtrack.tools.arguments import invalid_arguments
from pydantic import BaseModel, Field


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    """A place on the map."""

    x: float
    y: Annotated[float, Ge(0), "Up."] = 0.0
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Line:
    start: Point
    end: Point


class Person(TypedDict):
    name: str
    age: NotRequired[int]


class Order(BaseModel):
    day: date
    lines: list[Item] = []


class Item(BaseModel):
    amount: Annotated[int, Field(ge=1)]


City = NewType("City", str)
POINT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "x": {"type": "number"},
        "y": {"type": "number", "minimum": 0, "description": "Up."},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["x"],
    "additionalProperties": False,
    "description": "A place on the map.",
}


def made(hint: Any, default: Any = ...) -> Declaration:
    """A tool with a parameter of this type, which returns what it got as Python shows it."""

    def show(value: Any) -> str:
        return repr(value)

    show.__annotations__ = {"value": hint}
    show.__doc__ = "Shows it."
    if default is not ...:
        show.__defaults__ = (default,)
    declaration = declared(tool(show))
    assert declaration
    return declaration


def schema(hint: Any) -> dict[str, Any]:
    found: dict[str, Any] = thaw(made(hint).signature.input_schema)["properties"]["value"]
    return found


def refused(hint: Any, value: Any) -> str:
    """Why the arguments are refused before the call is paid; empty if they are taken."""
    spec = ToolSpec("show", "", made(hint).signature.input_schema, "tool")
    return invalid_arguments(spec, freeze({"value": value}))


def got(hint: Any, value: Any) -> str:
    """What the function gets for an argument that is taken."""
    assert refused(hint, value) == ""
    result = made(hint).call(freeze({"value": value}))
    assert not result.is_error, result.content
    return result.content


@pytest.mark.parametrize(
    ("hint", "wanted"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (City, {"type": "string"}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (frozenset[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (dict, {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (str | None, {"type": ["string", "null"]}),
        (int | str, {"type": ["integer", "string"]}),
        (list[int] | None, {"type": ["array", "null"], "items": {"type": "integer"}}),
        (str | list[str], {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1, None], {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
        (Literal["a"] | None, {"type": ["string", "null"], "enum": ["a", None]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1]}),
        (date, {"type": "string", "format": "date"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (Point, POINT),
        (
            Person,
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                "required": ["name"],
                "additionalProperties": False,
            },
        ),
        (Annotated[str, "A city."], {"type": "string", "description": "A city."}),
        (Annotated[str | None, "A city."], {"type": ["string", "null"], "description": "A city."}),
        (Annotated[Point, "Where."], {**POINT, "description": "Where."}),
        (Annotated[int, Ge(1), Le(7)], {"type": "integer", "minimum": 1, "maximum": 7}),
        (Annotated[int | None, Ge(1)], {"type": ["integer", "null"], "minimum": 1}),
        (Annotated[float, Gt(0), Lt(1)], {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        (Annotated[float, Interval(ge=0, lt=1)], {"type": "number", "minimum": 0, "exclusiveMaximum": 1}),
        (Annotated[int, MultipleOf(5)], {"type": "integer", "multipleOf": 5}),
        (Annotated[str, MinLen(1), MaxLen(9)], {"type": "string", "minLength": 1, "maxLength": 9}),
        (Annotated[list, Len(1, 3)], {"type": "array", "minItems": 1, "maxItems": 3}),  # type: ignore[implicit-any-type-argument]
        (Annotated[dict, MaxLen(3)], {"type": "object", "maxProperties": 3}),  # type: ignore[implicit-any-type-argument]
        (
            Annotated[int, Field(ge=1, description="How many.")],
            {"type": "integer", "minimum": 1, "description": "How many."},
        ),
        (
            list[Annotated[str, MinLen(1)]],
            {"type": "array", "items": {"type": "string", "minLength": 1}},
        ),
    ],
)
def test_a_type_has_its_schema(hint: Any, wanted: Any) -> None:
    assert schema(hint) == wanted


@pytest.mark.parametrize(
    ("hint", "value", "wanted"),
    [
        (str, "é", "'é'"),
        (int, 2, "2"),
        (int, 2.0, "2"),
        (float, 2, "2.0"),
        (float, 2.5, "2.5"),
        (bool, True, "True"),
        (None, None, "None"),
        (Any, [{"a": 1}], "[{'a': 1}]"),
        (City, "Rome", "'Rome'"),
        (list[float], [1], "[1.0]"),
        (tuple[int, str], [1, "a"], "(1, 'a')"),
        (frozenset[int], [1], "frozenset({1})"),
        (dict, {"a": [1]}, "{'a': [1]}"),
        (dict[str, float], {"a": 1}, "{'a': 1.0}"),
        (str | None, None, "None"),
        (int | str, "1", "'1'"),
        (Literal["a", 1], 1, "1"),
        (Colour, "red", "<Colour.RED: 'red'>"),
        (Level, 1, "<Level.LOW: 1>"),
        (date, "2026-03-01", "datetime.date(2026, 3, 1)"),
        (datetime, "2026-03-01T10:00:00Z", repr(datetime(2026, 3, 1, 10, tzinfo=UTC))),
        (datetime, "2026-03-01T10:00", "datetime.datetime(2026, 3, 1, 10, 0)"),
        (Point, {"x": 1}, "Point(x=1.0, y=0.0, tags=[])"),
        (
            list[Line],
            [{"start": {"x": 0}, "end": {"x": 1, "y": 2}}],
            "[Line(start=Point(x=0.0, y=0.0, tags=[]), end=Point(x=1.0, y=2.0, tags=[]))]",
        ),
        (Person, {"name": "Ann"}, "{'name': 'Ann'}"),
        (Annotated[int, Field(ge=1)], 1, "1"),
        (
            Order,
            {"day": "2026-03-01", "lines": [{"amount": 2}]},
            "Order(day=datetime.date(2026, 3, 1), lines=[Item(amount=2)])",
        ),
    ],
)
def test_an_argument_becomes_its_type(hint: Any, value: Any, wanted: str) -> None:
    assert got(hint, value) == wanted


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str, 1),
        (str, None),
        (int, "1"),
        (int, 1.5),
        (int, True),
        (float, "1"),
        (float, True),
        (bool, 1),
        (bool, "true"),
        (list[int], [1, "2"]),
        (list[int], 1),
        (dict[str, int], {"a": "1"}),
        (int | str, True),
        (Literal["a"], "b"),
        (Literal[1], True),
        (Colour, "RED"),
        (date, "01/03/2026"),
        (date, "2026-02-30"),
        (datetime, "tomorrow"),
        (Point, {"y": 1}),
        (Point, {"x": 1, "z": 1}),
        (Person, {"age": 1}),
        (Annotated[int, Ge(1)], 0),
        (Annotated[int, Le(7)], 8),
        (Annotated[float, Gt(0)], 0),
        (Annotated[float, Lt(1)], 1),
        (Annotated[int, MultipleOf(5)], 6),
        (Annotated[str, MinLen(1)], ""),
        (Annotated[str, MaxLen(1)], "ab"),
        (Annotated[list, Len(1, 2)], [1, 2, 3]),  # type: ignore[implicit-any-type-argument]
    ],
)
def test_what_is_not_of_the_type_is_refused_before_it_is_paid(hint: Any, value: Any) -> None:
    assert refused(hint, value).startswith("bad arguments: $.value")


def test_what_a_model_refuses_is_an_error_result() -> None:
    """Its schema cannot say everything: pydantic checks the rest."""
    result = made(Order).call({"value": {"day": "2026-03-01", "lines": [{"amount": "2"}]}})
    assert result.is_error
    assert result.content == (
        "Tool execution failed: bad arguments: $.value.lines.0.amount: Input should be a valid integer."
    )


def test_what_a_model_refers_to_stands_at_the_root() -> None:
    whole = thaw(made(list[Order]).signature.input_schema)
    assert whole["properties"]["value"]["items"]["properties"]["lines"]["items"] == {"$ref": "#/$defs/Item"}
    assert whole["$defs"]["Item"]["properties"]["amount"]["minimum"] == 1
    assert refused(list[Order], [{"day": "2026-03-01", "lines": [{"amount": 0}]}])


@pytest.mark.parametrize(
    ("hint", "default", "wanted"),
    [
        (int, 1, {"type": "integer", "default": 1}),
        (str | None, None, {"type": ["string", "null"]}),
        (Colour, Colour.RED, {"type": "string", "enum": ["red", "blue"], "default": "red"}),
        (date, date(2026, 3, 1), {"type": "string", "format": "date", "default": "2026-03-01"}),
        (Point, Point(1), {**POINT, "default": {"x": 1, "y": 0.0, "tags": []}}),
    ],
)
def test_a_default_is_shown_and_need_not_be_passed(hint: Any, default: Any, wanted: Any) -> None:
    declaration = made(hint, default)
    whole = thaw(declaration.signature.input_schema)
    assert (whole["properties"]["value"], whole["required"]) == (wanted, [])
    assert declaration.call({}).content == repr(default)


class Pair(NamedTuple):
    one: int


@dataclass
class Node:
    children: list[Node]


@dataclass
class Hidden:
    of: Nowhere  # type: ignore[name-defined]  # noqa: F821


class Odd(Enum):
    NOT_JSON = Decimal(1)


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (bytes, "bytes has no JSON Schema: write str,"),
        (Decimal, "Decimal has no JSON Schema"),
        (Path, "Path has no JSON Schema"),
        (object, "object has no JSON Schema"),
        (set[str], "set has no JSON Schema"),
        (Callable[[], None], "Callable has no JSON Schema"),
        (Pair, "Pair has no JSON Schema"),
        (list[bytes], "bytes has no JSON Schema"),
        (dict[int, str], "has keys that are no text: write dict[str, …]"),
        (Node, "Node holds itself: write dict[str, Any]"),
        (Hidden, "Hidden names Nowhere, which is not known"),
        (Odd, "has the choice Decimal('1'): write text, numbers, True, False or None"),
        (Annotated[str, Ge(1)], "has the limit Ge(ge=1), which does not fit it"),
        (Annotated[int, MaxLen(1)], "which does not fit it"),
        (Annotated[date, Ge(date(2026, 1, 1))], "which does not fit it"),
        (Annotated[str, Predicate(str.isdigit)], "which JSON Schema cannot say: check it in the tool"),
        ("Nowhere", "the type Nowhere is not known here: import or define it above the tool"),
        ("1 +", "cannot be read"),
    ],
)
def test_a_type_without_a_schema_is_refused(hint: Any, said: str) -> None:
    with pytest.raises(ToolDeclarationError) as caught:
        made(hint)
    message = str(caught.value)
    assert said in message
    assert message.startswith(f"{__file__}:")
    assert "parameter 'value'" in message


def test_pydantic_is_never_imported() -> None:
    program = (
        "import sys\nfrom dualtrack import tool\n"
        "@tool\ndef f(a: dict[str, int], b: int = 1) -> str:\n    'Does.'\n    return str(a['x'] + b)\n"
        "from dualtrack.tool_declaration import declared\n"
        "print(declared(f).call({'a': {'x': 1}}).content)\n"
        "print([name for name in ('pydantic', 'annotated_types', 'boto3', 'jsonschema') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split("\n")[:2] == ["2", "[]"]
