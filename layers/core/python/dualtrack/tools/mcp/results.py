"""Converts an MCP result to a `ToolResult`: all text, and everything binary as media."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from dualtrack.tool_values import NOTHING, Media, Source, ToolResult, failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_types import ContentBlock


def tool_result(result: CallToolResult) -> ToolResult:
    """The result of a call; an error result if the server marks it as an error."""
    blocks = result.content
    parts = [part for block in blocks if (part := _text(block))]
    if not parts and result.structured_content is not None:
        # Beside text it would be a repetition: the specification asks servers to send it as text, too.
        parts.append(_structured(result.structured_content))
    content = "\n\n".join(parts)
    media = tuple(media for block in blocks if (media := _media(block)))
    if result.is_error:
        return replace(failed(content or "the tool reported an error without a message"), media=media)
    return ToolResult(content or _nothing(media), sources=_sources(blocks), media=media)


def _nothing(media: Sequence[Media]) -> str:
    return "(see the attached content)" if media else NOTHING


def _text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ResourceLink():
            about = f": {block.description}" if block.description else ""
            return f"{block.title or block.name} <{block.uri}>{about}"
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return f"{resource.uri}\n{resource.text}"
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            return str(blob.uri)
        case _:
            return ""


def _structured(content: Any) -> str:
    try:
        return json.dumps(content, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "(Structured content that cannot be written as text: too deep, or a number too long.)"


def _media(block: ContentBlock) -> Media | None:
    """Anything binary; whether it can be shown is decided when it is recorded."""
    match block:
        case ImageContent() | AudioContent():
            return Media(block.mime_type, block.data)
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            return Media(blob.mime_type or "application/octet-stream", blob.blob)
        case _:
            return None


def _sources(content: Sequence[ContentBlock]) -> tuple[Source, ...]:
    """The web addresses that the server names as resources."""
    by_address: dict[str, Source] = {}
    for block in content:
        if isinstance(block, ResourceLink):
            uri, title = str(block.uri), block.title or block.name
        elif isinstance(block, EmbeddedResource):
            uri, title = str(block.resource.uri), str(block.resource.uri).rsplit("/", 1)[-1]
        else:
            continue
        if uri.startswith(("https://", "http://")):
            by_address.setdefault(uri, Source(title or uri, uri))
    return tuple(by_address.values())
