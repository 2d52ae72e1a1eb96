"""Read queries with the results that openCypher defines, and what each engine answers behind the guard.

``cypher_corpus/*.txt``, a file an area: a query, then its marks, each on a line:

    = ROWS                 JSON, in this order            ~ ROWS    in any order
    ! ENGINE WORDS         refused, with these words (ENGINE: embedded, neo4j, both)
    ? ENGINE ROWS          answered otherwise, as docs/graph.md says

The rows are worked out from the language's definition (openCypher 9, Neo4j Cypher Manual), not by running an engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.corpora.graph.load import GraphFile, make_database, taken_in
from dualtrack.corpora.graph.survey import Survey
from dualtrack.tools.graph.dialects import LADYBUG
from dualtrack.tools.graph.engine import GraphError
from dualtrack.tools.graph.guard import NO_SCHEMA, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.tools.graph.dialects import Dialect
    from dualtrack.tools.graph.engine import Engine
    from dualtrack.tools.graph.schema import StoredSchema

_CORPUS: Final = Path(__file__).with_name("cypher_corpus")
GRAPH: Final = _CORPUS / "graph.json"
"""Five persons who know each other, in three cities: a loop, two parallel relationships, a circle, missing values."""


@dataclass(frozen=True)
class Known:
    """A query and its result. ``refused``, ``otherwise``: by engine."""

    area: str
    query: str
    rows: list[Any] | None = None
    ordered: bool = True
    refused: dict[str, str] = field(default_factory=dict)
    otherwise: dict[str, list[Any]] = field(default_factory=dict)


@cache
def corpus() -> tuple[Known, ...]:
    """All queries."""
    return tuple(known for path in sorted(_CORPUS.glob("*.txt")) for known in _read(path))


def _read(path: Path) -> list[Known]:
    found: list[Known] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark not in ("=", "~", "!", "?"):
            found.append(Known(path.stem, line))
            continue
        last = found[-1]
        if mark in ("=", "~"):
            found[-1] = Known(last.area, last.query, json.loads(rest), mark == "=")
            continue
        engine, _, said = rest.partition(" ")
        for name in ("embedded", "neo4j") if engine == "both" else (engine,):
            if mark == "!":
                last.refused[name] = said
            else:
                last.otherwise[name] = json.loads(said)
    return found


def make_graph(folder: Path) -> tuple[Path, StoredSchema]:
    """The corpus's graph as a database file and its schema, made by the loader."""
    source, survey = GraphFile(GRAPH.name, GRAPH), Survey()
    assert taken_in(survey, [source]) == {}
    return make_database(folder, [source], survey), survey.schema()


def answer(
    engine: Engine, query: str, dialect: Dialect = LADYBUG, schema: StoredSchema = NO_SCHEMA
) -> list[Any] | str:
    """The rows, or the words of the refusal, as `run_query` has them."""
    try:
        text, values = guarded(query, {}, dialect, schema)
        return [list(row) for row in engine.read(text, values, 200).rows]
    except GraphError as error:
        return str(error)


def verdict(known: Known, engine: str, answered: list[Any] | str) -> str:
    """``right``, ``refused`` or ``documented`` as the corpus says, else ``silent`` (other rows) or ``unexpected``."""
    if isinstance(answered, str):
        words = known.refused.get(engine)
        return "refused" if words and words.lower() in answered.lower() else "unexpected"
    if engine in known.refused:
        return "right" if known.rows is not None and _same(answered, known.rows, known.ordered) else "silent"
    if engine in known.otherwise and _same(answered, known.otherwise[engine], known.ordered):
        return "documented"
    return "right" if known.rows is not None and _same(answered, known.rows, known.ordered) else "silent"


def _same(rows: Sequence[Any], expected: Sequence[Any], ordered: bool) -> bool:
    """Numbers as JSON has them: 1 and 1.0 are two values."""
    got, wanted = ([json.dumps(row, sort_keys=True) for row in one] for one in (rows, expected))
    return got == wanted if ordered else sorted(got) == sorted(wanted)
