"""What is known of a value before a query runs: its kind, from literals, functions, the schema and parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.tools.graph.engine import QueryFailed
from dualtrack.tools.graph.schema import NAME, NODE_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.tools.graph.schema import StoredSchema


@dataclass(frozen=True, slots=True)
class Kind:
    """``name`` is empty if it is not known. ``of``: a list's elements; ``nulls``: whether one may be null."""

    name: str = ""
    of: Kind | None = None
    nulls: bool = True

    @property
    def is_number(self) -> bool:
        return self.name in ("integer", "float", "number")

    @property
    def element(self) -> Kind:
        return self.of or UNKNOWN


UNKNOWN: Final = Kind()
NULL: Final = Kind("null")
INTEGER: Final = Kind("integer")
FLOAT: Final = Kind("float")
NUMBER: Final = Kind("number")
TEXT: Final = Kind("text")
TRUTH: Final = Kind("true or false")
DATE: Final = Kind("date")
NODE: Final = Kind("node")
RELATIONSHIP: Final = Kind("relationship")
TRAIL: Final = Kind("relationships")
"""A variable of a relationship with a length: to the engine no list."""

PATH: Final = Kind("path")
MAP: Final = Kind("map")


def list_of(element: Kind = UNKNOWN, *, nulls: bool = True) -> Kind:
    return Kind("list", element, nulls)


_VALUES: Final[Mapping[type, Kind]] = {type(None): NULL, bool: TRUTH, int: INTEGER, float: FLOAT, str: TEXT}
_SCALARS: Final = {"STRING": TEXT, "INT64": INTEGER, "DOUBLE": FLOAT, "BOOL": TRUTH}
_COLUMNS: Final = {
    **_SCALARS,
    **{f"{name}[]": list_of(kind, nulls=False) for name, kind in _SCALARS.items()},
    "DATE": DATE,
    "TIMESTAMP": UNKNOWN,
}


def properties_of(schema: StoredSchema) -> Mapping[str, Kind]:
    """The kind of each property that has the same wherever it occurs."""
    found: dict[str, set[str]] = {NODE_ID: {"STRING"}, NAME: {"STRING"}}
    for owner in (*schema.labels, *schema.types):
        for column in owner.properties:
            found.setdefault(column.name, set()).add(column.type)
    return {name: _COLUMNS[min(types)] for name, types in found.items() if len(types) == 1}


def of_value(value: object) -> Kind:
    """A parameter's kind."""
    if isinstance(value, list):
        kinds = [of_value(one) for one in value]
        return list_of(common(kinds), nulls=NULL in kinds)
    return _VALUES.get(type(value), MAP)  # type: ignore[no-matching-overload]


def common(kinds: Iterable[Kind]) -> Kind:
    """The kind of a value that is one of several; unknown if they differ."""
    known = {kind for kind in kinds if kind != NULL}
    if len(known) == 1:
        return known.pop()
    return NUMBER if known and all(kind.is_number for kind in known) else UNKNOWN


def alike(left: Kind, right: Kind) -> bool:
    """Whether two values may be compared as they are."""
    either = {left.name, right.name}
    return (
        left.name == right.name or not either.isdisjoint({"", "null"}) or (left.is_number and right.is_number)
    )


def require_alike(left: Kind, right: Kind) -> None:
    """The engine converts a text that is compared with a number; the language does not."""
    if not alike(left, right):
        raise QueryFailed(
            f"values of different kinds are compared ({left.name} and {right.name}), which are never equal: "
            "compare like with like (20 is a number, '20' a text, date('2024-01-31') a date)."
        )


def one_kind(kinds: Iterable[Kind], what: str) -> Kind:
    """The kind of elements or branches, which the engine would convert to one."""
    every = list(kinds)
    known = [kind for kind in every if kind.name not in ("", "null")]
    for kind in known[1:]:
        if not alike(known[0], kind):
            raise QueryFailed(
                f"{what} of one kind here, not {known[0].name} and {kind.name}: convert with toString()."
            )
    return common(known) if len(known) == len(every) else UNKNOWN
