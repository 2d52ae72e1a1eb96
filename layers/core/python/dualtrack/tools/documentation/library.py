"""From the question to the sections of one library's documentation."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dualtrack.codec import dump, load, stored
from dualtrack.tools.documentation.cache import inflated, plan_key, unpacked_page
from dualtrack.tools.documentation.choose import by_score, choose_with_claude, clear_winner
from dualtrack.tools.documentation.chunking import distinct
from dualtrack.tools.documentation.context7 import (
    CONTEXT,
    SEARCH,
    chunks_of,
    context_params,
    following_moves,
    libraries_of,
    library_id,
    search_params,
)
from dualtrack.tools.documentation.understand import phrasings, understand_by_rules, understand_with_claude
from dualtrack.tools.documentation.values import Context7Error, LibraryMatch, LibraryUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.tools.documentation.context7 import FetchedPage
    from dualtrack.tools.documentation.session import Session
    from dualtrack.tools.documentation.settings import RetrievalSettings
    from dualtrack.tools.documentation.values import DocSection, DocumentationRequest


@dataclass(frozen=True, slots=True)
class Sections:
    """A library and its distinct sections for the question, in Context7's order.

    ``keys``: the cache keys of their pages.
    """

    library: LibraryMatch
    chunks: tuple[DocSection, ...]
    keys: tuple[str, ...] = ()


async def find_sections(question: str, session: Session) -> Sections:
    """The cached result for exactly this question, else that of Context7. Raises `Context7Error`."""
    remembered = await _remembered(question, session)
    if remembered:
        return remembered
    request = await _understood(question, session)
    sections = await _first_available(await _candidates(request, session), request, session)
    if session.healthy:
        session.responses[_plan_key(question, session)] = _plan(sections)
    return sections


async def _understood(question: str, session: Session) -> DocumentationRequest:
    questions = session.deps.questions
    if questions is None:
        return understand_by_rules(question)
    request = await session.stages.optional(
        "understand",
        session.deps.settings.limits.understand,
        lambda share: understand_with_claude(question, questions, share),
    )
    session.healthy = session.healthy and request is not None
    return request or understand_by_rules(question)


async def _candidates(request: DocumentationRequest, session: Session) -> tuple[LibraryMatch, ...]:
    """Libraries to try, best first. Raises `Context7Error` if there is none."""
    libraries = await _search(request.library, request.question, session)
    fallback = understand_by_rules(request.question).library
    if not libraries and fallback != request.library:
        libraries = await _search(fallback, request.question, session)
    if not libraries:
        raise LibraryUnavailable(f"Context7 knows no library called '{request.library[:80]}'")
    settings = session.deps.settings
    scored = by_score(libraries, request.library)
    best = scored[0][0]
    if not clear_winner(scored, settings.clear_lead):
        best = await _chosen([library for library, _ in scored], request, session)
    others = [library for library, score in scored if library is not best and score >= 0]
    return (best, *others[: settings.libraries_tried - 1])


async def _chosen(
    libraries: Sequence[LibraryMatch], request: DocumentationRequest, session: Session
) -> LibraryMatch:
    questions, settings = session.deps.questions, session.deps.settings
    if questions is None:
        return libraries[0]
    choice = await session.stages.optional(
        "choose",
        settings.limits.choose,
        lambda share: choose_with_claude(request, libraries, questions, share, settings.bounds),
    )
    session.healthy = session.healthy and choice is not None
    return choice or libraries[0]


async def _search(name: str, question: str, session: Session) -> tuple[LibraryMatch, ...]:
    params = search_params(name, question)
    await session.recall_pages([(SEARCH, params)])

    async def search(_: float) -> tuple[LibraryMatch, ...]:
        return libraries_of(await session.page(SEARCH, params), session.deps.settings)

    return await session.stages.required("search", session.deps.settings.limits.search, search)


async def _first_available(
    libraries: Sequence[LibraryMatch], request: DocumentationRequest, session: Session
) -> Sections:
    """The sections of the first library that has any. Raises the first error if none has."""
    refusals: list[LibraryUnavailable] = []
    for library in libraries:
        try:
            return await _sections(library, request, session)
        except LibraryUnavailable as error:
            refusals.append(error)
    raise refusals[0]


async def _sections(library: LibraryMatch, request: DocumentationRequest, session: Session) -> Sections:
    """The sections for several phrasings, asked at once; for more phrasings only if these returned too few sections,
    and not all the same ones. Raises `Context7Error` if there are none.
    """
    settings = session.deps.settings
    ways = phrasings(request)[: settings.max_phrasings]
    first, more = ways[: settings.first_phrasings], ways[settings.first_phrasings :]
    sections, largest = await _wave(library, first, session)
    if not sections.chunks:
        raise LibraryUnavailable("Context7 has no documentation of this library for the question")
    if more and largest < len(sections.chunks) < settings.top_fused:
        try:
            further, _ = await _wave(sections.library, more, session)
        except Context7Error:
            session.healthy = False
        else:
            sections = replace(
                sections,
                chunks=distinct([sections.chunks, further.chunks]),
                keys=(*sections.keys, *further.keys),
            )
    return replace(sections, chunks=sections.chunks[: settings.bounds.chunks])


async def _wave(library: LibraryMatch, ways: Sequence[str], session: Session) -> tuple[Sections, int]:
    """The sections for phrasings that are asked in parallel, and the size of the largest answer.

    A failed phrasing is left out. Raises the first failure if all fail.
    """
    settings = session.deps.settings
    await session.recall_pages((CONTEXT, context_params(library.id, way, settings)) for way in ways)

    async def ask(_: float) -> list[Sections | BaseException]:
        return await asyncio.gather(
            *(_of_phrasing(library, way, session) for way in ways), return_exceptions=True
        )

    answers = await session.stages.required("context", settings.limits.context, ask)
    pages = [answer for answer in answers if isinstance(answer, Sections)]
    failures = [answer for answer in answers if isinstance(answer, BaseException)]
    for failure in failures:
        if not pages or not isinstance(failure, Context7Error):
            raise failure
    session.healthy = session.healthy and not failures
    merged = distinct(page.chunks for page in pages)
    keys = tuple(key for page in pages for key in page.keys)
    return Sections(pages[0].library, merged, keys), max(len(page.chunks) for page in pages)


async def _of_phrasing(library: LibraryMatch, way: str, session: Session) -> Sections:
    """The sections for a phrasing, from JSON, or from text if the JSON cannot be parsed."""
    try:
        return await _page(library, way, "json", session)
    except _Unreadable:
        return await _page(library, way, "txt", session)


class _Unreadable(Context7Error):
    """The page cannot be parsed as its declared type."""


async def _page(library: LibraryMatch, way: str, kind: str, session: Session) -> Sections:
    settings = session.deps.settings

    async def ask(identity: str) -> FetchedPage:
        return await session.page(CONTEXT, context_params(identity, way, settings, kind))

    identity, page = await following_moves(library.id, ask)
    key = session.key(CONTEXT, context_params(identity, way, settings, kind))
    try:
        chunks = chunks_of(page, settings)
    except Context7Error as error:
        session.responses.pop(key, None)
        raise _Unreadable(str(error)) from error
    if not chunks:  # what has no documentation today may have some tomorrow
        session.responses.pop(key, None)
    return Sections(replace(library, id=identity), chunks, (key,))


async def _remembered(question: str, session: Session) -> Sections | None:
    """The sections of an earlier search for this question, if all their pages are still cached."""
    settings = session.deps.settings
    key = _plan_key(question, session)
    plan = _plan_from((await session.recall([key])).get(key, b""))
    if plan is None:
        return None
    bodies = await session.recall(plan.keys)
    pages = [unpacked_page(bodies.get(page_key, b"")) for page_key in plan.keys]
    kept = [page for page in pages if page is not None]
    if len(kept) < len(pages):
        return None
    try:
        chunks = distinct(chunks_of(page, settings) for page in kept)[: settings.bounds.chunks]
    except Context7Error:
        return None
    return Sections(LibraryMatch(plan.id, plan.title), chunks, plan.keys) if chunks else None


@stored
@dataclass(frozen=True, slots=True)
class _Plan:
    """Where an earlier search found its sections: a library, and the keys of its pages in the cache."""

    id: str
    title: str
    keys: tuple[str, ...]


def _plan(sections: Sections) -> bytes:
    return zlib.compress(dump(_Plan(sections.library.id, sections.library.title, sections.keys)).encode())


def _plan_from(body: bytes) -> _Plan | None:
    try:
        plan = load(_Plan, inflated(body))
    except ValueError:  # an older or damaged entry
        return None
    is_safe = library_id(plan.id) and all(key.startswith("response#") for key in plan.keys)
    return plan if is_safe else None


def _plan_key(question: str, session: Session) -> str:
    """The cache key of the question and everything else that affects the result."""
    deps = session.deps
    settings: RetrievalSettings = deps.settings
    return plan_key(
        deps.context7.address,
        deps.questions.model_name if deps.questions else "",
        " ".join(question.split()),
        repr((settings.first_phrasings, settings.max_phrasings, settings.top_fused, settings.context_fast)),
    )
