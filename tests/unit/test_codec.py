"""The stored form of a value, and the way back; `tests/property/test_stored_values.py` has all stored classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from dualtrack.codec import APART, TEXT, As, Mismatch, decode, dump, encode, load, stored


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class File:
    """An image, by its kind."""

    type: Literal["file"]
    size: int


@dataclass(frozen=True, slots=True)
class Words:
    """Text, by its kind."""

    type: Literal["words"]
    text: str


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Range:
    """Stored as a list."""

    first: str
    through: int = 0
    note: str = ""


class Trip(TypedDict):
    """A plain mapping."""

    day: date
    seats: NotRequired[int]


@stored
@dataclass(frozen=True, slots=True)
class Whole:
    """A field of each type."""

    record_id: Annotated[str, APART]
    created_at: Annotated[str, As("at")]
    kind: Literal["a", "b"] | Literal[""] = ""
    seconds: float = 0.0
    small: int | None = None
    parts: tuple[File | Words, ...] = ()
    ranges: tuple[Range, ...] = ()
    pair: tuple[str, int] = ("", 0)
    refused: frozenset[tuple[str, int]] = frozenset()
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    input: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    anything: Any = None
    colour: Colour = Colour.RED
    day: date | None = None
    moment: datetime | None = None
    asked: Annotated[tuple[tuple[int, str], ...], As("a"), TEXT] = ()


WHOLE = Whole(
    "q1",
    "2026-11-23",
    kind="b",
    seconds=2.0,
    small=0,
    parts=(File("file", 3), Words("words", "x")),
    ranges=(Range("a", 3), Range("b", note="n"), Range("c")),
    pair=("x", 1),
    refused=frozenset({("q2", 1), ("q1", 0)}),
    counts=MappingProxyType({"n": 1}),
    input=MappingProxyType({"list": ("a", MappingProxyType({"b": None}))}),
    anything=("x", 1.5),
    colour=Colour.BLUE,
    day=date(2026, 11, 23),
    moment=datetime(2026, 11, 23, 8, 20, tzinfo=UTC),
    asked=((1, "é"),),
)
STORED = {
    "at": "2026-11-23",
    "kind": "b",
    "seconds": 2.0,
    "small": 0,
    "parts": [{"type": "file", "size": 3}, {"type": "words", "text": "x"}],
    "ranges": [["a", 3], ["b", 0, "n"], ["c"]],
    "pair": ["x", 1],
    "refused": [["q1", 0], ["q2", 1]],
    "counts": {"n": 1},
    "input": {"list": ["a", {"b": None}]},
    "anything": ["x", 1.5],
    "colour": "blue",
    "day": "2026-11-23",
    "moment": "2026-11-23T08:20:00+00:00",
    "a": '[[1,"é"]]',
}


def test_a_value_is_stored_and_read_back() -> None:
    assert encode(WHOLE) == STORED
    assert list(encode(WHOLE)) == list(STORED)
    assert decode(Whole, STORED, record_id="q1") == WHOLE
    assert load(Whole, dump(WHOLE), record_id="q1") == WHOLE


def test_nothing_that_is_read_can_be_changed() -> None:
    read = decode(Whole, STORED, record_id="q1")
    assert type(read.counts) is type(read.input) is type(read.input["list"][1]) is MappingProxyType


def test_defaults_are_left_out_and_absent_fields_have_them() -> None:
    least = Whole("q1", "now")
    assert encode(least) == {"at": "now"}
    assert decode(Whole, {"at": "now", "added": 1}, record_id="q1") == least
    assert decode(Range, ["a", 1, "n", "added later"]) == Range("a", 1, "n")


def test_a_class_may_be_stored_with_its_defaults() -> None:
    @stored(whole=True)
    @dataclass(frozen=True, slots=True)
    class Counted:
        ended: int = 0

    assert encode(Counted()) == {"ended": 0}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"at": 1}, "Whole.created_at: text expected, not a int"),
        ({"at": None}, "Whole.created_at: text expected, not a NoneType"),
        ({"kind": "c"}, "Whole.kind: one of ['a', 'b'] expected, or one of [''] expected"),
        ({"kind": []}, "Whole.kind: one of ['a', 'b'] expected, or one of [''] expected"),
        ({"seconds": True}, "Whole.seconds: a number expected, not a bool"),
        ({"small": True}, "Whole.small: a whole number expected, not a bool"),
        ({"small": 1.0}, "Whole.small: a whole number expected, not a float"),
        ({"parts": {}}, "Whole.parts: a list expected, not a dict"),
        ({"parts": "ab"}, "Whole.parts: a list expected, not a str"),
        (
            {"parts": [{"type": "words"}]},
            "Whole.parts[0]: .type one of ['file'] expected, or .text absent",
        ),
        ({"ranges": [["a"], ["b", "c"]]}, "Whole.ranges[1].through: a whole number expected, not a str"),
        ({"ranges": [[]]}, "Whole.ranges[0].first: absent"),
        ({"pair": ["x"]}, "Whole.pair: 2 values expected"),
        ({"pair": ["x", "y"]}, "Whole.pair[1]: a whole number expected, not a str"),
        ({"refused": [["q1", "x"]]}, "Whole.refused[0][1]: a whole number expected, not a str"),
        ({"counts": {"n": "x"}}, "Whole.counts[n]: a whole number expected, not a str"),
        ({"input": ["x"]}, "Whole.input: an object expected, not a list"),
        ({"colour": "green"}, "Whole.colour: one of ['red', 'blue'] expected"),
        ({"day": "today"}, "Whole.day: a date in ISO 8601 expected"),
        ({"a": "["}, "Whole.asked: JSON text expected"),
        ({"a": []}, "Whole.asked: JSON text expected"),
        ({"a": "[[1, 2]]"}, "Whole.asked[0][1]: text expected, not a int"),
        ({"moment": 5}, "Whole.moment: a datetime in ISO 8601 expected"),
    ],
)
def test_a_wrong_type_is_refused_with_class_and_field(change: dict[str, Any], where: str) -> None:
    with pytest.raises(Mismatch, match=f"^{re.escape(where)}$"):
        decode(Whole, STORED | change, record_id="q1")


def test_an_absent_field_without_a_default_is_refused() -> None:
    with pytest.raises(Mismatch, match=r"^Whole\.created_at: absent$"):
        decode(Whole, {}, record_id="q1")
    with pytest.raises(Mismatch, match=r"^Whole\.record_id: absent$"):
        decode(Whole, STORED)
    with pytest.raises(Mismatch, match=r"^Whole: an object expected, not a list$"):
        decode(Whole, [], record_id="q1")


def test_a_field_that_is_stored_apart_is_not_read_from_the_data() -> None:
    assert decode(Whole, {"at": "now", "record_id": "forged"}, record_id="q1").record_id == "q1"


def test_a_plain_mapping_has_types_too() -> None:
    assert decode(Trip, {"day": "2026-11-23", "more": 1}) == {"day": date(2026, 11, 23)}
    assert decode(dict[str, Any], MappingProxyType({"a": (1,)})) == {"a": [1]}
    assert decode(list[Any], ("a", MappingProxyType({}))) == ["a", {}]
    with pytest.raises(Mismatch, match=r"^Trip\.seats: a whole number expected"):
        decode(Trip, {"day": "2026-11-23", "seats": "2"})
    with pytest.raises(Mismatch, match=r"^Trip\.day: absent$"):
        decode(Trip, {})


def test_what_has_no_stored_form_is_an_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="no stored form"):
        encode(object())
    with pytest.raises(TypeError, match="no stored form"):
        decode(complex, 1)
