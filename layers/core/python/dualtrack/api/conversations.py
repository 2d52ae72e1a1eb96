"""Creating, listing, reading and renaming conversations and their records (CONTRACT 4)."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from dualtrack.api.attachments import attachment_json, files_of
from dualtrack.chat.replay import records_to_send
from dualtrack.clock import iso
from dualtrack.errors import Contended, not_found
from dualtrack.frozen import dumps
from dualtrack.ids import is_id, new_conversation_id, parse_record_id, query_id, response_id
from dualtrack.knowledge.folding import folded
from dualtrack.memory.conversation_words import has_words, searched_words, unpacked
from dualtrack.memory.left_out import as_sent, is_in_place
from dualtrack.memory.records import Record
from dualtrack.plugin import facets_in
from dualtrack.profiles import all_profiles, profile_named
from dualtrack.storage.conversations import Conversation, is_list_position, list_position
from dualtrack.storage.digests import digest_record
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.history import summary_record
from dualtrack.storage.pages import Page, cursor_of, foreign_cursor, position_of
from dualtrack.tools.full_context import read_reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from dualtrack import answers
    from dualtrack.memory.conversation_words import SearchedWord
    from dualtrack.memory.records import TrackBlock
    from dualtrack.storage.stores import ConversationStores
    from dualtrack.vocabulary import Track

PAGE_RECORDS: Final = 100
PAGE_BYTES: Final = 1_000_000
"""Maximum size of a page on the wire (`_bytes`); a page has at least one record. A function's response has 6 MB."""

MOST_LOOKED_AT: Final = 1000
"""Maximum number of conversations that a request for a list reads."""

SEARCHED_AT_ONCE: Final = 50
SEARCHED_BYTES: Final = 4_000_000
"""A search reads the words of so many conversations at a time, at most 3.2 MB, until it has read so many bytes."""

PIECE_BYTES: Final = 4_500_000
"""Maximum size of a record's text in an answer, on the wire: a tool's input takes up to 1.2 MB more."""

_TRIES: Final = 8

_BLOCK: Final = 50_000
"""Characters measured at a time; each takes at most 12 bytes (`_bytes`)."""


def conversation_json(conversation: Conversation, now: float) -> answers.Conversation:
    """A conversation as the API shows it, with the chat that is running in it at ``now`` (epoch s), if any. A fork also
    has its parent, which may be deleted, and the first query that it does not share."""
    shown: answers.Conversation = {
        "conversation_id": conversation.conversation_id,
        "title": conversation.title,
        "profile": conversation.profile,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "listed_at": conversation.latest.partition("#")[0],
        "queries": conversation.queries,
        "allowed": [*conversation.allowed],
    }
    if running := conversation.running_chat(now):
        shown["running_chat_id"] = running
    if conversation.facets:
        shown |= cast("answers.Conversation", facets_in("Conversation", conversation.facets))
    if conversation.forked_from:
        shown["forked_from"] = conversation.forked_from
        shown["forked_before"] = query_id(conversation.ancestry.through + 1)
    return shown


def record_json(
    stores: ConversationStores, user: str, conversation_id: str, record: Record, offset: int = 0
) -> answers.Record:
    """A record as the API shows it; a stored reference is replaced by the text that it refers to.

    The text (a tool call's ``result``, else ``content``) begins at character ``offset``; ``next_offset`` is the
    beginning of the next piece, if there is one.
    """
    parsed = parse_record_id(record.record_id)
    body: answers.Record = {
        "record_id": record.record_id,
        "type": record.type,
        "role": record.role,
        "created_at": record.created_at,
    }
    if ref := str(parsed.whole) if parsed and parsed.summary else record.ref:
        body["ref"] = ref
    if record.size:
        body["size"] = record.size
    if record.form:
        body["form"] = record.form
    text = _text_of(stores, user, conversation_id, record)
    end = _end_of_piece(text, offset)
    body["result" if record.call else "content"] = text[offset:end]
    if end < len(text):
        body["next_offset"] = end
    if thought := record.thinking_characters:
        body["thinking_characters"] = thought
    if files := files_of(record):
        body["attachments"] = [attachment_json(file) for file in files]
    _add_of_chat(body, record)
    if record.call is None:
        return body
    call = record.call
    return {
        **body,
        "tool_use_id": call.tool_use_id,
        "tool": call.tool,
        "input": call.input,
        "is_error": call.is_error,
        "status": call.status,
        "seconds": call.seconds,
        "turn": call.turn,
    }


