"""``python -m infra.local.check``: what agents would be offered, without a stack.

Checks the profiles and the setting ``MCP_SERVERS`` as the start of the local stack does, asks the servers for their
tools, and prints each profile's tools with their prices, as ``GET /v1/tools`` has them. A server whose token is a
secret is called without it.
"""

from __future__ import annotations

import json
import os
import sys

from dualtrack.api.tool_list import tools_json
from dualtrack.profiles import all_profiles, profile_from
from dualtrack.tools.mcp.catalogue import Catalogue
from dualtrack.tools.mcp.client import McpClient
from dualtrack.tools.mcp.config import parse_servers
from dualtrack.tools.mcp.failures import McpFailure
from dualtrack.tools.mcp.refresh import listing_token
from dualtrack.tools.mcp.specs import specs_of

from infra.profiles import BadProfile, own_profiles
from infra.stages import services_from


def main() -> int:
    """Returns the exit code: 1 if a profile or the setting is wrong, or a server cannot be reached."""
    try:
        own = [
            profile_from(json.loads(path.read_text(encoding="utf-8"))) for path in own_profiles(os.environ)
        ]
        servers = parse_servers(services_from(os.environ).mcp_servers or "")
        client = McpClient()
        tools = [
            spec
            for server in servers
            for spec in specs_of(server, client.list_tools(server, listing_token(server, lambda _: ""))).tools
        ]
    except (BadProfile, McpFailure, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    profiles = all_profiles() | {profile.name: profile for profile in own}
    listed = tools_json(profiles.values(), Catalogue("", tuple(tools)), "")
    prices = {tool["name"]: tool["price"] for tool in listed["tools"]}
    for profile in listed["profiles"]:
        print(f"{profile['name']}: {', '.join(f'{name} ({prices[name]})' for name in profile['tools'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
