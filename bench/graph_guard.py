"""Mutated queries against the guard; those that pass also run on the engine in its child process.

    uv run --group test python -m bench.graph_guard 1000000 --runs 2000 --traced 200

Every mutation is parsed; one that passes may contain only known words. The first ``--runs`` different ones run beside a
file that none may read and in folders that none may change; the first ``--traced`` of those run under strace, which
lists every file that the child opens and every socket that it requests.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final
from unittest.mock import patch

from dualtrack.tools.graph.engine import GraphError, GraphValue
from dualtrack.tools.graph.functions import FUNCTIONS, TYPES
from dualtrack.tools.graph.guard import guarded
from dualtrack.tools.graph.ladybug import Ladybug, QueryLimits
from dualtrack.tools.graph.lexer import KEYWORDS, QUANTIFIERS, SUBQUERIES

from tests.drivers.cypher_queries import PARAMETERS, mutations
from tests.drivers.graph_database import make_database

SECRET: Final = "this-stands-in-no-graph"
KNOWN: Final = {
    "TRAIL",
    *KEYWORDS,
    *QUANTIFIERS,
    *SUBQUERIES,
    *TYPES,
    *(name.upper() for name in FUNCTIONS.values()),
}
LIMITS: Final = QueryLimits(seconds=5.0, threads=1, pool=128 << 20, reserve=1 << 30)
SYSTEM: Final = re.compile(
    r"^/(usr|lib|lib64|proc|sys|dev|opt|etc/(ld\.so|ssl|localtime))|/lib/(lib)?python3|site-packages|pyvenv\.cfg$|/child\.py$"
)
"""What Python and the engine open at their start."""


def main() -> None:
    """Parse, run, trace; exit 1 if anything was read or written that should not be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", type=int)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--traced", type=int, default=200)
    parser.add_argument("--seed", type=int, default=16)
    options = parser.parse_args()
    passed, outcomes, seconds = parse(options.queries, options.seed, options.runs)
    print(
        f"{options.queries:,} mutations in {seconds:.0f} s of CPU, {1e3 * seconds / options.queries:.2f} ms each: {dict(outcomes)}"
    )
    with tempfile.TemporaryDirectory() as folder:
        wrong = run(Path(folder), passed, options.traced)
    print(*wrong, sep="\n")
    sys.exit(bool(wrong))


def parse(number: int, seed: int, most: int) -> tuple[dict[str, dict[str, GraphValue]], Counter[str], float]:
    """The queries that pass, without duplicates; how many passed and were refused; seconds of CPU in the guard."""
    passed: dict[str, dict[str, GraphValue]] = {}
    outcomes: Counter[str] = Counter()
    spent = 0.0
    for query in mutations(random.Random(seed), number):
        began = time.process_time()
        try:
            text, parameters = guarded(query, PARAMETERS)
        except GraphError as error:
            outcomes[type(error).__name__] += 1
            continue
        finally:
            spent += time.process_time() - began
        outcomes["passed"] += 1
        outside = re.sub(r"`[^`]*`|'[^']*'|\$p[0-9]+\b", " ", text)
        foreign = {word for word in re.findall(r"[^\W\d]\w*", outside) if word.upper() not in KNOWN}
        if foreign or ";" in outside:
            sys.exit(f"{query!r} became {text!r}")
        if len(passed) < most:
            passed.setdefault(text, parameters)
    return passed, outcomes, spent


def run(folder: Path, passed: dict[str, dict[str, GraphValue]], traced: int) -> list[str]:
    """Run them; what went wrong."""
    database = make_database(folder / "graph.lbug")
    (folder / "secret.csv").write_text(SECRET)
    engine = Ladybug(database, LIMITS)
    wrapper, trace = folder / "traced", Path(tempfile.mkdtemp())
    wrapper.write_text(
        f'#!/bin/sh\nexec /usr/bin/strace -f -qq -e trace=%file,%network -o {trace}/$$ {sys.executable} "$@"\n'
    )
    wrapper.chmod(0o755)
    before = state(folder)
    outcomes: Counter[str] = Counter()
    wrong = []
    began = time.monotonic()
    for index, (text, parameters) in enumerate(passed.items()):
        with patch.object(sys, "executable", str(wrapper) if index < traced else sys.executable):
            try:
                rows = engine.read_foreign(text, parameters, 50)
                outcomes["rows"] += 1
            except GraphError as error:
                outcomes[f"{type(error).__name__}: {str(error).split(':')[0][:40]}"] += 1
                continue
        said = json.dumps(rows.rows)
        if SECRET in said or "root:x:" in said or len(rows.rows) > 50:
            wrong.append(f"{text!r} brought {said[:200]}")
    print(f"{len(passed):,} ran in {time.monotonic() - began:.0f} s:")
    print(*(f"  {number:6,} {what}" for what, number in outcomes.most_common()), sep="\n")
    if state(folder) != before:
        wrong.append(f"the folder has changed: {state(folder)}")
    opened, sockets = touched(trace)
    strangers = sorted(
        path for path in opened if not SYSTEM.search(path) and not path.startswith(str(database))
    )
    print(
        f"under strace: {len(opened)} files, not of Python, the engine and the system: {strangers}; sockets: {sockets}"
    )
    return wrong + [f"touched {path}" for path in strangers] + sockets


def state(folder: Path) -> dict[str, str]:
    """The folder's files and their contents."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def touched(trace: Path) -> tuple[set[str], list[str]]:
    """Files opened, changed or removed, and network calls, by all traced children."""
    opened: set[str] = set()
    sockets = []
    for path in trace.iterdir():
        for line in path.read_text(errors="replace").splitlines():
            if re.search(r"\b(socket|connect|bind|sendto)\(", line):
                sockets.append(line[:200])
            elif "= -1" not in line and not re.search(
                r"\b(stat|lstat|newfstatat|access|readlink|getcwd|chdir|execve)", line
            ):
                opened |= {name for name in re.findall(r'"([^"]+)"', line)[:2] if name.startswith("/")}
    return opened, sockets


if __name__ == "__main__":
    main()