def _add_of_chat(body: answers.Record, record: Record) -> None:
    """What its chat says of a query or a response."""
    if record.chat_id:
        body["chat_id"] = record.chat_id
    if record.stop:
        body["stop"] = record.stop
    if record.left_out:
        body["left_out"] = query_id(record.left_out)
    if record.continues:
        body["continues"] = record.continues


def _text_of(stores: ConversationStores, user: str, conversation_id: str, record: Record) -> str:
    if record.call and record.call.reference:
        return read_reference(stores, user, conversation_id, record.call.reference)
    return record.content


def _end_of_piece(text: str, offset: int) -> int:
    """The end of a piece: as many blocks as fit in an answer, at least one."""
    end = offset + _BLOCK
    size = _bytes(text[offset:end])
    while end < len(text):
        size += _bytes(text[end : end + _BLOCK])
        if size > PIECE_BYTES:
            break
        end += _BLOCK
    return end


def create_conversation(
    stores: ConversationStores, user: str, title: str, profile: str, key_id: str = ""
) -> Conversation:
    """Create an empty conversation. ``key_id``: the API key of the request."""
    conversation_id, now = new_conversation_id(), iso(stores.clock())
    named, latest = profile_named(profile).name, list_position(now, conversation_id)
    conversation = Conversation(user, conversation_id, title, named, now, now, latest, key_id=key_id)
    stores.conversations.create(conversation)
    return conversation


def find_conversation(stores: ConversationStores, user: str, conversation_id: str) -> Conversation:
    """The user's conversation; 404 for any other, and for one that is being deleted."""
    conversation = stores.conversations.find(user, conversation_id)
    if conversation is None or conversation.is_being_deleted:
        raise not_found("There is no such conversation.")
    return conversation


def disallow_tool(stores: ConversationStores, user: str, conversation_id: str, tool: str) -> None:
    """Take back what the user has allowed; 404 for a conversation that is not theirs."""
    for _ in range(_TRIES):
        conversation = find_conversation(stores, user, conversation_id)
        try:
            stores.conversations.disallow(conversation, tool)
        except ConditionFailed:
            continue
        return
    raise Contended("The conversation changed too often.")


def list_conversations(
    stores: ConversationStores, user: str, cursor: str, limit: int, searched: str = ""
) -> Page[answers.Conversation]:
    """A page of a user's conversations, by their last query, latest first.

    ``searched``: only those with all of its words in the title, the beginnings of the latest queries (there also as a
    part of a word), or among the words of their queries. A request reads a limited number of conversations and bytes,
    so a page may have fewer than ``limit`` and still a cursor.
    """
    before, words = position_of(cursor), searched_words(searched)
    if before and not is_list_position(before):
        raise foreign_cursor()
    page: list[Conversation] = []
    last = ""
    at_once = SEARCHED_AT_ONCE if words else limit + 1
    listed = stores.conversations.by_last_query(user, before=before, page_size=at_once)
    looked_at = size = 0
    while batch := list(itertools.islice(listed, at_once)):
        found, read = _found(stores, user, words, [there for _, there in batch if there])
        for position, conversation in batch:
            fits = conversation is not None and conversation.conversation_id in found
            if looked_at >= MOST_LOOKED_AT or (fits and len(page) == limit):
                return _listed(stores, page, cursor_of(last))
            if conversation and fits:
                page.append(conversation)
            last, looked_at = position, looked_at + 1
        size += read
        if size >= SEARCHED_BYTES:
            return _listed(stores, page, cursor_of(last))
    return _listed(stores, page)


