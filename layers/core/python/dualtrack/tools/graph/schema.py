"""A graph's schema: its labels, relationship types and properties, with counts.

A loaded graph has one node table per label, with ``node_id STRING PRIMARY KEY`` (unique over the whole graph),
``name STRING`` and its typed property columns, and one relationship table (group) per type. The schema is stored as
JSON beside each version of the database.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

PropertyType = Literal["STRING", "INT64", "DOUBLE", "BOOL"]

NODE_ID: Final = "node_id"
NAME: Final = "name"


@dataclass(frozen=True, slots=True)
class Property:
    """A property column."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Label:
    """A node table. ``properties``: those besides ``node_id`` and ``name``. ``count``: its nodes."""

    name: str
    properties: tuple[Property, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RelationshipType:
    """A relationship table. ``ends``: its pairs of start and end labels. ``count``: its relationships."""

    name: str
    ends: tuple[tuple[str, str], ...]
    properties: tuple[Property, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A graph's schema; empty before one is loaded."""

    labels: tuple[Label, ...] = ()
    types: tuple[RelationshipType, ...] = ()

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))


def schema_from_json(text: str | bytes) -> Schema:
    """The schema that `Schema.to_json` wrote."""
    read = json.loads(text)
    return Schema(
        tuple(Label(label["name"], _properties(label), label["count"]) for label in read["labels"]),
        tuple(
            RelationshipType(kind["name"], tuple(map(_pair, kind["ends"])), _properties(kind), kind["count"])
            for kind in read["types"]
        ),
    )


def _properties(read: dict[str, Any]) -> tuple[Property, ...]:
    return tuple(Property(column["name"], column["type"]) for column in read["properties"])


def _pair(read: list[str]) -> tuple[str, str]:
    start, end = read
    return start, end
