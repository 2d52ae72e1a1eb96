"""How long a graph takes to be loaded, and how much memory and disk: ``python -m tests.bench.graph_load 1000000 5000000``.

Nodes are assets in nested places; every file has at most 20 MB, as the API takes them. What is measured is what the
function does after the files were uploaded: reading, the survey, the tables, the engine's bulk load.
"""

from __future__ import annotations

import functools
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dualtrack.corpora.graph.database import build, write_tables
from dualtrack.corpora.graph.load import Source, counted, taken_in
from dualtrack.corpora.graph.survey import Survey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")

FILE_BYTES = 19_000_000
SEED = 20261122


def node_rows(number: int) -> Iterator[str]:
    """A tenth are places."""
    for n in range(number):
        if n % 10:
            yield f"a{n},Asset,Asset {n},SN-{n:08d},{n % 997}.5\n"
        else:
            yield f"l{n},Location,Location {n},,\n"


def edge_rows(number: int, nodes: int) -> Iterator[str]:
    """Each from a node by lot to a place, or between assets."""
    drawn = random.Random(SEED)
    for n in range(number):
        start, end = drawn.randrange(nodes), drawn.randrange(nodes)
        first = f"{'a' if start % 10 else 'l'}{start}"
        if n % 2:
            yield f"{first},LOCATED_IN,l{end - end % 10}\n"
        else:
            yield f"{first},CONNECTED_TO,{'a' if end % 10 else 'l'}{end}\n"


def write(folder: Path, stem: str, header: str, rows: Iterable[str]) -> Iterator[Source]:
    """Files of a size that the API takes."""
    number, size, file = 0, FILE_BYTES + 1, None
    for row in rows:
        if size + len(row) > FILE_BYTES:
            if file:
                file.close()
            number += 1
            path = folder / f"{stem}-{number}.csv"
            file, size = path.open("w"), len(header)
            file.write(header)
            yield Source(path.name, path)
        assert file
        size += file.write(row)
    if file:
        file.close()


def look(one: Source) -> object:
    """What a job does first with each file."""
    return counted(one.name, one.path.read_bytes())


def main() -> None:
    """Print the figures."""
    nodes, edges = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as scratch:
        folder = Path(scratch)
        sources = [
            *write(folder, "nodes", "node_id,label,name,serial,power\n", node_rows(nodes)),
            *write(folder, "edges", "from,type,to\n", edge_rows(edges, nodes)),
        ]
        source_bytes = sum(one.path.stat().st_size for one in sources)
        print(f"{nodes:,} nodes, {edges:,} edges: {len(sources)} files, {source_bytes / 1e6:.0f} MB")
        for one in sources:
            timed(f"look at {one.name}", functools.partial(look, one))
        survey = Survey()
        wrong = timed("survey", lambda: taken_in(survey, sources))
        assert not wrong
        schema, path = survey.schema(), folder / "graph.lbug"
        rows = (row for one in sources for row in one.rows())
        timed("tables", lambda: write_tables(folder, schema, rows, survey.label_of))
        timed("bulk load", lambda: build(path, folder, schema))
        used = sum(one.stat().st_size for one in folder.iterdir())
        print(f"database {path.stat().st_size / 1e6:.0f} MB, disk in all {used / 1e6:.0f} MB")


def timed(what: str, work: Callable[[], T]) -> T:
    """What work gives, and a line with what it took."""
    wall, cpu = time.monotonic(), time.process_time()
    result = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"{what}: {time.monotonic() - wall:.1f} s, CPU {time.process_time() - cpu:.1f} s, peak {peak:.0f} MB"
    )
    return result


if __name__ == "__main__":
    main()
