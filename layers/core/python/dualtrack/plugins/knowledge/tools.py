"""``search_documents``, ``read_document`` and ``list_documents``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from annotated_types import Ge, MaxLen, MinLen

from dualtrack import tool
from dualtrack.plugins.knowledge.library import allowed, library_of, vector_of
from dualtrack.plugins.knowledge.passages import address, location, piece_of
from dualtrack.plugins.knowledge.ranking import Part, search
from dualtrack.text import clean, folded_name, one_line
from dualtrack.tool_values import Source, ToolResult, failed, titles
from dualtrack.tools.running import Running
from dualtrack.tools.search_needs import SearchNeeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.plugins.knowledge.library import Opened
    from dualtrack.plugins.knowledge.ranking import Place

NOTHING: Final = "There are no documents here."
LISTED: Final = 100
NEAREST: Final = 10
_ID: Final = re.compile(r"(doc_[0-9a-f]{26})(?::(\d{1,6}))?", re.ASCII)
_BETWEEN: Final = "\n\n"


@dataclass(frozen=True, slots=True)
class NotThere(Exception):
    """What is named is not there; the message says what is."""

    message: str


@tool(effect="reads")
def search_documents(
    query: Annotated[str, MinLen(1), MaxLen(1_000), "What to look for."],
    collection: Annotated[str | None, MaxLen(200), "Search only this collection, by its name."] = None,
    document: Annotated[str | None, MaxLen(300), "Search only this document, by its title or id."] = None,
    *,
    running: Running,
    needs: SearchNeeds,
) -> ToolResult:
    """Searches the documents of the user and of this service (handbooks, contracts, price lists …), by words and by
    meaning, and returns the passages that fit best, each with its document, place and id for read_document. Give
    collection or document only to restrict the search.
    """
    query = one_line(clean(query))
    if not query:
        return failed("the query is empty")
    try:
        parts = _parts(_opened(running, needs, collection), document)
    except NotThere as missing:
        return ToolResult(missing.message, charged=False)
    places, lacks_meaning = search(parts, query, lambda model: vector_of(needs, model, query))
    left_out = ("meaning",) if lacks_meaning else ()
    if not places:
        return ToolResult("No relevant content found." if parts else NOTHING, left_out=left_out)
    return _found(places, left_out)


@tool(effect="reads")
def read_document(
    id: Annotated[str, MinLen(1), MaxLen(64), "The id from a hit or from list_documents."],  # noqa: A002 - its name
    from_: Annotated[int | None, Ge(0), "Where to go on, as the piece before said."] = None,
    *,
    running: Running,
    needs: SearchNeeds,
) -> ToolResult:
    """Returns a document's text, about 8,000 characters at a time, from the passage that the id names; it says where
    the next piece begins.
    """
    matched = _ID.fullmatch(id.strip())
    for opened in _opened(running, needs, None) if matched else ():
        for at, title in enumerate(opened.index.titles):
            if matched and opened.document_id(at) == matched[1]:
                return _read(opened, at, title, int(matched[2] or 0) if from_ is None else from_)
    return ToolResult(
        "There is no such document: take the id from a hit or from list_documents.", charged=False
    )


@tool(effect="reads")
def list_documents(
    collection: Annotated[str | None, MaxLen(200), "Only this collection, by its name."] = None,
    *,
    running: Running,
    needs: SearchNeeds,
) -> ToolResult:
    """Lists the collections and the titles and ids of their documents."""
    try:
        listed = _opened(running, needs, collection)
    except NotThere as missing:
        return ToolResult(missing.message, charged=False)
    lines = []
    for opened in listed:
        names = opened.index.titles
        lines.append(f"{one_line(clean(opened.collection.name))}: {len(names):,} documents")
        lines += [f"- {title} ({opened.document_id(at)})" for at, title in enumerate(names[:LISTED])]
        if len(names) > LISTED:
            lines.append(f"- and {len(names) - LISTED:,} more: search for them")
    return ToolResult("\n".join(lines) or NOTHING)


def _opened(running: Running, needs: SearchNeeds, name: str | None) -> list[Opened]:
    """What the chat may search, or the collection of this name or id. Raises `NotThere`."""
    library = library_of(needs)
    collections = allowed(library, running, needs)
    if name:
        known = collections
        collections = [one for one in known if folded_name(name) in (folded_name(one.name), one.corpus)]
        if not collections:
            names = "; ".join(f"'{one_line(clean(one.name))}'" for one in known[:NEAREST])
            told = f"The collections: {names}." if names else NOTHING
            raise NotThere(f"There is no collection '{one_line(clean(name))}'. {told}")
    return library.opened(collections)


def _parts(listed: Sequence[Opened], document: str | None) -> list[Part]:
    """All of them, or the documents that a title (or a part of it) or an id means. Raises `NotThere`."""
    if not document:
        return [Part(opened) for opened in listed]
    wanted, exact, partly = folded_name(document), [], []
    for opened in listed:
        for at, title in enumerate(opened.index.titles):
            own = folded_name(title)
            if own == wanted or (
                wanted.startswith("doc_") and opened.document_id(at) == wanted.partition(":")[0]
            ):
                exact.append(Part(opened, at))
            elif wanted in own:
                partly.append(Part(opened, at))
    if not (exact or partly):
        names = [f"'{title}'" for opened in listed for title in opened.index.titles[:NEAREST]][:NEAREST]
        told = f"Some of the documents: {'; '.join(names)}." if names else NOTHING
        raise NotThere(f"There is no document '{one_line(clean(document))}'. {told}")
    return exact or partly


def _found(places: Sequence[Place], left_out: tuple[str, ...]) -> ToolResult:
    """The hits as text, and their places as sources, with the spans of their passages."""
    texts: list[str] = []
    sources: dict[str, Source] = {}
    at = 0
    for place in places:
        index, document = place.opened.index, place.opened.index.document_of(place.row)
        chunk, begin = index.chunk(place.row), place.row - index.rows(document).start
        where = location(index.titles[document], chunk)
        head = f"[{where}; id {place.opened.document_id(document)}:{begin}]\n"
        text = clean(chunk.text)
        link = address(place.opened, document, begin)
        sources[link] = Source(where, link, passages=((at + len(head), at + len(head) + len(text)),))
        texts.append(head + text)
        at += len(texts[-1]) + len(_BETWEEN)
    listed = tuple(sources.values())
    return ToolResult(_BETWEEN.join(texts), sources=listed, preview=titles(listed), left_out=left_out)


def _read(opened: Opened, at: int, title: str, begin: int) -> ToolResult:
    piece = piece_of(opened.index, opened.index.rows(at), begin)
    if begin >= piece.chunks:
        return ToolResult(f"'{title}' ends before {begin}: it has the places 0 to {piece.chunks - 1}.")
    follows = (
        f"(The end of '{title}'.)"
        if piece.following is None
        else f"(It goes on: read_document with from {piece.following}; the last place is {piece.chunks - 1}.)"
    )
    source = Source(
        location(title, opened.index.chunk(opened.index.rows(at)[begin])), address(opened, at, begin)
    )
    return ToolResult(f"[{title}]\n{clean(piece.text)}{_BETWEEN}{follows}", sources=(source,))
