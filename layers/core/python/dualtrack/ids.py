"""Identifiers (CONTRACT 6): records within a conversation, and the opaque ids of the API."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass
from typing import Final, Literal

RecordKind = Literal["query", "file", "thought", "tool", "response"]

_RECORD: Final = re.compile(r"q([1-9]\d{0,8})(?:-(?:(a|f|t)([1-9]\d{0,5})|(r)))?(-sum)?", re.ASCII)
_DIGEST: Final = re.compile(r"d([1-9]\d{0,5})", re.ASCII)
_KINDS: Final[dict[str, RecordKind]] = {"a": "thought", "f": "file", "t": "tool", "r": "response"}


@dataclass(frozen=True, slots=True, order=True)
class RecordId:
    """``q3``, ``q3-f1``, ``q3-a1``, ``q3-t2``, ``q3-r``; with ``summary``, ``-sum`` is appended (files and
    thoughts have no summary)."""

    query: int
    kind: RecordKind = "query"
    number: int = 0
    summary: bool = False

    def __str__(self) -> str:
        middle = {
            "query": "",
            "file": f"-f{self.number}",
            "thought": f"-a{self.number}",
            "tool": f"-t{self.number}",
            "response": "-r",
        }
        return f"q{self.query}{middle[self.kind]}{'-sum' if self.summary else ''}"

    @property
    def whole(self) -> RecordId:
        """The id of the record that this one summarises; for a record, its own id."""
        return RecordId(self.query, self.kind, self.number)


def parse_record_id(text: str) -> RecordId | None:
    """The id, or None if the text is not a record id (files and thoughts have no summary)."""
    match = _RECORD.fullmatch(text)
    if match is None:
        return None
    query, letter, number, response, summary = match.groups()
    kind = _KINDS[letter or response] if letter or response else "query"
    if summary and kind in ("file", "thought"):
        return None
    return RecordId(int(query), kind, int(number or 0), bool(summary))


def query_id(query: int) -> str:
    """``q3``."""
    return str(RecordId(query))


def file_id(query: int, number: int) -> str:
    """``q3-f1``: the first text file that came with the query."""
    return str(RecordId(query, "file", number))


def thought_id(query: int, number: int) -> str:
    """``q3-a1``: what the assistant wrote before a turn's tools."""
    return str(RecordId(query, "thought", number))


def tool_id(query: int, number: int) -> str:
    """``q3-t2``: the second tool call of the query, counted over all its turns."""
    return str(RecordId(query, "tool", number))


def response_id(query: int) -> str:
    """``q3-r``."""
    return str(RecordId(query, "response"))


def summary_id(record_id: str) -> str:
    """``q3-t2-sum``."""
    return f"{record_id}-sum"


def digest_id(number: int) -> str:
    """``d3``: the third digest of a conversation."""
    return f"d{number}"


def parse_digest_id(text: str) -> int | None:
    """The digest's number, or None if the text is not a digest id."""
    match = _DIGEST.fullmatch(text)
    return int(match[1]) if match else None


_OPAQUE: Final = re.compile(r"(ch|cv|jb)_[0-9a-v]{26}", re.ASCII)
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuv"


def new_chat_id() -> str:
    """``ch_`` + 26 characters: time-ordered, 80 random bits."""
    return f"ch_{_sortable()}"


def new_conversation_id() -> str:
    """``cv_`` + 26 characters: time-ordered, so newer conversations sort after older ones."""
    return f"cv_{_sortable()}"


def is_chat_id(text: str) -> bool:
    """Whether the text has the form of a chat id (if not, it need not be looked up)."""
    return text.startswith("ch_") and _OPAQUE.fullmatch(text) is not None


def is_conversation_id(text: str) -> bool:
    """Whether the text has the form of a conversation id."""
    return text.startswith("cv_") and _OPAQUE.fullmatch(text) is not None


def new_job_id() -> str:
    """``jb_…``, sortable by time."""
    return f"jb_{_sortable()}"


def new_upload_id() -> str:
    """``up_…``, sortable by time."""
    return f"up_{_sortable()}"


def job_id_at(epoch: float) -> str:
    """A lower bound: less than the id of every job created at or after ``epoch``."""
    return f"jb_{_digits(int(epoch * 1_000) << 80)}"


def is_job_id(text: str) -> bool:
    """Whether the text has the form of a job id."""
    return text.startswith("jb_") and _OPAQUE.fullmatch(text) is not None


def execution_arn(machine_arn: str, name: str) -> str:
    """``…:stateMachine:chat`` or ``…:stateMachine:chat:live`` → ``…:execution:chat:NAME``.

    An execution's ARN names neither version nor alias (Step Functions Developer Guide, "How Step Functions associates
    executions with a version or alias"), so the executions of every release are found in the same way.
    """
    *account, _, machine = machine_arn.split(":")[:7]
    return ":".join([*account, "execution", machine, name])


def _sortable() -> str:
    return _digits((time.time_ns() // 1_000_000 << 80) | secrets.randbits(80))


def _digits(number: int) -> str:
    digits = []
    for _ in range(26):
        number, rest = divmod(number, 32)
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))
