"""`search_conversation`: the records of the current conversation that match a query, best first.

stored words ─► new ones ─► BM25 ─► excerpts of the best ─► vectors (passages': stored) ─► rank fusion ─► ids, excerpts
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from annotated_types import Ge, Le, MaxLen, MinLen

from dualtrack import tool
from dualtrack.memory.passages import RECORD_LIMIT, window_at
from dualtrack.text import clean
from dualtrack.tool_values import ToolResult, failed
from dualtrack.tools.conversation.excerpt import excerpt
from dualtrack.tools.conversation.index import up_to_date
from dualtrack.tools.conversation.meaning import closeness
from dualtrack.tools.conversation.postings import PASSAGE, matches
from dualtrack.tools.conversation.settings import DEFAULT
from dualtrack.tools.documentation.dependencies import SearchNeeds
from dualtrack.tools.documentation.fusion import ranked, reciprocal_rank_scores
from dualtrack.tools.documentation.keywords import words
from dualtrack.tools.running import Running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.memory.passages import Passage
    from dualtrack.storage.stores import SearchStores
    from dualtrack.tools.conversation.index import Index
    from dualtrack.tools.conversation.postings import Match
    from dualtrack.tools.conversation.settings import ConversationSearch

DEFAULT_HITS: Final = 8
MAX_HITS: Final = 20
MAX_QUERY_CHARACTERS: Final = 1_000
_CUT_NAMED: Final = 5


@tool(repeatable=True)
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
    said = matches(query, index.segments, settings.k1, settings.b)
    within = excerpts_within(needs.stores, running, query, said, settings)
    close = None
    by_meaning = bool(index.segments) and settings.ranking != "keywords"
    if by_meaning:
        close = closeness(index, query, within, running, needs, settings)
    hits = best(index, said, close, settings)[:limit]
    left_out = ("meaning",) if by_meaning and needs.embedder and close is None else ()
    lines, notes = _lines(query, hits, said, within, settings), _notes(index, close)
    # the first line is for the model alone
    preview = "\n".join(lines[1:])
    return ToolResult("\n".join((*lines, *notes)), left_out=left_out, preview=preview)


def excerpts_within(
    stores: SearchStores,
    running: Running,
    query: str,
    said: Mapping[str, Match],
    settings: ConversationSearch,
) -> dict[str, str]:
    """Excerpts of the windows in which records match best in words, by record id: of the best ``settings.windows``
    records those that do not match best in their passage. Reads these records."""
    found = {record_id: said[record_id].offset for record_id in list(said)[: settings.windows]}
    offsets = {record_id: offset for record_id, offset in found.items() if offset != PASSAGE}
    history = stores.across(running.chat.ancestry).history
    records = history.records(running.user, running.conversation_id, offsets) if offsets else ()
    wanted = frozenset(words(query))
    return {
        record.record_id: excerpt(
            window_at(record.content, offsets[record.record_id]), wanted, settings.excerpt
        )
        for record in records
    }


def best(
    index: Index,
    said: Mapping[str, Match],
    close: Mapping[str, float] | None,
    settings: ConversationSearch,
) -> tuple[Passage, ...]:
    """The passages of the records that match in words or in meaning, best first.

    ``said``: the matches in words, by record id; ``close``: the similarity in meaning; None without embeddings.
    """
    passages = index.passages
    lists: list[Sequence[float]] = []
    if close is None or settings.ranking == "both":
        scores = {record_id: match.score for record_id, match in said.items()}
        lists.append(_in_order(scores, passages))
    if close is not None:
        lists += [_in_order(close, passages)] * settings.meaning_weight
    fused = lists[0] if len(lists) == 1 else reciprocal_rank_scores(lists, settings.rrf_k)
    return tuple(passages[position] for position in ranked(fused) if fused[position] > 0)


def _in_order(scores: Mapping[str, float], passages: Sequence[Passage]) -> tuple[float, ...]:
    return tuple(scores.get(passage.record_id, 0.0) for passage in passages)


def _lines(
    query: str,
    hits: Sequence[Passage],
    said: Mapping[str, Match],
    within: Mapping[str, str],
    settings: ConversationSearch,
) -> list[str]:
    """A line for each hit: the excerpt of the window in which it was found, with the window's offset, or else of its
    passage."""
    if not hits:
        return ["No earlier record of this conversation matches."]
    wanted = frozenset(words(query))
    head = f"Records of this conversation, best first ({len(hits)}). Read one with retrieve_full_context, in full or from its offset on."
    lines = [head]
    for hit in hits:
        if shown := within.get(hit.record_id, ""):
            lines.append(f"{hit.record_id} ({hit.kind}, offset {said[hit.record_id].offset}): {shown}")
        else:
            lines.append(f"{hit.record_id} ({hit.kind}): {excerpt(hit.text, wanted, settings.excerpt)}")
    return lines


def _notes(index: Index, close: Mapping[str, float] | None) -> list[str]:
    """Notes on the parts of a very long conversation that were not searched, or only by keywords."""
    notes = []
    first = int(index.segments[0].key[:6]) if index.segments else 1
    if first > 1:
        notes.append(f"(Only the queries from q{first} on were searched.)")
    if index.through < index.last:
        notes.append(
            f"(Only the queries up to q{index.through} were searched. Repeat the same search to continue.)"
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
