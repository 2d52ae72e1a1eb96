"""Values of typed fields as JSON, and back: the one form in which frozen dataclasses are stored.

    encode(value)           ─► dicts, lists, text, numbers: for `json.dumps`, or as attributes of an item
    decode(Shared, data)    ─► the value; `Mismatch` names the class and the field that is wrong

A field that has its default is left out, an absent one gets it, an unknown one is ignored: so the next release may add
a field with a default, and a default never changes. Nothing is converted but whole numbers to a `float`.

`stored` marks a class whose values are stored. What its annotations name is imported at run time (ruff reads the mark:
TC004), and `tests/property/test_stored_values.py` tests each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
    overload,
)

from dualtrack.frozen import freeze, thaw

T = TypeVar("T")
FieldReader = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class As:
    """In `Annotated`: the short name under which a field is stored, where items must stay small."""

    name: str


class _Note(Enum):
    APART = "apart"
    TEXT = "text"


APART: Final = _Note.APART
"""In `Annotated`: the field is stored apart, in a key or a body. `encode` leaves it out, and `decode` is given it."""
TEXT: Final = _Note.TEXT
"""In `Annotated`: the field is stored as JSON text. For attributes of an item: DynamoDB's client takes much longer to
read a list than a text, and its numbers are whole."""


class Mismatch(ValueError):
    """A value does not have its declared type: ``Record.call.media[0].size: a whole number expected, not a str``."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}")
        self.reason, self.where = reason, where

    def within(self, outer: str) -> Mismatch:
        """The same, found inside this field, element or class."""
        return Mismatch(self.reason, outer + self.where)


# ── marks ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Form:
    row: bool
    whole: bool


_FORMS: Final[dict[type, _Form]] = {}
_USUAL: Final = _Form(row=False, whole=False)


@overload
def stored(cls: type[T], /) -> type[T]: ...
@overload
def stored(*, row: bool = False, whole: bool = False) -> Callable[[type[T]], type[T]]: ...
def stored(cls: type[T] | None = None, /, *, row: bool = False, whole: bool = False) -> Any:
    """Mark a frozen dataclass as stored.

    ``row``: as a list of its fields in order, without the defaults at its end; fields are added at the end alone.
    ``whole``: with its defaults too, because a release may change them, or a condition compares them.
    """

    def mark(cls: type[T]) -> type[T]:
        _FORMS[cls] = _Form(row, whole)
        return cls

    return mark if cls is None else mark(cls)


def stored_classes() -> tuple[type, ...]:
    """Every class marked so far."""
    return tuple(_FORMS)


# ── encode ────────────────────────────────────────────────────────────────────────────────────────


def dump(value: Any) -> str:
    """`encode` as compact JSON."""
    return json.dumps(encode(value), ensure_ascii=False, separators=(",", ":"))


