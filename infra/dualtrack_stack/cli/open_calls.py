"""Calls that wait for somebody, by kind: what a person is shown of one, and what they may say. Pure.

Tools, arguments and questions are the model's words: no character of them moves the cursor or turns the reading
direction; such ones are shown by their numbers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack import answers

_HIDDEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_MOST_CHARACTERS: Final = 2_000
_MOST_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class OpenCallKind:
    """``asks``: what is asked for; ``keys``: what may be said, each by its key in `CHOICES`, or by ``typed``: in any
    words, which are the decision's field of that name. ``says``: the options of `dualtrack decide` for it."""

    asks: str
    keys: str = ""
    typed: str = ""
    says: tuple[str, ...] = ()


KINDS: Final[Mapping[str, OpenCallKind]] = {
    "approval": OpenCallKind("May it run?", keys="ynea", says=("approve", "decline", "input")),
    "client_tool": OpenCallKind(
        "A program has to run this and send the result. You can enter it, or give it up:",
        keys="rn",
        says=("result", "decline"),
    ),
    "question": OpenCallKind(
        "Your answer, or the number of an option:", typed="answer", says=("answer", "decline")
    ),
}

DESTROYS: Final = "It destroys something: what it deletes or overwrites may be gone for good."
"""What is said before a call with that effect is approved; the page says the same."""

CHOICES: Final[Mapping[str, str]] = {
    "y": "yes",
    "n": "no",
    "e": "edit",
    "a": "allow in this conversation",
    "r": "result",
}


def keys_of(call: answers.OpenCall) -> str:
    """The keys that may be pressed for this call."""
    kind = KINDS.get(call["kind"])
    keys = kind.keys if kind else ""
    return keys if call.get("allowable") else keys.replace("a", "")


def key_in(line: str, keys: str) -> str:
    """The key that a line means: the key alone, or its word; empty for anything else."""
    said = line.strip().lower()
    return next((key for key in keys if said in (key, CHOICES[key].split()[0])), "")


def option_in(line: str, call: answers.OpenCall) -> str:
    """An answer: the option with this number, else the line."""
    options, said = call["input"].get("options") or (), line.strip()
    is_number = said.isdecimal() and 1 <= int(said[:4]) <= len(options)
    return str(options[int(said) - 1]) if is_number else said


def arguments_in(text: str) -> dict[str, Any] | None:
    """The arguments of a JSON text; None if it is no object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def visible(text: object) -> str:
    """The text with what could hide or move something shown by its number: ``\\u202e``."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", str(text).replace("\r\n", "\n"))


def line_of(text: object, length: int = 100) -> str:
    """The text on one line, cut to a length in characters."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def cut(text: str) -> str:
    """The beginning of a long text, and how much more there is."""
    kept = "\n".join(text[:_MOST_CHARACTERS].split("\n")[:_MOST_LINES])
    left = len(text) - len(kept)
    return f"{kept}\n… {left:,} more characters; e shows all" if left else kept
