"""Our MCP client as the conformance suite runs it: list the tools of the server, call each, stop.

``python -m tests.clients.conformance_client URL``. The suite may name calls in MCP_CONFORMANCE_CONTEXT.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from dualtrack.frozen import freeze, thaw
from dualtrack.tools.mcp.client import McpClient
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.failures import McpFailure
from dualtrack.tools.mcp.specs import ListedTool, specs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.tool_values import ToolSpec

EXAMPLES = {"string": "x", "number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}
ECHO = "json_schema_echo"


def main() -> None:
    server = McpServer("peer", sys.argv[1])
    client = McpClient(seconds=20)
    listed = client.list_tools(server, None).tools
    asked = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls")
    for spec in specs_of(server, listed).tools:
        for arguments in _arguments(spec, listed, asked):
            try:
                client.call_tool(server, spec, freeze(arguments), None)
            except McpFailure as failed:
                print(spec.name, failed, file=sys.stderr)


def _arguments(spec: ToolSpec, listed: tuple[ListedTool, ...], asked: Any) -> Iterator[Any]:
    if spec.remote_name == ECHO:
        focal = next(tool for tool in listed if tool.name != ECHO)
        yield {name: thaw(focal.input_schema) for name in spec.input_schema["properties"]}
    elif asked:
        yield from (call["arguments"] for call in asked if call["name"] == spec.remote_name)
    else:
        properties = spec.input_schema.get("properties", {})
        yield {name: EXAMPLES.get(schema.get("type"), "x") for name, schema in properties.items()}


if __name__ == "__main__":
    main()
