"""The history table: the full track and the summarised track (DESIGN 2.1, CONTRACT 6); conversations.py has the rest.

pk CONV#<user>#<conv.>    sk F#000003               query 3           full track, one item
                          sk F#000003#f#0001        its first text file
                          sk F#000003#a#0001        its first thought a record
                          sk F#000003#t#0002        its second tool call
                          sk F#000003#z             its response
                          sk S#000003               query 3 in the summarised track: all its
                                                    blocks in one item, compressed
                          sk M#000003               query 3 in the messages in which it was sent,
                                                    if it is sent on in them
                          sk B#<hash>               bodies
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.codec import dump, load
from dualtrack.errors import Gone
from dualtrack.ids import RecordId, parse_record_id
from dualtrack.memory.ancestry import Ancestry
from dualtrack.memory.left_out import declined_track, is_declined
from dualtrack.memory.records import LastSent, QueryTrack, Record, TrackBlock, Whole
from dualtrack.storage.bodies import attach, partition, put_packed, put_with_text
from dualtrack.storage.dynamo import batch_get, delete_all, get, query

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.memory.ancestry import QueryRange
    from dualtrack.memory.records import Attachment
    from dualtrack.storage.bodies import BodyStore, StoredBody, Write
    from dualtrack.storage.dynamo import Item

WHOLE: Final = "whole"
"""The name of the put of a query's messages."""

TRACK: Final = "track"
"""The name of the put of a track, by which a lost put is recognised."""

OF_QUERIES: Final = ("F#", "S#", "M#", "K#", "L#")
"""How the sort keys of a query's items begin, before its number. A deletion leaves of them what forks show."""

_TEXTS_AT_ONCE: Final = 8
"""Maximum number of bodies in memory while records are read in order: a tool result has up to 2 MB."""

_HEADS_AT_ONCE: Final = 200
"""Records per read when only their beginnings are needed, so that few requests suffice."""

_DELETED_AT_ONCE: Final = 100

MOST_QUERIES: Final = 999_999
"""The highest number that a query may have: it has six digits in the keys."""

_MARK: Final = "leaves_out"
"""The attribute of a track with the query whose results it has left out, or 0. Tracks without it may have the words of
a query that the model's service declined."""

_ORDER: Final = {"query": 0, "file": 1, "thought": 2, "tool": 3, "response": 4}


def record_key(record: RecordId) -> str:
    """The sort key of a record of the full track."""
    head = f"F#{record.query:06d}"
    tails = {
        "query": "",
        "file": f"#f#{record.number:04d}",
        "thought": f"#a#{record.number:04d}",
        "tool": f"#t#{record.number:04d}",
        "response": "#z",
    }
    return head + tails[record.kind]


