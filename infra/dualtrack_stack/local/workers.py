"""The processes of functions on this machine: how many there are of each, and what those of a project's tools may do.

On AWS each execution has a machine of its own. Here a process stays after its call, so that the next one starts warm;
the emulator ends those that others stand in for after `WARM_SECONDS`.
"""

from __future__ import annotations

import os
import subprocess
import threading
import zipfile
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.local.forks import ForkServers
from dualtrack_stack.local.unpacked import LayersOnce
from dualtrack_stack.project.function import NAME as OWN
from dualtrack_stack.roots import own_python

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack_stack.local.forks import Fork

WARM_SECONDS: Final = 60
"""How long a process waits that the function's first one stands in for."""

_MEGABYTES: Final = 128
"""What an execution takes here, on the average."""
_FEWEST: Final = 16


def account_concurrency() -> int:
    """The executions at a time for which half of this machine's memory is enough; further ones are throttled, as by an
    account's limit on AWS."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return max(_FEWEST, memory // 2 // _MEGABYTES)


def processes_of() -> dict[str, int]:
    """The most processes of a function, by its name: `embed` is nothing but arithmetic, each with 240 MB and a
    processor of its own, and the next question needs one as well. Further calls wait."""
    return {"embed": max(1, (os.cpu_count() or 1) // 2)}


class Queues:
    """Calls of these functions wait until a process is free. Every call takes and gives it back in one thread."""

    def __init__(self, runtime: Any, most: Mapping[str, int]) -> None:
        self._acquire, self._release = runtime.acquire_worker, runtime.release_worker
        self._free = {name: threading.Semaphore(number) for name, number in most.items()}
        self._held = threading.local()

    def acquire(self, func_name: str, config: dict[str, Any], *rest: Any, **more: Any) -> Any:
        """In place of the emulator's ``acquire_worker``."""
        queue = self._free.get(_service(config.get("Environment", {}).get("Variables", {})))
        if queue:
            queue.acquire()
        try:
            worker, how = self._acquire(func_name, config, *rest, **more)
        except BaseException:
            worker = None
            raise
        finally:
            if queue and worker is None:
                queue.release()
        self._held.queue = queue if worker else None
        return worker, how

    def release(self, worker: Any) -> None:
        """In place of its ``release_worker``; ``worker`` is None for one that has broken down."""
        self._release(worker)
        queue, self._held.queue = getattr(self._held, "queue", None), None
        if queue:
            queue.release()


def started(servers: ForkServers, command: list[str], **more: Any) -> subprocess.Popen[Any] | Fork:
    """In place of the emulator's ``Popen``: tools of a project run under `dualtrack_stack.local.supervised`, functions
    as copies of one process where that can be."""
    variables = more["env"]
    if _service(variables) == OWN:
        memory = variables["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        command = own_python("dualtrack_stack.local.supervised", memory, *command)
    return servers.popen(command, **more) or subprocess.Popen(command, **more)


def _service(variables: Mapping[str, str]) -> str:
    return variables.get("POWERTOOLS_SERVICE_NAME", "")


def bound(runtime: Any) -> None:
    """Bind the emulator's processes by these rules. ``runtime``: its module ``lambda_runtime``, before others take
    names over from it."""
    queues = Queues(runtime, processes_of())
    runtime.acquire_worker, runtime.release_worker = queues.acquire, queues.release
    popen = partial(started, ForkServers())
    runtime.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": popen})
    runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": LayersOnce})
