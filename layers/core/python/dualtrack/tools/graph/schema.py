"""A graph's schema: its labels, relationship types and properties, with counts.

A loaded graph has one node table per label, with ``node_id STRING PRIMARY KEY`` (unique over the whole graph),
``name STRING`` and its typed property columns, and one relationship table (group) per type. The schema is stored as
JSON beside each version of the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from dualtrack.codec import stored

PropertyType = Literal[
    "STRING", "INT64", "DOUBLE", "BOOL", "DATE", "TIMESTAMP", "STRING[]", "INT64[]", "DOUBLE[]", "BOOL[]"
]

NODE_ID: Final = "node_id"
NAME: Final = "name"


@stored
@dataclass(frozen=True, slots=True)
class Property:
    """A property column."""

    name: str
    type: PropertyType


@stored
@dataclass(frozen=True, slots=True)
class NodeLabel:
    """A node table. ``properties``: those besides ``node_id`` and ``name``. ``count``: its nodes."""

    name: str
    properties: tuple[Property, ...]
    count: int


@stored
@dataclass(frozen=True, slots=True)
class RelationshipType:
    """A relationship table. ``ends``: its pairs of start and end labels. ``count``: its relationships."""

    name: str
    ends: tuple[tuple[str, str], ...]
    properties: tuple[Property, ...]
    count: int


@stored(whole=True)
@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A graph's schema; empty before one is loaded."""

    labels: tuple[NodeLabel, ...] = ()
    types: tuple[RelationshipType, ...] = ()
