"""The graph of a server over Bolt: one driver for each function instance, and a schema that is refreshed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dualtrack.tools.graph.bolt import Bolt, open_driver
from dualtrack.tools.graph.bolt_schema import read_schema
from dualtrack.tools.graph.dialects import NEO4J
from dualtrack.tools.graph.engine import GraphError
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.schema import StoredSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from neo4j import Driver

    from dualtrack.runtime.log import Log

SCHEMA_SECONDS: Final = 300.0
"""Seconds after which the schema is read again."""


@dataclass(slots=True)
class BoltLibrary:
    """One for each function instance. ``password`` returns the current one; a new password gets a new driver."""

    url: str
    user: str
    password: Callable[[], str]
    log: Log
    clock: Callable[[], float] = time.monotonic
    _driver: Driver | None = field(default=None, init=False)
    _opened_with: str = field(default="", init=False)
    _schema: StoredSchema = field(default=StoredSchema(), init=False)
    _read: float = field(default=float("-inf"), init=False)

    def needs(self) -> GraphNeeds:
        """The server's graph. If its schema was never read and cannot be now, ``problem`` says why."""
        server = Bolt(self._current_driver())
        problem = ""
        if self.clock() - self._read >= SCHEMA_SECONDS:
            try:
                self._schema, self._read = read_schema(server), self.clock()
            except GraphError as error:
                self.log.info("graph's schema not read", extra={"reason": str(error)})
                problem = "" if self._schema.labels else str(error)
        return GraphNeeds(server, self._schema, NEO4J, problem)

    def close(self) -> None:
        """Close its connections."""
        if self._driver:
            self._driver.close()
            self._driver = None

    def _current_driver(self) -> Driver:
        password = self.password()
        if self._driver is None or password != self._opened_with:
            self.close()
            self._driver, self._opened_with = open_driver(self.url, self.user, password), password
        return self._driver
