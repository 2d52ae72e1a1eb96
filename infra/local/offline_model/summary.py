"""Extractive summaries: the sentences of a record that carry its names, numbers and ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answer import MARK
from .prose import sections, sentences
from .transcript import texts, without_ids

if TYPE_CHECKING:
    from . import wire

MAX_SENTENCE = 220
_FACT = re.compile(
    r"\d|`[^`]+`|\b[A-Z][a-z]*[A-Z]\w*|(?<![\w-])[\w-]++/[\w.-]+|\b[a-z]+_[a-z_]+|(?<=\w )[A-Z]\w+"
)
_CALL = re.compile(r"^Tool: (\S+)\nInput: (.*)(?:\n|$)(The call failed\.)?\s*(?:Result:\s*)?")
_LANGUAGE = re.compile(r"^[ \t]*```([a-z]+)", re.MULTILINE)
_COUNT = re.compile(r"\b(\d)\s*(?:[–-]\s*(\d)\s*)?sentences?", re.IGNORECASE)
_MARKUP = re.compile(
    r"^[^\S\n]*+(?:#{1,6}|[-*+>]|\d+\.)\s++|\*\*|^(?:From `[^`]+`:|Sources:.*)$", re.MULTILINE
)
_NUMBER_WORDS = {"one": "1", "two": "2", "three": "3"}


def is_summary_request(request: wire.Countable) -> bool:
    """Whether this is a request to sum up a record: "Summarise …" as the system prompt, no tools."""
    system = " ".join(block.text for block in request.system).lstrip()
    return not request.tools and system.lower().startswith(("summarise", "summarize"))


def summarise(request: wire.Countable) -> str:
    """At most as many sentences as the system prompt allows (two if it names no number)."""
    system = " ".join(block.text for block in request.system)
    record = "\n\n".join(texts(request.messages[-1].content))
    allowed = _allowed(system)
    call = _CALL.match(record)
    if call:
        return _of_call(call, record[call.end() :], allowed)
    body = re.sub(r"^(?:Response|Record):\s*", "", record)
    languages = list(dict.fromkeys(_LANGUAGE.findall(body)))
    if languages and allowed > 1:
        return f"{extract(body, allowed - 1)} It contains code in {', '.join(languages)}."
    return extract(body, allowed)


def _of_call(call: re.Match[str], result: str, allowed: int) -> str:
    """What was called, then what was found: the titles of the sections, else the result's own sentences."""
    failed = " and failed" if call[3] else ""
    said = f"{call[1]} was called with {_clipped(call[2])}{failed}."
    if allowed == 1:
        return said
    titles = list(dict.fromkeys(section.title for section in sections(result) if section.title))
    if titles:
        return f"{said} It found: {_clipped('; '.join(titles))}."
    return f"{said} {extract(result, allowed - 1)}"


def _clipped(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MAX_SENTENCE else plain[: MAX_SENTENCE - 1].rstrip() + "…"


def _allowed(system: str) -> int:
    for word, digit in _NUMBER_WORDS.items():
        system = re.sub(rf"\b{word}\b", digit, system, flags=re.IGNORECASE)
    found = _COUNT.search(system)
    return min(max(int(found[2] or found[1]), 1), 3) if found else 2


def extract(record: str, count: int) -> str:
    """The first sentence and those with the most facts, in their order; never empty."""
    body = without_ids(_without_code(record.replace(MARK, " ")))
    said = sentences(_MARKUP.sub("", body))
    if not said:
        return " ".join(record.split())[:MAX_SENTENCE] or "(empty record)"
    ranked = sorted(range(1, len(said)), key=lambda place: _weight(said[place], place), reverse=True)
    chosen = sorted([0, *ranked[: count - 1]])
    return " ".join(_closed(said[place]) for place in chosen)


def _without_code(text: str) -> str:
    """Without fenced code; a fence that is never closed is text."""
    lines = [(line, line.strip(" \t")) for line in text.split("\n")]
    last_closing = {bare: number for number, (_, bare) in enumerate(lines) if bare in ("```", "~~~")}
    kept, fence = [], ""
    for number, (line, bare) in enumerate(lines):
        if fence:
            fence = "" if bare == fence else fence
        elif last_closing.get(bare[:3], -1) > number:
            fence = bare[:3]
        else:
            kept.append(line)
    return "\n".join(kept)


def _weight(sentence: str, place: int) -> float:
    return min(len(_FACT.findall(sentence)), 8) - place / 10


def _closed(sentence: str) -> str:
    plain = _clipped(sentence)
    return plain if plain[-1] in ".!?…:" else f"{plain}."
