"""Sample courses, written for dualtrack, which the local stack publishes at its first start.

Their vectors are prebuilt (``vectors.npz``), since the local model needs 40 ms for each of 140 texts:
``python -m dualtrack_stack.local.sample_courses`` rebuilds them, and a test compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from dualtrack.corpora.courses import CoursesKind
from dualtrack.corpora.kinds import IndexedDocument
from dualtrack.storage.corpora import PublishedVersion, StoredDocument
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.corpora.kinds import ParsedFile
    from dualtrack.storage.stores import Stores

FOLDER: Final = Path(__file__).parent
VECTORS: Final = FOLDER / "vectors.npz"
"""``model``: the name of the model; for each course, by its digest, int8 rows, one for each of its texts."""

_KIND: Final = CoursesKind()


def documents() -> dict[str, ParsedFile]:
    """The courses by their files' names."""
    paths = sorted(path for path in FOLDER.iterdir() if path.suffix in (".txt", ".md"))
    return {path.name: _KIND.read(path.name, path.read_bytes()) for path in paths}


def write_vectors(model: str, rows: Mapping[str, Sequence[Sequence[int]]]) -> None:
    """Store the vectors of each course by its digest."""
    arrays: dict[str, Any] = {key: np.array(row, np.int8) for key, row in rows.items()}
    np.savez_compressed(VECTORS, model=np.array(model), **arrays)


def publish(stores: Stores) -> bool:
    """Publish the samples if nothing was published before; returns whether that was so."""
    if stores.corpora.current(_KIND.name) is not None:
        return False
    read, now = documents(), int(stores.clock())
    with np.load(VECTORS) as stored:
        model = str(stored["model"])
        added = [
            IndexedDocument(source.packed, [row.astype("<f4").tobytes() for row in stored[source.digest]])
            for source in read.values()
        ]
    index = _KIND.index(None, (), added, [source.title for source in read.values()], model)
    listed = [
        StoredDocument(source.title, source.digest, name, source.counts, now) for name, source in read.items()
    ]
    counts = {
        "documents": len(listed),
        **{key: sum(document.counts[key] for document in listed) for key in ("lessons", "chunks")},
    }
    new = PublishedVersion("samples", model, counts, now)
    stores.corpora.write_version(_KIND.name, new.version, index, listed)
    try:
        stores.corpora.publish(_KIND.name, new, None)
    except ConditionFailed:
        return False
    return True
