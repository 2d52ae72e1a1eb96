"""Cautious token estimates for the blocks of a request (CONTRACT 6, "The window"). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack.text import cautious_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IMAGE_TOKENS: Final = 2_100
"""30 % more than the 1,600 tokens of a large image. Source: the Messages API's page on vision."""

PDF_TOKENS: Final = 9_000
"""Three pages at their maximum. Source: the Messages API's page on PDF. The number of pages is unknown: the reported
usage, or a refusal of the service, corrects the estimate."""

FRAME_TOKENS: Final = 8
"""The frame of a block: its type and ids."""


def message_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """The cautious estimate of a request's messages."""
    return sum(block_tokens(block) for message in messages for block in message["content"])


def block_tokens(block: Mapping[str, Any]) -> int:
    """The estimate of a block with its frame."""
    kind = block["type"]
    if kind == "text":
        return FRAME_TOKENS + cautious_tokens(block["text"])
    if kind == "tool_result":
        return 2 * FRAME_TOKENS + sum(block_tokens(part) for part in block["content"])
    if kind in ("image", "document"):
        return tokens_of_files([block["source"]])
    return FRAME_TOKENS + cautious_tokens(str(block))


def tokens_of_files(files: Sequence[Mapping[str, str]]) -> int:
    """The estimate of files, independent of their content."""
    return sum(PDF_TOKENS if file["media_type"] == "application/pdf" else IMAGE_TOKENS for file in files)
