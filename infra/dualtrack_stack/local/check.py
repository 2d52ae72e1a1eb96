"""``python -m dualtrack_stack.local.check``: what agents would be offered, without a stack.

Checks the profiles and the setting ``MCP_SERVERS`` as the start of the local stack does, asks the servers for their
tools, and prints each profile's tools with their prices, as ``GET /v1/tools`` has them. A server whose token is a
secret is called without it.
"""

from __future__ import annotations

import json
import os
import sys

from dualtrack.api.tool_list import tools_json
from dualtrack.checked_settings import checked
from dualtrack.profiles import all_profiles, profile_from
from dualtrack.tools.mcp.catalogue import Catalogue
from dualtrack.tools.mcp.client import McpClient
from dualtrack.tools.mcp.config import parse_servers
from dualtrack.tools.mcp.failures import McpFailure
from dualtrack.tools.mcp.refresh import listing_token
from dualtrack.tools.mcp.specs import specs_of
from dualtrack_stack.profiles import BadProfile, own_profiles


def main() -> int:
    """Returns the exit code: 1 if a profile or the setting is wrong, or a server cannot be reached."""
    try:
        settings = checked(os.environ)
        own = [profile_from(json.loads(path.read_text(encoding="utf-8"))) for path in own_profiles(settings)]
        servers = parse_servers(settings.mcp_servers)
        client = McpClient()
        contents = [
            specs_of(server, client.list_tools(server, listing_token(server, lambda _: "")))
            for server in servers
        ]
    except (BadProfile, McpFailure, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    profiles = all_profiles() | {profile.name: profile for profile in own}
    tools = tuple(spec for content in contents for spec in content.tools)
    left_out = tuple(entry for content in contents for entry in content.left_out)
    listed = tools_json(profiles.values(), Catalogue("", tools, left_out), "", is_admin=True)
    prices = {tool["name"]: tool["price"] for tool in listed["tools"]}
    for profile in listed["profiles"]:
        print(f"{profile['name']}: {', '.join(f'{name} ({prices[name]})' for name in profile['tools'])}")
    for entry in listed["left_out"]:
        print(f"cannot be offered: {entry['server']}: {entry['name']}: {entry['reason']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
