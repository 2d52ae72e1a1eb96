"""Replaces in a conversation what names somebody: the same text by the same stand-in, wherever it stands. Pure.

It finds what has a form: addresses of mail and network, telephone numbers, identifiers, keys. It knows no names of
people and no streets; those are given (``known``), and whoever makes a case is told to read it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _with_digits(text: str, number: int) -> str:
    """As many digits, in the same places."""
    many = sum(char.isdigit() for char in text)
    digits = iter(str(number).zfill(many)[-many:])
    return "".join(next(digits) if char.isdigit() else char for char in text)


_FORMS: Final[Mapping[str, tuple[str, Callable[[str, int], str]]]] = {
    "key": (
        r"\b(?:(?:sk|pk|rk|ghp|gho|github_pat|xox[abp]|AKIA|ASIA|dt_)[-_]?[A-Za-z0-9_-]{12,200}|eyJ[\w.-]{20,7000})",
        lambda _, number: f"KEY-{number}",
    ),
    "address": (
        r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}",
        lambda _, number: f"person{number}@example.com",
    ),
    "uuid": (
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        lambda _, number: f"00000000-0000-4000-8000-{number:012d}",
    ),
    "id": (
        r"\b[a-z]{2,8}_(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{12,64}\b",
        lambda text, number: f"{text.partition('_')[0]}_example{number:06d}",
    ),
    "account": (
        r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b",
        lambda _, number: f"XX00 EXAMPLE {number}",
    ),
    "network": (r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b", lambda _, number: f"192.0.2.{number % 255}"),
    "telephone": (r"\+[0-9](?:[ ()/.-]{0,2}[0-9]){7,14}\b", lambda _, number: f"+1 555 01{number:02d}"),
    "number": (
        r"(?<![\w.])(?![0-9]{4}-[0-9]{2}-[0-9]{2})[0-9](?:[ -]?[0-9]){8,30}\b",
        _with_digits,
    ),
}
"""What is replaced, and by what, given the text and how many of its kind there were. At one place the first counts."""

_ANY: Final = re.compile("|".join(f"(?P<{kind}>{form})" for kind, (form, _) in _FORMS.items()))


@dataclass
class Scrub:
    """``known``: texts that are replaced besides, such as names of people and files."""

    known: Mapping[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    _given: set[str] = field(default_factory=set)

    def text(self, text: str) -> str:
        """The text with stand-ins."""
        for name, stand_in in self.known.items():
            text, many = re.subn(re.escape(name), lambda _, by=stand_in: by, text, flags=re.IGNORECASE)
            self.kinds["given"] += many
        return _ANY.sub(lambda match: self._stand_in(match[0], str(match.lastgroup)), text)

    def value(self, value: Any) -> Any:
        """The same in a JSON value; the names of fields stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self.value(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def _stand_in(self, text: str, kind: str) -> str:
        if text in self._given:
            return text
        if text not in self.seen:
            self.kinds[kind] += 1
            self.seen[text] = _FORMS[kind][1](text, self.kinds[kind])
            self._given.add(self.seen[text])
        return self.seen[text]
