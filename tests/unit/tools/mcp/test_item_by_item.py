"""What a server sends is read item by item: one bad tool, or one bad block, costs itself alone."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from dualtrack.frozen import freeze
from dualtrack.tool_values import Media, ToolResult, ToolSpec
from dualtrack.tools.mcp.client import MAX_PAGES, McpClient, Retries
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.mended import MAX_BLOCKS
from dualtrack.tools.mcp.specs import specs_of
from dualtrack.tools.mcp.well_formed import WellFormed

SERVER = McpServer("odd", "http://odd.test/mcp")
OBJECT = {"type": "object"}
WRITE = ToolSpec("odd_write", "", freeze(OBJECT), "mcp", "other", False, "odd", "write")
GOOD = {"name": "good", "inputSchema": OBJECT}
PNG = "iVBORw0KGgo="


class OddServer:
    """Answers each method with a result as it stands, in the form of the 2026-07-28 protocol or an older one."""

    def __init__(self, result: Any, *, is_old: bool = False) -> None:
        self.result, self.is_old = result, is_old
        self.methods: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        asked = json.loads(request.content or b"{}")
        self.methods.append(asked.get("method", request.method))
        if self.is_old and asked.get("method") == "initialize":
            told = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "serverInfo": {"name": "o", "version": "1"},
            }
            return self._answer(asked, json.dumps(told))
        if self.is_old and "mcp-session" not in str(self.methods) and "initialize" not in self.methods:
            return httpx2.Response(400, json={"no": "session"})
        if "id" not in asked:
            return httpx2.Response(202)
        written = self.result if isinstance(self.result, str) else json.dumps(self.result)
        return self._answer(asked, written)

    def _answer(self, asked: Any, result: str) -> httpx2.Response:
        body = f'{{"jsonrpc": "2.0", "id": {asked["id"]}, "result": {result}}}'
        return httpx2.Response(
            200, content=body.encode("utf-8", "surrogatepass"), headers={"content-type": "application/json"}
        )

    def client(self) -> McpClient:
        return McpClient(10, Retries(sleep=lambda _: None), httpx2.MockTransport(self))

    def called(self) -> ToolResult:
        return self.client().call_tool(SERVER, WRITE, {}, None)


def offered(*tools: Any, is_old: bool = False, **more: Any) -> tuple[list[str], dict[str, str]]:
    """The names of the tools on offer, and why others are left out."""
    listing = OddServer({"tools": [*tools, GOOD], **more}, is_old=is_old).client().list_tools(SERVER, None)
    specs = specs_of(SERVER, listing.tools)
    return [spec.remote_name for spec in specs.tools], {bad.name: bad.reason for bad in specs.left_out}


TAKEN: dict[str, dict[str, Any]] = {
    "no type": {"inputSchema": {"properties": {"a": {"type": "string"}}}},
    "empty schema": {"inputSchema": {}},
    "null schema": {"inputSchema": None},
    "no schema": {"inputSchema": ...},
    "any schema": {"inputSchema": True},
    "number as title": {"title": 7},
    "number as description": {"description": 7},
    "unknown enum": {"execution": {"taskSupport": "sometimes"}},
    "execution is a text": {"execution": "x"},
    "array as output schema": {"outputSchema": []},
    "output schema of a text": {"outputSchema": {"type": "string"}},
    "icons are a text": {"icons": "x"},
    "icons without source": {"icons": [{}]},
    "annotations are a text": {"annotations": "x"},
    "hints are texts": {"annotations": {"readOnlyHint": "yes"}},
    "meta is a list": {"_meta": []},
    "unknown fields": {"colour": "red"},
}


@pytest.mark.parametrize("is_old", [False, True], ids=["2026-07-28", "older"])
@pytest.mark.parametrize("kind", TAKEN)
def test_what_can_be_mended_of_a_tool_is_mended(kind: str, *, is_old: bool) -> None:
    tool = {"name": "odd", "inputSchema": OBJECT, **TAKEN[kind]}
    sent = {name: value for name, value in tool.items() if value is not ...}
    assert offered(sent, is_old=is_old) == (["good", "odd"], {})


LEFT_OUT: dict[str, tuple[Any, str, str]] = {
    "no object": (7, "(unnamed)", "it is no object"),
    "no name": ({"inputSchema": OBJECT}, "(unnamed)", "it has no name"),
    "number as name": ({"name": 7, "inputSchema": OBJECT}, "(unnamed)", "it has no name"),
    "schema is a list": ({"name": "odd", "inputSchema": []}, "odd", "its input schema is no object"),
    "schema of a text": ({"name": "odd", "inputSchema": {"type": "string"}}, "odd", "inputSchema.type: Input should be 'object'"),
    "tasks": (
        {"name": "odd", "inputSchema": OBJECT, "execution": {"taskSupport": "required"}},
        "odd",
        "it needs MCP's tasks, which are not spoken here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_old", [False, True], ids=["2026-07-28", "older"])
@pytest.mark.parametrize("kind", LEFT_OUT)
def test_what_cannot_is_left_out_alone_with_its_reason(kind: str, *, is_old: bool) -> None:
    sent, name, reason = LEFT_OUT[kind]
    assert offered(sent, is_old=is_old) == (["good"], {name: reason})


def test_a_tool_that_the_sdk_drops_is_told() -> None:
    odd = {
        "name": "odd",
        "inputSchema": {**OBJECT, "properties": {"a": {"type": "object", "x-mcp-header": "a b"}}},
    }
    assert offered(odd) == (["good"], {"odd": "an annotation x-mcp-header of its schema is invalid"})


def test_a_list_that_does_not_end_is_told() -> None:
    names, left_out = offered(nextCursor="more")
    assert names == ["good"]
    assert left_out["*"] == f"the server lists more than {MAX_PAGES} pages of tools; the rest is not read"


def test_a_cursor_of_another_kind_is_none() -> None:
    assert offered(nextCursor=7) == (["good"], {})


def test_a_listing_learns_that_calls_need_a_handshake() -> None:
    assert OddServer({"tools": [GOOD]}, is_old=True).client().list_tools(SERVER, None).handshake
    assert not OddServer({"tools": [GOOD]}).client().list_tools(SERVER, None).handshake


BLOCKS: dict[str, tuple[Any, str]] = {
    "unknown block": ({"type": "hologram"}, "(1 of the result's blocks left out: the type 'hologram' is not known.)"),
    "no object": (7, "(1 of the result's blocks left out: no object.)"),
    "image without data": (
        {"type": "image", "mimeType": "image/png"},
        "(1 of the result's blocks left out: a block of the type 'image' cannot be read.)",
    ),
    "a bare text": ("bare", "bare"),
    "no type": ({"text": "untyped"}, "untyped"),
    "a value as text": ({"type": "text", "text": {"a": 1}}, '{"a": 1}'),
    "odd annotations": ({"type": "text", "text": "said", "annotations": 7, "_meta": []}, "said"),
    "link without name": ({"type": "resource_link", "uri": "file:///a"}, "file:///a <file:///a>"),
    "resource without address": ({"type": "resource", "resource": {"text": "inside"}}, "\ninside"),
}  # fmt: skip


@pytest.mark.parametrize("is_old", [False, True], ids=["2026-07-28", "older"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_bad_block_costs_itself_alone(kind: str, *, is_old: bool) -> None:
    block, told = BLOCKS[kind]
    result = {"content": [{"type": "text", "text": "before"}, block], "resultType": "complete"}
    assert OddServer(result, is_old=is_old).called().content == f"before\n\n{told}"


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({"content": [{"type": "text", "text": "written"}]}, "written"),
        ({"content": "written"}, "written"),
        ({"content": {"type": "text", "text": "written"}}, "written"),
        ({"content": None, "structuredContent": {"a": 1}}, '{"a": 1}'),
        ({"content": [{"type": "text", "text": "written"}], "isError": "no"}, "written"),
        ({"content": [{"type": "text", "text": "written"}], "_meta": 7}, "written"),
    ],
)
def test_a_result_in_an_older_form_is_complete(result: dict[str, Any], content: str) -> None:
    """A write that has been made is not reported as failed, and made once."""
    odd = OddServer(result)
    assert odd.called() == ToolResult(content)
    assert odd.methods == ["tools/call"]


def test_more_blocks_than_are_read_are_counted() -> None:
    content = [{"type": "text", "text": "a"}] * (MAX_BLOCKS + 3)
    assert OddServer({"content": content}).called().content.endswith("\n\n(3 further blocks were left out.)")


@pytest.mark.parametrize("half", ['"\\ud83d"', '"\\ude00"', '"\ud83d"'])
def test_half_of_a_pair_is_a_replacement_character(half: str) -> None:
    """Escaped as JavaScript writes it, or as bytes that are no UTF-8 (three of them)."""
    sent = f'{{"content": [{{"type": "text", "text": {half}}}, {{"type": "text", "text": "\\ud83d\\ude00 \\\\ud83d"}}]}}'
    said, whole = OddServer(sent).called().content.split("\n\n")
    assert said == "\ufffd" * (1 if "\\" in half else 3)
    assert whole == "\U0001f600 \\ud83d"


def test_images_beside_an_error_are_kept() -> None:
    content = [
        {"type": "text", "text": "no such page"},
        {"type": "image", "mimeType": "image/png", "data": PNG},
    ]
    result = OddServer({"content": content, "isError": True}).called()
    assert result.is_error
    assert result.media == (Media("image/png", PNG),)


@pytest.mark.parametrize("size", range(1, 9))
def test_pieces_make_no_difference(size: int) -> None:
    body = b'{"a": "\\ud83d\\ude00 \\ud83d\\u0041 \\\\ud83d \\\\\\ude00 \xc3\xa4 \xff \\ud83d\\'
    whole, pieces = WellFormed(), WellFormed()
    expected = whole.take(body) + whole.end()
    assert (
        b"".join(pieces.take(body[at : at + size]) for at in range(0, len(body), size)) + pieces.end()
        == expected
    )
    assert (
        expected.decode() == '{"a": "\\ud83d\\ude00 \\ufffd\\u0041 \\\\ud83d \\\\\\ufffd ä \ufffd \\ufffd\\'
    )
