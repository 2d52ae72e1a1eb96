"""JSON Schemas of the declared types (`dualtrack.answers`, `dualtrack.event_data`), for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from dualtrack.answers import KEYWORDS, Keyword

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


DocumentPart: TypeAlias = dict[str, Any]
"""A part of the document."""

REF: Final = "#/components/schemas/"

_NAMES: Final = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def schemas_of(kinds: Iterable[Any]) -> dict[str, DocumentPart]:
    """The schemas of objects, and of the objects in their fields, by name."""
    schemas: dict[str, DocumentPart] = {}
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        if kind.__name__ not in schemas:
            schemas[kind.__name__] = object_schema(kind)
            waiting += _objects_in(get_type_hints(kind).values())
    return schemas


def object_schema(*kinds: Any) -> DocumentPart:
    """The schema of an object that has the fields of all these types, and the last one's name."""
    fields = {
        name: kind for part in kinds for name, kind in get_type_hints(part, include_extras=True).items()
    }
    required = [name for part in kinds for name in get_type_hints(part) if name in part.__required_keys__]
    return {
        "title": kinds[-1].__name__,
        "description": "\n\n".join(_paragraphs(kinds[-1])),
        "type": "object",
        "properties": {name: _schema(kind) for name, kind in fields.items()},
        "required": [name for name in fields if name in required],
        "additionalProperties": False,
        **KEYWORDS.get(kinds[-1].__name__, {}),
    }


def description_of(kind: type) -> str:
    """The first paragraph of the type's docstring."""
    return _paragraphs(kind)[0]


def _paragraphs(kind: type) -> list[str]:
    """Those of its docstring, on one line each."""
    return [" ".join(paragraph.split()) for paragraph in (kind.__doc__ or "").split("\n\n")]


def _objects_in(kinds: Iterable[Any]) -> list[Any]:
    found = []
    for kind in kinds:
        found += [kind] if is_typeddict(kind) else _objects_in(get_args(kind))
    return found


def _schema(kind: Any) -> DocumentPart:
    origin, args = get_origin(kind), get_args(kind)
    if origin in _OF_PARTS:
        return _OF_PARTS[origin](*args)
    if kind is Any:
        return {}
    return {"$ref": REF + kind.__name__} if is_typeddict(kind) else {"type": _NAMES[kind]}


def _literal(*values: str) -> DocumentPart:
    return {"type": "string"} | ({"enum": list(values)} if len(values) > 1 else {"const": values[0]})


def _union(*kinds: Any) -> DocumentPart:
    return {"anyOf": [_schema(kind) for kind in kinds]}


def _array(kind: Any) -> DocumentPart:
    return {"type": "array", "items": _schema(kind)}


def _map(_: Any, kind: Any) -> DocumentPart:
    return {"type": "object", "additionalProperties": True if kind is Any else _schema(kind)}


def _annotated(kind: Any, *said: str | Keyword) -> DocumentPart:
    """With its description, and further keywords."""
    schema = dict(_schema(kind))
    for each in said:
        schema |= {each.name: each.value} if isinstance(each, Keyword) else {"description": each}
    return schema


_OF_PARTS: Final[Mapping[Any, Callable[..., DocumentPart]]] = {
    NotRequired: _schema,
    Annotated: _annotated,
    Literal: _literal,
    Union: _union,
    UnionType: _union,
    Sequence: _array,
    Mapping: _map,
}
"""How the schema of a kind of type follows from its parts."""
