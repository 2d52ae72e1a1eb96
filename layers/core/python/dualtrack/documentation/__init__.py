"""Documentation search: Context7, hybrid ranking, rerank, sources (DESIGN 4).

``spec`` is light and may be imported anywhere; the pipeline (httpx, numpy, voyageai, anthropic) is
loaded on first use of `retrieve_documentation`, so that a function which only offers the tool to the
model does not pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualtrack.documentation.spec import RETRIEVE_DOCUMENTATION

if TYPE_CHECKING:
    from dualtrack.documentation.dependencies import Dependencies
    from dualtrack.documentation.pipeline import retrieve_documentation

__all__ = ["RETRIEVE_DOCUMENTATION", "Dependencies", "retrieve_documentation"]


def __getattr__(name: str) -> Any:
    if name == "retrieve_documentation":
        from dualtrack.documentation.pipeline import retrieve_documentation  # noqa: PLC0415 - heavy, on use

        return retrieve_documentation
    if name == "Dependencies":
        from dualtrack.documentation.dependencies import Dependencies  # noqa: PLC0415 - heavy, on use

        return Dependencies
    raise AttributeError(name)
