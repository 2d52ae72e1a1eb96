"""The types of the tools' arguments, from which ``python -m infra.graph_tools`` generates their schemas.

It needs Pydantic for that; the functions do not. The string is the description.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Le, MaxLen, MinLen

MAX_NAME: Final = 300
MAX_QUERY: Final = 4_000
MAX_TYPES: Final = 20
DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
"""Nodes or rows of one result (PROFILES 4)."""

MAX_OFFSET: Final = 1_000_000
MAX_DEPTH: Final = 6
"""Maximum relationships of a chain or a path (PROFILES 4)."""

_Words = Annotated[str, MinLen(1), MaxLen(MAX_NAME)]

Name = Annotated[_Words, "The node's whole name, such as 'Biofilter 11'. Upper and lower case are the same."]
PartOfName = Annotated[_Words, "A name or a part of one, such as 'pump'."]
NamePrefix = Annotated[_Words, "Only names that begin with this."]
NodeId = Annotated[_Words, "The node's node_id, as find_node gives it."]
Place = Annotated[_Words, "A node_id, or a name that only one node has."]
Label = Annotated[_Words, "A label, such as 'Asset': only nodes of this kind."]
OfLabel = Annotated[_Words, "A label, such as 'Asset'."]
NameLabel = Annotated[_Words, "The label of the named node, where several kinds have that name."]
TargetLabel = Annotated[_Words, "Only count or list nodes of this label, such as 'Asset'."]
Types = Annotated[
    list[_Words],
    MinLen(1),
    MaxLen(MAX_TYPES),
    "Follow only relationships of these types, such as ['LOCATED_IN'].",
]
Scope = Literal["location", "system", "both"]
ForScope = Annotated[Scope, "Categories of locations, of systems, or of both."]
Limit = Annotated[int, Ge(1), Le(MAX_LIMIT), "At most this many nodes."]
Offset = Annotated[int, Ge(0), Le(MAX_OFFSET), "Start here: the next_offset of the result before."]
Depth = Annotated[int, Ge(1), Le(MAX_DEPTH), "At most this many relationships."]
Query = Annotated[str, MinLen(1), MaxLen(MAX_QUERY), "One read-only Cypher query with a RETURN."]
Parameters = Annotated[dict[str, Any], "Values for the query's $parameters by name."]
