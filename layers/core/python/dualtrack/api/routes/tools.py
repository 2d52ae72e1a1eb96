"""/v1/tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.api import models
from dualtrack.api.route import CHAT_READERS, Ok, Route
from dualtrack.api.tool_list import changed_json, tools_json
from dualtrack.profiles import all_profiles
from dualtrack.tools.mcp.accepted import accept
from dualtrack.tools.mcp.catalogue import load_catalogue

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request


@Route(
    "get",
    "/v1/tools",
    "List tools and profiles",
    scopes=CHAT_READERS,
    description="Tools of MCP servers are listed as `<server>_<name>`; the list is updated from time to time."
    " Administrators also see which ones cannot be offered, and why, and which are not accepted.",
)
def get_tools(request: Request) -> Ok[answers.Tools]:
    stores = request.stores
    catalogue = load_catalogue(stores.cache, stores.clock())
    listed = tools_json(all_profiles().values(), catalogue, request.services.model, is_admin=request.is_admin)
    return Ok(listed)


@Route(
    "post",
    "/v1/admin/tools/{server}/accept",
    "Accept what an MCP server says of its tools by now",
    models.AcceptBody,
    access="admin",
    description="The tools with these marks count from the next chat on as their server lists them. What it lists"
    " otherwise by now stays as it is, and is answered.",
)
def post_accept(request: Request, server: str) -> Ok[answers.ChangedTools]:
    stores = request.stores
    left = accept(stores.cache, server, request.body(models.AcceptBody).marks, stores.clock())
    body: answers.ChangedTools = {"changed": changed_json(left)}
    return Ok(body)
