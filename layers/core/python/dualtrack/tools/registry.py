"""Which tools a profile offers: the in-house ones by name, and what MCP servers list."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.tools.documentation.spec import RETRIEVE_DOCUMENTATION
from dualtrack.tools.full_context import RETRIEVE_FULL_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.profiles import Profile
    from dualtrack.tool import ToolSpec
    from dualtrack.tools.mcp.catalogue import Catalogue

IN_HOUSE: Final[Mapping[str, ToolSpec]] = MappingProxyType(
    {spec.name: spec for spec in (RETRIEVE_FULL_CONTEXT, RETRIEVE_DOCUMENTATION)}
)


def offered_tools(profile: Profile, catalogue: Catalogue) -> Mapping[str, ToolSpec]:
    """The profile's tools by name, in an order that never changes for the same catalogue."""
    mcp = [spec for spec in catalogue.tools if "*" in profile.mcp or spec.server in profile.mcp]
    listed = [IN_HOUSE[name] for name in profile.tools] + mcp
    return MappingProxyType({spec.name: spec for spec in listed})
