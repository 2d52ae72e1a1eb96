"""Notes on records, behind an answer, where the request asks for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import summary
from .transcript import running, texts

if TYPE_CHECKING:
    from . import wire

_ASK = re.compile(r"^\(Notes (?:for later|below your answer)\b")
_MARK = re.compile(r"\[\[notes:[0-9a-f]{8}\]\]")
_IDS = re.compile(r"\bq\d+(?:-[trf]\d*)?\b")
_QUERY = re.compile(r"^\[ID:(q\d+)\]\s*")

LONG_ANSWER = 150
"""Words from which on an answer has a note of its own."""

MAX_NOTE = 280


def asked_in(request: wire.Request) -> tuple[str, tuple[str, ...]]:
    """The mark, and the records that the request names; empty if it asks for no notes."""
    messages = request.messages[running(request.messages)[0] :]
    asks = [text for message in messages for text in texts(message.content) if _ASK.match(text)]
    mark = next((found[0] for text in asks if (found := _MARK.search(text))), "")
    return mark, tuple(dict.fromkeys(record_id for text in asks for record_id in _IDS.findall(text)))


def behind(request: wire.Request, answer: str) -> str:
    """The mark and the notes on the records that the request names; empty if it asks for none."""
    mark, wanted = asked_in(request)
    if not mark or not wanted:
        return ""
    of_calls, messages = summary.of_results(request), request.messages[running(request.messages)[0] :]
    question = next((text for text in texts(messages[0].content) if _QUERY.match(text)), "")
    lines = []
    for record_id in wanted:
        if record_id.endswith("-r"):
            said = summary.extract(answer, 1) if len(answer.split()) > LONG_ANSWER else ""
        else:
            said = of_calls.get(record_id, "") or (
                summary.extract(question, 1) if "-" not in record_id else ""
            )
        if said:
            lines.append(f"{record_id}: {' '.join(said.split())[:MAX_NOTE]}")
    return "\n".join(("\n", mark, *lines)) if lines else ""
