"""The engines' names for the functions that a model's query may call, and operators that are not allowed."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.tools.graph.functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Dialect:
    """``functions``: the engine's name by the name in lower case. ``patterns``: whether ``=~`` is allowed.
    ``rewritten``: whether queries are rewritten to mean what openCypher says (`rewriting`)."""

    functions: Mapping[str, str]
    patterns: bool = True
    rewritten: bool = False


LADYBUG: Final = Dialect(FUNCTIONS, rewritten=True)

_NEO4J: Final = (
    "abs acos asin atan atan2 avg ceil coalesce collect cos cot count date datetime degrees duration elementId endNode "
    "exp floor head isEmpty keys labels last left length localdatetime localtime log log10 lTrim max min nodes nullIf "
    "percentileCont percentileDisc pi properties radians range relationships replace reverse right round rTrim sign sin "
    "size split sqrt startNode stDev substring sum tail tan time toBoolean toFloat toInteger toLower toString toUpper "
    "trim type"
)
_OTHERWISE: Final = {"lower": "toLower", "upper": "toUpper", "ceiling": "ceil", "rels": "relationships"}
"""The server's names for functions that the embedded engine names differently."""

NEO4J: Final = Dialect(
    MappingProxyType({**{name.lower(): name for name in _NEO4J.split()}, **_OTHERWISE}),
    # Java's patterns may take exponential time, and a transaction's time-out does not end a match
    patterns=False,
)
"""Cypher 5 (Neo4j Cypher Manual, "Functions"): those that compute from their arguments and the clock alone."""
