"""What the model's service says when it refuses a request: which part of it, or that its content is declined. Pure.

messages.4.content.1.image.source.base64.data: The image specified was not valid
messages.6.content.0.tool_result.content.2.pdf.source.base64.data: The PDF specified was not valid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_FILE: Final = re.compile(
    r"\bmessages\.(\d{1,5})\.content\.(\d{1,5})(?:\.tool_result\.content\.(\d{1,5}))?\.(?:image|pdf|document)\b",
    re.ASCII,
)


_OF_CONTENT: Final = re.compile(
    r"content[ _-]?(?:filter|polic|management|moderat)|filtering policy|(?:usage|safety|acceptable use) polic"
    r"|responsible ai|guardrail",
    re.ASCII | re.IGNORECASE,
)
_NAMES_A_PART: Final = re.compile(r"\b(?:messages|tools|system|output_config)\.", re.ASCII)


def is_of_content(status: int, kind: str, said: str) -> bool:
    """Whether an error declines the request for its content. Within a stream (status 200) an invalid request can be
    nothing else, unless the service names a part of it: the request was taken when the answer began."""
    if status == 200:
        return kind == "invalid_request_error" and not _NAMES_A_PART.search(said)
    return status in (400, 403) and bool(_OF_CONTENT.search(said)) and not _NAMES_A_PART.search(said)


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """A block of the messages, counted from 0; ``part``: of a tool result's content, else None."""

    message: int
    block: int
    part: int | None = None


def named_file(said: str) -> BlockPlace | None:
    """The image or PDF that the service's own words name."""
    found = _FILE.search(said)
    if found is None:
        return None
    message, block, part = found.groups()
    return BlockPlace(int(message), int(block), None if part is None else int(part))