def _found(
    stores: ConversationStores,
    user: str,
    words: Sequence[SearchedWord],
    listed: Iterable[Conversation],
) -> tuple[Set[str], int]:
    """The ids of those that a search finds, and how many bytes it read for that: none for those whose titles have all
    words."""
    alive = [conversation for conversation in listed if not conversation.is_being_deleted]
    titles = {conversation.conversation_id: _titles(conversation) for conversation in alive}
    found = {conversation_id for conversation_id, title in titles.items() if has_words(words, title, set())}
    stored = stores.words.of_all(user, [*(titles.keys() - found)])
    found |= {
        conversation_id
        for conversation_id, parts in stored.items()
        if has_words(words, titles[conversation_id], {word for part in parts for word in unpacked(part)})
    }
    return found, sum(len(part) for parts in stored.values() for part in parts)


def _titles(conversation: Conversation) -> str:
    return folded("\n".join([conversation.title, *(start for _, start in conversation.asked)]))


def _listed(
    stores: ConversationStores, page: Iterable[Conversation], cursor: str = ""
) -> Page[answers.Conversation]:
    now = stores.clock()
    return Page(tuple(conversation_json(conversation, now) for conversation in page), cursor)


def list_forks(
    stores: ConversationStores, user: str, forked_from: str, cursor: str, limit: int
) -> Page[answers.Conversation]:
    """A page of the direct forks of a conversation, which may be deleted, newest first; 404 if there are no forks and
    no conversation."""
    before = position_of(cursor)
    if before and not is_id("conversation_id", before):
        raise foreign_cursor()
    if not is_id("conversation_id", forked_from):
        raise not_found("There is no such conversation.")
    ids = stores.forks.made_of(user, forked_from, before=before)
    page: list[Conversation] = []
    while batch := list(itertools.islice(ids, limit + 1)):
        by_id = stores.conversations.find_all(user, batch)
        page += [
            by_id[conversation_id]
            for conversation_id in batch
            if conversation_id in by_id and not by_id[conversation_id].is_being_deleted
        ]
        if len(page) > limit:
            break
    if not page and not before:
        find_conversation(stores, user, forked_from)
    more = cursor_of(page[limit - 1].conversation_id) if len(page) > limit else ""
    return _listed(stores, page[:limit], more)


def rename_conversation(
    stores: ConversationStores, user: str, conversation_id: str, title: str
) -> Conversation:
    """Change the title."""
    conversation = find_conversation(stores, user, conversation_id)
    now = iso(stores.clock())
    try:
        stores.conversations.rename(conversation, title, now)
    except ConditionFailed:
        raise not_found("There is no such conversation.") from None
    return replace(conversation, title=title, updated_at=now)


# ── records ───────────────────────────────────────────────────────────────────────────────────────


def list_records(
    stores: ConversationStores, conversation: Conversation, track: Track, cursor: str
) -> Page[answers.Record]:
    """A page of a conversation's records in order. The cursor is a position: query, and record within it.

    Like the messages that are sent, the summarised track begins with the digest in force, at position 0. With a policy
    without summaries, it has what the next query sends of the past, and a query that is still running.
    """
    start, skip = _position(cursor)
    stores = stores.across(conversation.ancestry)
    is_summarised = track == "summarised"
    sent = _sent_as_records(stores, conversation) if is_summarised else None
    out = _left_out(stores, conversation, start) if is_summarised and sent is None else frozenset()
    taken: list[answers.Record] = []
    size = 0
    for number in range(start, conversation.queries + 1):
        first = skip if number == start else 0
        if sent is None:
            records = _track_records(stores, conversation, track, number, first, out)
        else:
            records = iter(sent.get(number, [])[first:])
        for index, record in enumerate(records, start=first):
            shown = record_json(stores, conversation.user, conversation.conversation_id, record)
            size += _bytes(shown)
            if len(taken) >= PAGE_RECORDS or (taken and size > PAGE_BYTES):
                return Page(tuple(taken), cursor_of(f"{number}:{index}"))
            taken.append(shown)
    return Page(tuple(taken))


