"""Which tools a question asks for: by words, never by understanding.

Rules, in this order: tools that the message names; course materials (courses.py); a graph (graph.py); a search of the
past; a record of the past; documentation; GitHub. All that match are called together in the first turn, and none of
them twice for a question.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import courses, graph, samples, talk
from .compared import sides
from .prose import overlap, sentences, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .transcript import PastRecord, Transcript

DOCUMENTATION = "retrieve_documentation"
FULL_CONTEXT = "retrieve_full_context"
SEARCH = "search_conversation"
QUERY_LIMIT = 500
"""Characters of a search query (the documentation tool takes no more)."""

_EARLIER = re.compile(
    r"\b(earlier|previous(ly)?|again|last time|before|you (said|showed|gave|wrote|found)|so far"
    r"|full (code|answer|text|example|result|response|record|version|documentation|details?|output))\b",
    re.IGNORECASE,
)
_SAID = r"(?:say|said|discuss(?:ed)?|decided?|agreed?|talk(?:ed)?|mention(?:ed)?|settled?|concluded?)"
_LOOKS_BACK = re.compile(
    rf"\b(?:did|have|had) (?:we|you|i) {_SAID}\b|\b(?:we|you|i) {_SAID} (?:about|on)\b"
    r"|\b(?:search|look through) (?:this|our|the) (?:conversation|chat)\b|\bwhere (?:we|you|i) spoke of\b",
    re.IGNORECASE,
)
_ABOUT_RESULT = re.compile(
    r"\b(results?|documentation|docs|tools?|search(ed)?|repositor\w+|issues?)\b", re.IGNORECASE
)
_ABOUT_FILE = re.compile(r"\b(files?|attach(ed|ments?)|uploaded)\b", re.IGNORECASE)
_RECORD_ID = re.compile(r"\bq\d+-(?:r|[atf]\d+)\b")
_TECHNICAL = re.compile(
    r"\b(how (do|does|can|should|would) \w+|how to|docs?|documentation|set(ting)? up|set-?up"
    r"|configur\w+|install\w*|integrat\w+|librar(y|ies)|framework|sdk|api|apis|oauth|authenticat\w+"
    r"|endpoint|webhook|package|modules?|functions?|class(es)?|methods?|queries|schema|deploy\w*|lambda"
    r"|dynamodb|code|example of|tutorial|python|javascript|typescript|rust|java|error|exception"
    r"|index(es)?|token|pagination|rate limits?)\b",
    re.IGNORECASE,
)
_DOCUMENTATION = re.compile(r"\b(?:docs?|documentation)\b", re.IGNORECASE)
_CRAFT = re.compile(
    r"\b(?:functions?|class(?:es)?|methods?|modules?|code|python|javascript|typescript|rust|java)\b",
    re.IGNORECASE,
)
"""Code that needs no library, so that "Write me a function" searches no documentation."""
_IDENTIFIER = re.compile(r"`[^`]+`|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b")
_GITHUB = re.compile(
    r"\b(github|repos?|repositor(y|ies)|pull requests?|open issues?|issues? (in|of|for|on))\b", re.IGNORECASE
)
_OWNER_REPO = re.compile(
    r"(?<![\w/.:-])(?:(?:https?://)?github\.com/)?"
    r"(?=[\w-]*[A-Za-z])([A-Za-z0-9][\w-]*)/(?=[\w.-]*[A-Za-z])([A-Za-z0-9][\w.-]*\w)(?:/([\w./-]+\w))?"
)
_ABOUT_REPOSITORY = re.compile(r"github|\brepo|issue|pull request|commit|readme|file", re.IGNORECASE)
_FILE = re.compile(
    r"(?<![\w./-])([\w./-]*[\w-]\.(?:md|py|ts|tsx|js|json|ya?ml|toml|txt|go|rs|java|cfg|ini))\b"
)
_PAIR = re.compile(r'\s+(\w+)=("(?:[^"\\]|\\.)*"|[^\s"]\S*)')
_FILLER = re.compile(
    r"\b(github|repos?|repositor(y|ies)|code|issues?|pull requests?|search|look|list|show|open|please)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to call and its input."""

    tool: str
    input: Mapping[str, Any]


def pick(
    seen: Transcript, offered: Mapping[str, Mapping[str, Any]], *, only_samples: bool = False
) -> tuple[Call, ...]:
    """The calls for this turn. ``offered`` maps tool names to input schemas; empty: answer now.

    ``only_samples``: documentation is the sample documents, and a search for anything else finds nothing.
    """
    called = {outcome.tool for outcome in seen.outcomes}
    named = tuple(_named(seen.question, offered))
    wanted = named or tuple(_by_topic(seen, offered, only_samples=only_samples))
    return tuple(call for call in wanted if call.tool not in called)