@dataclass(frozen=True, slots=True)
class HistoryStore:
    """Reads and write-actions of the history table.

    A record or track whose body is gone is treated as missing: its conversation is being deleted.
    ``ancestry``: where a fork reads shared queries (`across`). Writes always go to its own partition.
    """

    client: DynamoDBClient
    table: str
    bodies: BodyStore
    ancestry: Ancestry = field(default_factory=Ancestry)

    def across(self, ancestry: Ancestry) -> HistoryStore:
        """The store as a conversation with this ancestry sees it. Required before its past is read; without effect for
        a conversation that is not a fork."""
        return replace(self, ancestry=ancestry)

    def _home(self, user: str, conversation_id: str, query: int) -> str:
        """The partition in which a query is stored."""
        return partition(user, self.ancestry.home(conversation_id, query))

    def record_writes(
        self, user: str, conversation_id: str, record: Record, name: str = "record", chat_id: str = ""
    ) -> list[Write]:
        """The conditional put of a record, and its body if it is large.

        A query's item also names its chat, so that deleting the conversation finds it.
        """
        pk = partition(user, conversation_id)
        parsed = parse_record_id(record.record_id)
        if parsed is None:
            raise ValueError(record.record_id)
        item = {"pk": pk, "sk": record_key(parsed), "meta": dump(record)}
        item |= {"chat": chat_id} if chat_id else {}
        return put_with_text(name, self.table, item, pk, record.content)

    def has_record(self, user: str, conversation_id: str, record_id: str) -> bool:
        """Whether the record is stored."""
        return self._item(user, conversation_id, record_id) is not None

    def record(self, user: str, conversation_id: str, record_id: str) -> Record | None:
        """A full record of either track; None if there is none of that id."""
        parsed = parse_record_id(record_id)
        if parsed is None:
            return None
        if parsed.summary:
            return self._summary(user, conversation_id, parsed)
        item = self._item(user, conversation_id, record_id)
        if item is None:
            return None
        whole = self._whole(item["pk"], [(_record(record_id, item), item)])
        return next(iter(whole), None)

    def query_records(
        self, user: str, conversation_id: str, number: int, *, texts: Collection[str] | None = None
    ) -> tuple[Record, ...]:
        """The full track of a query in order. With ``texts`` only those records have their text; the content of
        the others is empty, and their bodies are not read."""
        pk = self._home(user, conversation_id, number)
        listed = self._listed(pk, number)
        wanted = [entry for entry in listed if texts is None or entry[0].record_id in texts]
        whole = {record.record_id: record for record in self._whole(pk, wanted)}
        gone = {record.record_id for record, _ in wanted} - set(whole)
        ids = [(record.record_id, record) for record, _ in listed]
        return tuple(whole.get(record_id, record) for record_id, record in ids if record_id not in gone)

    def read_on(self, user: str, conversation_id: str, number: int, skip: int) -> Iterator[Record]:
        """The full track of a query after its first ``skip`` records; read as it is consumed."""
        pk = self._home(user, conversation_id, number)
        rest = iter(self._listed(pk, number)[skip:])
        while batch := list(itertools.islice(rest, _TEXTS_AT_ONCE)):
            yield from self._whole(pk, batch)

    def records(self, user: str, conversation_id: str, record_ids: Collection[str]) -> tuple[Record, ...]:
        """Full records of the full track by their ids, in no particular order; missing ones are left out."""
        parsed_ids = [parsed for record_id in record_ids if (parsed := parse_record_id(record_id))]
        keys = [
            {"pk": self._home(user, conversation_id, record_id.query), "sk": record_key(record_id)}
            for record_id in parsed_ids
        ]
        items = sorted(batch_get(self.client, self.table, keys), key=_partition_of)
        return tuple(
            record
            for pk, own in itertools.groupby(items, key=_partition_of)
            for record in self._whole(pk, [(_record(_id_of(item["sk"]), item), item) for item in own])
        )

    def newest_first(self, user: str, conversation_id: str, before: int) -> Iterator[tuple[Record, ...]]:
        """The full tracks of the queries before ``before``, newest first, each in order; read as they are consumed.

        Tool calls and files come without their text. Raises `Gone`.
        """
        for run in reversed(self.ancestry.runs(conversation_id, 0, before)):
            yield from self._newest_first(partition(user, run.conversation_id), run)

    def _newest_first(self, pk: str, run: QueryRange) -> Iterator[tuple[Record, ...]]:
        first, end = f"F#{run.after:06d}#~", f"F#{run.before:06d}"
        items = query(
            self.client,
            self.table,
            pk,
            prefix="F#",
            after=first,
            before=end,
            descending=True,
            page_size=_HEADS_AT_ONCE,
        )
        listed = (list(own) for _, own in itertools.groupby(items, key=lambda item: item["sk"][: len(end)]))
        while batch := list(itertools.islice(listed, _TEXTS_AT_ONCE)):
            said = [item for own in batch for item in own if not _is_call_or_file(item)]
            texts = dict(zip((item["sk"] for item in said), self.bodies.load_texts(pk, said), strict=True))
            for own in batch:
                records = (_with_text(item, texts.get(item["sk"], "")) for item in own)
                yield tuple(sorted(records, key=_order))

    def heads(
        self, user: str, conversation_id: str, after: int, before: int, limit: int
    ) -> Iterator[tuple[int, tuple[Record, ...]]]:
        """The full tracks of the queries between two numbers, by number, each record with the first ``limit``
        characters of its text (`BodyStore.load_heads`)."""
        for run in self.ancestry.runs(conversation_id, after, before):
            flat = self._heads(partition(user, run.conversation_id), run.after, run.before, limit)
            for number, listed in itertools.groupby(flat, key=_query_of):
                yield number, tuple(sorted(listed, key=_order))

    def _heads(self, pk: str, after: int, before: int, limit: int) -> Iterator[Record]:
        items = query(
            self.client, self.table, pk, prefix="F#", after=f"F#{after:06d}#~", before=f"F#{before:06d}"
        )
        while batch := list(itertools.islice(items, _HEADS_AT_ONCE)):
            texts = self.bodies.load_heads(pk, batch, limit)
            for item, text in zip(batch, texts, strict=True):
                if text is not None:
                    yield replace(_record(_id_of(item["sk"]), item), content=text)

    def tracks_between(
        self, user: str, conversation_id: str, after: int, before: int
    ) -> dict[int, QueryTrack]:
        """The summarised tracks of the queries between two numbers, by number, as far as they are written."""
        return {track.query: track for track in self.tracks(user, conversation_id, before - 1, after)}

    def _listed(self, pk: str, number: int) -> list[tuple[Record, Item]]:
        """A query's records in order, without their text, each with its item."""
        items = query(self.client, self.table, pk, prefix=f"F#{number:06d}")
        return sorted(
            ((_record(_id_of(item["sk"]), item), item) for item in items), key=lambda entry: _order(entry[0])
        )

    def _whole(self, pk: str, listed: Sequence[tuple[Record, Item]]) -> list[Record]:
        """The records with their texts, as far as these are stored."""
        texts = self.bodies.load_texts(pk, [item for _, item in listed])
        return [
            replace(record, content=text)
            for (record, _), text in zip(listed, texts, strict=True)
            if text is not None
        ]

    def chat_of_query(self, user: str, conversation_id: str, number: int) -> str:
        """The id of the chat that a query started; empty if the query is gone."""
        item = self._item(user, conversation_id, f"q{number}")
        return str(item.get("chat", "")) if item else ""

    def files(
        self, user: str, conversation_id: str, files: Iterable[tuple[str, bytes]]
    ) -> tuple[tuple[Attachment, ...], tuple[StoredBody, ...]]:
        """The attachments of files (media type, bytes) for a record, and their bodies, to be written with it."""
        return attach(partition(user, conversation_id), files)

    def load_file(self, user: str, conversation_id: str, query: int, file: Attachment) -> bytes:
        """The bytes of a file of one of the query's records; raises `Gone`."""
        if file.record_id:
            return self._text_of(user, conversation_id, file.record_id).encode()
        return self.bodies.load(self._home(user, conversation_id, query), file.body)

    def _text_of(self, user: str, conversation_id: str, record_id: str) -> str:
        record = self.record(user, conversation_id, record_id)
        if record is None:
            raise Gone(record_id)
        return record.content

    def last_items(self, user: str, conversation_id: str) -> list[Item]:
        """Some items of any kind from the end of the conversation's partition; none if it is empty.

        From the end, so that a query's item, which names its chat, is deleted after the query's other items.
        """
        pk = partition(user, conversation_id)
        items = query(self.client, self.table, pk, descending=True, page_size=_DELETED_AT_ONCE)
        return list(itertools.islice(items, _DELETED_AT_ONCE))

    def written_tracks(self, user: str, conversation_id: str, after: int, through: int) -> set[int]:
        """The numbers of the queries after ``after`` up to ``through`` whose tracks are written in this
        conversation."""
        if through <= after:
            return set()
        first, end = f"S#{after:06d}", f"S#{through + 1:06d}"
        pk = partition(user, conversation_id)
        items = query(self.client, self.table, pk, after=first, before=end, only=("body",))
        return {int(item["sk"].removeprefix("S#")) for item in items}

    def stored(self, user: str, conversation_id: str) -> Iterator[list[Item]]:
        """The keys of all items in the conversation's partition, from its end, and the chats of its queries, in
        batches; a batch may be deleted while iterating."""
        pk = partition(user, conversation_id)
        items = query(self.client, self.table, pk, descending=True, only=("chat",))
        while batch := list(itertools.islice(items, _DELETED_AT_ONCE)):
            yield batch

    def pointers(self, user: str, conversation_id: str, through: int) -> set[str]:
        """The pointers of all bodies that the records and tracks up to a query need, and their search index."""
        pk, pointers = partition(user, conversation_id), set[str]()
        for kind in OF_QUERIES:
            end = f"{kind}{through + 1:06d}"
            for item in query(self.client, self.table, pk, prefix=kind, before=end, only=("body", "meta")):
                files = _files_of(_record("", item)) if "meta" in item else ()
                pointers |= {item.get("body", ""), *(file.body for file in files)}
        return pointers - {""}

    def delete_items(self, items: Iterable[Item]) -> None:
        """Delete these items."""
        delete_all(self.client, self.table, ({"pk": item["pk"], "sk": item["sk"]} for item in items))

    def track_writes(self, user: str, conversation_id: str, track: QueryTrack) -> list[Write]:
        """The conditional put of a query's summarised track, which is compressed, and never changes."""
        pk = partition(user, conversation_id)
        return put_packed(TRACK, self.table, _track_item(pk, track), pk, dump(track.blocks))

    def whole_writes(self, user: str, conversation_id: str, query: int, whole: Whole) -> list[Write]:
        """The conditional put of the messages of a query that is sent whole, to be written with its track."""
        pk = partition(user, conversation_id)
        return put_packed(WHOLE, self.table, {"pk": pk, "sk": f"M#{query:06d}"}, pk, dump(whole))

    def whole(self, user: str, conversation_id: str, tracks: Sequence[QueryTrack]) -> dict[int, Whole]:
        """The queries of these adjacent tracks that are sent whole, by number. Raises `Gone`."""
        wanted = [track.query for track in tracks if track.whole_tokens]
        found: dict[int, Whole] = {}
        if not wanted:
            return found
        for run in self.ancestry.runs(conversation_id, wanted[0] - 1, wanted[-1] + 1):
            pk = partition(user, run.conversation_id)
            items = self._immutable(pk, "M#", run, sum(run.after < number < run.before for number in wanted))
            for item, text in zip(items, self.bodies.load_texts(pk, items), strict=True):
                if text is None:
                    raise Gone(item["sk"])
                found[query_number(item["sk"])] = load(Whole, text)
        return found

    def tracks(self, user: str, conversation_id: str, through: int, after: int = 0) -> tuple[QueryTrack, ...]:
        """The summarised tracks of the queries after ``after`` up to ``through``, as far as they are written."""
        if through <= after:
            return ()
        return tuple(
            track
            for run in self.ancestry.runs(conversation_id, after, through + 1)
            for track in self._tracks(partition(user, run.conversation_id), run)
        )

    def _immutable(self, pk: str, kind: str, run: QueryRange, expected: int) -> list[Item]:
        """Items of the queries of a run that never change, at most one for each. An eventually consistent read has
        half the price, and is right if it finds as many as are expected; else it may be behind, and is made again."""
        first, end = f"{kind}{run.after:06d}", f"{kind}{run.before:06d}"
        items = list(query(self.client, self.table, pk, after=first, before=end, consistent=False))
        if len(items) < expected:
            items = list(query(self.client, self.table, pk, after=first, before=end))
        return items

    def _tracks(self, pk: str, run: QueryRange) -> Iterator[QueryTrack]:
        items = self._immutable(pk, "S#", run, run.before - run.after - 1)
        texts = self.bodies.load_texts(pk, items)
        declined = self._declined(pk, [query_number(item["sk"]) for item in items if _is_unmarked(item)])
        for item, text in zip(items, texts, strict=True):
            if text is not None:
                track = _track(item, text)
                yield declined_track(track) if track.query in declined else track

    def withheld(
        self, user: str, conversation_id: str, among: Collection[int], before: int
    ) -> frozenset[int]:
        """Those of these queries of which nothing is sent that they brought: queries before ``before`` have left it
        out, or they were declined before that was marked. Reads the tracks' marks from the first of them on."""
        if not among:
            return frozenset()
        unmarked: dict[str, list[int]] = {}
        left_out: set[int] = set()
        for run in self.ancestry.runs(conversation_id, min(among) - 1, before):
            pk, first, end = partition(user, run.conversation_id), f"S#{run.after:06d}", f"S#{run.before:06d}"
            for item in query(self.client, self.table, pk, after=first, before=end, only=(_MARK,)):
                left_out.add(item.get(_MARK, 0))
                if _is_unmarked(item) and query_number(item["sk"]) in among:
                    unmarked.setdefault(pk, []).append(query_number(item["sk"]))
        declined = (self._declined(pk, numbers) for pk, numbers in unmarked.items())
        return frozenset(left_out).union(*declined) & frozenset(among)

    def _declined(self, pk: str, numbers: Sequence[int]) -> frozenset[int]:
        """Those of these queries whose responses say that the model's service declined them."""
        keys = [{"pk": pk, "sk": f"F#{number:06d}#z"} for number in numbers]
        found = ((item["sk"], _record("", item)) for item in batch_get(self.client, self.table, keys))
        return frozenset(query_number(sk) for sk, record in found if is_declined([record]))

    def track(self, user: str, conversation_id: str, number: int) -> QueryTrack | None:
        """The summarised track of one query, if it is written."""
        pk = self._home(user, conversation_id, number)
        item = get(self.client, self.table, {"pk": pk, "sk": f"S#{number:06d}"})
        try:
            track = _track(item, self.bodies.load_text(pk, item)) if item else None
        except Gone:
            return None
        is_old = track and item and _is_unmarked(item) and self._declined(pk, [number])
        return declined_track(track) if track and is_old else track

    def _item(self, user: str, conversation_id: str, record_id: str) -> Item | None:
        parsed = parse_record_id(record_id)
        if parsed is None:
            return None
        pk = self._home(user, conversation_id, parsed.query)
        return get(self.client, self.table, {"pk": pk, "sk": record_key(parsed)})

    def _summary(self, user: str, conversation_id: str, record_id: RecordId) -> Record | None:
        track = self.track(user, conversation_id, record_id.query)
        blocks = track.blocks if track else ()
        return next((summary_record(block) for block in blocks if block.record_id == str(record_id)), None)


