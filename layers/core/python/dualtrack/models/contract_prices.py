"""The prices that a deployment has agreed on, in place of the list's: the setting ``DUALTRACK_MODEL_PRICES``, which
``[models]`` of ``dualtrack.toml`` writes. Pure."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.settings import Settings

MOST_CHARACTERS: Final = 2_000
"""A function's whole environment may have 4 KB."""

REQUIRED: Final = ("input", "output", "cache_read", "cache_write")
_OPTIONAL: Final = ("cache_write_hour", "since", "long")
_MOST: Final = 10_000
_MOST_TOKENS: Final = 10_000_000
_DAY: Final = re.compile(r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_NAME: Final = re.compile(r"[\w.:@/-]{1,100}", re.ASCII)


def checked_prices(text: str, _: Settings) -> str:
    """The setting's text in its shortest form, empty if there is none. Raises ValueError."""
    try:
        given = dict[str, Any](json.loads(text or "{}"))
    except (ValueError, TypeError, RecursionError):
        raise ValueError(
            "JSON is expected: an object, by model, of what [models] of dualtrack.toml says"
        ) from None
    for model, entry in given.items():
        if problem := wrong_name(model) or wrong_price(entry):
            raise ValueError(f"{model[:60]}: {problem}")
    shortest = json.dumps(given, separators=(",", ":"))
    if len(shortest) > MOST_CHARACTERS:
        raise ValueError(f"at most {MOST_CHARACTERS:,} characters are expected, some 15 models")
    return shortest if given else ""


def wrong_name(model: str) -> str:
    """What is wrong with a model's name; empty if nothing is."""
    return "" if _NAME.fullmatch(model) else "a model's name is expected, at most 100 characters"


def wrong_price(entry: Any) -> str:
    """What is wrong with a model's prices; empty if nothing is."""
    return next(_problems(entry), "") if isinstance(entry, dict) else "a table is expected"


def _problems(entry: Mapping[str, Any]) -> Iterator[str]:
    if unknown := entry.keys() - {*REQUIRED, *_OPTIONAL}:
        yield f"{min(unknown)} is no price: write {', '.join((*REQUIRED, *_OPTIONAL))}"
    yield from _wrong_rates(entry)
    since, long = entry.get("since", "2026-12-01"), entry.get("long", {})
    if not isinstance(since, str) or not _DAY.fullmatch(since):
        yield 'since is a day: write "2026-12-01"'
    if not isinstance(long, dict) or long.keys() - {"above", *REQUIRED, "cache_write_hour"}:
        yield "long is a table: above, in tokens, and the prices of longer prompts"
    elif "long" in entry:
        above = long.get("above")
        if not isinstance(above, int) or isinstance(above, bool) or not 0 < above <= _MOST_TOKENS:
            yield "long: above is a number of tokens"
        yield from (f"long: {problem}" for problem in _wrong_rates(long))


def _wrong_rates(entry: Mapping[str, Any]) -> Iterator[str]:
    for kind in REQUIRED:
        if kind not in entry:
            yield f"{kind} is missing, in dollars for a million tokens"
    for kind in (*REQUIRED, "cache_write_hour"):
        value = entry.get(kind, 0)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _MOST or round(value, 6) != value:
            yield f"{kind}: dollars for a million tokens are expected, 0 to {_MOST:,}, with at most six places"


def prices_of(text: str) -> Mapping[str, Mapping[str, Any]]:
    """The prices of a checked text by model, in the form of the list's; an hour costs as five minutes if it is not
    said."""
    return MappingProxyType({model: _whole(entry) for model, entry in json.loads(text or "{}").items()})


def _whole(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    whole = {"cache_write_hour": entry["cache_write"], **entry}
    return {**whole, "long": [_whole(entry["long"])]} if "long" in entry else whole
