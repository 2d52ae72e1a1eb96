"""From an MCP result to a `ToolResult`: text whole, images as media, the rest said in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

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

from dualtrack.tools import Media, Source, ToolResult, failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_types import ContentBlock

VIEWABLE: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"})
"""The media types that Claude reads."""


def tool_result(result: CallToolResult) -> ToolResult:
    """The result of one call. What the server marks as an error is an error result."""
    parts = [part for block in result.content if (part := _text(block))]
    if not parts and result.structured_content is not None:
        # With text beside it, it is the same once more: the specification asks servers to repeat it.
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    content = "\n\n".join(parts)
    media = tuple(media for block in result.content if (media := _media(block)))
    if result.is_error:
        return failed(content or "the tool reported an error without a text")
    return ToolResult(content or _nothing(media), sources=_sources(result.content), media=media)


def _nothing(media: Sequence[Media]) -> str:
    return "(see the attached content)" if media else "(the tool returned nothing)"


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
            return (
                str(blob.uri)
                if blob.mime_type in VIEWABLE
                else _unseen(blob.mime_type, blob.blob, str(blob.uri))
            )
        case ImageContent() | AudioContent():
            return "" if block.mime_type in VIEWABLE else _unseen(block.mime_type, block.data)
        case _:
            return ""


def _unseen(media_type: str | None, data: str, where: str = "") -> str:
    place = f" at {where}" if where else ""
    return f"[{media_type or 'binary content'}{place}, {len(data) * 3 // 4} bytes, cannot be shown]"


def _media(block: ContentBlock) -> Media | None:
    match block:
        case ImageContent() if block.mime_type in VIEWABLE:
            return Media(block.mime_type, block.data)
        case EmbeddedResource(resource=BlobResourceContents() as blob) if blob.mime_type in VIEWABLE:
            return Media(str(blob.mime_type), blob.blob)
        case _:
            return None


def _sources(content: Sequence[ContentBlock]) -> tuple[Source, ...]:
    """The web addresses that the server itself names as resources."""
    found: dict[str, Source] = {}
    for block in content:
        if isinstance(block, ResourceLink):
            uri, title = str(block.uri), block.title or block.name
        elif isinstance(block, EmbeddedResource):
            uri, title = str(block.resource.uri), str(block.resource.uri).rsplit("/", 1)[-1]
        else:
            continue
        if uri.startswith(("https://", "http://")):
            found.setdefault(uri, Source(title or uri, uri))
    return tuple(found.values())
