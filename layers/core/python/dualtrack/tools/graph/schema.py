"""What is in a graph: its labels, relationship types and properties, with counts.

A loaded graph has one node table per label, with ``node_id STRING PRIMARY KEY`` (unique over the whole graph),
``name STRING`` and its typed property columns, and one relationship table (group) per type. The schema lies as JSON
beside the database, version by version.
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
    """One node table. ``properties`` beside ``node_id`` and ``name``; ``count`` of its nodes."""

    name: str
    properties: tuple[Property, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RelationshipType:
    """One relationship table. ``ends``: the pairs of labels it goes from and to; ``count`` of its relationships."""

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
    """What `Schema.to_json` wrote."""
    read = json.loads(text)
    return Schema(
        tuple(Label(one["name"], _properties(one), one["count"]) for one in read["labels"]),
        tuple(
            RelationshipType(one["name"], tuple(map(_pair, one["ends"])), _properties(one), one["count"])
            for one in read["types"]
        ),
    )


def _properties(read: dict[str, Any]) -> tuple[Property, ...]:
    return tuple(Property(one["name"], one["type"]) for one in read["properties"])


def _pair(read: list[str]) -> tuple[str, str]:
    start, end = read
    return start, end
