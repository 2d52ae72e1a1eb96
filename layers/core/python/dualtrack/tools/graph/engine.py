"""The interface through which tools read the graph, and its errors.

An engine runs trusted query text: that of our tools, or a model's after the guard (`tools.graph.guard`).

GraphError
├─ NoGraph         nothing is loaded, or its server cannot be reached
├─ QueryRefused    the guard: not one read statement
├─ QueryFailed     the query has a mistake, in the engine's or the guard's words
└─ QueryTimedOut   it took too long, or too much memory
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

GraphValue: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None
"""A JSON value. Nodes are objects with ``_label`` and their properties, times are ISO 8601."""

MAX_WORDS: Final = 300
"""Maximum characters of the engine's own words in an error (PROFILES 4)."""


class GraphError(Exception):
    """A query failed. The message is for the model."""


class NoGraph(GraphError):
    """There is no graph to read."""

    def __init__(self, words: str = "no graph is loaded.") -> None:
        super().__init__(words)


class QueryRefused(GraphError):
    """Not one read statement."""

    def __init__(self) -> None:
        super().__init__("only read-only queries are allowed.")


class QueryFailed(GraphError):
    """The query has a mistake; ``words`` say which, cut to `MAX_WORDS` characters."""

    def __init__(self, words: str) -> None:
        super().__init__(words[:MAX_WORDS])


class QueryTimedOut(GraphError):
    """The query took too long or too much memory, and was stopped."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a query. ``more``: there are rows beyond the limit."""

    columns: tuple[str, ...]
    rows: tuple[tuple[GraphValue, ...], ...]
    more: bool = False


class Engine(Protocol):
    """A graph that can be read."""

    def read(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        """At most ``limit`` rows of a trusted query; values are in ``parameters`` (``$name``), never in its text.

        Raises `GraphError`.
        """

    def read_foreign(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:
        """As `read`, for an untrusted query that the guard has rewritten: isolated from all others."""
