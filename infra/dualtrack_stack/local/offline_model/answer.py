"""Answers by extraction: the parts of tool results that share words with the question."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import courses, graph, samples, talk
from .compared import sides
from .prose import Section, overlap, sections, sentences, words
from .tool_picking import DOCUMENTATION, FULL_CONTEXT, wanted_record
from .transcript import without_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .transcript import AttachedText, Outcome, PastRecord, Transcript

MARK = "*(Built-in offline model: fixed rules and extracts, no language model.)*"
"""The first line of every answer, so that it is not mistaken for a model's."""

MAX_SECTIONS = 4
MAX_SHOWN = 600
_OF_COURSES = (courses.SEARCH, courses.OUTLINE)
MAX_SENTENCES = 2
MAX_RECORD_CHARACTERS = 6_000
MAX_ITEMS = 5
MAX_LINES = 5


def interim(tools: tuple[str, ...]) -> str:
    """The text before tool calls."""
    phrases = {
        DOCUMENTATION: "look this up in the documentation",
        FULL_CONTEXT: "fetch the full record",
        courses.SEARCH: "search the course materials",
        courses.OUTLINE: "look at the course's outline",
    }
    phrases |= dict.fromkeys(graph.TOOLS, "look into the graph")
    others = {tool: "ask GitHub" if tool.startswith("github_") else f"call `{tool}`" for tool in tools}
    parts = dict.fromkeys(phrases.get(tool, others[tool]) for tool in tools)
    return f"I will {' and '.join(parts)}."


def write(seen: Transcript, offered: Sequence[str] = (), *, only_samples: bool = False) -> str:
    """The answer in Markdown, from the outcomes of the running query or from records.

    ``offered``: the tools' names. ``only_samples``: documentation is the sample documents.
    """
    wanted = frozenset(words(seen.question))
    parts = [MARK]
    of_courses = [call for call in seen.outcomes if call.tool in _OF_COURSES and not call.is_error]
    parts.append(courses.answer_from(seen) if of_courses else "")
    rest = [outcome for outcome in seen.outcomes if outcome not in of_courses]
    searches = [outcome for outcome in rest if outcome.tool == DOCUMENTATION]
    for outcome in rest:
        query = str(outcome.input.get("query", "")) if len(searches) > 1 and outcome in searches else ""
        parts.append(f"## {query}" if query else "")
        parts.append(_from_outcome(outcome, frozenset(words(query)) or wanted))
    if searches and only_samples:
        parts.append(_not_covered(seen.question))
    if not seen.outcomes:
        parts.append(_without_tools(seen, wanted, offered, only_samples=only_samples))
    return without_ids("\n\n".join(part for part in parts if part))


def _not_covered(question: str) -> str:
    """The sides of a comparison that the sample documents do not cover."""
    missing = [f"“{side}”" for side in sides(question) if not samples.cover(side)]
    return f"None of the sample documents is about {' or '.join(missing)}." if missing else ""


def _from_outcome(outcome: Outcome, wanted: frozenset[str]) -> str:
    if outcome.is_error:
        reason = outcome.text or "no reason given"
        return f"The tool `{outcome.tool}` gave no result: {_shortened(reason, 400)}"
    if outcome.tool in graph.TOOLS:
        return graph.answer_from(outcome)
    if outcome.tool == FULL_CONTEXT:
        return _from_record(str(outcome.input.get("id", "")), outcome.text, wanted)
    listed = _from_json(outcome)
    if listed:
        return listed
    return _from_document(outcome, wanted)


def _from_document(outcome: Outcome, wanted: frozenset[str]) -> str:
    parts = sections(outcome.text)
    # Text before the first title introduces the documents and is none of them.
    titled = [section for section in parts if section.title] or parts
    matching = [section for section in titled if overlap(wanted, section.text) >= 1]
    # Documents come best first, so an earlier one wins a near tie.
    positions = sorted(
        range(len(matching)),
        key=lambda position: _score(matching[position], wanted) - position / 10,
        reverse=True,
    )
    ranked = [matching[position] for position in sorted(positions[:MAX_SECTIONS])]
    if not ranked and len(outcome.text) <= MAX_SHOWN:
        return f"`{outcome.tool}` returned:\n\n{outcome.text}"
    if not ranked:
        start = _shortened(" ".join(sentences(outcome.text)[:3]), MAX_SHOWN)
        return f"`{outcome.tool}` answered, but nothing in it matches the question. It begins: {start}"
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
    body = text.replace(MARK, "").strip()
    code = [block for section in sections(body) for block in section.code]
    if code and wanted & {"code", "example", "snippet"}:
        return "\n\n".join((f"The code of record {record_id}, in full:", *code))
    return f"Record {record_id} says:\n\n{_shortened(body, MAX_RECORD_CHARACTERS)}"


@dataclass(frozen=True, slots=True)
class _Item:
    name: str
    detail: str
    url: str

    def line(self) -> str:
        name = f"[{self.name}]({self.url})" if self.url else self.name
        return f"- {name}" + (f": {self.detail}" if self.detail else "")


def _from_json(outcome: Outcome) -> str:
    """Search results of an API: a list of things with a name, a URL and a description."""
    try:
        value = json.loads(outcome.text)
        shown = _shortened(json.dumps(value, indent=2), 1_500)
    except (ValueError, RecursionError):
        return ""
    listed = value if isinstance(value, list) else _first_list(value)
    items = [item for item in map(_item, listed) if item is not None]
    if not items:
        return f"`{outcome.tool}` returned:\n\n```json\n{shown}\n```"
    more = f"\n\n({len(items) - MAX_ITEMS} more.)" if len(items) > MAX_ITEMS else ""
    lines = "\n".join(item.line() for item in items[:MAX_ITEMS])
    return f"From `{outcome.tool}`:\n\n{lines}{more}"


def _first_list(value: Any) -> list[Any]:
    if not isinstance(value, dict):
        return []
    return next((item for item in value.values() if isinstance(item, list)), [])


def _item(value: Any) -> _Item | None:
    if not isinstance(value, dict):
        return None
    name = next((str(value[key]) for key in ("full_name", "title", "name", "path") if value.get(key)), "")
    if not name:
        return None
    detail = next((str(value[key]) for key in ("description", "body", "state") if value.get(key)), "")
    url = str(value.get("html_url") or value.get("url") or "")
    return _Item(name, _shortened(" ".join(detail.split()), 160), url)


def _without_tools(
    seen: Transcript, wanted: frozenset[str], offered: Sequence[str], *, only_samples: bool
) -> str:
    kind = talk.kind_of(seen.question)
    if kind and not seen.files and not (kind == "compose" and wanted_record(seen)):
        return talk.reply_to(kind, offered, only_samples=only_samples)
    record = wanted_record(seen) or (None if seen.files else _whole_record(seen, wanted))
    if record:
        return _from_record(record.ref, record.text, wanted)
    if seen.files:
        return "\n\n".join(_from_file(file, wanted) for file in seen.files)
    attached = f"It came with {seen.media} attachment(s), which I cannot read. " if seen.media else ""
    return attached + talk.nothing_known(offered, only_samples=only_samples)


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
    whole = [record for record in seen.past if record.whole and overlap(wanted, record.text) >= 2]
    return max(whole, key=lambda record: overlap(wanted, record.text)) if whole else None


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
