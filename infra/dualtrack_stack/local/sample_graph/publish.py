"""Puts the sample graph into a stack that has none; its database is built here, in less than a second."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dualtrack.corpora.graph.load import GraphFile, counted, make_database, taken_in, write_version
from dualtrack.corpora.graph.survey import Survey
from dualtrack.corpora.jobs import GRAPH
from dualtrack.storage.corpora import PublishedVersion, StoredDocument
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from dualtrack.storage.stores import Stores

FILES = ("nodes.csv", "edges.csv")
_FOLDER = Path(__file__).parent


def publish(stores: Stores) -> bool:
    """Publish the sample if nothing was published before; returns whether that was so."""
    if stores.corpora.current(GRAPH) is not None:
        return False
    sources, survey, now = [GraphFile(name, _FOLDER / name) for name in FILES], Survey(), int(stores.clock())
    wrong = taken_in(survey, sources)
    if wrong:
        raise ValueError(f"The sample graph is wrong: {[problems.lines for problems in wrong.values()]}")
    documents = [_document(source, now) for source in sources]
    schema = survey.schema()
    counts = {
        "nodes": sum(label.count for label in schema.labels),
        "edges": sum(kind.count for kind in schema.types),
    }
    new = PublishedVersion("samples", "", {"documents": len(documents), **counts}, now)
    with tempfile.TemporaryDirectory(prefix="graph-") as folder:
        database = make_database(Path(folder), sources, survey)
        write_version(stores, new.version, sources, database, schema, documents)
    try:
        stores.corpora.publish(GRAPH, new, None)
    except ConditionFailed:
        return False
    return True


def _document(source: GraphFile, now: int) -> StoredDocument:
    data = source.path.read_bytes()
    counts, _ = counted(source.name, data)
    return StoredDocument(source.name, hashlib.sha256(data).hexdigest(), source.name, counts, now)
