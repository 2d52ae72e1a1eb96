"""A legal form for what a server lists, and the way back: names and properties that the Messages API accepts. Pure.

A server's tool may have a property ``$top``: it is offered as ``_top``, with its own name as its title, and a call's
arguments get their own names again before the server sees them.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from dualtrack.tool_rules import MAX_PROPERTY, NOT_AT_TOP, property_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

_IN_PLACE: Final = frozenset(
    {
        "$ref", "$dynamicRef", "if", "then", "else", "not", "dependentSchemas", "dependencies", "propertyNames",
        "unevaluatedProperties", "const", "enum", "default", "examples",
    }
)  # fmt: skip
"""Keywords of the top level that name its properties in ways that are not translated: the server still checks them."""
_PROPERTIES: Final = "#/properties/"


class NoLegalFormError(ValueError):
    """A schema has no legal form; the message says why."""


def legal_names(
    own: Iterable[str], legal: Callable[[str], str], taken: Collection[str] = (), longest: int = MAX_PROPERTY
) -> dict[str, str]:
    """A legal name for each name, all different and none of ``taken``; a name that is legal stays as it is.

    The same names always get the same legal ones, in whatever order they come.
    """
    distinct = sorted(set(own))
    names = {name: name for name in distinct if legal(name) == name and name not in taken}
    used = {*taken, *names.values()}
    for name in distinct:
        if name not in names:
            names[name] = _free(legal(name), name, used, longest)
            used.add(names[name])
    return names


def _free(wanted: str, own: str, used: Collection[str], longest: int) -> str:
    """The name itself, or with a hash of the server's own name behind it."""
    if wanted not in used:
        return wanted
    hashes = (
        hashlib.sha256(f"{number} {own}".encode("utf-8", "surrogatepass")) for number in itertools.count()
    )
    candidates = (f"{wanted[: longest - 9]}_{digest.hexdigest()[:8]}" for digest in hashes)
    return next(candidate for candidate in candidates if candidate not in used)


def legal_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A schema that may be offered, and the server's own name of each renamed property.

    ``schema`` is plain JSON. Raises `NoLegalFormError`.
    """
    kept = {key: value for key, value in schema.items() if key not in NOT_AT_TOP}
    properties = kept.get("properties")
    if not isinstance(properties, dict):
        return kept, {}
    names = legal_names(properties, property_of)
    renamed = {legal: own for own, legal in names.items() if legal != own}
    return (_renamed(kept, names), renamed) if renamed else (kept, {})


def _renamed(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    kept = {key: _followed(value, names) for key, value in schema.items() if key not in _IN_PLACE}
    kept["properties"] = {
        legal: _titled(kept["properties"][own], own if legal != own else "") for own, legal in names.items()
    }
    if isinstance(kept.get("required"), list):
        kept["required"] = _translated(kept["required"], names)
    if isinstance(kept.get("dependentRequired"), dict):
        needs = kept["dependentRequired"].items()
        kept["dependentRequired"] = {names.get(key, key): _translated(value, names) for key, value in needs}
    return kept


def _translated(values: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(values, list):
        return values
    return [names.get(value, value) if isinstance(value, str) else value for value in values]


def _titled(schema: Any, own: str) -> Any:
    """The property's schema, which says the server's own name: the descriptions of other parts use it."""
    if schema is True:
        schema = {}
    return {"title": own, **schema} if own and isinstance(schema, dict) else schema


def _followed(value: Any, names: Mapping[str, str]) -> Any:
    """The value with its references to renamed properties translated."""
    if isinstance(value, dict):
        return {
            key: _reference(inner, names)
            if key in ("$ref", "$dynamicRef") and isinstance(inner, str)
            else _followed(inner, names)
            for key, inner in value.items()
        }
    return [_followed(inner, names) for inner in value] if isinstance(value, list) else value


def _reference(target: str, names: Mapping[str, str]) -> str:
    if not target.startswith("#/"):
        raise NoLegalFormError("it has properties to rename, and refers to itself as a whole")
    if not target.startswith(_PROPERTIES):
        return target
    first, slash, rest = target.removeprefix(_PROPERTIES).partition("/")
    own = unquote(first).replace("~1", "/").replace("~0", "~")
    return f"{_PROPERTIES}{names.get(own, first)}{slash}{rest}"


def own_arguments(arguments: Mapping[str, Any], renamed: Mapping[str, str]) -> Mapping[str, Any]:
    """The arguments under the server's own names."""
    return {renamed.get(name, name): value for name, value in arguments.items()} if renamed else arguments
