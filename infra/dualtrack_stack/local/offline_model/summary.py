"""Extractive summaries: the sentences of a record with most names, numbers and ids."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from . import digest
from .answer import without_notes
from .prose import sections, sentences
from .transcript import prompt_of, results, texts, without_ids

if TYPE_CHECKING:
    from . import wire

MAX_SENTENCE = 220
_FACT = re.compile(
    r"\d|`[^`]+`|\b[A-Z][a-z]*[A-Z]\w*|(?<![\w-])[\w-]++/[\w.-]+|\b[a-z]+_[a-z_]+|(?<=\w )[A-Z]\w+"
)
_CALL = re.compile(r"^Tool: (\S+)\nInput: (.*)(?:\n|$)(The call failed\.)?\s*(?:Result:\s*)?")
_LANGUAGE = re.compile(r"^[ \t]*```([a-z]+)", re.MULTILINE)
_COUNT = re.compile(r"\b([1-3]) sentences?\b")
_MARKUP = re.compile(
    r"^[^\S\n]*+(?:#{1,6}|[-*+>]|\d+\.)\s++|\*\*|^(?:From `[^`]+`:|Sources:.*)$", re.MULTILINE
)
_RESULT = re.compile(r"\[ID:([^\]\n,]++)\]\s?+")


def is_summary_request(request: wire.Request) -> bool:
    """Whether this is a request to summarise a record, with "Summarise …" as the system prompt and no tools."""
    return not request.tools and prompt_of(request).startswith("Summarise")


def _asked(request: wire.Request) -> str:
    return "\n\n".join(texts(request.messages[-1].content))


def summarise(request: wire.Request) -> str:
    """At most as many sentences as the system prompt allows (two if it names no number)."""
    system, record = prompt_of(request), _asked(request)
    if digest.is_asked_for(system):
        return digest.written(record, extract)
    count = _COUNT.search(system)
    allowed = int(count[1]) if count else 2
    if call := _CALL.match(record):
        return _of_call(call[1], call[2], call[3], record[call.end() :])
    body = re.sub(r"^(?:Response|Message):\s*", "", record)
    languages = list(dict.fromkeys(_LANGUAGE.findall(body)))
    if languages and allowed > 1:
        return f"{extract(body, allowed - 1)} It contains code in {', '.join(languages)}."
    return extract(body, allowed)


def of_results(request: wire.Request) -> dict[str, str]:
    """Summaries of the conversation's tool calls, by the ids at the beginning of their results."""
    return {
        record[1]: _of_call(use.name, json.dumps(use.input, ensure_ascii=False), failed, text[record.end() :])
        for use, text, failed in results(request.messages)
        if (record := _RESULT.match(text))
    }


def _of_call(tool: str, arguments: str, failed: object, result: str) -> str:
    """The call, then its result: the titles of the sections, else the result's own first sentence."""
    text = f"{tool} was called with {_clipped(arguments)}{' and failed' if failed else ''}."
    titles = list(dict.fromkeys(section.title for section in sections(result) if section.title))
    if titles:
        return f"{text} It found: {_clipped('; '.join(titles))}."
    return f"{text} {extract(result, 1)}"


def _clipped(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MAX_SENTENCE else plain[: MAX_SENTENCE - 1].rstrip() + "…"


def extract(record: str, count: int) -> str:
    """The first sentence and those with the most facts, in their order; never empty."""
    body = without_ids(_without_code(without_notes(record)))
    lines = sentences(_MARKUP.sub("", body))
    if not lines:
        return " ".join(record.split())[:MAX_SENTENCE] or "(empty record)"
    ranked = sorted(
        range(1, len(lines)), key=lambda position: _weight(lines[position], position), reverse=True
    )
    chosen = sorted([0, *ranked[: count - 1]])
    return " ".join(_closed(lines[position]) for position in chosen)


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


def _weight(sentence: str, position: int) -> float:
    return min(len(_FACT.findall(sentence)), 8) - position / 10


def _closed(sentence: str) -> str:
    plain = _clipped(sentence)
    return plain if plain[-1] in ".!?…:" else f"{plain}."
