"""Times a search: a deadline for all of it, a limit for each stage, and a record of the stages."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from dualtrack.errors import Degraded
from dualtrack.tools.documentation.values import Context7Error, SearchError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from dualtrack.tools.documentation.settings import SearchLimits

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that ran: its milliseconds and its outcome."""

    name: str
    milliseconds: float
    outcome: str

    @property
    def went_well(self) -> bool:
        """Whether it succeeded."""
        return self.outcome == "ok"


@dataclass(slots=True)
class Stages:
    """Runs the stages of a search and records them."""

    limits: SearchLimits
    monotonic: Callable[[], float] = time.monotonic
    done: list[Stage] = field(default_factory=list)
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.monotonic()

    def left(self) -> float:
        """Seconds that are left."""
        return self.limits.total - self.limits.reserve - (self.monotonic() - self.started)

    async def required(self, name: str, limit: float, work: Callable[[float], Awaitable[T]]) -> T:
        """The stage's value. Raises `Context7Error` if it takes longer than its share."""
        with self.timed(name):
            share = min(limit, self.left())
            try:
                async with asyncio.timeout(max(share, 0)):
                    return await work(share)
            except TimeoutError as error:
                raise Context7Error(f"the {name} stage took longer than it may") from error

    async def optional(self, name: str, limit: float, work: Callable[[float], Awaitable[T]]) -> T | None:
        """The stage's value, or None if it failed or exceeded its share of the time."""
        share = min(limit, self.left())
        if share < self.limits.least:
            self.done.append(Stage(name, 0.0, "skipped"))
            return None
        try:
            with self.timed(name):
                async with asyncio.timeout(share):
                    return await work(share)
        except (Degraded, TimeoutError):
            return None

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Record the duration and outcome of the body."""
        begun = self.monotonic()
        outcome = "ok"
        try:
            yield
        except (SearchError, Degraded) as error:
            outcome = str(error) if isinstance(error, Degraded) else type(error).__name__
            raise
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            self.done.append(Stage(name, round(1000 * (self.monotonic() - begun), 1), outcome))
