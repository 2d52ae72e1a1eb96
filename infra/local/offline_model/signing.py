"""Signatures of thinking blocks: a block that was changed on its way back is refused, as by the real API."""

from __future__ import annotations

import base64
import hashlib
import hmac

# Not a secret: it only makes signatures of this model recognisable across restarts of the local stack.
_CONTEXT = b"dualtrack offline model: thinking"


def sign(thinking: str) -> str:
    """The signature of a thinking text: base64, the same for the same text."""
    digest = hmac.digest(_CONTEXT, thinking.encode(), hashlib.sha256)
    return base64.b64encode(b"offline:" + digest).decode()


def sign_omitted(thinking: str) -> str:
    """The signature of a thinking block whose text is not shown (``display: omitted``)."""
    return base64.b64encode(b"omitted:" + hashlib.sha256(thinking.encode()).digest()).decode()


def is_signed(thinking: str, signature: str) -> bool:
    """Whether this model gave the block out like this."""
    if hmac.compare_digest(signature, sign(thinking)):
        return True
    try:
        decoded = base64.b64decode(signature, validate=True)
    except ValueError:
        return False
    return not thinking and decoded.startswith(b"omitted:")
