"""The characters that look like those of an id line, from Unicode's confusables and names: ``uv run --with
confusable-homoglyphs==3.3.1 python -m tests.drivers.lookalikes`` writes `dualtrack/lookalikes.json`.

Two characters look alike if a chain of Unicode's confusable pairs (UTS 39, ``confusables.txt``) leads from one to the
other, if one is the other with marks or in another form (NFKD), or if its name says that it is that
letter: small capitals, letters in circles and squares.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from importlib.resources import files
from pathlib import Path
from typing import Final

PLACE: Final = Path(__file__).parents[2] / "layers" / "core" / "python" / "dualtrack" / "lookalikes.json"
LETTERS: Final = {"I": "Ii1l|", "D": "Dd", ":": ":"}
_NAMED: Final = (
    r"(?:[\w ]+ )?(?:LATIN|REGIONAL INDICATOR) (?:\w+ )*(?:CAPITAL|LETTER|SMALL)(?: LETTER)? {}(?: WITH .*)?"
)
_HIDDEN: Final = re.compile("[\u200e\u200f]")


def main() -> None:
    """Write the file."""
    pairs = json.loads((files("confusable_homoglyphs") / "confusables.json").read_text(encoding="utf-8"))
    near: dict[str, set[str]] = {}
    for sign, others in pairs.items():
        for other in others:
            one, two = (_HIDDEN.sub("", text) for text in (sign, other["c"]))
            if len(one) == len(two) == 1:
                near.setdefault(one, set()).add(two)
                near.setdefault(two, set()).add(one)
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    found = {letter: "".join(sorted(_like(letter, near, every))) for letter in LETTERS}
    PLACE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _like(letter: str, near: dict[str, set[str]], every: list[str]) -> set[str]:
    like, new = set(LETTERS[letter]), set(LETTERS[letter])
    while new:
        new = {other for sign in new for other in near.get(sign, ())} - like
        like |= new
    named = re.compile(_NAMED.format(letter)) if letter.isalpha() else None
    return like | {
        sign
        for sign in every
        if _plain(sign) in like or (named and named.fullmatch(unicodedata.name(sign, "")))
    }


def _plain(sign: str) -> str:
    """Without marks and forms."""
    return "".join(part for part in unicodedata.normalize("NFKD", sign) if not unicodedata.combining(part))


if __name__ == "__main__":
    main()
