"""How a model may write the notes that an answer is asked to bring: as asked, in part, too long, in the wrong place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.offline_model.notes import asked_in, behind
from dualtrack_stack.local.offline_model.script import Script, ScriptedResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack_stack.local.offline_model import wire

_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer, the mark, and the ``lines`` of notes that a model which does as it is asked writes behind it."""

    answer: str
    mark: str
    lines: tuple[str, ...]

    @property
    def query(self) -> int:
        """The number of the query."""
        found = _NUMBER.search(self.lines[0])
        return int(found[0]) if found else 0

    def with_notes(self, *lines: str) -> str:
        """The answer with these notes behind it."""
        return "\n".join((self.answer, "", self.mark, *lines)) if lines else self.answer


def two_thirds(asked: Asked) -> str:
    """Another third is missing in each query."""
    return asked.with_notes(*(line for place, line in enumerate(asked.lines, start=asked.query) if place % 3))


def too_long(asked: Asked) -> str:
    """Four times as long as a note may be."""
    return asked.with_notes(*(f"{line} {' '.join([line] * 3)}" for line in asked.lines))


def not_asked(asked: Asked) -> str:
    """Beside each note one on a record that nobody named."""
    pairs = (
        (line, f"q{asked.query}-t{90 + place}: It was of no use.") for place, line in enumerate(asked.lines)
    )
    return asked.with_notes(*(line for pair in pairs for line in pair))


def in_the_middle(asked: Asked) -> str:
    """The answer goes on behind them."""
    half = asked.answer.find(" ", len(asked.answer) // 2)
    before, after = asked.answer[:half], asked.answer[half + 1 :]
    return "\n".join((before, "", asked.mark, *asked.lines, "", after))


def twice(asked: Asked) -> str:
    """Mark and notes again, behind the first ones."""
    return "\n".join((asked.with_notes(*asked.lines), "", asked.mark, *asked.lines))


def before_any_text(asked: Asked) -> str:
    """The answer stands behind them."""
    return "\n".join((asked.mark, *asked.lines, "", asked.answer))


def cut_off(asked: Asked) -> str:
    """``max_tokens`` is reached in the middle of the notes."""
    whole = asked.with_notes(*asked.lines)
    return whole[: len(whole) - sum(map(len, asked.lines)) // 2]


WRITERS: Final[Mapping[str, Callable[[Asked], str]]] = {
    "every note, as asked": lambda asked: asked.with_notes(*asked.lines),
    "two of three": two_thirds,
    "none": lambda asked: asked.answer,
    "four times too long": too_long,
    "also on ids that were not asked": not_asked,
    "mark and notes in the middle": in_the_middle,
    "twice": twice,
    "before any text": before_any_text,
    "cut off in the middle": cut_off,
}


class WritingScript(Script):
    """Answers as scripted, with the notes of this writer."""

    def __init__(self, writer: str) -> None:
        super().__init__()
        self._writer = WRITERS[writer]
        self._stop = "max_tokens" if writer == "cut off in the middle" else None

    def take(self, request: wire.Request) -> ScriptedResponse | None:
        """The scripted response; one with notes has them as the writer writes them."""
        said = super().take(request)
        if said is None or not said.notes or said.text is None:
            return said
        mark, lines = asked_in(request)[0], behind(request, said.text).split("\n")[3:]
        if not lines:
            return said.model_copy(update={"notes": False})
        text = self._writer(Asked(said.text, mark, tuple(lines)))
        return said.model_copy(update={"notes": False, "text": text, "stop_reason": self._stop})