def summary_record(block: TrackBlock) -> Record:
    """A summary as the API shows it."""
    return Record(
        block.record_id,
        "summary",
        block.role,
        block.said,
        block.created_at,
        size=block.size,
        form=block.form,
    )


def _order(record: Record) -> tuple[int, int, int]:
    parsed = parse_record_id(record.record_id)
    if parsed is None:
        raise ValueError(record.record_id)
    turn = {"query": 0, "file": 0, "response": 10**6}.get(parsed.kind, record.turn)
    return turn, _ORDER[parsed.kind], parsed.number


def _is_call_or_file(item: Item) -> bool:
    """Whether the item is a tool call or a file, and not a message or thought."""
    return item["sk"][len("F#000000") :][:3] in ("#t#", "#f#")


def _with_text(item: Item, text: str | None) -> Record:
    if text is None:
        raise Gone(item["sk"])
    return replace(_record(_id_of(item["sk"]), item), content=text)


def _partition_of(item: Item) -> str:
    return str(item["pk"])


def _query_of(record: Record) -> int:
    """3 of ``q3-t1``."""
    return int(record.record_id.partition("-")[0][1:])


def sort_key_of(item: Mapping[str, Any]) -> str:
    """The position of an item in its conversation: its sort key."""
    return str(item["sk"])


