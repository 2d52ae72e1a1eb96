"""What a large graph costs: seconds to load, bytes of the file, milliseconds and memory of each tool, cold and warm.

    uv run --group test python -m bench.graph_size 1000000 5000000

Assets are located in nested locations, belong to systems, and feed one another at random. Loading is what the function
`graph_load` does with the files; cold is the first query on a file that is not in the page cache (if it can be
dropped), warm the median of the next five. Memory is the peak resident set of the engine's process so far, including
the file's pages; `run_query` has its own process.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from dualtrack.corpora.graph.load import GraphFile, make_database, taken_in
from dualtrack.corpora.graph.survey import Survey
from dualtrack.tools.graph.ladybug import Ladybug
from dualtrack.tools.graph.needs import GraphNeeds

from tests.drivers.graph import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.tools.graph.schema import StoredSchema

CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("get_schema", {}),
    ("find_node", {"name": "Asset 4711"}),
    ("find_node", {"name": "Aset 4711"}),
    ("count_nodes", {"name": "Asset 4711"}),
    ("count_by_label", {"label": "Asset"}),
    ("list_nodes", {"label": "Asset", "name_prefix": "Asset 47"}),
    ("list_categories", {}),
    ("get_node_connections", {"node_id": "n4711"}),
    ("count_by_category", {"scope": "both"}),
    ("count_related", {"node_id": "l3"}),
    ("count_related_by_name", {"name": "Place 3"}),
    ("list_related", {"node_id": "l3"}),
    ("list_related_by_name", {"name": "Place 3"}),
    ("count_breakdown", {}),
    ("find_path", {"from": "n4711", "to": "n815", "max_depth": 6}),
    ("run_query", {"query": "MATCH (a:Asset)-[:FEEDS]->(b) WHERE a.size > 990 RETURN b.name, count(*) AS n ORDER BY n DESC LIMIT 5"}),
)  # fmt: skip


def main() -> None:
    """Load once, call each tool six times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", type=int)
    parser.add_argument("edges", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="graph-size-") as scratch:
        database, schema = load(Path(scratch), options.nodes, options.edges)
        call_all(GraphNeeds(Ladybug(database), schema), database)


def load(folder: Path, nodes: int, edges: int) -> tuple[Path, StoredSchema]:
    """Write the files and load them into a database."""
    sources = [GraphFile("nodes.csv", folder / "nodes.csv"), GraphFile("edges.csv", folder / "edges.csv")]
    for source, lines in zip(sources, (node_lines(nodes), edge_lines(nodes, edges)), strict=True):
        with source.path.open("w") as file:
            file.writelines(lines)
    print(
        f"{nodes:,} nodes, {edges:,} edges: {sum(table.path.stat().st_size for table in sources) / 1e6:.0f} MB of CSV"
    )
    began, cpu = time.monotonic(), time.process_time()
    survey = Survey()
    if problems := taken_in(survey, sources):
        raise SystemExit(f"bad rows: {problems}")
    surveyed = time.monotonic()
    database = make_database(folder, sources, survey)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"loaded in {time.monotonic() - began:.0f} s ({surveyed - began:.0f} s of it reading), {time.process_time() - cpu:.0f} s "
        f"of CPU, {most / 1e3:.0f} MB of memory; file {database.stat().st_size / 1e6:.0f} MB"
    )
    return database, survey.schema()


def node_lines(number: int) -> Iterator[str]:
    yield "node_id,label,name,status,size\n"
    for location in range(locations(number)):
        yield f"l{location},Location,Place {location},,\n"
    for system in range(100):
        yield f"s{system},System,System {system},,\n"
    for asset in range(number - locations(number) - 100):
        yield f"n{asset},Asset,Asset {asset},{'on' if asset % 3 else 'off'},{asset % 1000}\n"


def edge_lines(nodes: int, number: int) -> Iterator[str]:
    """Every asset has its location and its system; the other edges connect random assets."""
    yield "from,type,to\n"
    chance, assets = random.Random(16), nodes - locations(nodes) - 100
    for location in range(1, locations(nodes)):
        yield f"l{location},LOCATED_IN,l{location // 10}\n"
    for asset in range(assets):
        yield f"n{asset},LOCATED_IN,l{chance.randrange(locations(nodes))}\n"
        yield f"n{asset},PART_OF_SYSTEM,s{chance.randrange(100)}\n"
    for _ in range(number - 2 * assets - locations(nodes) + 1):
        yield f"n{chance.randrange(assets)},FEEDS,n{chance.randrange(assets)}\n"


def locations(nodes: int) -> int:
    return max(10, nodes // 100)


def call_all(needs: GraphNeeds, database: Path) -> None:
    """One line for each call."""
    print(f"{'':32} {'cold':>8} {'warm':>8}   ms; MB of the engine's process so far; result")
    for tool, arguments in CALLS:
        forget(database)
        spent = []
        for _ in range(6):
            began = time.monotonic()
            result = run(needs, tool, **arguments).content
            spent.append(1e3 * (time.monotonic() - began))
        print(
            f"{tool:32} {spent[0]:8.0f} {median(spent[1:]):8.0f}   {memory_of_child():6.0f}   {result[:80]}",
            flush=True,
        )


def memory_of_child() -> float:
    """Peak MB of the engine's process so far; 0 if there is none."""
    children = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
    status = "".join(Path("/proc", pid, "status").read_text() for pid in children)
    return max(
        (int(kilobytes) / 1e3 for kilobytes in re.findall(r"VmHWM:\s+([0-9]+) kB", status)), default=0.0
    )


def forget(path: Path) -> None:
    """Drop the file's pages from the cache, as on a fresh instance."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    main()
