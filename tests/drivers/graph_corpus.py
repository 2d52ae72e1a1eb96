"""Jobs on the graph in one process, and queries to the published database."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ladybug
from dualtrack.codec import load
from dualtrack.corpora.graph.load import load_graph
from dualtrack.corpora.jobs import GRAPH
from dualtrack.tools.graph.schema import StoredSchema

from tests.drivers.corpus_world import CorpusWorld
from tests.drivers.faults import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.storage.corpus_jobs import Job


def table(*rows: str) -> bytes:
    """A CSV file."""
    return "\n".join(rows).encode() + b"\n"


def nodes(*rows: str) -> bytes:
    """A file of nodes without properties."""
    return table("node_id,label,name", *rows)


def edges(*rows: str) -> bytes:
    """A file of relationships without properties."""
    return table("from,type,to", *rows)


@dataclass
class GraphWorld(CorpusWorld):
    """A `CorpusWorld` whose jobs are on the graph."""

    corpus: str = GRAPH

    def step(self, job: Job, has_time: Callable[[], bool] = lambda: True) -> str:
        """One call of the function `graph_load`."""
        return load_graph(self.stores(Process(self.trace, "graph_load")), job.job_id, has_time)

    def schema(self) -> StoredSchema:
        """The published schema."""
        return load(StoredSchema, self.stores().corpora.schema(self.corpus, self.published().version))

    def titles(self) -> list[str]:
        """The published files."""
        documents = self.stores().corpora.documents(self.corpus, self.published().version)
        return [document.title for document in documents]

    def ask(self, query: str) -> list[Any]:
        """Rows from the published database."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            path.write_bytes(self.stores().corpora.index(self.corpus, self.published().version))
            return asked(path, query)


def asked(path: Path, query: str) -> list[Any]:
    """Rows from a database file."""
    database = ladybug.Database(str(path), read_only=True, max_db_size=1 << 32, buffer_pool_size=1 << 26)
    connection = ladybug.Connection(database)
    try:
        rows: list[Any] = connection.execute(query).get_all()  # type: ignore[union-attr]
        return rows
    finally:
        connection.close()
        database.close()
