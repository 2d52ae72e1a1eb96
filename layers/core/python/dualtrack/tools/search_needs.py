"""What the function `search` gives its tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dualtrack.tool_values import Injected

if TYPE_CHECKING:
    import httpx

    from dualtrack.knowledge.embedder import Embedder
    from dualtrack.models.protocol import Model
    from dualtrack.runtime.background_loop import BackgroundLoop
    from dualtrack.runtime.log import Log
    from dualtrack.settings import Settings
    from dualtrack.storage.stores import QueryStores
    from dualtrack.tool_values import ToolKind
    from dualtrack.tools.courses.library import CourseLibrary


@dataclass(frozen=True, slots=True, eq=False)
class SearchNeeds(Injected):
    """The clients of a function instance, which are others only after a key has changed: so a tool may keep what it
    has made of them with them, and two are equal only if they are the same.

    None means "not configured": without ``voyage`` and ``local`` only keywords rank, without ``model`` nothing is asked
    of one. ``transport``: the way to the services that tools call with httpx; None for the network.
    """

    kind: ClassVar[ToolKind] = "search"

    settings: Settings
    stores: QueryStores
    courses: CourseLibrary
    loop: BackgroundLoop
    logger: Log
    model: Model | None = None
    voyage: Embedder | None = None
    local: Embedder | None = None
    transport: httpx.AsyncBaseTransport | None = None

    @property
    def embedder(self) -> Embedder | None:
        """For conversations and courses: Voyage's embedder if it has a key, else the local model."""
        return self.voyage or self.local
