"""A server's property that the model's service refuses, in a whole chat: the legal name forth, its own name back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dualtrack.tools.mcp import catalogue as module
from dualtrack.tools.mcp.calls import run_mcp_call
from dualtrack.tools.mcp.client import McpClient
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.execute import CallTokens
from dualtrack.tools.mcp.refresh import refresh_catalogue

from tests.drivers.world import make_world
from tests.servers.hostile_mcp import serve_hostile

if TYPE_CHECKING:
    from dualtrack.tool_values import ToolResult
    from dualtrack.tools.running import Running

ASKED = {"_top": 3, "_odata.type": "x"}
OWN = {"$top": 3, "@odata.type": "x"}


def test_a_chat_calls_a_tool_whose_properties_were_renamed() -> None:
    module._DECODED.clear()

    def call(running: Running) -> ToolResult:
        return run_mcp_call(
            running, world.stores.cache, (server,), client, CallTokens(lambda _: None, lambda _: "")
        )

    with serve_hostile() as board, make_world(ms_find=call) as world:
        server, client = McpServer("ms", board.at("odata")), McpClient()
        refresh_catalogue(world.stores.cache, (server,), client, secret=lambda _: "", now=world.clock())
        use = {"type": "tool_use", "name": "ms_find", "input": ASKED}
        world.model.script.add({"match": "turn", "content": [use]}, {"match": "turn", "text": "Found."})
        assert world.ask("Find three.").status == "done"
        turns = [request.body for request in world.model.requests if request.body.get("tools")]
        offered = next(tool for tool in turns[0]["tools"] if tool["name"] == "ms_find")["input_schema"]
        assert (set(offered["properties"]), offered["required"]) == (set(ASKED), ["_top"])
        assert json.dumps(json.dumps(OWN))[1:-1] in json.dumps(turns[1]["messages"])


def test_a_failed_call_shows_its_picture_and_no_nul() -> None:
    """The service takes files in a result only where that has no mark of an error; its words say it."""
    module._DECODED.clear()

    def call(running: Running) -> ToolResult:
        return run_mcp_call(
            running, world.stores.cache, (server,), client, CallTokens(lambda _: None, lambda _: "")
        )

    with serve_hostile() as board, make_world(ms_find=call) as world:
        server, client = McpServer("ms", board.at("mixed")), McpClient()
        (done,) = refresh_catalogue(
            world.stores.cache, (server,), client, secret=lambda _: "", now=world.clock()
        )
        assert done.outcome == "listed 1"
        assert {bad.name: bad.reason for bad in done.left_out} == {
            "later": "it needs MCP's tasks, which are not spoken here"
        }
        use = {"type": "tool_use", "name": "ms_find", "input": {}}
        world.model.script.add({"match": "turn", "content": [use]}, {"match": "turn", "text": "Seen."})
        assert world.ask("Find it.").status == "done"
        sent = [request.body for request in world.model.requests if request.body.get("tools")][1]
        (result,) = [
            block
            for message in sent["messages"]
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        assert "is_error" not in result
        assert [block["type"] for block in result["content"]] == ["text", "image"]
        assert "Tool execution failed: no such page" in result["content"][0]["text"]
