"""Runs queries in a separate process until its input ends. Imports nothing of dualtrack.

Started as ``python -I -S -B child.py`` with an empty environment and three descriptors
(`tools.graph.ladybug`). It reads lines of JSON: first ``{"package", "database", "threads", "pool", "reserve",
"address_space", "seconds"}``, then ``{"query", "parameters", "limit", "bytes"}`` for each query. It answers each query
with ``{"columns", "rows", "more"}``, ``{"failed": words}`` or ``{"exhausted": words}``, and with ``"layers"``: each
layer of the sandbox, and why it is not in force (empty if it is).

The engine's read-only handle does not prevent a query from reading and writing other files (PROFILES 4), so limits of
the operating system are set first: on memory and processor time, and no file can be written, no core dumped. With all
that a query needs loaded and the database open, the process gives up everything else (`sandbox`).
"""

from __future__ import annotations

import decimal
import json
import math
import os
import resource
import sys
import time
from importlib.machinery import SourceFileLoader
from types import ModuleType

TYPE_CHECKING = False  # typing is not loaded here
if TYPE_CHECKING:
    from typing import Any

TOO_MUCH = ("buffer manager", "bad_alloc", "bad alloc", "memory", "interrupted")
"""Parts of the engine's messages when memory or time has run out."""

LOADED_LATE = ("signal", "threading", "uuid")
"""Modules that the engine loads when it first needs them, which it then cannot."""


class RowsTooLarge(Exception):
    """The rows are larger than the query's ``bytes``."""


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
    """Limit the processor time of all threads from now on; the system counts from the process's start."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, hard))


def engine(package: str) -> Any:
    """The engine's extension module without its package, which would also load asyncio and double the memory."""
    ladybug = ModuleType("ladybug")
    ladybug.__path__ = [package]
    sys.modules["ladybug"] = ladybug
    sys.setdlopenflags(os.RTLD_GLOBAL | os.RTLD_LAZY)  # as the package does
    from ladybug import _lbug  # noqa: PLC0415 - the limits come first

    return _lbug


def beside(name: str) -> Any:
    """A module of this folder, which is on no path here."""
    module = ModuleType(name)
    SourceFileLoader(name, __file__.replace("child.py", f"{name}.py")).exec_module(module)
    return module


def opened(settings: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """A connection to the database in the sandbox, and the sandbox's layers."""
    sandbox = beside("sandbox")
    library = engine(settings["package"])
    for module in LOADED_LATE:
        __import__(module)
    layers = {"landlock": sandbox.refusal(sandbox.landlock, settings["database"])}  # before there are threads
    connection = connected(library, settings)
    layers["limits"] = sandbox.refusal(sandbox.limits)
    layers["seccomp"] = sandbox.refusal(sandbox.seccomp)
    return connection, layers


def connected(library: Any, settings: dict[str, Any]) -> Any:
    """A connection to the database. The engine starts its threads."""
    database = library.Database(
        database_path=settings["database"],
        buffer_pool_size=settings["pool"],
        max_num_threads=settings["threads"],
        compression=True,
        read_only=True,
        max_db_size=settings["reserve"],
        auto_checkpoint=False,
        checkpoint_threshold=-1,
        throw_on_wal_replay_failure=True,
        enable_checksums=True,
        enable_multi_writes=False,
    )
    return library.Connection(database, settings["threads"])


def answer(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    """At most ``limit`` rows, and whether there are more."""
    prepared = connection.prepare(request["query"], request["parameters"])
    if not prepared.is_success():
        return failure(prepared.get_error_message())
    result = connection.execute(prepared, request["parameters"])
    rows: list[list[Any]] = []
    left = request["bytes"]
    while result.hasNext() and len(rows) < request["limit"]:
        row = [plain(value) for value in result.getNext()]
        left -= len(json.dumps(row))
        if left < 0:
            raise RowsTooLarge
        rows.append(row)
    reply = {"columns": result.getColumnNames(), "rows": rows, "more": result.hasNext()}
    result.close()
    return reply


def plain(value: Any) -> Any:
    """The value as JSON: nodes as ``{"_label", …}``, relationships as ``{"_type", …}``, paths as lists of both."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, decimal.Decimal)):
        return plain_number(value)
    if isinstance(value, dict):
        return plain_object(value)
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def plain_number(value: float | decimal.Decimal) -> int | float | str:
    """A decimal without a fraction is a sum of integers."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    return value if math.isfinite(value) else str(value)


def plain_object(value: dict[Any, Any]) -> dict[str, Any]:
    if "_NODES" in value and "_RELS" in value:
        return {"nodes": plain(value["_NODES"]), "relationships": plain(value["_RELS"])}
    if "_ID" in value and "_LABEL" in value:
        label = "_type" if "_SRC" in value else "_label"
        own = {key: entry for key, entry in value.items() if key not in ("_ID", "_LABEL", "_SRC", "_DST")}
        return {
            label: value["_LABEL"],
            **{key: plain(entry) for key, entry in own.items() if entry is not None},
        }
    return {str(key): plain(entry) for key, entry in value.items()}


def failure(words: str) -> dict[str, Any]:
    """The answer for an error message of the engine."""
    return {"exhausted" if any(sign in words.lower() for sign in TOO_MUCH) else "failed": words}


def reply_to(request: dict[str, Any], connection: Any) -> dict[str, Any]:
    """The rows, or the error."""
    try:
        return answer(connection, request)
    except RowsTooLarge:
        return {"failed": "The rows are too large: return fewer or smaller values."}
    except MemoryError:
        return {"exhausted": ""}
    except Exception as error:  # noqa: BLE001 - the parent gets any error
        return failure(str(error))


def main() -> None:
    settings = json.loads(sys.stdin.buffer.readline())
    limit_process(settings["address_space"])
    limit_query(settings["seconds"])
    try:
        connection, layers = opened(settings)
    except Exception as error:  # noqa: BLE001 - the parent gets any error
        write(failure(str(error)))
        os._exit(0)
    for line in sys.stdin.buffer:
        limit_query(settings["seconds"])
        write({**reply_to(json.loads(line), connection), "layers": layers})
    os._exit(0)  # the engine's own shutdown takes time and may touch files


def write(reply: dict[str, Any]) -> None:
    data = json.dumps(reply).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
