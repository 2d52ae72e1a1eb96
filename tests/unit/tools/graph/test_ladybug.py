"""The engine in its child process: its results, its isolation, and how it ends."""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dualtrack.tools.graph import child
from dualtrack.tools.graph.engine import GraphError, QueryFailed, QueryTimedOut
from dualtrack.tools.graph.ladybug import DEFAULT_LIMITS, MAX_ROWS, Ladybug, QueryLimits

from tests.drivers.graph_database import ASSETS, make_database

CORE = Path(child.__file__).parents[3]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Ladybug:
    return Ladybug(make_database(tmp_path_factory.mktemp("graph") / "graph.lbug"))


def test_rows_have_columns_and_say_whether_there_are_more(engine: Ladybug) -> None:
    query = "MATCH (a:Asset) WHERE a.size > $least RETURN a.name AS name, a.size AS size ORDER BY a.size"
    rows = engine.read(query, {"least": 3}, 2)
    assert (rows.columns, rows.rows, rows.more) == (("name", "size"), (("Pump 4", 4), ("Pump 5", 5)), True)
    assert not engine.read(query, {"least": 3}, 3).more


def test_nodes_relationships_and_paths_are_json_without_the_engines_ids(engine: Ladybug) -> None:
    query = "MATCH p = (a:Asset {node_id: 'a1'})-[r:LOCATED_IN]->(l) RETURN a, r, l, p"
    ((node, relationship, location, path),) = engine.read(query, {}, 1).rows
    assert node == {
        "_label": "Asset",
        "node_id": "a1",
        "name": "Pump 1",
        "status": "on",
        "size": 1,
        "active": False,
    }
    assert relationship == {"_type": "LOCATED_IN", "since": 2020}
    assert location == {"_label": "Location", "node_id": "l1", "name": "Hall"}
    assert path == {"nodes": [node, location], "relationships": [relationship]}


def test_every_kind_of_value_is_json(engine: Ladybug) -> None:
    query = (
        "RETURN date('2026-11-22'), timestamp('2026-11-22 10:00:00'), interval('2 days'), 1.0 / 0.0, CAST(1.5 AS "
        "DECIMAL(3, 1)), uuid('0b5c4f6e-1111-4222-8333-444455556666'), blob('\\\\xAA'), {a: [1, NULL]}, 170141183460469"
        "231731687303715884105727"
    )
    (row,) = engine.read(query, {}, 1).rows
    assert row[0] == "2026-11-22"
    assert str(row[1]).startswith("2026-11-22T10:00:00")
    assert row[3] == "inf"
    assert row[6] == "aa"
    assert row[7] == {"a": [1, None]}
    json.dumps(row, allow_nan=False)


def test_never_more_than_the_most_rows(engine: Ladybug) -> None:
    rows = engine.read("UNWIND range(1, 1000) AS x RETURN x", {}, 10_000)
    assert (len(rows.rows), rows.more) == (MAX_ROWS, True)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("MATCH (a:Nothing) RETURN a", "Binder exception: Table Nothing does not exist."),
        ("MATCH (a:Asset) RETURN a.nothing", "Cannot find property nothing for a."),
        ("RETURN $missing", "Parameter missing not found"),
        ("RETURN 1; RETURN 2", "multiple statements"),
        ("CREATE (:Asset {node_id: 'x'})", "read-only"),
    ],
)
def test_an_error_has_the_engines_message(engine: Ladybug, query: str, words: str) -> None:
    with pytest.raises(QueryFailed, match=words) as failed:
        engine.read(query, {}, 1)
    assert len(str(failed.value)) <= 300
    assert "\n" not in str(failed.value)


SMALL = QueryLimits(seconds=1.0, threads=1, pool=64 << 20, reserve=1 << 30)


@pytest.mark.parametrize(
    "query",
    [
        "UNWIND range(1, 1000000000000) AS x RETURN sum(x)",
        "UNWIND range(1, 100000000) AS x RETURN collect(x)",
        "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y RETURN x, y ORDER BY x * y LIMIT 3",
        "MATCH (a), (b), (c), (d), (e), (f), (g), (h), (i) RETURN a, b, c ORDER BY a.name LIMIT 3",
        "MATCH (a)-[*1..30]-(b) RETURN count(*)",
        "RETURN repeat('a', 10000000000)",
    ],
)
def test_a_runaway_ends_and_the_next_one_works(engine: Ladybug, query: str) -> None:
    small = replace(engine, limits=SMALL)
    with pytest.raises(QueryTimedOut, match="ask for less"):
        small.read_foreign(query, {}, 1)
    assert small.read_foreign("MATCH (a:Asset) RETURN count(a)", {}, 1).rows == ((ASSETS,),)