def query_number(sk: str) -> int:
    """The query's number, from the sort key of a record or track."""
    return int(sk[2:8])


def _id_of(sk: str) -> str:
    head, _, rest = sk.removeprefix("F#").partition("#")
    kind, _, number = rest.partition("#")
    names = {"": "", "z": "-r"}
    return f"q{int(head)}{names[kind] if kind in names else f'-{kind}{int(number)}'}"


def _record(record_id: str, item: Item) -> Record:
    """The record of an item, without its text."""
    return load(Record, item["meta"], record_id=record_id, content="", chat_id=item.get("chat", ""))


def _files_of(record: Record) -> tuple[Attachment, ...]:
    """The files of a query or of a tool's result."""
    return record.attachments + (record.call.media if record.call else ())


def _is_unmarked(item: Item) -> bool:
    """Whether a track is of a release that sent what the model's service had declined."""
    return _MARK not in item


def _track(item: Item, text: str) -> QueryTrack:
    number, blocks = query_number(item["sk"]), load(tuple[TrackBlock, ...], text)
    last = load(LastSent, item["last"]) if "last" in item else None
    return QueryTrack(number, blocks, item.get("whole", 0), item.get(_MARK, 0), last)


def _track_item(pk: str, track: QueryTrack) -> dict[str, Any]:
    """The item of a track, without its blocks."""
    item: dict[str, Any] = {"pk": pk, "sk": f"S#{track.query:06d}", _MARK: track.leaves_out}
    item |= {"whole": track.whole_tokens} if track.whole_tokens else {}
    return item | ({"last": dump(track.last)} if track.last else {})
