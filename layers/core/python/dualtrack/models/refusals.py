"""The part of a request that the model's service names when it refuses the request. Pure.

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
