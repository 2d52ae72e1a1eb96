"""/v1/tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.api import answers
from dualtrack.api.route import Answer, Route
from dualtrack.api.tool_list import tools_json
from dualtrack.profiles import all_profiles
from dualtrack.tools.mcp.catalogue import load_catalogue

if TYPE_CHECKING:
    from dualtrack.api.request import Request


@Route(
    "get",
    "/v1/tools",
    "List tools and profiles",
    {200: answers.Tools},
    description="Tools of MCP servers are listed as `<server>_<name>`; the list is updated from time to time.",
)
def get_tools(request: Request) -> Answer:
    stores = request.stores
    catalogue = load_catalogue(stores.cache, stores.clock())
    return Answer(200, tools_json(all_profiles().values(), catalogue, request.services.model))