def forced(name: str, seen: Transcript, schema: Mapping[str, Any]) -> Call:
    """A call of a tool that the request forces."""
    for call in _by_topic(seen, {name: schema}, only_samples=False):
        return call
    return Call(name, filled(schema, seen.question))


def _by_topic(seen: Transcript, offered: Mapping[str, Any], *, only_samples: bool) -> Iterator[Call]:
    kind = talk.kind_of(seen.question)
    if kind in ("greeting", "thanks", "help"):
        return
    if (courses.SEARCH in offered or graph.is_offered(offered)) and FULL_CONTEXT in offered:
        files = [] if seen.files else _asked_files(seen)
        if files:
            yield Call(FULL_CONTEXT, {"id": _best(files, frozenset(words(seen.question))).ref})
            return
    if courses.SEARCH in offered:
        if kind == "compose" and not re.search(
            r"\b(?:courses?|lessons?)\b", courses.plain(seen.question), re.IGNORECASE
        ):
            return
        yield from (Call(*call) for call in courses.next_calls(seen) if call[0] in offered)
        return
    if graph.is_offered(offered):
        yield from (Call(*call) for call in graph.next_calls(seen) if call[0] in offered)
        return
    github = tuple(_github(seen.question, offered))
    record = wanted_record(seen)
    if SEARCH in offered and _looks_back(seen.question):
        yield Call(SEARCH, {"query": " ".join(seen.question.split())[:QUERY_LIMIT]})
    elif record is not None and FULL_CONTEXT in offered:
        yield Call(FULL_CONTEXT, {"id": record.ref})
    elif DOCUMENTATION in offered and not seen.files:
        queries = _documentation_queries(seen.question, has_github=bool(github), only_samples=only_samples)
        yield from (Call(DOCUMENTATION, {"query": query}) for query in queries)
    yield from github


def _looks_back(question: str) -> bool:
    """ "What did we say about the gateway?" asks for a record without naming it."""
    return bool(_LOOKS_BACK.search(question)) and not _RECORD_ID.search(question)


def _documentation_queries(question: str, *, has_github: bool, only_samples: bool) -> tuple[str, ...]:
    """Queries for the documentation: both sides of a comparison, else at most one."""
    is_asked = bool(_DOCUMENTATION.search(question)) or (
        samples.cover(question)
        if only_samples and not has_github
        else _is_technical(question, has_github=has_github)
    )
    if not is_asked:
        return ()
    compared = tuple(side for side in sides(question) if not only_samples or samples.cover(side))
    return compared or (_documentation_query(question),)


def _documentation_query(question: str) -> str:
    """The sentences that ask about documentation; the whole message if there are none."""
    technical = [sentence for sentence in sentences(question) if _TECHNICAL.search(sentence)]
    own = [sentence for sentence in technical if not _GITHUB.search(sentence)]
    return " ".join(own or [" ".join(question.split())])[:QUERY_LIMIT]


def _is_technical(question: str, *, has_github: bool) -> bool:
    if has_github:
        # "Find the repository's example code" is a question to GitHub alone.
        return bool(
            re.search(r"\b(how (do|can|to)|docs|documentation|set(ting)? up)\b", question, re.IGNORECASE)
        )
    text = _CRAFT.sub(" ", question) if talk.kind_of(question) == "compose" else question
    return bool(_TECHNICAL.search(text) or _IDENTIFIER.search(text))


def wanted_record(seen: Transcript) -> PastRecord | None:
    """The record meant by "show me the full code from earlier", if there is one to fetch."""
    fetchable = [record for record in seen.past if not (record.whole or record.is_file)]
    named = _RECORD_ID.search(seen.question)
    if named:
        return next((record for record in seen.past if record.ref == named[0]), None)
    files = [] if seen.files else _asked_files(seen)
    if files:
        return _best(files, frozenset(words(seen.question)))
    if not fetchable or not _EARLIER.search(seen.question):
        return None
    responses = [record for record in fetchable if record.ref.endswith("-r")]
    results = [record for record in fetchable if "-t" in record.ref]
    pool = results if results and _ABOUT_RESULT.search(seen.question) else responses or results
    return _best(pool, frozenset(words(seen.question))) if pool else None


def _asked_files(seen: Transcript) -> list[PastRecord]:
    """Files of earlier queries that the question names, or all of them if it is about a file."""
    files = [record for record in seen.past if record.is_file]
    named = [record for record in files if record.text and record.text.lower() in seen.question.lower()]
    return named or (files if _ABOUT_FILE.search(seen.question) else [])


def _best(pool: list[PastRecord], wanted: frozenset[str]) -> PastRecord:
    scored = [
        (overlap(wanted, f"{record.question}\n{record.text}"), index) for index, record in enumerate(pool)
    ]
    return pool[max(scored)[1]]


