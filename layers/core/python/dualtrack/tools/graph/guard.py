"""The guard in front of the engine: rewrites a model's query as a single read statement, or refuses it (PROFILES 4).

A grammar (``cypher.lark``) defines what is allowed, and nothing else can be parsed. The engine never sees a model's
text: names are written between backticks, functions are those of its dialect (`dialects`), and literals become
parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.tools.graph.dialects import LADYBUG
from dualtrack.tools.graph.schema import StoredSchema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.tools.graph.dialects import Dialect
    from dualtrack.tools.graph.engine import GraphValue

NO_SCHEMA: Final = StoredSchema()


def guarded(
    text: str,
    parameters: Mapping[str, GraphValue],
    dialect: Dialect = LADYBUG,
    schema: StoredSchema = NO_SCHEMA,
) -> tuple[str, dict[str, GraphValue]]:
    """The statement for the engine, and its parameters: those that it names, and its literals. ``schema``: the kinds
    of the properties.

    Raises `QueryRefused` if the text is not one read statement, `QueryFailed` if that has a mistake.
    """
    from dualtrack.tools.graph.cypher import rewritten  # noqa: PLC0415 - the parser is made in 0.2 s, for few calls

    return rewritten(text, parameters, dialect, schema)
