"""The sample documents and how a query orders them. Pure but for reading the files."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dualtrack_stack.local.offline_model.prose import overlap, words

DOCUMENTS = Path(__file__).parent / "documents"

MAX_SNIPPETS = 20
"""Snippets in one answer; Context7 too answers with a bounded page."""

REDIRECTED = {"/sample/twitter-ads-api": "/sample/x-ads-api"}
"""Libraries that moved: the answer names the new id in its body."""

UNFINISHED = frozenset({"/sample/unfinished"})
"""Libraries that are still being processed."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """One section of a document. ``code``: (language, code) pairs, the same thing in several languages."""

    title: str
    page: str
    source: str
    description: str
    code: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """Everything that a query may match."""
        return "\n".join((self.title, self.page, self.description, *(code for _, code in self.code)))

    @property
    def tokens(self) -> int:
        """By estimate, four characters a token."""
        return math.ceil(len(self.text) / 4)


@dataclass(frozen=True, slots=True)
class SampleLibrary:
    """A documented library."""

    id: str
    title: str
    description: str
    branch: str
    updated: str
    stars: int
    trust: float
    benchmark: float
    versions: tuple[str, ...]
    aliases: tuple[str, ...]
    snippets: tuple[Snippet, ...]


@cache
def libraries() -> tuple[SampleLibrary, ...]:
    """All sample libraries, by id."""
    read = (_library(json.loads(path.read_text(encoding="utf-8"))) for path in DOCUMENTS.glob("*.json"))
    return tuple(sorted(read, key=lambda library: library.id))


def _library(value: dict[str, Any]) -> SampleLibrary:
    snippets = tuple(
        Snippet(
            title=snippet["title"],
            page=snippet["page"],
            source=snippet["source"],
            description=snippet["description"],
            code=tuple((code["language"], code["code"]) for code in snippet.get("code", ())),
        )
        for snippet in value["snippets"]
    )
    tuples: dict[str, Any] = {name: tuple(value[name]) for name in ("versions", "aliases")}
    return SampleLibrary(**value | tuples | {"snippets": snippets})


def search(name: str, query: str) -> tuple[SampleLibrary, ...]:
    """Libraries whose title, id or aliases share words with the name, best first; ties go to the query."""
    wanted = frozenset(words(name))
    asked = frozenset(words(query))
    scored = []
    for library in libraries():
        names = " ".join((library.title, library.id, *library.aliases))
        score = overlap(wanted, names) + overlap(wanted, library.description) / 4
        if score >= 1:
            scored.append((score + overlap(asked, library.description) / 10, library))
    return tuple(library for _, library in sorted(scored, key=lambda entry: (-entry[0], entry[1].id)))


def find(library_id: str) -> SampleLibrary | None:
    """The library with an id; a version after it (``/owner/repo/v1`` or ``@v1``) must be a known one."""
    plain, _, version = library_id.removeprefix("/").replace("@", "/", 1).partition("/")
    name, _, version = version.partition("/")
    for library in libraries():
        if library.id == f"/{plain}/{name}" and (not version or version in library.versions):
            return library
    return None


def ordered(library: SampleLibrary, query: str) -> tuple[Snippet, ...]:
    """The snippets of a library by the words that they share with the query, at most `MAX_SNIPPETS`.

    Snippets that share none are left out; if none share any, the first ones are returned.
    """
    wanted = frozenset(words(query))
    scored = [
        (overlap(wanted, snippet.text) + overlap(wanted, snippet.title), snippet)
        for snippet in library.snippets
    ]
    ranked = sorted((entry for entry in scored if entry[0] > 0), key=lambda entry: -entry[0])
    chosen = tuple(snippet for _, snippet in ranked) or library.snippets
    return chosen[:MAX_SNIPPETS]
