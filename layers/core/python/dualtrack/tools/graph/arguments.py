"""The types of the tools' arguments, from which ``python -m dualtrack_stack.graph_tools`` generates their schemas.

It needs Pydantic for that; the functions do not. The string is the description.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from annotated_types import Ge, MaxLen, MinLen

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_NAME: Final = 300
MAX_QUERY: Final = 4_000
MAX_TYPES: Final = 20
DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
"""Nodes or rows of one result (PROFILES 4)."""

MAX_OFFSET: Final = 1_000_000
MAX_DEPTH: Final = 6
"""Maximum relationships of a chain or a path (PROFILES 4)."""

MOST: Final[Mapping[str, int]] = MappingProxyType(
    {"limit": MAX_LIMIT, "offset": MAX_OFFSET, "max_depth": MAX_DEPTH}
)
"""Arguments that are lowered to this. Their schemas have no maximum but say so: a call beyond a schema's is refused,
which costs one of a chat's few rounds."""

_Words = Annotated[str, MinLen(1), MaxLen(MAX_NAME)]

Name = Annotated[_Words, "The node's whole name, such as 'Biofilter 11'. Upper and lower case are the same."]
PartOfName = Annotated[_Words, "A name or a part of one, such as 'pump'."]
NamePrefix = Annotated[_Words, "Only names that begin with this."]
NodeId = Annotated[_Words, "The node's node_id, as find_node gives it."]
PlaceArgument = Annotated[_Words, "A node_id, or a name that only one node has."]
LabelArgument = Annotated[_Words, "Only nodes with this label, such as 'Asset'."]
OfLabel = Annotated[_Words, "A label, such as 'Asset'."]
NameLabel = Annotated[_Words, "The label of the named node, if nodes of several labels have that name."]
TargetLabel = Annotated[_Words, "Only count or list nodes of this label, such as 'Asset'."]
Types = Annotated[
    list[_Words],
    MinLen(1),
    MaxLen(MAX_TYPES),
    "Follow only relationships of these types, such as ['LOCATED_IN'].",
]
ScopeArgument = Literal["location", "system", "both"]
ForScope = Annotated[ScopeArgument, "Categories of locations, of systems, or of both."]
LimitArgument = Annotated[
    int, Ge(1), f"At most this many nodes, up to {MAX_LIMIT}; more counts as {MAX_LIMIT}."
]
Offset = Annotated[
    int,
    Ge(0),
    f"Start at this position: the next_offset of the previous result. More than {MAX_OFFSET} counts as {MAX_OFFSET}.",
]
Depth = Annotated[
    int, Ge(1), f"At most this many relationships, up to {MAX_DEPTH}; more counts as {MAX_DEPTH}."
]
Query = Annotated[str, MinLen(1), MaxLen(MAX_QUERY), "One read-only Cypher query with a RETURN."]
Parameters = Annotated[dict[str, Any], "Values for the query's $parameters by name."]


def lowered(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The arguments with no number above `MOST`, and the note that says which were lowered; empty if none was."""
    numbers = {name: int(arguments[name]) for name in MOST if name in arguments}  # 50.0 is an integer in JSON
    most = {name: min(number, MOST[name]) for name, number in numbers.items()}
    over = [f"{name} is at most {most[name]}" for name in most if most[name] < numbers[name]]
    return {**arguments, **most}, f"{' and '.join(over)}: this result uses that." if over else ""
