"""Identifiers (CONTRACT 6): records within a conversation, the opaque ids of the API, and their forms."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

RecordKind = Literal["query", "file", "thought", "tool", "response"]

_RECORD: Final = re.compile(r"q([1-9][0-9]{0,8})(?:-(?:(a|f|t)([1-9][0-9]{0,5})|(r)))?(-sum)?")
_DIGEST: Final = re.compile(r"d([1-9][0-9]{0,5})")
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


def kind_of(record_id: str) -> str:
    """The kind of a record by its id; empty for an id of none."""
    parsed = parse_record_id(record_id)
    return parsed.kind if parsed else ""


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


@dataclass(frozen=True, slots=True)
class IdForm:
    """The ids of a kind of thing. ``pattern``: of the whole text; of a plug-in's, ``about``: what a path's parameter of
    this name names, and ``advice``: where the terminal shows them."""

    what: str
    pattern: str
    example: str
    about: str = ""
    advice: str = ""

    def fits(self, text: str) -> bool:
        """Whether the text may be such an id; if not, it need not be looked up."""
        return re.fullmatch(self.pattern, text) is not None


FORMS: Final[Mapping[str, IdForm]] = MappingProxyType(
    {
        "chat_id": IdForm("chat", "ch_[0-9a-v]{26}", "ch_01jd8m3v5q0000000000000000"),
        "conversation_id": IdForm("conversation", "cv_[0-9a-v]{26}", "cv_01jd8m3v5q0000000000000000"),
        "job_id": IdForm("job", "jb_[0-9a-v]{26}", "jb_01jd8m3v5q0000000000000000"),
        "record_id": IdForm("record", f"{_RECORD.pattern}|{_DIGEST.pattern}", "q1-r"),
        "query_id": IdForm("query", "q[1-9][0-9]{0,8}", "q7"),
        "place": IdForm("file", "[1-9][0-9]{0,3}", "1"),
        "document_id": IdForm("document", "[0-9a-f]{32}", "9f86d081884c7d659a2feaa0c55ad015"),
        "key_id": IdForm("key", "key_[0-9A-Za-z]{16}", "key_4fT9kQ2mX7bLw0Zc"),
        "user_id": IdForm("user", "[0-9A-Za-z_-]{1,128}", "0b5c4f6e-1111-2222-3333-444455556666"),
    }
)
"""The core's, by name, as in paths and bodies. Whatever has such a form cannot leave its part of a URL, a key or a
filter."""


def is_id(name: str, text: str) -> bool:
    """Whether the text has the form of the core's ids with this name."""
    return FORMS[name].fits(text)


KEY_ID_PREFIX: Final = "key_"
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuv"


def new_chat_id() -> str:
    """``ch_`` + 26 characters: time-ordered, 80 random bits."""
    return f"ch_{sortable()}"


def new_conversation_id() -> str:
    """``cv_`` + 26 characters: time-ordered, so newer conversations sort after older ones."""
    return f"cv_{sortable()}"


def new_job_id() -> str:
    """``jb_…``, sortable by time."""
    return f"jb_{sortable()}"


def new_upload_id(sha256: str) -> str:
    """``up_…_<SHA-256 in hex>``, sortable by time. It names the bytes, so that no others pass for the upload."""
    return f"up_{sortable()}_{sha256}"


def new_message_upload_id() -> str:
    """``up_…``, sortable by time: of a file for a message."""
    return f"up_{sortable()}"


def is_upload_of(upload_id: str, data: bytes) -> bool:
    """Whether these are the bytes that were announced for the upload."""
    return upload_id.rsplit("_", 1)[1] == hashlib.sha256(data).hexdigest()


def job_id_at(epoch: float) -> str:
    """A lower bound: less than the id of every job created at or after ``epoch``."""
    return f"jb_{_digits(int(epoch * 1_000) << 80)}"


def execution_name(chat_id: str, number: int = 1) -> str:
    """``ch_….1``: the name of a chat's execution. A chat may outlive one; its executions count from 1."""
    return f"{chat_id}.{number}"


def chat_of_execution(name: str) -> str:
    """The reverse: the chat's id."""
    return name.rpartition(".")[0]


def number_of_execution(name: str) -> int:
    """The number in an execution's name."""
    return int(name.rpartition(".")[2])


def execution_arn(machine_arn: str, name: str) -> str:
    """``…:stateMachine:chat`` or ``…:stateMachine:chat:live`` → ``…:execution:chat:NAME``.

    An execution's ARN names neither version nor alias (Step Functions Developer Guide, "How Step Functions associates
    executions with a version or alias"), so the executions of every release are found in the same way.
    """
    *account, _, machine = machine_arn.split(":")[:7]
    return ":".join([*account, "execution", machine, name])


def sortable() -> str:
    """26 characters that name a moment and 80 random bits: what was made later sorts behind."""
    return _digits((time.time_ns() // 1_000_000 << 80) | secrets.randbits(80))


def made_at(sortable_id: str) -> float:
    """The reverse, of an id such as ``ch_…``: epoch seconds of the moment in it."""
    return (int(sortable_id.partition("_")[2], 32) >> 80) / 1_000


def _digits(number: int) -> str:
    digits = []
    for _ in range(26):
        number, rest = divmod(number, 32)
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))
