"""Deeply immutable JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"

JsonObject: TypeAlias = Mapping[str, Any]
"""An object whose fields somebody else decides: a JSON Schema, a model's arguments, what a service has sent."""

MAX_DEPTH: Final = 100
"""Maximum nesting of a value from outside. Common parsers stop at 128 (serde_json) or 200 (jiter) levels, and the
request around the value counts too."""


def freeze(value: Any) -> Any:
    """A deeply immutable copy of a JSON value: mappings become read-only, lists become tuples."""
    if isinstance(value, Mapping):
        return MappingProxyType({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Plain dicts and lists again, for a library that needs them."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value


def dumps(value: Any) -> str:
    """Compact JSON of a frozen or plain value, key order kept (the sent prefix depends on it)."""
    return json.dumps(thaw(value), ensure_ascii=False, separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """A frozen value from JSON."""
    return freeze(json.loads(text))


def strict_loads(text: str, limit: int, depth: int = MAX_DEPTH) -> Any:
    """A plain value, which every store and service accepts, from untrusted JSON; or ValueError with the reason.

    Python's parser accepts what RFC 8259 excludes or other parsers refuse: NaN, numbers beyond a double, lone
    surrogates, any depth. ``limit``: characters, ``depth``: levels. If a key is repeated, its last value counts.
    """
    if len(text) > limit:
        raise ValueError(f"it has more than {limit:,} characters")
    try:
        value = json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_whole)
    except RecursionError:
        raise ValueError(_too_deep(depth)) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not valid JSON (character {error.pos})") from None
    if _is_deeper(value, depth):
        raise ValueError(_too_deep(depth))
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair") from None
    return value


def _too_deep(depth: int) -> str:
    return f"it is nested more than {depth} levels deep"


def _number(text: str) -> float:
    number = float(text)
    if number - number != 0:  # NaN and the infinities
        raise ValueError("it has a number that is not finite")
    return number


def _whole(text: str) -> int:
    _number(text)
    return int(text)


def _is_deeper(value: Any, levels: int) -> bool:
    """Level by level, not by recursion."""
    row = [value]
    for _ in range(levels + 1):
        row = [
            item
            for branch in row
            if isinstance(branch, (dict, list))
            for item in (branch.values() if isinstance(branch, dict) else branch)
        ]
        if not row:
            return False
    return True