def encode(value: Any) -> Any:
    """The stored form of a value, with the keys in the order of its fields."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    return (_WRITERS.get(kind) or _writer(kind))(value)


def _writer(kind: type) -> Callable[[Any], Any]:
    """How values of this run-time type are written."""
    if is_dataclass(kind):
        write = _write_row(kind) if _FORMS.get(kind, _USUAL).row else _write_object(kind)
        _WRITERS[kind] = write
        return write
    for known, write in _WRITERS.items():
        if issubclass(kind, known):
            return write
    raise TypeError(f"{kind.__name__} has no stored form")


def _write_object(kind: type) -> Callable[[Any], dict[str, Any]]:
    whole = _FORMS.get(kind, _USUAL).whole
    columns = [
        (column.name, column.key, MISSING if whole else column.default, dump if column.text else encode)
        for column in _columns(kind)
        if not column.apart
    ]

    def write(value: Any) -> dict[str, Any]:
        written = {}
        for name, key, default, form in columns:
            field = getattr(value, name)
            if default is MISSING or field != default:
                written[key] = form(field)
        return written

    return write


def _write_row(kind: type) -> Callable[[Any], list[Any]]:
    columns = [(column.name, column.default) for column in _columns(kind)]
    last_first = columns[::-1]

    def write(value: Any) -> list[Any]:
        left_out = 0
        for name, default in last_first:
            if default is MISSING or getattr(value, name) != default:
                break
            left_out += 1
        return [encode(getattr(value, name)) for name, _ in columns[: len(columns) - left_out]]

    return write


def _write_list(value: Any) -> list[Any]:
    return [encode(item) for item in value]


def _write_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: encode(item) for key, item in value.items()}


_PLAIN: Final = frozenset({str, int, float, bool, NoneType})
_WRITERS: Final[dict[type, Callable[[Any], Any]]] = {
    tuple: _write_list,
    list: _write_list,
    dict: _write_mapping,
    MappingProxyType: _write_mapping,
    frozenset: lambda value: _write_list(sorted(value)),
    date: date.isoformat,
    datetime: datetime.isoformat,
    Enum: lambda value: value.value,
}


# ── decode ────────────────────────────────────────────────────────────────────────────────────────


def load(kind: type[T], text: str | bytes, /, **given: Any) -> T:
    """`decode` from JSON text."""
    return decode(kind, json.loads(text), **given)


def decode(kind: type[T], data: Any, /, **given: Any) -> T:
    """The value of a class from its stored form. ``given``: fields that are stored apart, as they are.

    Raises `Mismatch`.
    """
    hint: Any = kind
    try:
        value: T = reader(hint)(data, **given)
    except Mismatch as error:
        raise error.within(kind.__name__) from None
    return value


@cache
def reader(hint: Any) -> FieldReader:
    """How data become a value of this type, checked; a dataclass's takes fields that are given besides."""
    hint = unaliased(hint)
    if hint in _READERS:
        return _READERS[hint]
    if make := _MAKERS.get(get_origin(hint)):
        return make(get_args(hint))
    if isinstance(hint, type) and is_dataclass(hint):
        return _row(hint) if _FORMS.get(hint, _USUAL).row else _object(hint)
    if is_typeddict(hint):
        return _typed_dict(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if callable(validate := getattr(hint, "model_validate_json", None)):
        return _pydantic(validate)
    raise TypeError(f"{hint} has no stored form")


def unaliased(hint: Any) -> Any:
    """What a ``type X = …`` or a NewType stands for."""
    while under := getattr(hint, "__supertype__", None) or (
        type(hint).__name__ == "TypeAliasType" and hint.__value__
    ):
        hint = under
    return hint


def _pydantic(validate: Callable[..., Any]) -> FieldReader:
    """A model's own check, which converts no more than ours."""

    def read(data: Any) -> Any:
        try:
            return validate(json.dumps(thaw(data)), strict=True)
        except ValueError as error:
            listed: Any = getattr(error, "errors", list)()
            first: Any = listed[0] if listed else {"loc": (), "msg": str(error)}
            raise Mismatch(first["msg"], "".join(f".{part}" for part in first["loc"])) from None

    return read


@dataclass(frozen=True, slots=True)
class _Column:
    """A field: its name, its name in the stored form, its default (or `MISSING`), its type."""

    name: str
    key: str
    default: Any
    hint: Any
    apart: bool
    text: bool

    @property
    def known(self) -> tuple[str, Any, FieldReader]:
        """Its name, the one class that its values have if there is one, its reader."""
        if self.text:
            return self.name, None, _json_text(reader(self.hint))
        return self.name, self.hint if self.hint in _PLAIN else None, reader(self.hint)


@cache
def _columns(kind: type) -> tuple[_Column, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_column(field, hints[field.name]) for field in fields(kind))


def _column(field: Field[Any], hint: Any) -> _Column:
    own, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    short = next((note.name for note in notes if isinstance(note, As)), field.name)
    made = field.default_factory
    default = field.default if made is MISSING else made()
    return _Column(field.name, short, default, own, APART in notes, TEXT in notes)


_Known = Mapping[str, tuple[str, Any, FieldReader]]
"""`_Column.known` by stored name."""


def _read_fields(known: _Known, data: Any, values: dict[str, Any]) -> dict[str, Any]:
    """``values`` with the known ones of ``data``."""
    for key, value in _mapping_in(data).items():
        if column := known.get(key):
            name, exact, read = column
            try:
                values[name] = value if type(value) is exact else read(value)
            except Mismatch as error:
                raise error.within(f".{name}") from None
    return values


def _object(kind: Any) -> FieldReader:
    columns = _columns(kind)
    required = frozenset(column.name for column in columns if column.default is MISSING)
    known: dict[str, tuple[str, Any, FieldReader]] = {}

    def read(data: Any, /, **given: Any) -> Any:
        if not known:  # at its first use: a class may hold itself
            known.update({column.key: column.known for column in columns if not column.apart})
        values = _read_fields(known, data, given)
        if not required <= values.keys():
            raise _absent(required - values.keys())
        return kind(**values)

    return read


def _row(kind: Any) -> FieldReader:
    columns = _columns(kind)
    needed = sum(column.default is MISSING for column in columns)
    readers = [(column.name, reader(column.hint)) for column in columns]

    def read(data: Any) -> Any:
        values = []
        for (name, of), value in zip(readers, _list_in(data), strict=False):
            try:
                values.append(of(value))
            except Mismatch as error:
                raise error.within(f".{name}") from None
        if len(values) < needed:
            raise _absent({readers[len(values)][0]})
        return kind(*values)

    return read


def _typed_dict(kind: Any) -> FieldReader:
    hints = get_type_hints(kind, include_extras=True)
    known = {key: (key, None, reader(hint)) for key, hint in hints.items()}
    loose = {key for key, hint in hints.items() if get_origin(hint) is NotRequired}
    required = frozenset(kind.__required_keys__) - loose

    def read(data: Any) -> dict[str, Any]:
        values = _read_fields(known, data, {})
        if not required <= values.keys():
            raise _absent(required - values.keys())
        return values

    return read


def _enum(kind: Any) -> FieldReader:
    by_value = {(type(member.value), member.value): member for member in kind}

    def read(value: Any) -> Any:
        try:
            return by_value[type(value), value]
        except (KeyError, TypeError):
            raise Mismatch(f"one of {[member.value for member in kind]} expected") from None

    return read


def _json_text(read: FieldReader) -> FieldReader:
    def read_text(value: Any) -> Any:
        try:
            data = json.loads(value)
        except (TypeError, ValueError):
            raise Mismatch("JSON text expected") from None
        return read(data)

    return read_text


def _exactly(kind: type, words: str) -> FieldReader:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise _unexpected(words, value)
        return value

    return read


def _number(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise _unexpected("a number", value)
    return float(value)


def _moment(kind: type[date]) -> FieldReader:
    def read(value: Any) -> date:
        try:
            return kind.fromisoformat(value)
        except (TypeError, ValueError):
            raise Mismatch(f"a {kind.__name__} in ISO 8601 expected") from None

    return read


def _literal(allowed: tuple[Any, ...]) -> FieldReader:
    known = {(type(value), value) for value in allowed}

    def read(value: Any) -> Any:
        try:
            if (type(value), value) in known:
                return value
        except TypeError:  # a list, a mapping
            pass
        raise Mismatch(f"one of {list(allowed)} expected")

    return read


def _union(options: tuple[Any, ...]) -> FieldReader:
    """The first option that fits: classes are told apart by the Literal that each of them has."""
    rest = [reader(option) for option in options if option is not NoneType]
    optional = NoneType in options
    if optional and len(rest) == 1:
        (only,) = rest
        return lambda value: None if value is None else only(value)

    def read(value: Any) -> Any:
        if optional and value is None:
            return None
        reasons = []
        for option in rest:
            try:
                return option(value)
            except Mismatch as error:
                reasons.append(f"{error.where} {error.reason}".strip())
        raise Mismatch(", or ".join(dict.fromkeys(reasons)))

    return read


def _tuple(items: tuple[Any, ...]) -> FieldReader:
    if len(items) == 2 and items[1] is Ellipsis:
        read = _items(items[0])
        return lambda data: tuple(read(data))
    readers = [reader(item) for item in items]

    def read_all(data: Any) -> tuple[Any, ...]:
        if len(_list_in(data)) != len(readers):
            raise Mismatch(f"{len(readers)} values expected")
        return tuple(_at(index, readers[index], value) for index, value in enumerate(data))

    return read_all


def _items(hint: Any, of: FieldReader | None = None) -> Callable[[Any], list[Any]]:
    exact, read = (hint if hint in _PLAIN else None), of or reader(hint)

    def read_items(data: Any) -> list[Any]:
        return [
            value if type(value) is exact else _at(index, read, value)
            for index, value in enumerate(_list_in(data))
        ]

    return read_items


def _at(place: Any, read: FieldReader, value: Any) -> Any:
    try:
        return read(value)
    except Mismatch as error:
        raise error.within(f"[{place}]") from None


def _values(hint: Any, of: FieldReader | None = None) -> Callable[[Any], dict[str, Any]]:
    read = of or reader(hint)
    return lambda data: {str(key): _at(key, read, value) for key, value in _mapping_in(data).items()}


def _mapping(arguments: tuple[Any, ...]) -> FieldReader:
    if arguments[1] is Any:
        return lambda data: freeze(_mapping_in(data))
    read = _values(arguments[1])
    return lambda data: MappingProxyType(read(data))


def _frozenset(arguments: tuple[Any, ...]) -> FieldReader:
    read = _items(arguments[0])
    return lambda data: frozenset(read(data))


def _as_it_is(hint: Any) -> FieldReader | None:
    """For what is inside a plain list or dict: nothing in it is frozen."""
    return thaw if hint is Any else None


def _list_in(data: Any) -> list[Any] | tuple[Any, ...]:
    if type(data) is not list and type(data) is not tuple:
        raise _unexpected("a list", data)
    return data


def _mapping_in(data: Any) -> Mapping[str, Any]:
    if type(data) is not dict and type(data) is not MappingProxyType:
        raise _unexpected("an object", data)
    return data


def _unexpected(words: str, value: Any) -> Mismatch:
    """Without the value, which may be anybody's words."""
    return Mismatch(f"{words} expected, not a {type(value).__name__}")


def _absent(names: set[str] | frozenset[str]) -> Mismatch:
    return Mismatch("absent", f".{min(names)}")


_READERS: Final[dict[Any, FieldReader]] = {
    Any: freeze,
    str: _exactly(str, "text"),
    int: _exactly(int, "a whole number"),
    bool: _exactly(bool, "true or false"),
    NoneType: _exactly(NoneType, "nothing"),
    float: _number,
    date: _moment(date),
    datetime: _moment(datetime),
    list: lambda data: thaw(_list_in(data)),
    dict: lambda data: thaw(_mapping_in(data)),
}
_MAKERS: Final[dict[Any, Callable[[tuple[Any, ...]], FieldReader]]] = {
    Annotated: lambda arguments: reader(arguments[0]),
    Required: lambda arguments: reader(arguments[0]),
    NotRequired: lambda arguments: reader(arguments[0]),
    Literal: _literal,
    Union: _union,
    UnionType: _union,
    tuple: _tuple,
    frozenset: _frozenset,
    Mapping: _mapping,
    list: lambda arguments: _items(arguments[0], _as_it_is(arguments[0])),
    dict: lambda arguments: _values(arguments[1], _as_it_is(arguments[1])),
}
