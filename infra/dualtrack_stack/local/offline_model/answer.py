"""Answers by extraction: the parts of tool results, records and files that share words with the question."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from dualtrack.profiles import with_utility

from .calls import FULL_CONTEXT, wanted_record
from .prose import Section, overlap, sections, sentences, words
from .samples import DOCUMENTATION
from .transcript import without_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .transcript import AttachedText, Outcome, PastRecord, Transcript

MARK = "*(Built-in offline model: fixed rules and extracts, no language model.)*"
"""The first line of every answer, so that it is not mistaken for a model's."""

_NOTE = re.compile(r"^\*\((?:Built-in offline model|Sent with this prompt)[^\n]*\)\*$", re.MULTILINE)

MAX_SECTIONS = 4
NEAR = 0.7
"""A section is quoted from this share of the best one's score on (docs/retrieval.md, sources)."""
MAX_SENTENCES = 2
MAX_WHOLE = 1_500
"""Up to this length a result without titles is shown whole."""

MAX_RECORD_CHARACTERS = 6_000
MAX_ITEMS = 50
MAX_LINES = 5
MAX_QUOTED = 100
"""Characters of the prompt's first and of its last sentence."""

_INTERIM = {DOCUMENTATION: "look this up in the documentation", FULL_CONTEXT: "fetch the full record"}


def interim(tools: tuple[str, ...]) -> str:
    """The text before tool calls."""
    parts = dict.fromkeys(_INTERIM.get(tool, f"call `{tool}`") for tool in tools)
    return f"I will {' and '.join(parts)}."


def write(seen: Transcript, offered: Mapping[str, Mapping[str, Any]], prompt: str) -> str:
    """The answer in Markdown, from the outcomes of the running query or from records.

    ``offered``: the tools' input schemas by name. ``prompt``: the agent's, which is quoted.
    """
    wanted = frozenset(words(seen.question))
    found = [_from_outcome(outcome, wanted) for outcome in seen.outcomes]
    parts = [MARK, *(found or [_without_tools(seen, wanted, offered)]), quoted(prompt)]
    return without_ids("\n\n".join(part for part in parts if part))


def quoted(prompt: str) -> str:
    """A line that shows which prompt was sent: its size, its first and its last sentence, so that an edit shows. Empty
    for the prompts that come with dualtrack."""
    parts = sentences(prompt)
    if not parts or prompt in {profile.system for profile in with_utility().values()}:
        return ""
    ends = dict.fromkeys((parts[0], parts[-1]))
    shown = " … ".join(f"“{_shortened(part, MAX_QUOTED)}”" for part in ends)
    return f"*(Sent with this prompt of {len(prompt):,} characters: {shown})*"


def without_notes(text: str) -> str:
    """An answer without the lines that are about the model."""
    return _NOTE.sub("", text)


def _from_outcome(outcome: Outcome, wanted: frozenset[str]) -> str:
    if outcome.is_error:
        reason = outcome.text or "no reason given"
        return f"The tool `{outcome.tool}` gave no result: {_shortened(reason, 400)}"
    if outcome.tool == FULL_CONTEXT:
        return _from_record(str(outcome.input.get("id", "")), outcome.text, wanted)
    searched = frozenset(words(str(outcome.input.get("query", ""))))
    return _from_json(outcome) or _from_document(outcome, searched or wanted)