def _sent_as_records(
    stores: ConversationStores, conversation: Conversation
) -> Mapping[int, list[Record]] | None:
    """Records by query, if the conversation's policy sends records; None if it sends the summarised track."""
    profile = all_profiles().get(conversation.profile)
    if profile is None or profile.history.is_summarised or not conversation.queries:
        return None
    user, conversation_id, last = conversation.user, conversation.conversation_id, conversation.queries
    if stores.history.has_record(user, conversation_id, response_id(last)):
        return records_to_send(stores, user, conversation_id, last + 1, profile)
    running = stores.history.records(user, conversation_id, [query_id(last)])
    return {**records_to_send(stores, user, conversation_id, last, profile), last: list(running)}


def _bytes(shown: answers.Record | str) -> int:
    """The maximum size of a record or text in a function's response: JSON as a string within ASCII JSON."""
    return len(json.dumps(dumps(shown)))


def _track_records(
    stores: ConversationStores,
    conversation: Conversation,
    track: Track,
    number: int,
    skip: int,
    out: frozenset[int],
) -> Iterator[Record]:
    user, conversation_id = conversation.user, conversation.conversation_id
    if number == 0:
        return _digest_in_force(stores, user, conversation_id) if track == "summarised" else iter(())
    if track == "full":
        return stores.history.read_on(user, conversation_id, number, skip)
    return iter(_summarised_track(stores, user, conversation_id, number, out)[skip:])


def _digest_in_force(stores: ConversationStores, user: str, conversation_id: str) -> Iterator[Record]:
    digest, _ = stores.digests.newest(user, conversation_id)
    return iter([digest_record(digest)] if digest else [])


def _left_out(stores: ConversationStores, conversation: Conversation, start: int) -> frozenset[int]:
    """The queries from ``start`` on of which nothing is sent that they brought."""
    among, after = range(max(start, 1), conversation.queries + 1), conversation.queries + 1
    return stores.history.withheld(conversation.user, conversation.conversation_id, among, after)


def _summarised_track(
    stores: ConversationStores, user: str, conversation_id: str, number: int, out: frozenset[int]
) -> list[Record]:
    """Reads the track before the records: the records that it names are written with it or before it."""
    track = stores.history.track(user, conversation_id, number)
    (track,) = as_sent([track], *out) if track else (None,)
    if track and track.whole_tokens:
        sent = {block.ref or block.record_id for block in track.blocks}
        records = stores.history.query_records(user, conversation_id, number, texts=sent)
        return [replace(record, form="whole") for record in records if record.record_id in sent]
    blocks = track.blocks if track else ()
    verbatim = {block.record_id for block in blocks if not block.ref} if track else {query_id(number)}
    records = stores.history.query_records(user, conversation_id, number, texts=verbatim)
    by_id = {
        record.record_id: replace(record, form="whole") for record in records if record.record_id in verbatim
    }
    if track is None:
        return list(by_id.values())
    by_id |= {block.record_id: summary_record(block) for block in blocks if block.ref}
    by_id |= {block.record_id: _in_place(block) for block in blocks if is_in_place(block)}
    return [by_id[block.record_id] for block in blocks if block.record_id in by_id]


def _in_place(block: TrackBlock) -> Record:
    """What stands in place of what is left out, as a record."""
    return Record(block.record_id, "message", block.role, block.said, block.created_at)


def find_record(
    stores: ConversationStores, conversation: Conversation, record_id: str, offset: int
) -> answers.Record:
    """A record of either track, from character ``offset`` of its text on; 404 if there is none."""
    user, conversation_id = conversation.user, conversation.conversation_id
    stores = stores.across(conversation.ancestry)
    digest = stores.digests.named(user, conversation_id, record_id)
    record = digest_record(digest) if digest else stores.history.record(user, conversation_id, record_id)
    if record is None:
        raise not_found("There is no such record.")
    return record_json(stores, user, conversation_id, record, offset)


def _position(cursor: str) -> tuple[int, int]:
    if not cursor:
        return 0, 0
    query_part, _, index = position_of(cursor).partition(":")
    if not (query_part.isdecimal() and index.isdecimal() and len(query_part) < 9 and len(index) < 9):
        raise foreign_cursor()
    return int(query_part), int(index)
