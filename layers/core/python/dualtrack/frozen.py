"""JSON values that cannot be changed, all the way down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"


def freeze(value: Any) -> Any:
    """A deeply immutable copy of a JSON value: mappings become read-only, lists become tuples."""
    if isinstance(value, Mapping):
        return MappingProxyType({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Plain dicts and lists again, for a library that insists on them."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


def dumps(value: Any) -> str:
    """Compact JSON of a frozen or plain value, key order kept (the sent prefix depends on it)."""
    return json.dumps(thaw(value), ensure_ascii=False, separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """A frozen value from JSON."""
    return freeze(json.loads(text))
