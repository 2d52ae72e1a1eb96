"""Boundaries around untrusted text: tags that the text itself cannot close or open."""

from __future__ import annotations

import re
from typing import Final

_TAG: Final = re.compile(
    r"<(?=\s*+(?:/\s*+)?+(?:document|documents|question|library|excerpt)\b)", re.IGNORECASE
)
_ATTRIBUTE: Final = str.maketrans(
    {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\n": " ", "\r": " "}
)


def tagged(tag: str, text: str, **attributes: str) -> str:
    """``<tag name="value">text</tag>``. Our own tags inside the text lose their angle bracket, so a document cannot
    end its section early or pretend to be another. Other markup is part of the documentation and stays.
    """
    heads = "".join(f' {name}="{value.translate(_ATTRIBUTE)}"' for name, value in attributes.items() if value)
    return f"<{tag}{heads}>\n{_TAG.sub('&lt;', text)}\n</{tag}>"
