"""The service's classifier: it declines every request whose messages contain certain words, wherever they stand.

So it does not help that a request is harmless by itself: its whole context has to be free of them, as with the API.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .reply import Reply

if TYPE_CHECKING:
    from collections.abc import Collection

    from . import wire

MAGIC = "ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL"
"""The beginning of the string with which the API's documents let one try a refusal."""

_DETAILS = {
    "type": "refusal",
    "category": "general_harms",
    "explanation": "The request contains words that this service declines.",
}


def declined(request: wire.Request, words: Collection[str]) -> Reply | None:
    """The refusal of a request with one of these words in its messages; None if it has none."""
    sent = json.dumps(
        [message.model_dump(mode="json") for message in request.messages], ensure_ascii=False
    ).lower()
    if not any(word.lower() in sent for word in words):
        return None
    return Reply((), "refusal", stop_details=_DETAILS)
