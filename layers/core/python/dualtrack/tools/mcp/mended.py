"""What a server sends, item by item: a tool, or a block of a result, that does not follow the protocol costs itself
alone, and what can be taken of it is taken. Pure.

The SDK validates a page of tools, or a result, as a whole: one number in place of a title, and every tool is gone.

| of a tool | |
|---|---|
| no schema, an empty one, one without a type | any object |
| title, icons, output schema, unknown fields | are not read |
| hints that are no truth values | are left out |
| a name or schema of another kind; tasks required | the tool is left out, with its reason |

| of a result | |
|---|---|
| `resultType` absent | complete (specification 2026-07-28) |
| content that is a text or one block | is that block |
| a text that is another value | is its JSON |
| a block that cannot be read | is left out, and the model is told so |
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp_types import methods
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from dualtrack.text import one_line, preview
from dualtrack.tools.mcp.hints import HINTS

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BLOCKS: Final = 1_000
UNNAMED: Final = "(unnamed)"
_CACHE: Final = {"ttlMs": 0, "cacheScope": "private"}
"""What a listing says about how long it holds; nothing here reads it."""
_VERSIONS: Final = ("2025-11-25", LATEST_MODERN_VERSION)
_OPTIONAL: Final = ("title", "description", "mimeType")
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}


@dataclass(frozen=True, slots=True)
class BadTool:
    """A listed tool that cannot be offered, by the name that can be read."""

    name: str
    problem: str
    hints: Mapping[str, bool]


def mended(result: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[BadTool, ...]]:
    """A result of any method, with the tools of a listing and the blocks of a call as the SDK takes them; and the tools
    that are left out."""
    kept = {"resultType": "complete", **result}
    if isinstance(result.get("tools"), list):
        tools, bad = _mended_tools(result["tools"])
        more = result.get("nextCursor")
        cursor = {"nextCursor": more} if isinstance(more, str) else {}
        return {"resultType": "complete", **_CACHE, "tools": tools, **cursor}, bad
    if "content" in result or "structuredContent" in result:
        kept["content"] = _mended_content(result.get("content"))
        kept["isError"] = result.get("isError") is True
        kept.pop("_meta", None)
    return kept, ()


def _mended_tools(listed: list[Any]) -> tuple[list[dict[str, Any]], tuple[BadTool, ...]]:
    tools: list[dict[str, Any]] = []
    bad: list[BadTool] = []
    for sent in listed:
        tool, problem = _mended_tool(sent)
        if problem:
            bad.append(BadTool(str(tool.get("name") or UNNAMED), problem, tool.get("annotations", {})))
        else:
            tools.append(tool)
    return tools, tuple(bad)


def _mended_tool(sent: object) -> tuple[dict[str, Any], str]:
    """The tool as far as it can be read, and why it cannot be offered; empty if it can."""
    if not isinstance(sent, dict):
        return {}, "it is no object"
    hints = sent.get("annotations")
    told = hints if isinstance(hints, dict) else {}
    tool: dict[str, Any] = {
        "annotations": {name: told[name] for name in HINTS if isinstance(told.get(name), bool)}
    }
    for words in (sent.get("description"), sent.get("title")):
        if isinstance(words, str):
            tool.setdefault("description", words)
    name = sent.get("name")
    if not isinstance(name, str) or not name:
        return tool, "it has no name"
    tool["name"] = name
    schema = sent.get("inputSchema")
    if schema is None or schema is True:
        schema = {}
    if not isinstance(schema, dict):
        return tool, "its input schema is no object"
    tool["inputSchema"] = {"type": "object", **schema}
    execution = sent.get("execution")
    if isinstance(execution, dict) and execution.get("taskSupport") == "required":
        return tool, "it needs MCP's tasks, which are not spoken here"
    return tool, _refusal("tools/list", {**_CACHE, "tools": [tool]})


def _refusal(method: str, result: Mapping[str, Any]) -> str:
    """What is wrong with it in any of the protocol's versions."""
    for version in _VERSIONS:
        try:
            methods.parse_server_result(method, version, {"resultType": "complete", **result})
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            at = ".".join(str(part) for part in first["loc"][2:] if isinstance(part, str))
            return preview(one_line(f"{at}: {first['msg']}" if at else str(first["msg"])), 200)
    return ""


def _mended_content(sent: object) -> list[dict[str, Any]]:
    blocks = sent if isinstance(sent, list) else [] if sent is None else [sent]
    left_out: Counter[str] = Counter()
    content: list[dict[str, Any]] = []
    for each in blocks[:MAX_BLOCKS]:
        block, problem = _mended_block(each)
        if problem:
            left_out[problem] += 1
        else:
            content.append(block)
    told = [f"({count} of the result's blocks left out: {problem}.)" for problem, count in left_out.items()]
    if len(blocks) > MAX_BLOCKS:
        told.append(f"({len(blocks) - MAX_BLOCKS} further blocks were left out.)")
    return [*content, *({"type": "text", "text": line} for line in told)]


def _mended_block(sent: object) -> tuple[dict[str, Any], str]:
    if isinstance(sent, str):
        return {"type": "text", "text": sent}, ""
    if not isinstance(sent, dict):
        return {}, "no object"
    kind = sent.get("type", "text" if "text" in sent else None)
    if kind not in _NEEDS:
        return {}, f"the type {preview(one_line(str(kind)), 40)!r} is not known"
    kept = {name: sent[name] for name in (*_NEEDS[kind], *_OPTIONAL) if sent.get(name) is not None}
    block = {name: value for name, value in kept.items() if isinstance(value, str) or name == "resource"}
    if kind == "text" and "text" in kept:
        block["text"] = kept["text"] if isinstance(kept["text"], str) else _written(kept["text"])
    elif kind in ("image", "audio"):
        block.setdefault("mimeType", "application/octet-stream")
    elif kind == "resource_link" and "uri" in block:
        block.setdefault("name", block["uri"])
    elif kind == "resource" and isinstance(block.get("resource"), dict):
        block["resource"] = _mended_resource(block["resource"])
    block["type"] = kind
    return block, _refusal(
        "tools/call", {"content": [block]}
    ) and f"a block of the type {kind!r} cannot be read"


def _mended_resource(sent: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        name: sent[name] for name in ("uri", "mimeType", "text", "blob") if isinstance(sent.get(name), str)
    }
    return {"uri": "", **kept}


def _written(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "(A value that cannot be written as text: too deep, or a number too long.)"
