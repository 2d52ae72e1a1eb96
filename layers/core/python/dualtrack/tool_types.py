"""JSON Schemas (2020-12) of the types of a tool's parameters. Pure; needs the standard library alone.

`dualtrack.codec.reader` reads what these schemas allow. A pydantic model is known by its methods, never by an import.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from inspect import cleandoc
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from dualtrack.codec import unaliased

JsonSchema = dict[str, Any]

_PLAIN: Final[Mapping[Any, str]] = MappingProxyType(
    {str: "string", int: "integer", float: "number", bool: "boolean", None: "null", NoneType: "null"}
)
_FORMATS: Final[Mapping[Any, str]] = MappingProxyType({date: "date", datetime: "date-time"})

_NUMBERS: Final = frozenset({"integer", "number"})
_LIMITS: Final = (
    ("ge", "minimum"),
    ("gt", "exclusiveMinimum"),
    ("le", "maximum"),
    ("lt", "exclusiveMaximum"),
    ("multiple_of", "multipleOf"),
)
"""Attributes of the values of `annotated_types`, and their keywords for numbers."""
_LENGTHS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "string": ("minLength", "maxLength"),
        "array": ("minItems", "maxItems"),
        "object": ("minProperties", "maxProperties"),
    }
)


class NoSchemaError(TypeError):
    """A type has no schema. Its text goes on from "its type …"."""


def schema_of(hint: Any, definitions: JsonSchema) -> JsonSchema:
    """The schema of a type. ``definitions``: takes what pydantic's schemas refer to, for the root's ``$defs``.

    Raises `NoSchemaError`.
    """
    return _schema(hint, definitions, ())


def json_of(value: Any) -> str:
    """Compact JSON of a value: also of dataclasses, pydantic models, enums, dates and sets.

    Raises TypeError for what has no JSON, ValueError for a number that is not finite or a value that holds itself.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """A value that json does not know, as one that it knows."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if callable(dump := getattr(type(value), "model_dump", None)):
        return dump(value, mode="json")
    raise TypeError(f"a {type(value).__name__} has no JSON")


def _schema(hint: Any, definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    hint = unaliased(hint)
    if make := _MAKERS.get(get_origin(hint)):  # first: what is in Annotated may have no hash
        return make(get_args(hint), definitions, inside)
    if hint is Any:
        return {}
    if hint in _FORMATS:
        return {"type": "string", "format": _FORMATS[hint]}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint in _MAKERS:
        return _MAKERS[hint]((), definitions, inside)
    if isinstance(hint, type):
        return _class(hint, definitions, inside)
    raise _none(hint)


def _none(hint: Any) -> NoSchemaError:
    return NoSchemaError(
        f"{getattr(hint, '__name__', hint)} has no JSON Schema: write str, int, float, bool, None, list[…], "
        "dict[str, …], Literal[…], an Enum, date, datetime, a dataclass, a TypedDict or a pydantic model"
    )


def _class(hint: type, definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    if hint in inside:
        raise NoSchemaError(f"{hint.__name__} holds itself: write dict[str, Any] for what is inside it")
    if issubclass(hint, Enum):
        return _enum([member.value for member in hint])
    if callable(make := getattr(hint, "model_json_schema", None)):
        return _pydantic(make(ref_template="#/$defs/{model}"), definitions)
    hints = _hints(hint)
    if is_dataclass(hint):
        required = [field.name for field in fields(hint) if field.default is field.default_factory is MISSING]
        hints = {field.name: hints[field.name] for field in fields(hint)}
    elif is_typeddict(hint):
        required = [name for name in hints if _is_required(hint, name, hints[name])]
    else:
        raise _none(hint)
    properties = {name: _schema(own, definitions, (*inside, hint)) for name, own in hints.items()}
    return _object(properties, required) | _described(hint)


def _hints(hint: type) -> dict[str, Any]:
    """The types of a class's fields; none for what is no dataclass and no TypedDict."""
    if not is_dataclass(hint) and not is_typeddict(hint):
        return {}
    try:
        return get_type_hints(hint, include_extras=True)
    except NameError as error:
        raise NoSchemaError(
            f"{hint.__name__} names {error.name}, which is not known: import it in the module of {hint.__name__}, "
            "not only under TYPE_CHECKING"
        ) from None


def _is_required(hint: Any, name: str, own: Any) -> bool:
    return get_origin(own) is not NotRequired and name in hint.__required_keys__


