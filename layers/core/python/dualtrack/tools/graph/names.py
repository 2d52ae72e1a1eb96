"""Names of the schema, checked and quoted: the only text in our queries that is not our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.text import clean, one_line
from dualtrack.tools.graph.arguments import MAX_DEPTH
from dualtrack.tools.graph.engine import NoGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.tools.graph.schema import StoredSchema

MAX_LISTED: Final = 50
"""Maximum names that an error lists."""


class BadArgumentError(Exception):
    """What the model asked for does not exist; the message says what does."""


def quoted(name: str) -> str:
    """A label, type or property as a quoted identifier of Cypher. Names of a schema never contain the quote."""
    if "`" in name or "\\" in name:
        raise BadArgumentError(f"{name!r} is not a valid name: it contains a backtick or a backslash")
    return f"`{name}`"


def either(names: Iterable[str]) -> str:
    """Several labels or types, any of which may match."""
    return "|".join(map(quoted, names))


def inward(types: Sequence[str]) -> str:
    """A chain of 1 to 6 relationships that lead to its left end; each node at its right end occurs once."""
    return f"<-[:{either(types)}* SHORTEST 1..{MAX_DEPTH}]-"


def labels_of(schema: StoredSchema) -> tuple[str, ...]:
    """All labels. Raises `NoGraph` before a graph is loaded."""
    if not schema.labels:
        raise NoGraph
    return tuple(label.name for label in schema.labels)


def label_named(schema: StoredSchema, label: str) -> str:
    """The schema's label of this name, in any case. Raises `BadArgumentError`, which lists the labels."""
    return _named("label", label, labels_of(schema))


def types_named(schema: StoredSchema, types: Sequence[str] | None) -> tuple[str, ...]:
    """The schema's relationship types of these names; all for None. Raises `BadArgumentError`, which lists them."""
    known = tuple(kind.name for kind in schema.types)
    if types is None:
        return known
    return tuple(dict.fromkeys(_named("relationship type", name, known) for name in types))


def _named(kind: str, name: str, known: Sequence[str]) -> str:
    wanted = one_line(clean(name))
    if wanted in known:
        return wanted
    for known_name in known:
        if known_name.casefold() == wanted.casefold():
            return known_name
    more = f" and {len(known) - MAX_LISTED} more" if len(known) > MAX_LISTED else ""
    raise BadArgumentError(
        f"there is no {kind} '{wanted}'; there are: {', '.join(known[:MAX_LISTED])}{more}."
    )