def _named(question: str, offered: Mapping[str, Mapping[str, Any]]) -> Iterator[Call]:
    """Tools written out in the message, with the input that follows the name: a JSON object, or ``key=value …``.

    Without either, only a name that is no English word: ``weather`` alone is a question.
    """
    for match in re.finditer(r"[a-zA-Z0-9_-]{3,128}", question):
        name = match[0]
        if name not in offered:
            continue
        rest = question[match.end() :]
        arguments = _json_after(rest)
        if arguments is None:
            arguments = _pairs_after(rest, offered[name].get("properties", {})) or None
        if arguments is not None or "_" in name or "-" in name:
            yield Call(name, filled(offered[name], question) if arguments is None else arguments)


def _json_after(text: str) -> dict[str, Any] | None:
    trimmed = text.lstrip(" \t\n`:(")
    if not trimmed.startswith("{"):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(trimmed)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _pairs_after(text: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """``city="New York" days=2`` as far as the keys are parameters of the tool."""
    found: dict[str, Any] = {}
    place = 0
    while (pair := _PAIR.match(text, place)) and pair[1] in properties:
        found[pair[1]] = _value(pair[2], properties[pair[1]])
        place = pair.end()
    return found


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "string" and not text.startswith('"'):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _github(question: str, offered: Mapping[str, Any]) -> Iterator[Call]:
    if not any(name.startswith("github_") for name in offered):
        return
    repository = _repository(question)
    calls: list[Call] = []
    if repository and _ABOUT_REPOSITORY.search(question):
        calls.extend(_in_repository(question, repository))
    elif _GITHUB.search(question):
        calls.extend(_across(question))
    if repository and re.search(r"\b(repos|repositories)\b", question, re.IGNORECASE):
        calls.append(Call("github_search_repositories", {"query": _search_words(question)}))
    yield from (call for call in calls if call.tool in offered)


def _repository(question: str) -> tuple[str, str, str] | None:
    for match in _OWNER_REPO.finditer(question):
        if match[1].lower() not in {"and", "or", "his", "her", "he", "she", "client", "input", "tcp", "ci"}:
            return match[1], match[2], match[3] or ""
    return None


def _in_repository(question: str, repository: tuple[str, str, str]) -> Iterator[Call]:
    owner, repo, path = repository
    where = {"owner": owner, "repo": repo}
    lowered = question.lower()
    is_specific = False
    if "issue" in lowered:
        is_specific = True
        yield Call("github_list_issues", where)
    if "pull request" in lowered:
        is_specific = True
        yield Call("github_list_pull_requests", where)
    if "commit" in lowered:
        is_specific = True
        yield Call("github_list_commits", where)
    file = _FILE.search(question.replace(f"{owner}/{repo}", " "))
    path = path or (file[1].lstrip("/") if file else "") or ("README.md" if "readme" in lowered else "")
    if path or not is_specific:
        yield Call("github_get_file_contents", {**where, "path": path or "/"})


def _across(question: str) -> Iterator[Call]:
    lowered = question.lower()
    query = _search_words(question)
    if "issue" in lowered:
        yield Call("github_search_issues", {"query": query})
    if "pull request" in lowered:
        yield Call("github_search_pull_requests", {"query": query})
    if re.search(r"search (the )?code|code search|in code", lowered):
        yield Call("github_search_code", {"query": query})
    if re.search(r"\brepos?\b|repositor|example|project", lowered) or not re.search(
        "issue|pull request|code", lowered
    ):
        yield Call("github_search_repositories", {"query": query})


def _search_words(question: str) -> str:
    """The content words of a question as written, without "github", owners and the like, for a search."""
    plain = _OWNER_REPO.sub(" ", question)
    kept = [word.rstrip(".-") for word in re.findall(r"[\w.+#-]+", plain) if words(word)]
    return " ".join(_FILLER.sub(" ", " ".join(kept)).split())[:256] or question[:256]


def filled(schema: Mapping[str, Any], question: str) -> dict[str, Any]:
    """An input with the required fields of a tool's schema, filled from the question as far as possible."""
    properties = schema.get("properties") or {}
    repository = _repository(question)
    known: dict[str, Any] = (
        {"owner": repository[0], "repo": repository[1], "path": repository[2]} if repository else {}
    )
    return {
        name: known.get(name) or _plain_value(properties.get(name) or {}, question)
        for name in schema.get("required") or ()
    }


def _plain_value(schema: Mapping[str, Any], question: str) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    number = re.search(r"-?\d{1,15}", question)
    plain: dict[Any, Any] = {
        "integer": int(number[0]) if number else int(schema.get("minimum", 1)),
        "number": float(number[0]) if number else float(schema.get("minimum", 1)),
        "boolean": False,
        "array": [],
        "object": {},
    }
    if kind in plain:
        return plain[kind]
    return question[: schema.get("maxLength", QUERY_LIMIT)]