def _from_json(outcome: Outcome) -> str:
    """The fields of an object, the items of a list; empty if the result is neither."""
    try:
        value = json.loads(outcome.text)
    except (ValueError, RecursionError):
        return ""
    lines = "\n".join(_lines(value))
    return f"`{outcome.tool}` returned:\n\n{_shortened(lines, MAX_RECORD_CHARACTERS)}" if lines else ""


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            inner = item.values() if isinstance(item, dict) else (item,)
            if any(isinstance(part, list) and part for part in inner):
                yield f"- {name}:"
                yield from (f"  {line}" for line in _lines(item))
            else:
                yield f"- {name}: {_inline(item)}"
    if isinstance(value, list):
        yield from (f"- {_inline(item)}" for item in islice(value, MAX_ITEMS))
        if len(value) > MAX_ITEMS:
            yield f"- … ({len(value) - MAX_ITEMS} more)"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        parts = ((name, _inline(item), isinstance(item, dict)) for name, item in value.items())
        text = ", ".join(
            f"{name} ({item})" if is_nested else f"{name} {item}" for name, item, is_nested in parts
        )
    elif isinstance(value, list):
        text = "; ".join(map(_inline, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value)
    return _shortened(" ".join(text.split()), 300) or "none"


def _from_document(outcome: Outcome, wanted: frozenset[str]) -> str:
    parts = sections(outcome.text)
    # Text before the first title introduces the documents and is none of them.
    titled = [section for section in parts if section.title]
    matching = [section for section in titled or parts if overlap(wanted, section.text) >= 1]
    if len(outcome.text) <= MAX_WHOLE and not (titled and matching):
        return f"`{outcome.tool}` returned:\n\n{outcome.text}"
    if not matching:
        start = _shortened(" ".join(sentences(outcome.text)[:3]), 600)
        return f"`{outcome.tool}` answered, but nothing in it matches the question. It begins: {start}"
    # Documents come best first, so an earlier one wins a near tie.
    scores = [_score(section, wanted) - 0.3 * position for position, section in enumerate(matching)]
    positions = sorted(range(len(matching)), key=scores.__getitem__, reverse=True)[:MAX_SECTIONS]
    near = [position for position in positions if scores[position] >= NEAR * max(scores)]
    ranked = [matching[position] for position in sorted(near)]
    shown = [_shown(section, wanted) for section in ranked]
    return "\n\n".join((f"From `{outcome.tool}`:", *shown, _sources(ranked))).rstrip()


def _score(section: Section, wanted: frozenset[str]) -> float:
    in_title = overlap(wanted, section.title)
    return overlap(wanted, section.text) + in_title + (0.5 if section.code else 0.0)


def _shown(section: Section, wanted: frozenset[str]) -> str:
    lines = sentences(section.prose)
    ranked = sorted(lines, key=lambda sentence: overlap(wanted, sentence), reverse=True)[:MAX_SENTENCES]
    prose = " ".join(sentence for sentence in lines if sentence in ranked)
    title = f"**{section.title}**" if section.title else ""
    return "\n\n".join(part for part in (title, _shortened(prose, 800), *section.code) if part)


def _sources(chosen: list[Section]) -> str:
    links = dict.fromkeys(
        f"[{section.title or section.url}]({section.url})" for section in chosen if section.url
    )
    return f"Sources: {', '.join(links)}" if links else ""


def _from_record(record_id: str, text: str, wanted: frozenset[str]) -> str:
    """A fetched record: its code if it has any and the question is about code, else its start."""
    body = without_notes(text).strip()
    code = [block for section in sections(body) for block in section.code]
    if code and wanted & {"code", "example", "snippet"}:
        return "\n\n".join((f"The code of record {record_id}, in full:", *code))
    return f"Record {record_id} says:\n\n{_shortened(body, MAX_RECORD_CHARACTERS)}"


def _without_tools(seen: Transcript, wanted: frozenset[str], offered: Mapping[str, Mapping[str, Any]]) -> str:
    record = wanted_record(seen) or (None if seen.files else _whole_record(seen, wanted))
    if record:
        return _from_record(record.ref, record.text, wanted)
    if seen.files:
        return "\n\n".join(_from_file(file, wanted) for file in seen.files)
    attached = f"It came with {seen.media} attachment(s), which I cannot read. " if seen.media else ""
    about = "I know nothing about that" if wanted else "That is no question"
    return f"{attached}{about}, so I called no tool.{_how_to_call(offered)}"


def _how_to_call(offered: Mapping[str, Mapping[str, Any]]) -> str:
    tools = [" ".join((name, *_parameters(schema))) for name, schema in islice(offered.items(), MAX_ITEMS)]
    how = " I call a tool that a message names, with values behind the name:\n\n" if tools else ""
    listed = "\n".join(f"- `{tool}`" for tool in tools)
    real = "For answers of a language model set `ANTHROPIC_API_KEY` and start dualtrack again."
    return f"{how}{listed}\n\n{real}"


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name}=…" for name in schema.get("properties") or ())


def _from_file(file: AttachedText, wanted: frozenset[str]) -> str:
    """The parts of an attached text that share words with the question, in its order; else its beginning."""
    named = f"`{file.name}`" if file.name else "the attached file"
    parts = [part for line in file.text.splitlines() for part in sentences(line)]
    ranked = sorted(range(len(parts)), key=lambda position: -overlap(wanted, parts[position]))[:MAX_LINES]
    matching = [parts[position] for position in sorted(ranked) if overlap(wanted, parts[position]) >= 1]
    if not matching:
        start = _shortened(" ".join(parts[:3]), 600) or "(nothing but blanks)"
        return f"Nothing in {named} ({file.ref}) matches the question. It begins: {start}"
    lines = "\n".join(f"> {_shortened(line, 400)}" for line in matching)
    return f"From {named} ({file.ref}):\n\n{lines}"


def _whole_record(seen: Transcript, wanted: frozenset[str]) -> PastRecord | None:
    """A short record that is in the conversation in full."""
    shared = {record: overlap(wanted, without_notes(record.text)) for record in seen.past if record.whole}
    best = max(shared, key=shared.__getitem__, default=None)
    return best if best and shared[best] >= 2 else None


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
