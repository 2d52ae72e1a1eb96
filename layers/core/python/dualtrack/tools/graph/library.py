"""The current version of the graph on a function instance's disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack.codec import load
from dualtrack.errors import Gone
from dualtrack.tools.graph.engine import NoGraph
from dualtrack.tools.graph.ladybug import Ladybug
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.schema import StoredSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.runtime.log import Log
    from dualtrack.storage.corpora import CorpusStore
    from dualtrack.tools.graph.engine import GraphValue, Rows

CORPUS: Final = "graph"
DATABASE: Final = "index"
"""The object of a version that is the database file."""

CHECKED_EVERY: Final = 5.0
"""Seconds between two checks for a newer version."""

FOLDER: Final = Path(tempfile.gettempdir()) / "graph"
"""Each process has its own folder of a version in it: the emulator's instances share a disk, Lambda's do not."""


class _NothingLoaded:
    """The engine before a graph is loaded."""

    def read(self, query: str, parameters: Mapping[str, GraphValue], limit: int) -> Rows:  # noqa: ARG002 - Engine's form
        raise NoGraph

    read_foreign = read


NOTHING: Final = GraphNeeds(_NothingLoaded(), StoredSchema())


@dataclass(slots=True)
class GraphLibrary:
    """One for each function instance. A version is fetched once and replaces the old one when it is complete, so the
    disk needs room for both."""

    store: CorpusStore
    log: Log
    folder: Path = FOLDER
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _version: str = ""
    _needs: GraphNeeds = NOTHING
    _checked: float = float("-inf")

    def needs(self) -> GraphNeeds:
        """The published graph, at most `CHECKED_EVERY` seconds old."""
        with self._lock:
            if self.clock() - self._checked >= CHECKED_EVERY:
                self._look()
                self._checked = self.clock()
            return self._needs

    def _look(self) -> None:
        """Switch to the current version if it has changed. If it cannot be fetched, the old one stays in use."""
        version = self.store.current(CORPUS)
        if version is None:
            self._swap("", NOTHING)
        elif version != self._version:
            try:
                self._swap(version, self._fetched(version))
            except (Gone, OSError) as error:
                if not self._version:
                    raise
                self.log.info("graph not fetched", extra={"reason": str(error)[:200]})

    def _fetched(self, version: str) -> GraphNeeds:
        schema = load(StoredSchema, self.store.schema(CORPUS, version))
        folder = self._folder_of(version)
        self._remove_abandoned()
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier attempt
        folder.mkdir(parents=True)
        try:
            with (folder / "graph.lbug").open("wb") as file:
                self.store.fetch(CORPUS, version, DATABASE, file)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return GraphNeeds(Ladybug(folder / "graph.lbug", told=self._say), schema)

    def _say(self, layers: Mapping[str, str]) -> None:
        """Log which layers of the engine's sandbox are in force on this platform."""
        refused = {layer: reason for layer, reason in layers.items() if reason}
        in_force = sorted(layers.keys() - refused)
        self.log.info("graph engine confined", extra={"layers": in_force, "refused": refused})

    def _swap(self, version: str, needs: GraphNeeds) -> None:
        former, self._version, self._needs = self._version, version, needs
        if former:
            shutil.rmtree(self._folder_of(former), ignore_errors=True)

    def _folder_of(self, version: str) -> Path:
        return self.folder / f"{os.getpid()}-{version}"

    def _remove_abandoned(self) -> None:
        """Remove folders of dead processes: an instance whose process died keeps its disk."""
        for path in self.folder.glob("*-*"):
            process = path.name.partition("-")[0]
            if process.isdecimal() and not _lives(int(process)):
                shutil.rmtree(path, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process
        return True
    return True