ALL_ASSETS = "MATCH (a:Asset) RETURN count(a)"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The children, in the order of their starts."""
    children: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def remembered(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        children.append(start(*arguments, **options))
        return children[-1]

    monkeypatch.setattr(subprocess, "Popen", remembered)
    return children


def alive(started: list[subprocess.Popen[bytes]]) -> list[bool]:
    return [process.poll() is None for process in started]


def test_one_child_answers_all_queries_of_our_own(
    engine: Ladybug, started: list[subprocess.Popen[bytes]]
) -> None:
    own = replace(engine)
    for number in range(5):
        assert own.read("RETURN $number", {"number": number}, 1).rows == ((number,),)
    assert alive(started) == [True]


def test_a_users_query_has_a_child_of_its_own_and_runs_alone(
    engine: Ladybug, started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    own = replace(engine)
    own.read(ALL_ASSETS, {}, 1)
    for _ in range(2):
        assert own.read_foreign(ALL_ASSETS, {}, 1).rows == ((ASSETS,),)
        assert not any(alive(started))
    own.read(ALL_ASSETS, {}, 1)
    assert alive(started) == [False, False, False, True]


@pytest.mark.parametrize(
    "query",
    [
        "UNWIND range(1, 1000000000000) AS x RETURN sum(x)",
        "UNWIND range(1, 100000000) AS x RETURN collect(x)",
    ],
)
def test_a_runaway_ends_the_child_and_the_next_query_has_another(
    engine: Ladybug, started: list[subprocess.Popen[bytes]], query: str
) -> None:
    own = replace(engine, limits=SMALL)
    own.read(ALL_ASSETS, {}, 1)
    with pytest.raises(QueryTimedOut, match="ask for less"):
        own.read(query, {}, 1)
    assert alive(started) == [False]
    assert own.read(ALL_ASSETS, {}, 1).rows == ((ASSETS,),)
    assert alive(started) == [False, True]


def test_a_child_that_died_between_two_queries_is_replaced(
    engine: Ladybug, started: list[subprocess.Popen[bytes]]
) -> None:
    own = replace(engine)
    own.read(ALL_ASSETS, {}, 1)
    started[0].kill()
    started[0].wait()
    assert own.read(ALL_ASSETS, {}, 1).rows == ((ASSETS,),)


def test_a_child_that_dies_before_it_reads_its_query_is_a_failed_query(
    engine: Ladybug, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pipe then keeps what could not be written, and cannot be closed without an error."""

    def dead(*_: Any, **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = start(["/bin/true"], **options)
        process.wait()
        return process

    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", dead)
    with pytest.raises(QueryTimedOut, match="gave up"):
        replace(engine).read(ALL_ASSETS, {}, 1)


def test_a_child_ends_with_its_engine(engine: Ladybug, started: list[subprocess.Popen[bytes]]) -> None:
    own = replace(engine)
    own.read(ALL_ASSETS, {}, 1)
    del own
    assert alive(started) == [False]


def test_processor_time_is_counted_for_each_query(
    engine: Ladybug, started: list[subprocess.Popen[bytes]]
) -> None:
    """Otherwise a long-running child would be killed by its limit."""
    own = replace(engine)
    own.read(ALL_ASSETS, {}, 1)
    while (used := processor_seconds(started[0].pid)) < 2:
        own.read("UNWIND range(1, 30000000) AS x RETURN sum(x)", {}, 1)
    own.read(ALL_ASSETS, {}, 1)
    limit, _ = resource.prlimit(started[0].pid, resource.RLIMIT_CPU)
    assert limit >= used + DEFAULT_LIMITS.seconds * DEFAULT_LIMITS.threads


def processor_seconds(pid: int) -> float:
    """What a process has used, threads included (proc_pid_stat(5): utime and stime)."""
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_large_rows_are_refused(engine: Ladybug) -> None:
    with pytest.raises(QueryFailed, match="too large"):
        engine.read("UNWIND range(1, 30) AS x RETURN repeat('a', 100000)", {}, 200)


def test_an_invalid_database_is_an_error_of_the_query(tmp_path: Path) -> None:
    (tmp_path / "graph.lbug").write_bytes(b"nothing of the kind" * 1_000)
    with pytest.raises(GraphError):
        Ladybug(tmp_path / "graph.lbug").read("RETURN 1", {}, 1)
    with pytest.raises(GraphError):
        Ladybug(tmp_path / "missing.lbug").read("RETURN 1", {}, 1)


FUNCTION = """
import sys
from pathlib import Path
from dualtrack.tools.graph.ladybug import Ladybug
engine = Ladybug(Path(sys.argv[1]))
engine.read("RETURN 1", {}, 1)
print(engine._child._process.pid, flush=True)
sys.stdin.read()
"""
"""A function instance that waits for its next call."""


def test_the_child_ends_with_a_function_that_is_killed(engine: Ladybug) -> None:
    program = [sys.executable, "-c", FUNCTION, str(engine.database)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as function:
        assert function.stdout is not None
        ended = os.pidfd_open(int(function.stdout.readline()))
        function.kill()
    assert select.select([ended], [], [], 10)[0]
    os.close(ended)


INSIDE = """
import json, os, sys
sys.path.insert(0, {core!r})
from dualtrack.tools.graph import child
def look(path):
    try:
        return open(path, "rb").read().decode(errors="replace")
    except OSError as error:
        return type(error).__name__
def opened(asked):
    return None, {{}}
def answer(connection, asked):
    fds = [int(one) for one in os.listdir("/proc/self/fd")]
    opened = [fd for fd in fds if os.path.exists(f"/proc/self/fd/{{fd}}") and fd > 2]
    return {{"columns": ["x"], "more": False, "rows": [[json.dumps({{
        "environment": dict(os.environ), "opened": opened, "above": look(f"/proc/{{os.getppid()}}/environ"),
        "modules": sorted(sys.modules), "limits": open("/proc/self/limits").read()}})]]}}
child.opened, child.answer = opened, answer
child.main()
"""
"""In place of the child's program, with its own start and end: says what a query could find there."""

PARENT = """
import os, sys
sys.path.insert(0, {core!r})
from pathlib import Path
from dualtrack.runtime.private import keep_private
from dualtrack.tools.graph import ladybug
{private}
keep = [open("/dev/null") for _ in range(20)]
for one in keep: os.set_inheritable(one.fileno(), False)
ladybug._CHILD = Path({inside!r})
print(ladybug.Ladybug(Path("/nowhere")).read_foreign("", {{}}, 1).rows[0][0])
"""


"""A function instance."""

LAUNCH = """
import ctypes, os, sys
for capability in (19, 21, 38):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
"""PR_CAPBSET_DROP of CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_PERFMON: root may then read of its processes what any other
user may of theirs (capabilities(7))."""


def seen_by_a_query(folder: Path, *, private: bool) -> dict[str, Any]:
    """What a query's process can see of its parent and of itself."""
    inside = folder / "inside.py"
    inside.write_text(INSIDE.format(core=str(CORE)))
    private_line = "keep_private()" if private else ""
    program = PARENT.format(core=str(CORE), inside=str(inside), private=private_line)
    site = next(path for path in sys.path if path.endswith("site-packages"))
    environment = {"SECRET": "not-for-children", "PATH": os.environ["PATH"], "PYTHONPATH": site}
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def test_a_query_finds_nothing_of_its_parent(tmp_path: Path) -> None:
    """No environment, no open file, and nothing in ``/proc``, since the parent is not dumpable."""
    seen, bare = (seen_by_a_query(tmp_path, private=private) for private in (True, False))
    assert set(seen["environment"]) <= {"LD_LIBRARY_PATH", "LC_CTYPE"}
    assert seen["opened"] == []
    assert seen["above"] == "PermissionError"
    assert "not-for-children" in str(
        bare["above"]
    )  # the parent's private data, which would otherwise be readable
    limits = str(seen["limits"])
    assert "Max file size             0" in limits
    assert "Max core file size        0" in limits
    assert f"Max address space         {DEFAULT_LIMITS.address_space}" in limits


def test_the_child_imports_only_what_it_needs() -> None:
    """Every query pays for its imports."""
    program = f"import sys; sys.argv = ['child']; exec(open({child.__file__!r}).read().split('if __name__')[0]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert not {"site", "typing", "asyncio", "logging", "subprocess", "dualtrack"} & set(done.stdout.split())
