"""Calls that wait for somebody, by kind: what a person is shown of one, and what they may say. Pure.

Tools, arguments and questions are the model's words: what is shown of them follows `dualtrack.visible`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack import answers


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
    "m": "more",
}


AGREE: Final = "ya"
"""The keys that let a call run as it is shown: they count once all of it was."""


def keys_of(call: answers.OpenCall, *, is_read: bool = True) -> str:
    """The keys that may be pressed for this call; ``is_read``: whether all of it was shown."""
    kind = KINDS.get(call["kind"])
    keys = kind.keys if kind else ""
    keys = keys if call.get("allowable") else keys.replace("a", "")
    return keys if is_read else "m" + "".join(key for key in keys if key not in AGREE)


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
