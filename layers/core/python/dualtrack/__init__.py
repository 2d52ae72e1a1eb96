"""dualtrack: the domain library of the agent backend.

It has pure decisions on frozen values, and the small store and client classes that do the I/O.
Handlers in ``functions/`` parse, call one function and return.

For tools: ``from dualtrack import tool`` (docs/tools.md), and what they return and are given.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualtrack.tool_declaration import tool
    from dualtrack.tool_values import Media, Source, ToolContext, ToolResult

__all__ = ["Media", "Source", "ToolContext", "ToolResult", "__version__", "tool"]

__version__ = "1.0.0"
"""The one place of the version: package, commands, OpenAPI document and documents have it from here."""


def __getattr__(name: str) -> Any:
    """The names for tools, loaded when they are used: every function imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(
        import_module(f"{__name__}.{'tool_declaration' if name == 'tool' else 'tool_values'}"), name
    )
    globals()[name] = found
    return found
