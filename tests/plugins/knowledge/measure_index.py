"""What a collection costs: building, reading and searching an index of many documents, by words and by meaning.

    uv run --group test python -m tests.plugins.knowledge.measure_index [documents] [chunks a document]

Texts are sentences of 120 words drawn from 30,000 by Zipf's law, vectors are random: 384 numbers, as those of the local
model.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from dualtrack.plugins.knowledge.documents import Chunk
from dualtrack.plugins.knowledge.index import DocumentIndex, build, load, save
from dualtrack.plugins.knowledge.library import Opened
from dualtrack.plugins.knowledge.ranking import Part, search
from dualtrack.storage.owned_corpora import OwnedCorpus

MODEL = "measured"
WORDS, LENGTH, WIDTH = 30_000, 120, 384


def main() -> None:
    """Measure one size."""
    numbers = [int(text) for text in sys.argv[1:]]
    documents, each = [*numbers, 10_000, 10][:2] if len(numbers) != 1 else (numbers[0], 10)
    drawn = np.random.default_rng(7)
    texts = (
        " ".join(f"word{word}" for word in row % WORDS) for row in drawn.zipf(1.2, (documents * each, LENGTH))
    )
    listed = [
        (f"Document {at}", "text", [Chunk(next(texts), (f"Part {part}",)) for part in range(each)])
        for at in range(documents)
    ]
    vectors = [row.tobytes() for row in drawn.standard_normal((documents * each, WIDTH)).astype("<f4")]
    began = time.perf_counter()
    saved = save(build(listed, MODEL, vectors))
    built = time.perf_counter() - began
    del listed, vectors
    began = time.perf_counter()
    index = load(saved)
    read = time.perf_counter() - began
    print(
        f"{documents:,} documents, {len(index):,} chunks: built in {built:.1f} s, {len(saved) / 1e6:.0f} MB,",
        end=" ",
    )
    print(f"read in {read:.2f} s, searched in {_searched(index) * 1000:.0f} ms,", end=" ")
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB")


def _searched(index: DocumentIndex) -> float:
    """The median of seven searches."""
    part = Part(Opened(OwnedCorpus("col_x", "ann", "documents", "All", 0), index))
    query = np.random.default_rng(8).standard_normal(WIDTH).astype("<f4").tobytes()
    seconds = []
    for at in range(7):
        began = time.perf_counter()
        search([part], f"what is word{at + 3} and word{at * 100 + 40}", lambda _: query)
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)[3]


if __name__ == "__main__":
    main()
