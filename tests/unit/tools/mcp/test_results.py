"""From MCP results to tool results."""

from __future__ import annotations

from typing import Any

import pytest
from dualtrack.tool_values import Media, Source, ToolResult
from dualtrack.tools.mcp.results import tool_result
from mcp_types import CallToolResult

PNG = "iVBORw0KGgo="


def converted(*content: dict[str, Any], **fields: Any) -> ToolResult:
    return tool_result(CallToolResult.model_validate({"content": list(content), **fields}))


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_text_is_kept_whole_and_in_order() -> None:
    long = "x" * 300_000
    assert converted(text("a"), text(long)).content == f"a\n\n{long}"


def test_images_and_pdfs_are_media() -> None:
    pdf = {
        "type": "resource",
        "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "JVBERi0="},
    }
    result = converted({"type": "image", "mimeType": "image/png", "data": PNG}, pdf)
    assert result.media == (Media("image/png", PNG), Media("application/pdf", "JVBERi0="))
    assert result.content == "file:///a.pdf"
    assert (
        converted({"type": "image", "mimeType": "image/png", "data": PNG}).content
        == "(see the attached content)"
    )


def test_all_binary_content_is_media() -> None:
    """Which of it can be sent is decided when it is recorded."""
    font = {"type": "resource", "resource": {"uri": "x://y", "mimeType": "font/woff", "blob": "no base64"}}
    sound = {"type": "audio", "mimeType": "audio/wav", "data": PNG}
    result = converted(sound, font, {"type": "resource", "resource": {"uri": "x://z", "blob": PNG}})
    assert result.media == (
        Media("audio/wav", PNG),
        Media("font/woff", "no base64"),
        Media("application/octet-stream", PNG),
    )
    assert result.content == "x://y\n\nx://z"


def test_resources_are_text_and_web_addresses_are_sources() -> None:
    link = {
        "type": "resource_link",
        "name": "guide",
        "title": "Guide",
        "uri": "https://docs.test/guide",
        "description": "all",
    }
    inside = {"type": "resource", "resource": {"uri": "repo://o/r/README.md", "text": "# Hi"}}
    result = converted(link, link, inside)
    assert result.content == (
        "Guide <https://docs.test/guide>: all\n\nGuide <https://docs.test/guide>: all\n\nrepo://o/r/README.md\n# Hi"
    )
    assert result.sources == (Source("Guide", "https://docs.test/guide"),)


def test_structured_content_is_used_if_no_text_repeats_it() -> None:
    assert converted(structuredContent={"n": 1, "ö": [2]}).content == '{"n": 1, "ö": [2]}'
    assert converted(text('{"n":1}'), structuredContent={"n": 1}).content == '{"n":1}'


@pytest.mark.parametrize("value", [[], 10**5_000], ids=["deep", "long"])
def test_structured_content_that_cannot_be_serialised_is_reported(value: Any) -> None:
    for _ in range(20_000):  # beyond any limit that a package sets for all of a process
        value = [value]
    result = CallToolResult.model_construct(content=[], structured_content={"n": value}, is_error=False)
    assert tool_result(result).content.startswith("(Structured content that cannot be written")


def test_errors_are_error_results() -> None:
    assert converted(text("404 Not Found"), isError=True) == ToolResult(
        "Tool execution failed: 404 Not Found", is_error=True
    )
    assert converted(isError=True).is_error


def test_an_empty_result_says_so() -> None:
    assert converted() == ToolResult("(the tool returned nothing)")
