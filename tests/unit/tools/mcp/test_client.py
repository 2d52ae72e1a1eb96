"""The MCP client on the wire: requests per call, failures with their status, retries, protocols."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from dualtrack.frozen import freeze
from dualtrack.tool_check import broken_rule
from dualtrack.tool_values import ToolSpec
from dualtrack.tools.arguments import invalid_arguments
from dualtrack.tools.mcp.client import McpClient, Retries
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.execute import CallTokens, execute_mcp_call
from dualtrack.tools.mcp.failures import McpFailure, RequestFailure
from dualtrack.tools.mcp.specs import ListedTool, specs_of
from mcp_types.version import LATEST_MODERN_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

SERVER = McpServer("docs", "http://docs.test/mcp", headers=freeze({"X-Toolsets": "all"}))
SCHEMA = freeze({"type": "object", "properties": {"owner": {"type": "string", "x-mcp-header": "owner"}}})
FIND = ToolSpec("docs_find", "", SCHEMA, "mcp", "other", True, "docs", "find")
WRITE = ToolSpec("docs_write", "", SCHEMA, "mcp", "other", False, "docs", "write")

Answer = httpx2.Response | Exception


class Wire:
    """Answers POSTs in turn (repeating the last answer) and records the requests."""

    def __init__(self, *answers: Answer | Callable[[Any], Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = answer(json.loads(request.content))
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def methods(self) -> list[str]:
        return [json.loads(request.content)["method"] for request in self.requests]

    def client(self) -> McpClient:
        self.waits: list[float] = []
        retries = Retries(sleep=self.waits.append)
        return McpClient(seconds=10, retries=retries, transport=httpx2.MockTransport(self))


def said(text: str) -> Callable[[Any], Answer]:
    """A result of the 2026-07-28 protocol."""
    return result({"resultType": "complete", "content": [{"type": "text", "text": text}]})


def result(body: Any) -> Callable[[Any], Answer]:
    return lambda request: httpx2.Response(200, json={"jsonrpc": "2.0", "id": request["id"], "result": body})


def rpc_error(status: int, code: int, message: str) -> Callable[[Any], Answer]:
    error = {"code": code, "message": message}
    return lambda request: httpx2.Response(
        status, json={"jsonrpc": "2.0", "id": request["id"], "error": error}
    )


def failure(client: McpClient, spec: ToolSpec = FIND, token: str | None = None) -> RequestFailure:
    with pytest.raises(McpFailure) as caught:
        client.call_tool(SERVER, spec, {"owner": "ana"}, token)
    return caught.value.failure


def test_a_call_is_one_post_with_token_headers_and_mirrored_arguments() -> None:
    wire = Wire(said("found"))
    outcome = wire.client().call_tool(SERVER, FIND, freeze({"owner": "ana", "tags": ["a"]}), "secret")
    assert outcome.content == "found"
    (request,) = wire.requests
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["x-toolsets"] == "all"
    assert request.headers["mcp-protocol-version"] == LATEST_MODERN_VERSION
    assert request.headers["mcp-param-owner"] == "ana"
    assert json.loads(request.content)["params"]["arguments"] == {"owner": "ana", "tags": ["a"]}


def test_a_renamed_property_reaches_the_server_under_its_own_name() -> None:
    schema = {"type": "object", "properties": {"$top": {"type": "integer", "x-mcp-header": "top"}}}
    listed = [ListedTool("find", "", freeze({**schema, "required": ["$top"]}), hints={"readOnlyHint": True})]
    (spec,) = specs_of(SERVER, listed).tools
    assert broken_rule(spec.name, spec.input_schema) == ""
    assert invalid_arguments(spec, {"$top": 3}).endswith("'_top' is a required property")
    assert invalid_arguments(spec, {"_top": 3}) == ""
    wire = Wire(said("found"))
    tokens = CallTokens(lambda _: None, lambda _: "")
    assert (
        execute_mcp_call(spec, freeze({"_top": 3}), "ann", (SERVER,), wire.client(), tokens).content
        == "found"
    )
    (request,) = wire.requests
    assert json.loads(request.content)["params"]["arguments"] == {"$top": 3}
    assert request.headers["mcp-param-top"] == "3"


def test_without_a_token_none_is_sent() -> None:
    wire = Wire(said("found"))
    wire.client().call_tool(SERVER, FIND, {}, None)
    assert "authorization" not in wire.requests[0].headers


def test_listing_reads_every_page_and_the_annotations() -> None:
    def page(names: list[str], cursor: str | None, hints: dict[str, bool] | None) -> Callable[[Any], Answer]:
        tools = [{"name": name, "inputSchema": {"type": "object"}, "annotations": hints} for name in names]
        tools = [{key: value for key, value in tool.items() if value is not None} for tool in tools]
        more = {"nextCursor": cursor} if cursor else {}
        return result({"resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tools": tools, **more})

    wire = Wire(
        page(["a"], "2", {"readOnlyHint": True}),
        page(["b"], "3", {"idempotentHint": True}),
        page(["c"], None, None),
    )
    schema = freeze({"type": "object"})
    assert wire.client().list_tools(SERVER, None).tools == (
        ListedTool("a", "", schema, hints={"readOnlyHint": True}),
        ListedTool("b", "", schema, hints={"idempotentHint": True}),
        ListedTool("c", "", schema),
    )


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "unauthorized"), (403, "forbidden"), (429, "rate_limited"), (409, "refused"), (418, "refused")],
)
def test_the_status_of_an_error_is_kept_and_the_call_not_retried(status: int, kind: str) -> None:
    wire = Wire(httpx2.Response(status, text="no", headers={"retry-after": "30"}))
    failed = failure(wire.client())
    assert (failed.kind, failed.status, failed.retry_after) == (kind, status, "30")
    assert len(wire.requests) == 1
    assert "30" in failed.text


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_if_a_server_is_down_a_repeatable_call_is_retried(status: int) -> None:
    wire = Wire(httpx2.Response(status), httpx2.Response(status), said("back"))
    assert wire.client().call_tool(SERVER, FIND, {}, None).content == "back"
    assert len(wire.requests) == 3
    assert len(wire.waits) == 2


def test_it_gives_up_in_the_end() -> None:
    wire = Wire(httpx2.Response(503))
    assert failure(wire.client()).kind == "down"
    assert len(wire.requests) == 1 + len(Retries().waits)


@pytest.mark.parametrize(
    "answer", [httpx2.Response(503), httpx2.ReadError("cut"), httpx2.RemoteProtocolError("cut")]
)
def test_a_writing_tool_that_may_have_run_is_not_retried(answer: Answer) -> None:
    wire = Wire(answer, said("twice"))
    failed = failure(wire.client(), WRITE)
    assert (failed.kind, failed.reached, len(wire.requests)) == ("down", True, 1)


def test_a_writing_tool_that_was_not_reached_is_retried() -> None:
    wire = Wire(httpx2.ConnectError("refused"), said("written"))
    assert wire.client().call_tool(SERVER, WRITE, {}, None).content == "written"


def test_a_timeout_is_reported_and_not_retried() -> None:
    wire = Wire(httpx2.ReadTimeout("slow"), said("late"))
    failed = failure(wire.client())
    assert (failed.kind, len(wire.requests)) == ("timeout", 1)


def test_an_older_server_gets_a_handshake_and_is_remembered() -> None:
    wire = Wire(lambda request: OLDER[request["method"]](request))
    client = wire.client()
    assert client.call_tool(SERVER, FIND, {}, None).content == "old"
    assert client.call_tool(SERVER, FIND, {}, None).content == "old"
    assert wire.methods == [
        "tools/call",
        *["server/discover", "initialize", "notifications/initialized", "tools/call"] * 2,
    ]


def test_an_older_server_named_in_the_settings_gets_the_handshake_at_once() -> None:
    wire = Wire(lambda request: OLDER[request["method"]](request))
    server = McpServer("docs", "http://docs.test/mcp", handshake=True)
    assert wire.client().call_tool(server, FIND, {}, None).content == "old"
    assert wire.methods[0] == "server/discover"


def test_after_a_malformed_answer_a_writing_tool_is_not_retried() -> None:
    wire = Wire(result({"resultType": 7}))
    failed = failure(wire.client(), WRITE)
    assert (failed.kind, wire.methods) == ("protocol", ["tools/call"])


def test_arguments_that_the_server_refuses_are_reported_with_its_message() -> None:
    wire = Wire(rpc_error(400, -32602, "unknown tool: find"))
    assert "unknown tool: find" in failure(wire.client()).text
    assert wire.methods == ["tools/call"]


def test_a_changed_schema_is_fetched_again_and_the_call_repeated() -> None:
    tool = {
        "name": "find",
        "inputSchema": {"type": "object", "properties": {"q": {"type": "string", "x-mcp-header": "q"}}},
    }
    listing = result({"resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tools": [tool]})
    wire = Wire(rpc_error(400, -32020, "missing header"), listing, said("found"))
    assert wire.client().call_tool(SERVER, FIND, {"q": "x"}, None).content == "found"
    assert wire.requests[2].headers["mcp-param-q"] == "x"


def test_the_token_is_in_no_failure() -> None:
    for answer in (
        httpx2.Response(401),
        httpx2.Response(503),
        httpx2.ConnectError("refused"),
        result({"resultType": 7}),
    ):
        failed = failure(Wire(answer).client(), WRITE, "github_pat_secret")
        assert "github_pat_secret" not in f"{failed!r} {failed.text}"


def _too_old(request: Any) -> Answer:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: no session"}}
    return httpx2.Response(400, json=body)


def _old_call(request: Any) -> Answer:
    if (
        "_meta" in request["params"]
        and "io.modelcontextprotocol/protocolVersion" in request["params"]["_meta"]
    ):
        return _too_old(request)
    return result({"content": [{"type": "text", "text": "old"}]})(request)


OLDER: dict[str, Callable[[Any], Answer]] = {
    "server/discover": _too_old,
    "initialize": result(
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        }
    ),
    "notifications/initialized": lambda _: httpx2.Response(202),
    "tools/call": _old_call,
}
