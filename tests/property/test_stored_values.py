"""Every stored class: what is written is read back, a later release may add fields, and no wrong type passes."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import pytest
from dualtrack.codec import APART, TEXT, As, Mismatch, decode, encode
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drivers.stored_classes import library_classes
from tests.long_forms import LONG

EXAMPLES: Final = 100 if LONG else 10
FEW: Final = 20 if LONG else 2
"""Where each field is tried with each value."""


class Column(NamedTuple):
    """A field that `encode` writes."""

    name: str
    key: str
    hint: Any
    is_text: bool
    default: Any


STORED: Final = library_classes()
EACH = pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.__name__)


def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _notes(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is not Annotated:
        return hint, ()
    own, *notes = get_args(hint)
    return own, tuple(notes)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _columns(kind: type) -> list[Column]:
    listed = []
    for field in fields(kind):
        own, notes = _notes(_hints(kind)[field.name])
        if APART not in notes:
            key = next((note.name for note in notes if isinstance(note, As)), field.name)
            listed.append(Column(field.name, key, own, TEXT in notes, _default(field)))
    return listed


def _apart(kind: type) -> list[str]:
    return [name for name, hint in _hints(kind).items() if APART in _notes(hint)[1]]


def _mappings(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.text(max_size=3), values, max_size=2).map(types.MappingProxyType)


_PLAIN: Final[dict[Any, st.SearchStrategy[Any]]] = {
    str: st.text(max_size=5),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    Any: st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2).map(tuple) | _mappings(inner),
        max_leaves=4,
    ),
}


def _tuples(items: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if items[1:] == (...,):
        return st.lists(_values(items[0]), max_size=3).map(tuple)
    return st.tuples(*map(_values, items))


_OF: Final[dict[Any, Callable[[tuple[Any, ...]], st.SearchStrategy[Any]]]] = {
    Annotated: lambda arguments: _values(arguments[0]),
    Literal: st.sampled_from,
    Union: lambda arguments: st.one_of([_values(inner) for inner in arguments]),
    types.UnionType: lambda arguments: st.one_of([_values(inner) for inner in arguments]),
    tuple: _tuples,
    frozenset: lambda arguments: st.frozensets(_values(arguments[0]), max_size=3),
    Mapping: lambda arguments: _mappings(_values(arguments[1])),
}


def _values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type, as the program has them."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint):
        return _OF[get_origin(hint)](get_args(hint))
    return st.builds(hint, **{name: _values(inner) for name, inner in _hints(hint).items()})


def _wrong(hint: Any) -> Any:
    """JSON that is no value of the type; `MISSING` if any JSON is one."""
    own, _ = _notes(hint)
    options = [inner for inner in get_args(own) if inner is not type(None)]
    if get_origin(own) in (Union, types.UnionType):
        return _wrong(options[0])
    if own is Any:
        return MISSING
    return {str: 7, int: "7", bool: 1, float: "7"}.get(own, True)


def _as_json(kind: type, value: Any) -> Any:
    return json.loads(json.dumps(encode(value)))


def _back(kind: type, value: Any, data: Any) -> Any:
    return decode(kind, data, **{name: getattr(value, name) for name in _apart(kind)})


@EACH
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_what_is_stored_is_read_back(kind: type, data: st.DataObject) -> None:
    value = data.draw(_values(kind))
    assert _back(kind, value, _as_json(kind, value)) == value


def _added(written: Any) -> Any:
    return [*written, {"added": 1}] if isinstance(written, list) else {**written, "added": [1]}


@EACH
@settings(max_examples=FEW, deadline=None)
@given(data=st.data())
def test_a_field_of_the_next_release_is_ignored(kind: type, data: st.DataObject) -> None:
    value = data.draw(_values(kind))
    written = _as_json(kind, value)
    if isinstance(written, list):  # in a row it comes after all of today's
        written = [_as_json(kind, getattr(value, column.name)) for column in _columns(kind)]
    assert _back(kind, value, _added(written)) == value


def _without(written: Any, place: int, key: str) -> Any:
    if isinstance(written, list):
        return written[:place]
    return {name: inner for name, inner in written.items() if name != key}


@EACH
@settings(max_examples=FEW, deadline=None)
@given(data=st.data())
def test_each_absent_field_has_its_default(kind: type, data: st.DataObject) -> None:
    value = data.draw(_values(kind))
    for place, column in enumerate(_columns(kind)):
        shorter = _without(_as_json(kind, value), place, column.key)
        if column.default is MISSING:
            with pytest.raises(Mismatch, match=rf"^{kind.__name__}\.{column.name}: absent$"):
                _back(kind, value, shorter)
        else:
            assert getattr(_back(kind, value, shorter), column.name) == column.default


@EACH
@settings(max_examples=FEW, deadline=None)
@given(data=st.data())
def test_a_wrong_type_is_refused_with_its_class_and_field(kind: type, data: st.DataObject) -> None:
    value = data.draw(_values(kind))
    for place, column in enumerate(_columns(kind)):
        wrong = _wrong(column.hint)
        if wrong is MISSING:
            continue
        written = _as_json(kind, value)
        if isinstance(written, list):
            full = [_as_json(kind, getattr(value, inner.name)) for inner in _columns(kind)]
            written = [*full[:place], wrong]
        else:
            written[column.key] = json.dumps(wrong) if column.is_text else wrong
        with pytest.raises(Mismatch, match=rf"^{kind.__name__}\.{column.name}: .* expected"):
            _back(kind, value, written)


def _classes_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for inner in get_args(hint):
        yield from _classes_in(inner)


@EACH
def test_what_a_stored_class_holds_is_stored_too(kind: type) -> None:
    """Its types are found at run time, and the rules of this file hold for each class in it."""
    inner = {found for hint in _hints(kind).values() for found in _classes_in(hint)}
    assert inner <= set(STORED)


def test_there_are_stored_classes() -> None:
    assert len(STORED) > 25