def _object(properties: JsonSchema, required: list[str]) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _described(hint: type) -> JsonSchema:
    """The class's docstring; a dataclass without one has its signature there."""
    own = hint.__doc__ or ""
    return {"description": cleandoc(own)} if own and not own.startswith(f"{hint.__name__}(") else {}


def _enum(values: list[Any]) -> JsonSchema:
    wrong = [value for value in values if type(value) not in _PLAIN]
    if wrong:
        raise NoSchemaError(f"has the choice {wrong[0]!r}: write text, numbers, True, False or None")
    kinds = list(dict.fromkeys(_PLAIN[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def _pydantic(schema: JsonSchema, definitions: JsonSchema) -> JsonSchema:
    """A model's schema; what it refers to is moved to the root."""
    for name, own in schema.pop("$defs", {}).items():
        if definitions.setdefault(name, own) != own:
            raise NoSchemaError(f"refers to two models named {name}: give one of them another name")
    return schema


def _annotated(arguments: tuple[Any, ...], definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    schema = _schema(arguments[0], definitions, inside)
    for note in arguments[1:]:
        schema |= {"description": cleandoc(note)} if isinstance(note, str) else _limits(note, schema)
    return schema


def _limits(note: Any, schema: JsonSchema) -> JsonSchema:
    """The keywords of a value of `annotated_types`, or of pydantic's `Field`, by its attributes."""
    kinds = schema.get("type", ())
    own = set(kinds) if isinstance(kinds, list) else {kinds} if kinds else set()
    length = next((names for kind, names in _LENGTHS.items() if kind in own), ("", ""))
    attributes = (*_LIMITS, ("min_length", length[0]), ("max_length", length[1]))
    found: JsonSchema = {}
    for attribute, keyword in attributes:
        limit = getattr(note, attribute, None)
        if limit is None or (attribute == "min_length" and limit == 0):
            continue
        fits = bool(keyword) and ("length" in attribute.lower() or bool(own & _NUMBERS))
        if not fits or isinstance(limit, bool) or not isinstance(limit, int | float):
            raise NoSchemaError(f"has the limit {note}, which does not fit it")
        found[keyword] = limit
    for inner in getattr(note, "metadata", ()):
        found |= _limits(inner, schema)
    if isinstance(text := getattr(note, "description", None), str):
        found["description"] = text
    if not found and type(note).__module__ == "annotated_types":
        raise NoSchemaError(f"has the limit {note}, which JSON Schema cannot say: check it in the tool")
    return found


def _union(arguments: tuple[Any, ...], definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    """Compact where it can be: ``X | None`` has null among its types."""
    options = [_schema(option, definitions, inside) for option in arguments]
    if all(option.keys() == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    rest = [option for option in options if option != {"type": "null"}]
    if len(rest) == len(options) - 1 == 1 and isinstance(rest[0].get("type"), (str, list)):
        return _or_null(rest[0])
    return {"anyOf": options}


def _or_null(schema: JsonSchema) -> JsonSchema:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    more = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*kinds, "null"], **more}


def _list(arguments: tuple[Any, ...], definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    items = _schema(arguments[0], definitions, inside) if arguments else {}
    return {"type": "array"} | ({"items": items} if items else {})


def _tuple(arguments: tuple[Any, ...], definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return _list(arguments[:1], definitions, inside)
    if not arguments:
        raise _none(tuple)
    items = [_schema(argument, definitions, inside) for argument in arguments]
    count = len(items)
    return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}


def _frozenset(arguments: tuple[Any, ...], definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    if not arguments:
        raise _none(frozenset)
    return {**_list(arguments, definitions, inside), "uniqueItems": True}


def _dict(arguments: tuple[Any, ...], definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    if not arguments:
        return {"type": "object"}
    if arguments[0] is not str:
        raise NoSchemaError("has keys that are no text: write dict[str, …]")
    values = _schema(arguments[1], definitions, inside)
    return {"type": "object"} | ({"additionalProperties": values} if values else {})


def _inner(arguments: tuple[Any, ...], definitions: JsonSchema, inside: tuple[type, ...]) -> JsonSchema:
    return _schema(arguments[0], definitions, inside)


_Maker = Callable[[tuple[Any, ...], JsonSchema, tuple[type, ...]], JsonSchema]
_MAKERS: Final[Mapping[Any, _Maker]] = MappingProxyType(
    {
        Annotated: _annotated,
        Required: _inner,
        NotRequired: _inner,
        Literal: lambda arguments, *_: _enum(list(arguments)),
        Union: _union,
        UnionType: _union,
        list: _list,
        tuple: _tuple,
        frozenset: _frozenset,
        dict: _dict,
        Mapping: _dict,
    }
)
