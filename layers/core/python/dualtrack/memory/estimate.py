"""What blocks of a request take, by a cautious estimate (CONTRACT 6, "The window"). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack.text import cautious_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IMAGE_TOKENS: Final = 2_100
"""30 % over the 1,600 that a large image takes. Source: the Messages API's page on vision."""

PDF_TOKENS: Final = 9_000
"""Three pages at the most that one takes. Source: the Messages API's page on PDF. How many a file has, only its reader
knows: the usage that is reported corrects it, or the service's refusal."""

FRAME_TOKENS: Final = 8
"""Of a block: its type, its ids."""


def message_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """The cautious estimate of a request's messages."""
    return sum(block_tokens(block) for message in messages for block in message["content"])


def block_tokens(block: Mapping[str, Any]) -> int:
    """Of one block, with its frame."""
    kind = block["type"]
    if kind == "text":
        return FRAME_TOKENS + cautious_tokens(block["text"])
    if kind == "tool_result":
        return 2 * FRAME_TOKENS + sum(block_tokens(part) for part in block["content"])
    if kind in ("image", "document"):
        return tokens_of_files([block["source"]])
    return FRAME_TOKENS + cautious_tokens(str(block))


def tokens_of_files(files: Sequence[Mapping[str, str]]) -> int:
    """Of files, whatever is in them."""
    return sum(PDF_TOKENS if one["media_type"] == "application/pdf" else IMAGE_TOKENS for one in files)
