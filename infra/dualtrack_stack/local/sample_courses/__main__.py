"""``python -m dualtrack_stack.local.sample_courses``: the samples' vectors, made with the local model."""

from __future__ import annotations

import numpy as np
from dualtrack.corpora.courses import CoursesKind
from dualtrack.knowledge.minilm import NAME, load
from dualtrack.knowledge.vectors import quantised
from dualtrack_stack.local.sample_courses import documents, write_vectors
from dualtrack_stack.roots import OURS


def main() -> None:
    """Write ``vectors.npz``."""
    model, kind = load(OURS / "functions" / "embed" / "tokenizer.json"), CoursesKind()
    rows = {
        document.digest: quantised([bytes(model.embed(text)) for text in kind.texts(document.packed)])
        for document in documents().values()
    }
    write_vectors(NAME, {digest: np.asarray(vectors).tolist() for digest, vectors in rows.items()})
    print(f"{sum(map(len, rows.values()))} vectors of {len(rows)} courses")


if __name__ == "__main__":
    main()
