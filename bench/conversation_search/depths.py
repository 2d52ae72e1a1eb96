"""Facts at any depth of long records: ``uv run --group test python -m bench.conversation_search.depths``.

Each of 96 tool results of 5 to 100 KB of documentation has one made-up sentence at a random place. Each is asked for in
nearly its words, through the product's stores, index and ranking with the local model. Counted: facts whose record is
among the first hits, and facts that the excerpt itself shows, by size and depth; the characters of a result; its reads.
Then 72 results with sentences that are asked for without any of their words, which only meaning can find.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.tools.conversation.search import DEFAULT_HITS, found
from dualtrack.tools.conversation.settings import ConversationSearch
from rich.console import Console
from rich.table import Table

from bench.chat_cost import Meter
from bench.conversation_search.__main__ import PATIENT, InProcess, running
from bench.conversation_search.corpus import Talk, put
from bench.retrieval.corpus import PACKAGES, load
from tests.drivers.world import make_world, search_needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.stores import Stores
    from dualtrack.tools.search_needs import SearchNeeds

SMALLEST: Final = 5_000
LARGEST: Final = 100_000
SEEDS: Final = (23, 24, 26)
"""One conversation each of the facts that are asked for in other words."""

NAMES: Final = ("Heron", "Kestrel", "Plover", "Dunlin", "Merlin", "Avocet", "Linnet", "Siskin")
FACTS: Final = (
    ("The nightly backup of {name} starts at {value}.", "When does the nightly backup of {name} start?", "02:{n}"),
    ("The licence of {name} was paid by {value}.", "Who paid the licence of {name}?", "Dr. Okonkwo-{n}"),
    ("{name} keeps its access tokens for {value} days.", "How long does {name} keep access tokens?", "{n}"),
    ("Invoices of {name} go to the office in {value}.", "Where do the invoices of {name} go?", "Tartu {n}"),
    ("The gateway of {name} listens on port {value}.", "On which port does {name}'s gateway listen?", "84{n}"),
    ("The review of {name} found {value} open defects.", "How many open defects did the review of {name} find?", "{n}"),
    ("{name} was renamed from {value} in spring.", "What was {name} called before it was renamed?", "Osprey-{n}"),
    ("The budget that the board approved for {name} is {value}.", "What budget did the board approve for {name}?", "{n}00 euros"),
    ("Only {value} may restart the servers of {name}.", "Who may restart the servers of {name}?", "shift {n}"),
    ("The password of {name}'s test account expires every {value} weeks.", "How often does the password of {name}'s test account expire?", "{n}"),
    ("Customers of {name} may return goods within {value} days.", "Within how many days may customers of {name} return goods?", "{n}"),
    ("The freezer of the laboratory {name} is kept at minus {value} degrees.", "How cold is the freezer of the laboratory {name}?", "{n}"),
)  # fmt: skip


OTHER_WORDS: Final = (
    ("The harbour master locks the eastern gate at dusk.", "When is access from the port closed?"),
    ("Marmots have chewed through the fibre cable near the summit station.", "What damaged the mountain internet connection?"),
    ("Grandmother's plum tart needs forty minutes in a medium oven.", "How long does the fruit cake bake?"),
    ("The landlord refused to let Ingrid keep her parrot.", "Is a pet bird permitted in that apartment?"),
    ("Rehearsals of the choir were moved from Tuesday to Thursday evening.", "On which weekday do singers practise now?"),
    ("Her violin was insured for eleven thousand crowns.", "What is the musical instrument's coverage worth?"),
    ("The vaccine must stay below minus seventy degrees.", "How cold should doses remain in storage?"),
    ("A burst pipe flooded the archive in the basement.", "Why did old documents get wet?"),
    ("The bus driver found a wallet under seat twelve.", "Where was the lost purse discovered?"),
    ("Nobody may photograph the altar during mass.", "Are pictures allowed at a church service?"),
    ("The accountant discovered that invoices were paid twice.", "Which bookkeeping error came to light?"),
    ("Our beehives lost half their colonies last winter.", "What happened to the honey insects in the cold season?"),
    ("The surgeon postponed the knee operation until March.", "Has the leg procedure been delayed?"),
    ("Tickets for the ferry are cheaper before eight in the morning.", "Do early boat passengers save money?"),
    ("The translator asked for double pay on Sundays.", "What does the interpreter expect for weekend work?"),
    ("Lightning struck the windmill and cracked one blade.", "What did the storm do to the turbine?"),
    ("The children painted the fence bright orange without permission.", "Who coloured the garden barrier?"),
    ("Two engineers resigned after the merger was announced.", "Did staff quit because companies joined?"),
    ("The lighthouse lamp was replaced by a diode of forty watts.", "Which bulb shines for ships at the coast?"),
    ("Customs held the crate of cheese for nine days.", "How long was the dairy shipment stuck at the border?"),
    ("The museum returned the mask to the island's elders.", "Was the stolen artefact given back?"),
    ("Pilots complained that the runway lights blind them in fog.", "What bothers aviators who land with poor visibility?"),
    ("The bakery stopped selling rye bread because flour became too expensive.", "Why are loaves no longer sold in the shop?"),
    ("The goat is allergic to clover.", "Which plant makes the farm animal sick?"),
)  # fmt: skip
"""Sentences, and questions that share no search term with them."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact, its record, and where in it: ``depth`` from 0 to 1."""

    question: str
    sentence: str
    record_id: str
    size: int
    depth: float


