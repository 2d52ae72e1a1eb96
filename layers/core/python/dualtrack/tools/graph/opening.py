"""Which graph a function reads: the published one with the embedded engine, or a server's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dualtrack.runtime.secrets import secret
from dualtrack.tools.graph.library import GraphLibrary
from dualtrack.tools.graph.settings import BOLT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.runtime.log import Log
    from dualtrack.settings import Settings
    from dualtrack.storage.corpora import CorpusStore
    from dualtrack.tools.graph.needs import GraphNeeds


def open_graph(settings: Settings, store: CorpusStore, log: Log) -> Callable[[], GraphNeeds]:
    """The function that returns the tools' graph at each call."""
    if settings.dualtrack_graph_engine != BOLT:
        return GraphLibrary(store, log).needs
    from dualtrack.tools.graph.bolt_library import BoltLibrary  # noqa: PLC0415 - the driver costs time, if used

    password = partial(secret, settings.graph_secret)
    return BoltLibrary(settings.dualtrack_graph_url, settings.dualtrack_graph_user, password, log).needs
