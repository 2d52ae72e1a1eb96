"""What is planted, and where: facts of every kind through a conversation of any length."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Final

from bench.conversation_search.depths import NAMES, facts
from bench.retrieval.corpus import PACKAGES, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IN_RESULTS: Final = {"head": 0.0, "middle": 0.5, "end": 1.0}
"""Where in a result the sentence stands, from 0 to 1."""

STANDING: Final = "standing instruction"
KINDS: Final = ("query", "answer", *IN_RESULTS, STANDING)
RESULT: Final = (5_000, 40_000)
ANSWER: Final = (800, 3_000)
"""Characters: least and most."""

_ORDERS: Final = (
    ("From now on always answer questions about {name} in {value}.", "In which language shall answers about {name} be?", ("Basque", "Latvian", "Welsh", "Maltese")),
    ("Never deploy {name} on a {value}.", "On which day must {name} never be deployed?", ("Friday", "Monday", "Sunday", "Tuesday")),
    ("Always call the customers of {name} {value} from now on.", "What are the customers of {name} to be called?", ("members", "patrons", "lodgers", "tenants")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, the question that asks for it, and the record of it."""

    kind: str
    sentence: str
    question: str
    record_id: str

    @property
    def query(self) -> int:
        """The number of its query."""
        return int(self.record_id.split("-")[0][1:])


@dataclass
class Exchange:
    """What a query of the conversation says, reads and answers."""

    query: str
    results: list[str]
    answer: str
    facts: list[Fact] = field(default_factory=list)


def conversation(
    queries: int, filler: Callable[[int], str], most: int = 1_000, *, told: bool = False
) -> list[Exchange]:
    """As many exchanges, with all facts (``most`` of each list) spread evenly over them: each kind through the whole
    conversation. ``filler`` gives so many characters of other text. ``told``: an answer repeats the names and numbers
    of the facts in its results."""
    draw = random.Random(32)
    made = [
        Exchange(
            f"Please read part {number} of the manual and tell me what it is about.",
            [filler(draw.randint(*RESULT)) for _ in range(2)],
            filler(draw.randint(*ANSWER)),
        )
        for number in range(1, queries + 1)
    ]
    listed = list(facts())
    draw.shuffle(listed)
    listed = listed[:most]
    kinds = cycle(kind for kind in KINDS if kind != STANDING)
    for place, (sentence, question) in enumerate(listed):
        _plant(made, place * queries // len(listed), next(kinds), sentence, question, draw)
    orders = list(_orders())[:most]
    for place, (sentence, question) in enumerate(orders):
        _plant(made, place * queries // len(orders), STANDING, sentence, question, draw)
    for exchange in made if told else ():
        for fact in exchange.facts:
            if fact.kind in IN_RESULTS:
                named = " ".join(re.findall(r"\S*[A-Z0-9]\S*", fact.sentence))
                exchange.answer = f"{exchange.answer} Noteworthy: {named}"
    return made


def _orders() -> Iterator[tuple[str, str]]:
    for turn in range(4):
        for sentence, question, values in _ORDERS:
            name = NAMES[turn]
            yield sentence.format(name=name, value=values[turn]), question.format(name=name)


def _plant(
    made: list[Exchange], index: int, kind: str, sentence: str, question: str, draw: random.Random
) -> None:
    exchange, own = made[index], f"q{index + 1}"
    if kind in IN_RESULTS:
        place = draw.randrange(len(exchange.results))
        text = exchange.results[place]
        exchange.results[place] = _inserted(text, sentence, IN_RESULTS[kind])
        record_id = f"{own}-t{place + 1}"
    elif kind == "answer":
        exchange.answer, record_id = _inserted(exchange.answer, sentence, draw.random()), f"{own}-r"
    else:
        exchange.query, record_id = f"{exchange.query} {sentence}", own
    exchange.facts.append(Fact(kind, sentence, question, record_id))


def _inserted(text: str, sentence: str, depth: float) -> str:
    """The text with the sentence at this depth, between two words."""
    cut = text.rfind(" ", 0, max(1, int(depth * len(text)))) + 1 if depth < 1 else len(text)
    return f"{text[:cut]}{'' if depth < 1 else ' '}{sentence} {text[cut:]}"


class Documentation:
    """Documentation of libraries, piece by piece."""

    def __init__(self) -> None:
        sections = [chunk.searchable for package in PACKAGES for chunk in load(package).chunks]
        random.Random(23).shuffle(sections)
        self._text, self._at = "\n\n".join(sections), 0

    def __call__(self, size: int) -> str:
        if self._at + size > len(self._text):
            self._at = 0
        piece, self._at = self._text[self._at : self._at + size], self._at + size
        return piece.strip()