def facts() -> Iterator[tuple[str, str]]:
    """Sentence and question of each fact."""
    for number, (name, (sentence, question, value)) in enumerate(
        ((name, fact) for fact in FACTS for name in NAMES), start=11
    ):
        yield sentence.format(name=name, value=value.format(n=number)), question.format(name=name)


def planted(listed: list[tuple[str, str]], seed: int, conversation: int = 1) -> tuple[Talk, list[Planted]]:
    """A conversation with these facts, two results a query."""
    draw = random.Random(seed)
    filler = [chunk.searchable for package in PACKAGES for chunk in load(package).chunks]
    draw.shuffle(filler)
    text, at = "\n\n".join(filler), 0
    talk = Talk(f"cv_{conversation:026d}")
    made: list[Planted] = []
    draw.shuffle(listed)
    for start in range(0, len(listed), 2):
        results: list[tuple[str, Any, str]] = []
        for place, (sentence, question) in enumerate(listed[start : start + 2], start=1):
            size = int(SMALLEST * (LARGEST / SMALLEST) ** draw.random())
            at = at if at + size < len(text) else 0
            body, at = text[at : at + size], at + size
            cut = body.rfind(" ", 0, max(1, int(draw.random() * size))) + 1
            whole = f"{body[:cut]}{sentence} {body[cut:]}"
            results.append(("retrieve_documentation", {"query": f"part {len(made)}"}, whole))
            record_id = f"q{len(talk.queries) + 1}-t{place}"
            made.append(Planted(question, sentence, record_id, size, cut / size))
        talk.add("Read the next parts.", results, "I have read both parts.")
    return talk, made


def _put(stores: Stores, seed: int, conversation: int) -> tuple[Talk, list[Planted]]:
    """A stored conversation with the facts that are asked for in other words."""
    talk, made = planted(list(OTHER_WORDS), seed, conversation)
    put(stores, talk)
    return talk, made


def _is_found(needs: SearchNeeds, fact: Planted, talk: Talk) -> bool:
    """Whether the record is among the first hits, by a search that may take its time to embed."""
    asked = running(talk, fact.question)
    result = found(fact.question, DEFAULT_HITS, asked, needs, ConversationSearch(**PATIENT))
    return any(line.startswith(f"{fact.record_id} ") for line in result.content.splitlines()[1:])


def main() -> None:
    """Print the tables."""
    console, hits, shown, lengths, seconds = Console(width=120), [], [], [], []
    with make_world() as world:
        talk, made = planted(list(facts()), 23)
        put(world.stores, talk)
        needs = search_needs(world.stores, InProcess())
        found("Warm up.", DEFAULT_HITS, running(talk, "Warm up."), needs, ConversationSearch(**PATIENT))
        meter = Meter(world.stores.chats.client)
        events: Any = world.stores.chats.client.meta.events
        events.register("provide-client-params.dynamodb", meter.sent)
        events.register("after-call.dynamodb", meter.answered)
        for fact in made:
            started = time.process_time()
            result = found(
                fact.question, DEFAULT_HITS, running(talk, fact.question), needs, ConversationSearch()
            )
            seconds.append(time.process_time() - started)
            lines = result.content.splitlines()[1:]
            hits.append(any(line.startswith(f"{fact.record_id} ") for line in lines))
            shown.append(any(fact.sentence in line for line in lines))
            lengths.append(len(result.content))
        others = [
            _is_found(needs, fact, other)
            for conversation, seed in enumerate(SEEDS, start=2)
            for other, facts_of_it in [_put(world.stores, seed, conversation)]
            for fact in facts_of_it
        ]
    table = Table("facts", "of", f"record in the first {DEFAULT_HITS}", "shown in the excerpt")
    groups = {
        "all": [True] * len(made),
        "first 1,000 characters": [fact.depth * fact.size < 1_000 for fact in made],
        "first third": [fact.depth < 1 / 3 for fact in made],
        "middle": [1 / 3 <= fact.depth < 2 / 3 for fact in made],
        "last third": [fact.depth >= 2 / 3 for fact in made],
        "5 to 20 KB": [fact.size < 20_000 for fact in made],
        "20 to 100 KB": [fact.size >= 20_000 for fact in made],
    }
    for name, among in groups.items():
        own = [(hit, seen) for hit, seen, inside in zip(hits, shown, among, strict=True) if inside]
        shares = (f"{sum(values) / len(own):.3f}" for values in zip(*own, strict=True)) if own else ()
        table.add_row(name, str(len(own)), *shares)
    table.add_row("in other words", str(len(others)), f"{sum(others) / len(others):.3f}", "")
    console.print(table)
    console.print(
        f"a result: {max(lengths)} characters at most; a search: {meter.requests / len(made):.1f} requests, "
        f"{meter.reads / len(made):.0f} read units, {sum(seconds) / len(made):.2f} s of CPU with the embedding"
    )


if __name__ == "__main__":
    main()
