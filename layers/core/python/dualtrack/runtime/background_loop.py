"""An event loop in its own thread: synchronous code can wait for asynchronous work with a hard limit, from any
thread, and connections live as long as the container.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class BackgroundLoop:
    """Starts its thread on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T], timeout: float) -> T:
        """The coroutine's value. Raises TimeoutError, and cancels it, after ``timeout`` seconds."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the thread and cancel what still runs."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop and thread:
            asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result(5)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(5)
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="background-loop", daemon=True
                )
                self._thread.start()
            return self._loop


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
