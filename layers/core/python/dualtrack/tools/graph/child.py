"""Runs queries in a process of its own, until its input ends. Nothing of dualtrack is imported here.

Started as ``python -I -S -B child.py`` with an empty environment and three descriptors
(`tools.graph.ladybug`). Lines of JSON, first ``{"package", "database", "threads", "pool", "reserve",
"address_space", "seconds"}``, then for each query ``{"query", "parameters", "limit", "bytes"}`` in, and out
``{"columns", "rows", "more"}``, ``{"failed": words}`` or ``{"exhausted": words}``.

The engine's read-only handle does not keep a query from reading and writing other files (PROFILES 4), so the limits of
the operating system come first: no file can be written to, no core is dumped, memory and processor time end.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time
from types import ModuleType

TYPE_CHECKING = False  # typing is not loaded here
if TYPE_CHECKING:
    from typing import Any

TOO_MUCH = ("buffer manager", "bad_alloc", "bad alloc", "memory", "interrupted")
"""What the engine says where its memory or its time is used up."""


class TooLarge(Exception):
    """The rows would take more than their bytes."""


def limit_process(address_space: int) -> None:
    """Set the limits: the second line of defence after the guard."""
    for what, most in (
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 32),
    ):
        resource.setrlimit(what, (most, most))


def limit_query(seconds: int) -> None:
    """Processor time from now on, that of all threads; the system counts from the process's start."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, hard))


def engine(package: str) -> Any:
    """The engine's extension module without its package, which would load asyncio and with it twice as much."""
    ladybug = ModuleType("ladybug")
    ladybug.__path__ = [package]
    sys.modules["ladybug"] = ladybug
    sys.setdlopenflags(os.RTLD_GLOBAL | os.RTLD_LAZY)  # as the package does it
    from ladybug import _lbug  # noqa: PLC0415 - the limits come first

    return _lbug


def opened(asked: dict[str, Any]) -> Any:
    """A connection to the database."""
    library = engine(asked["package"])
    database = library.Database(
        database_path=asked["database"],
        buffer_pool_size=asked["pool"],
        max_num_threads=asked["threads"],
        compression=True,
        read_only=True,
        max_db_size=asked["reserve"],
        auto_checkpoint=False,
        checkpoint_threshold=-1,
        throw_on_wal_replay_failure=True,
        enable_checksums=True,
        enable_multi_writes=False,
    )
    return library.Connection(database, asked["threads"])


def answer(connection: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """The rows, at most ``limit`` and one more to know of."""
    prepared = connection.prepare(asked["query"], asked["parameters"])
    if not prepared.is_success():
        return failure(prepared.get_error_message())
    result = connection.execute(prepared, asked["parameters"])
    rows: list[list[Any]] = []
    left = asked["bytes"]
    while result.hasNext() and len(rows) < asked["limit"]:
        row = [plain(value) for value in result.getNext()]
        left -= len(json.dumps(row))
        if left < 0:
            raise TooLarge
        rows.append(row)
    told = {"columns": result.getColumnNames(), "rows": rows, "more": result.hasNext()}
    result.close()
    return told


def plain(value: Any) -> Any:
    """A JSON value: nodes as ``{"_label", …}``, relationships as ``{"_type", …}``, paths as both in order."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return plain_object(value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def plain_object(value: dict[Any, Any]) -> dict[str, Any]:
    if "_NODES" in value and "_RELS" in value:
        return {"nodes": plain(value["_NODES"]), "relationships": plain(value["_RELS"])}
    if "_ID" in value and "_LABEL" in value:
        label = "_type" if "_SRC" in value else "_label"
        own = {key: one for key, one in value.items() if key not in ("_ID", "_LABEL", "_SRC", "_DST")}
        return {label: value["_LABEL"], **{key: plain(one) for key, one in own.items() if one is not None}}
    return {str(key): plain(one) for key, one in value.items()}


def failure(words: str) -> dict[str, Any]:
    """The answer for an error message of the engine."""
    return {"exhausted" if any(sign in words.lower() for sign in TOO_MUCH) else "failed": words}


def said(asked: dict[str, Any], connection: Any) -> dict[str, Any]:
    """The rows, or the error."""
    try:
        return answer(connection, asked)
    except TooLarge:
        return {"failed": "The rows are too large: return fewer or smaller values."}
    except MemoryError:
        return {"exhausted": ""}
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent is told
        return failure(str(error))


def main() -> None:
    asked = json.loads(sys.stdin.buffer.readline())
    limit_process(asked["address_space"])
    limit_query(asked["seconds"])
    try:
        connection = opened(asked)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent is told
        write(failure(str(error)))
        os._exit(0)
    for line in sys.stdin.buffer:
        limit_query(asked["seconds"])
        write(said(json.loads(line), connection))
    os._exit(0)  # the engine's own end takes time and may touch files


def write(told: dict[str, Any]) -> None:
    data = json.dumps(told).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
