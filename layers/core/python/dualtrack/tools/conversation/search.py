"""`search_conversation`: the records of the current conversation that match a query, best first.

stored words ─► BM25 ─► excerpts of the best ─► vectors (spots': stored) ─► rank fusion ─► ids, excerpts
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from annotated_types import Ge, Le, MaxLen, MinLen

from dualtrack import tool
from dualtrack.ids import parse_record_id
from dualtrack.knowledge.fusion import ranked, reciprocal_rank_scores
from dualtrack.knowledge.scripts import knows
from dualtrack.knowledge.words import asked
from dualtrack.memory.condensed import condensed
from dualtrack.memory.passages import RECORD_LIMIT, window_at
from dualtrack.memory.query_index import PASSAGE
from dualtrack.text import clean
from dualtrack.tool_values import ToolResult, failed
from dualtrack.tools.conversation.excerpt import excerpt
from dualtrack.tools.conversation.index import up_to_date
from dualtrack.tools.conversation.meaning import closeness
from dualtrack.tools.conversation.postings import matches
from dualtrack.tools.conversation.settings import DEFAULT
from dualtrack.tools.running import Running
from dualtrack.tools.search_needs import SearchNeeds
from dualtrack.tools.withheld import withheld

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dualtrack.memory.passages import Passage
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tools.conversation.index import ConversationIndex
    from dualtrack.tools.conversation.postings import Match
    from dualtrack.tools.conversation.settings import ConversationSearch

DEFAULT_HITS: Final = 12
MAX_HITS: Final = 20
MAX_QUERY_CHARACTERS: Final = 1_000
_CUT_NAMED: Final = 5


@tool(effect="reads")
def search_conversation(
    query: Annotated[
        str,
        MinLen(1),
        MaxLen(MAX_QUERY_CHARACTERS),
        "What to look for: a question or key words, with the names, numbers and identifiers that the record should contain.",
    ],
    limit: Annotated[int, Ge(1), Le(MAX_HITS), "Return at most this many records."] = DEFAULT_HITS,
    *,
    running: Running,
    needs: SearchNeeds,
) -> ToolResult:
    """Searches this conversation's earlier queries, responses and tool results, including those no longer shown, by
    words and by meaning. Returns record ids with excerpts, best first; read a record in full with
    retrieve_full_context. Use it when the user refers to something earlier and no summary that you see names its id. It
    finds nothing outside this conversation.
    """
    return found(query, limit, running, needs, DEFAULT)


def found(
    query: str, limit: int, running: Running, needs: SearchNeeds, settings: ConversationSearch
) -> ToolResult:
    """At most ``limit`` records of the queries before the running one, as lines that begin with their ids.

    It can reach only the user's current conversation: both ids are part of the key. Errors of our own tables are
    raised; without the embedding service only keywords rank.
    """
    query = " ".join(clean(query).split())
    if not query:
        return failed("the query is empty")
    index = up_to_date(needs.stores, running, settings)
    said = matches(query, index.queries.values(), settings.k1, settings.b)
    places = {record_id: said[record_id].offset for record_id in list(said)[: settings.windows]}
    within = excerpts_at(needs.stores, running, query, places, settings)
    compared = _passages_at(index, query, places, settings) | within
    close = None
    is_known = needs.embedder is None or knows(needs.embedder.model, query)
    by_meaning = bool(index.queries) and settings.ranking != "keywords" and is_known
    if by_meaning:
        close = closeness(index, query, compared, running, needs, settings)
    hits = _sendable(needs.stores, running, best(index, said, close, settings)[: 2 * limit])[:limit]
    left_out = ("meaning",) if by_meaning and needs.embedder and close is None else ()
    meant = {hit.record_id: close[hit.record_id] for hit in hits if close and hit.record_id in close}
    within = _excerpts_by_meaning(needs.stores, running, query, meant, settings) | within
    offsets = {record_id: match.offset for record_id, match in meant.items()} | places
    lines, notes = _lines(query, hits, offsets, within, settings), _notes(index, close)
    # the first line is for the model alone
    preview = "\n".join(lines[1:])
    return ToolResult("\n".join((*lines, *notes)), left_out=left_out, preview=preview)


def _sendable(stores: ToolStores, running: Running, hits: Sequence[Passage]) -> tuple[Passage, ...]:
    """The hits without those of queries of which nothing is sent."""
    numbers = {hit.record_id: parsed.query for hit in hits if (parsed := parse_record_id(hit.record_id))}
    out = withheld(stores, running, frozenset(numbers.values()))
    return tuple(hit for hit in hits if numbers.get(hit.record_id) not in out)


def excerpts_at(
    stores: ToolStores,
    running: Running,
    query: str,
    places: Mapping[str, int],
    settings: ConversationSearch,
) -> dict[str, str]:
    """Excerpts of the windows at these offsets, by record id; not of passages. Reads the records."""
    offsets = {record_id: offset for record_id, offset in places.items() if offset != PASSAGE}
    wanted = frozenset(asked(query))
    return {
        record_id: excerpt(window_at(content, offsets[record_id]), wanted, settings.excerpt)
        for record_id, content in _contents(stores, running, offsets).items()
    }


def _passages_at(
    index: ConversationIndex, query: str, places: Mapping[str, int], settings: ConversationSearch
) -> dict[str, str]:
    """Excerpts of the passages that match in words, by record id. Next to the excerpts of windows a whole passage would
    say too much else, and that of an old query may not have its vector yet."""
    wanted = frozenset(asked(query))
    return {
        passage.record_id: excerpt(passage.text, wanted, settings.excerpt)
        for passage in index.passages
        if places.get(passage.record_id) == PASSAGE
    }


def _excerpts_by_meaning(
    stores: ToolStores,
    running: Running,
    query: str,
    found: Mapping[str, Match],
    settings: ConversationSearch,
) -> dict[str, str]:
    """Excerpts of the parts that are closest in meaning, condensed as they were compared; not of passages. Reads the
    records."""
    parts = {record_id: match for record_id, match in found.items() if match.offset != PASSAGE}
    wanted = frozenset(asked(query))
    return {
        record_id: excerpt("".join(condensed(content, [(part.offset, part.end)])), wanted, settings.excerpt)
        for record_id, content in _contents(stores, running, parts).items()
        for part in [parts[record_id]]
    }


def _contents(stores: ToolStores, running: Running, record_ids: Collection[str]) -> dict[str, str]:
    """The texts of records, as far as they are searched."""
    history = stores.across(running.chat.ancestry).history
    records = history.records(running.user, running.conversation_id, record_ids) if record_ids else ()
    return {record.record_id: record.content[:RECORD_LIMIT] for record in records}


def best(
    index: ConversationIndex,
    said: Mapping[str, Match],
    close: Mapping[str, Match] | None,
    settings: ConversationSearch,
) -> tuple[Passage, ...]:
    """The passages of the records that match in words or in meaning, best first.

    ``said``: the matches in words, by record id; ``close``: those in meaning; None without embeddings.
    """
    passages = index.passages
    lists: list[Sequence[float]] = []
    if close is None or settings.ranking == "both":
        lists.append(_in_order(said, passages))
    if close is not None:
        lists += [_in_order(close, passages)] * settings.meaning_weight
    fused = lists[0] if len(lists) == 1 else reciprocal_rank_scores(lists, settings.rrf_k)
    return tuple(passages[position] for position in ranked(fused) if fused[position] > 0)


def _in_order(found: Mapping[str, Match], passages: Sequence[Passage]) -> tuple[float, ...]:
    matched = (found.get(passage.record_id) for passage in passages)
    return tuple(match.score if match else 0.0 for match in matched)


def _lines(
    query: str,
    hits: Sequence[Passage],
    offsets: Mapping[str, int],
    within: Mapping[str, str],
    settings: ConversationSearch,
) -> list[str]:
    """A line for each hit: the excerpt of the window in which it was found, with the window's offset, or else of its
    passage."""
    if not hits:
        return ["No earlier record of this conversation matches."]
    wanted = frozenset(asked(query))
    head = f"Records of this conversation, best first ({len(hits)}). Read one with retrieve_full_context, in full or from its offset on."
    lines = [head]
    for hit in hits:
        if shown := within.get(hit.record_id, ""):
            lines.append(f"{hit.record_id} ({hit.kind}, offset {offsets[hit.record_id]}): {shown}")
        else:
            lines.append(f"{hit.record_id} ({hit.kind}): {excerpt(hit.text, wanted, settings.excerpt)}")
    return lines


def _notes(index: ConversationIndex, close: Mapping[str, Match] | None) -> list[str]:
    """Notes on the parts of a very long conversation that were not searched, or only by keywords."""
    notes = []
    if index.after:
        notes.append(f"(Only the queries from q{index.after + 1} on were searched.)")
    if index.unread:
        notes.append(
            f"({len(index.unread)} queries from q{index.unread[0]} on were not searched. Repeat the same search to "
            "continue.)"
        )
    if cut := [passage.record_id for passage in index.passages if passage.is_cut]:
        more = f" and {len(cut) - _CUT_NAMED} more" if len(cut) > _CUT_NAMED else ""
        notes.append(
            f"(Only the first {RECORD_LIMIT:,} characters were searched of {', '.join(cut[:_CUT_NAMED])}{more}.)"
        )
    records = len(index.passages)
    if close is not None and len(close) < records:
        notes.append(
            f"({len(close)} of {records} records were searched by meaning. Repeat the same search to cover more.)"
        )
    return notes
