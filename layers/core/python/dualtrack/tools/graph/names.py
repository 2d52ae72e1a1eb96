"""Names of the schema in query text: the only text of a query that is not ours, checked and quoted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.text import clean, one_line
from dualtrack.tools.graph.arguments import MAX_DEPTH
from dualtrack.tools.graph.engine import NoGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.tools.graph.schema import Schema

MAX_LISTED: Final = 50
"""Names that a refusal lists."""


class BadArgumentError(Exception):
    """What the model asked for does not exist; the message says what does."""


def quoted(name: str) -> str:
    """A label, type or property as Cypher's quoted identifier. A name of the schema never has the quote in it."""
    if "`" in name or "\\" in name:
        raise BadArgumentError(f"{name!r} is no name that a query may have")
    return f"`{name}`"


def either(names: Iterable[str]) -> str:
    """Several labels or types, any of which may match."""
    return "|".join(map(quoted, names))


def inward(types: Sequence[str]) -> str:
    """A chain of 1 to 6 relationships that lead to its left end: each node at its right end once."""
    return f"<-[:{either(types)}* SHORTEST 1..{MAX_DEPTH}]-"


def labels_of(schema: Schema) -> tuple[str, ...]:
    """All labels. Raises `NoGraph` before a graph is loaded."""
    if not schema.labels:
        raise NoGraph
    return tuple(one.name for one in schema.labels)


def label_named(schema: Schema, label: str) -> str:
    """The schema's label that is meant, whatever its case, or `BadArgumentError` with those there are."""
    return _named("label", label, labels_of(schema))


def types_named(schema: Schema, types: Sequence[str] | None) -> tuple[str, ...]:
    """The relationship types that are meant, or `BadArgumentError` with those there are; None means all."""
    known = tuple(one.name for one in schema.types)
    if types is None:
        return known
    return tuple(dict.fromkeys(_named("relationship type", one, known) for one in types))


def _named(kind: str, name: str, known: Sequence[str]) -> str:
    wanted = one_line(clean(name))
    if wanted in known:
        return wanted
    alike = [one for one in known if one.casefold() == wanted.casefold()]
    if alike:
        return alike[0]
    more = f" and {len(known) - MAX_LISTED} more" if len(known) > MAX_LISTED else ""
    raise BadArgumentError(
        f"there is no {kind} '{wanted}'; there are: {', '.join(known[:MAX_LISTED])}{more}."
    )
