"""Runs one query in a process of its own, which ends with it. Nothing of dualtrack is imported here.

Started as ``python -I -S -B child.py`` with an empty environment and three descriptors (`tools.graph.ladybug`).
In:  ``{"package", "database", "query", "parameters", "limit", "threads", "pool", "reserve", "address_space",
"seconds", "bytes"}``. Out: ``{"columns", "rows", "more"}``, ``{"failed": words}`` or ``{"exhausted": words}``.

The engine's read-only handle does not keep a query from reading and writing other files (FACTS 14), so the limits of
the operating system come first: no file can be written to, no core is dumped, memory and processor time end.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
from types import ModuleType

TYPE_CHECKING = False  # typing is not loaded here
if TYPE_CHECKING:
    from typing import Any

TOO_MUCH = ("buffer manager", "bad_alloc", "bad alloc", "memory", "interrupted")
"""What the engine says where its memory or its time is used up."""


class TooLarge(Exception):
    """The rows would take more than their bytes."""


def limit_process(address_space: int, seconds: int) -> None:
    """The second line behind the guard."""
    for what, most in (
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_NOFILE, 32),
    ):
        resource.setrlimit(what, (most, most))


def engine(package: str) -> Any:
    """The engine's extension module without its package, which would load asyncio and with it twice as much."""
    ladybug = ModuleType("ladybug")
    ladybug.__path__ = [package]
    sys.modules["ladybug"] = ladybug
    sys.setdlopenflags(os.RTLD_GLOBAL | os.RTLD_LAZY)  # as the package does it
    from ladybug import _lbug  # noqa: PLC0415 - the limits come first

    return _lbug


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The rows, at most ``limit`` and one more to know of."""
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
    connection = library.Connection(database, asked["threads"])
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
    return {"columns": result.getColumnNames(), "rows": rows, "more": result.hasNext()}


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
    """What the engine's words mean."""
    return {"exhausted" if any(sign in words.lower() for sign in TOO_MUCH) else "failed": words}


def main() -> None:
    asked = json.load(sys.stdin.buffer)
    limit_process(asked["address_space"], asked["seconds"])
    try:
        told = answer(asked)
    except TooLarge:
        told = {"failed": "The rows are too large: return fewer or smaller values."}
    except MemoryError:
        told = {"exhausted": ""}
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent is told
        told = failure(str(error))
    data = json.dumps(told).encode()
    while data:
        data = data[os.write(1, data) :]
    os._exit(0)  # the engine's own end takes time and may touch files


if __name__ == "__main__":
    main()
