"""What must be true of every chat after any fault (CONTRACT 5 to 8). Each function lists violations; empty is good."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.end_chat import is_searched
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of, spent_nanodollars
from dualtrack.clock import epoch_of
from dualtrack.credits.account import FREE_CANCELS, FREE_CANCELS_SECONDS, FREE_ENDS
from dualtrack.credits.audit import Books, audit, enter
from dualtrack.credits.plans import CHAT_PRICE, price_chat
from dualtrack.events import TERMINAL
from dualtrack.ids import response_id
from dualtrack.memory.conversation_words import unpacked, words_of_query
from dualtrack.memory.digests import DIGEST_LIMIT
from dualtrack.memory.notes import mark_of, read_notes
from dualtrack.memory.records import QueryTrack
from dualtrack.models.cache_word import NOT_FOUND
from dualtrack.models.cost_cap import side_nanodollars
from dualtrack.models.failures import CALLERS, OWNERS
from dualtrack.output_check import written_json
from dualtrack.storage.bodies import partition
from dualtrack.storage.chats import turn_key
from dualtrack.storage.dynamo import get, query
from dualtrack.storage.event_log import unpack
from dualtrack.storage.uploads import object_key
from dualtrack.text import strip_echoes
from dualtrack.tools.conversation.reading import made_now

from tests.drivers.local_vectors import LocalVectors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from dualtrack.credits.account import Movement
    from dualtrack.events import StoredEvent
    from dualtrack.memory.records import Record
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import Stores

ENDED = ("done", "failed", "cancelled")


def chat_faults(stores: Stores, chat: Chat) -> list[str]:
    """What is wrong with a chat that should have ended."""
    events, gaps = _events(stores, chat)
    turns = turns_of(stores, chat)
    records = stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    faults = [*gaps]
    if chat.status not in ENDED:
        faults.append(f"it is still {chat.status}")
    faults += _ending(chat, events)
    faults += _turns(stores, chat, turns, events)
    faults += _waits(events)
    faults += _pauses(chat, turns, events)
    faults += _records(stores, chat, turns, records, events)
    marks = stores.chats.marks(chat)
    faults += _effects(turns, records, marks)
    faults += _price(chat, turns, events, marks, free_of(records))
    faults += _leftovers(stores, chat)
    faults += _receipt(stores, chat, events)
    faults += _cache(stores, chat, turns)
    return [f"{chat.chat_id}: {fault}" for fault in faults]


_OTHER_BEGINNING: Final = ("model_changed", "system_changed", "tools_changed")


def _cache(stores: Stores, chat: Chat, turns: Sequence[RecordedTurn]) -> Iterator[str]:
    """What was sent before is sent again as it was: by the word of the model's service, where it was asked. Behind a
    query with another agent or other tools it says so."""
    for turn in turns:
        reason = turn.made.cache.reason if turn.made.cache else ""
        is_expected = turn.number == 1 and reason in _OTHER_BEGINNING and _begins_otherwise(stores, chat)
        if reason not in ("", NOT_FOUND) and not is_expected:
            yield f"turn {turn.number}: the service says {turn.made.cache}"


def _begins_otherwise(stores: Stores, chat: Chat) -> bool:
    """Whether the query before had another agent, or other tools of servers or of its client."""
    history = stores.history.across(chat.ancestry)
    chat_id = history.chat_of_query(chat.user, chat.conversation_id, chat.query - 1)
    before = stores.chats.load(chat.user, chat_id) if chat_id else None
    if before is None or before.pin is None or chat.pin is None:
        return False
    own = (chat.pin.agent, chat.pin.catalogue, chat.client_tools)
    return own != (before.pin.agent, before.pin.catalogue, before.client_tools)


def account_faults(stores: Stores, user: str, chats: Sequence[Chat]) -> list[str]:
    """What is wrong with a user's account once all chats have ended."""
    account = stores.ledger.load(user)
    movements = stores.ledger.movements(user)
    faults = list(audit(account, movements))
    # a step that died before a digest leaves dollars that end with the hold's time
    if held := {chat_id: hold for chat_id, hold in account.holds.items() if hold.parts}:
        faults.append(f"held: {held}")
    for chat in chats:
        mine = [movement for movement in movements if movement.chat_id == chat.chat_id]
        ends = [movement for movement in mine if movement.kind not in ("hold", "cost")]
        charged = sum(movement.amount for movement in ends if movement.kind == "settle")
        if len(ends) != 1:
            faults.append(
                f"{chat.chat_id} was settled {len(ends)} times: {[movement.kind for movement in ends]}"
            )
        if charged != chat.credits_used:
            faults.append(f"{chat.chat_id} says {chat.credits_used} credits, the ledger {charged}")
        is_callers = chat.error is not None and OWNERS[chat.error["code"]] == "caller"
        if chat.status == "failed" and charged and not is_callers:
            faults.append(f"{chat.chat_id} failed and cost {charged}")
        if ends and (is_callers or (chat.status == "cancelled" and not chat.has_begun)):
            free = free_cancels(movements, ends[0])
            if charged != (CHAT_PRICE if free >= FREE_CANCELS else 0):
                faults.append(
                    f"{chat.chat_id} was ended for {charged}, after {free} free ones within the hour"
                )
        dollars, cost = sum(movement.nanodollars for movement in ends), _turns_cost(stores, chat)
        if dollars != cost:
            faults.append(
                f"{chat.chat_id} took {cost} (10⁻⁹ dollars) by its receipt, {dollars} by the ledger"
            )
        faults += _key_faults(stores, chat, mine)
    return faults + conversation_faults(stores, chats)


def _key_faults(stores: Stores, chat: Chat, lines: Sequence[Movement]) -> Iterator[str]:
    """A chat by an API key is charged the calls after its answer as well, and every line names the key."""
    if {line.key_id for line in lines} - {chat.key_id}:
        yield f"{chat.chat_id}: its lines name {[line.key_id for line in lines]}, not {chat.key_id!r}"
    charged = sum(line.nanodollars for line in lines if line.kind == "cost")
    sides = [side for side in (chat.spent.summaries, chat.fold, chat.titling) if side and chat.key_id]
    cost = sum(map(side_nanodollars, sides))
    if charged != cost:
        yield f"{chat.chat_id}: the calls after its answer took {cost} (10⁻⁹ dollars), {charged} by the ledger"
    under = [part.nanodollars for line in lines if line.kind != "hold" for part in line.key_parts]
    if chat.key_id and sum(under) != sum(line.nanodollars for line in lines):
        yield f"{chat.chat_id}: its key was charged {under}"


def conversation_faults(stores: Stores, chats: Sequence[Chat]) -> list[str]:
    """Where a conversation's sums are not those of its chats, summaries and digests included, and where it was given a
    title more than once; only of the conversations all of whose queries are among ``chats``."""
    faults = []
    by_id = {chat.conversation_id: chat for chat in chats}
    for conversation_id, one in by_id.items():
        conversation = stores.conversations.find(one.user, conversation_id)
        if conversation is None or conversation.is_being_deleted:
            continue
        own = [chat for chat in chats if chat.conversation_id == conversation_id]
        if conversation.queries != len(own):
            continue
        loaded = [chat for mine in own if (chat := stores.chats.load(mine.user, mine.chat_id))]
        costs = sum(_own_cost(chat) for chat in loaded)
        titled = [chat.query for chat in loaded if chat.titling]
        if len(titled) > 1:
            faults.append(f"{conversation_id}: a title after each of {titled}")
        sums = conversation.costs_so_far
        if costs != sums.costs.own + sums.aside:
            faults.append(f"{conversation_id} says {sums}, its chats took {costs} (10⁻⁹ dollars)")
    return faults


def _own_cost(chat: Chat) -> int:
    return chat.memory.costs.own + chat.memory.aside + (side_nanodollars(chat.fold) if chat.fold else 0)


def free_cancels(movements: Sequence[Movement], end: Movement) -> int:
    """How many chats were ended for free in the hour before a line of the ledger."""
    before = itertools.takewhile(lambda line: line is not end, movements)
    return sum(line.reason in FREE_ENDS and int(line.at) > end.at - FREE_CANCELS_SECONDS for line in before)


def _turns_cost(stores: Stores, chat: Chat) -> int:
    """What the turns and their tools cost by the chat's receipt, in 10⁻⁹ dollars."""
    return spent_nanodollars(receipt_of(evidence(stores, chat, stores.ledger), Deployment())["lines"])


def prefix_faults(starts: Mapping[int, Sequence[str]]) -> list[str]:
    """What a query sends, itself included, is a prefix of what every later one sends, except across folds and batches
    of summaries.

    ``starts``: by query, block by block; short queries only.
    """
    numbers = sorted(starts)
    pairs = itertools.pairwise(numbers)
    return [
        f"q{later} does not begin with what q{number} sent: {starts[number]}, {starts[later]}"
        for number, later in pairs
        if [*starts[later]][: len(starts[number])] != [*starts[number]]
        and _digest_sent(starts[later]) <= _digest_sent(starts[number])
        and not _summarised_since(starts[number], starts[later])
    ]


def _summarised_since(before: Sequence[str], now: Sequence[str]) -> bool:
    """Whether a query that was sent whole before is sent as its summaries now."""
    whole = {match[1] for text in before if (match := re.match(r"assistant \[ID:(q\d+)-r\] ", text))}
    return any(text.startswith(f"assistant [ID:{name}-r-sum") for text in now for name in whole)


def _digest_sent(start: Sequence[str]) -> int:
    """The number of the digest that a query sends as its first block; 0 for none."""
    match = re.match(r"user \[ID:d(\d+), ref:q1\.\.q\d+\] ", start[0])
    return int(match[1]) if match else 0


def digest_faults(stores: Stores, chat: Chat) -> list[str]:
    """What is wrong with a conversation's digests: all exist, each reaches further and has the standing instructions of
    the one before, which no scenario takes back; at most one is pending.

    A fork's own come after those that it shares.
    """
    stores, shared = stores.across(chat.ancestry), chat.ancestry.digests
    pk = partition(chat.user, chat.conversation_id)
    keys = [item["sk"] for item in query(stores.chats.client, stores.history.table, pk, prefix="D#")]
    taken = [int(key[2:8]) for key in keys if key.endswith("#taken")]
    numbers = [int(key[2:]) for key in keys if not key.endswith("#taken")]
    last = max(taken, default=shared)
    listed = [*range(1, shared + 1), *numbers]
    stored = [stores.digests.find(chat.user, chat.conversation_id, number) for number in listed]
    digests = [digest for digest in stored if digest]
    ends = [digest.through for digest in digests]
    wrong = []
    if listed != list(range(1, len(digests) + 1)) or ends != sorted(set(ends)):
        wrong.append(f"digests {listed} through {ends}")
    if not set(taken) <= set(numbers) or len(listed) > last + 1:
        wrong.append(f"digests {listed}, in force {taken}")
    if any(len(digest.content) > DIGEST_LIMIT or digest.through >= chat.query for digest in digests[:last]):
        wrong.append(f"digests of {[len(digest.content) for digest in digests]} characters, through {ends}")
    for before, after in itertools.pairwise(digests):
        if not set(before.standing.lines) <= set(after.standing.lines) and not after.standing.left_out:
            wrong.append(
                f"d{after.number} has {after.standing.lines}, and d{before.number} {before.standing.lines}"
            )
    return wrong


def _query_of(record_id: str) -> str:
    return record_id.partition("-")[0]


def index_faults(stores: Stores, chat: Chat) -> list[str]:
    """What is wrong with the search indexes after a chat has ended: each query's records are in the conversation's, and
    each query has all its vectors or none; the words of its question and answer are in that of all conversations.

    Imported queries, which no chat has ended, are left to the next search, and are not in that of all conversations. Of
    one that the model's service declined, the conversation's has nothing.
    """
    user, conversation_id, stores = chat.user, chat.conversation_id, stores.across(chat.ancestry)
    answers = stores.history.records(
        user, conversation_id, [response_id(n) for n in range(1, chat.query + 1)]
    )
    declined = {answer.record_id.removesuffix("-r") for answer in answers if answer.stop == "refusal"}
    indexed, _ = stores.search_index.words(user, conversation_id, chat.query + 1)
    imported = [
        number
        for number in range(1, chat.query + 1)
        if not stores.history.chat_of_query(user, conversation_id, number)
    ]
    made = dict(made_now(stores, user, conversation_id, [n for n in imported if n not in indexed], math.inf))
    there = {passage.record_id for index in (indexed | made).values() for passage in index.passages}
    missing = [
        record_id
        for number in range(1, chat.query + 1 if is_searched(chat) else 1)
        for record_id in (f"q{number}", f"q{number}-r")
        if record_id not in there and stores.history.has_record(user, conversation_id, record_id)
        if record_id.removesuffix("-r") not in declined
    ]
    wrong = [f"not in the index: {missing}"] if missing else []
    wrong += [f"{name} was declined, and a search finds it" for name in declined & {*map(_query_of, there)}]
    parts = stores.words.of_all(user, [conversation_id]).get(conversation_id, ())
    known = {word for part in parts for word in unpacked(part)}
    for number in range(1, chat.query + 1):
        records = stores.history.query_records(user, conversation_id, number)
        if number not in imported and not known >= {*words_of_query(records, QueryTrack(number, ()))}:
            wrong.append(f"words of q{number} by which no search finds the conversation")
    vectors = stores.search_index.vectors(
        user, conversation_id, LocalVectors.model, 0, chat.query + 1
    ).queries
    sizes = {number: len(index.spots()) * LocalVectors.size for number, index in indexed.items()}
    return wrong + [f"vectors of q{key}" for key, own in vectors.items() if len(own) != sizes.get(key)]


def what_is_left(stores: Stores, user: str, secret: str) -> list[str]:
    """What is still there of a user whose conversations are all deleted, by id or by a word of the user's texts.

    Allowed: the counters and keys of requests (`USER#`: no text), the blank end of a chat that was interrupted, the
    list of deletions, and files that were announced for a message that was not sent.
    """
    hidden = (f"USER#{user} CONV#", f"USER#{user} FORK#")
    faults = []
    for table in (stores.history.table, stores.chats.table, stores.cache.table):
        for page in stores.chats.client.get_paginator("scan").paginate(TableName=table):
            for item in page["Items"]:
                key = f"{item['pk']['S']} {item['sk']['S']}"
                if item["sk"]["S"].startswith("UPLOAD#") and "used" not in item:
                    continue
                if secret in str(item):
                    faults.append(f"{key}: a deleted conversation's text is still in a table")
                elif key.startswith(hidden) or (
                    f"#{user}#" in key
                    and item["pk"]["S"] != "DELETIONS"
                    and item.get("data", {}).get("S") != "[]"
                ):
                    faults.append(f"{key}: an item of a deleted conversation is still there")
    listed = stores.bodies.s3.get_paginator("list_objects_v2").paginate(Bucket=stores.bodies.bucket)
    keys = [entry["Key"] for page in listed for entry in page.get("Contents", [])]
    return faults + [
        f"{key}: an object of a deleted conversation is still there" for key in keys if user in key
    ]


def upload_faults(stores: Stores, user: str, ids: Sequence[str], chats: Sequence[Chat]) -> Iterator[str]:
    """An upload is open, and counted as such, or used by a chat that was admitted with it."""
    found = [upload for upload in (stores.uploads.find(user, one) for one in ids) if upload]
    admitted = {chat.chat_id for chat in chats}
    yield from (
        f"{upload.upload_id} is used by no chat"
        for upload in found
        if upload.used and upload.used not in admitted
    )
    is_open = [upload for upload in found if not upload.used]
    if is_open and any(chat.turn or chat.status != "failed" for chat in chats):
        yield f"a chat was admitted, and {len(is_open)} of its uploads are open"
    count = get(stores.uploads.client, stores.uploads.table, {"pk": f"USER#{user}", "sk": "UPLOADS"})
    counted = int(count["uploads"]) if count else 0
    if counted != len(is_open):
        yield f"{counted} uploads are counted as open, and {len(is_open)} are"


def erasure_faults(stores: Stores, user: str, secret: str, before: Books | None = None) -> list[str]:
    """What still names or quotes an erased user, in any table or the bucket. The ledger that is kept must prove its
    account and have the amounts of ``before``.
    """
    faults, kept = [], set()
    for table in (stores.history.table, stores.chats.table, stores.cache.table, stores.ledger.table):
        for page in stores.chats.client.get_paginator("scan").paginate(TableName=table):
            for item in page["Items"]:
                key = f"{table} {item['pk']['S']} {item['sk']['S']}"
                faults += [f"{key} is left"] if names(user, item) or secret in str(item) else []
                kept |= {item["pk"]["S"]} if item["pk"]["S"].startswith("user#erased-") else set()
    listed = stores.bodies.s3.get_paginator("list_objects_v2").paginate(
        Bucket=stores.bodies.bucket, Prefix=""
    )
    own = (user, object_key(user, ""))
    keys = [entry["Key"] for page in listed for entry in page.get("Contents", [])]
    faults += [key for key in keys if any(name in key for name in own)]
    if len(kept) > 1 or (before and not kept):
        return [*faults, f"the ledger is kept under {len(kept)} names"]
    return faults + [fault for pk in kept for fault in _kept_faults(stores, pk.removeprefix("user#"), before)]


def names(user: str, item: Mapping[str, Any]) -> bool:
    """Whether an item contains a user's id, as a whole word: random ids contain every short one."""
    return re.search(rf"(?<![0-9a-z]){re.escape(user)}(?![0-9a-z])", str(item)) is not None


def _kept_faults(stores: Stores, alias: str, before: Books | None) -> Iterator[str]:
    lines = stores.ledger.movements(alias)
    account = stores.ledger.load(alias)
    yield from audit(account, lines)
    if account.holds:
        yield f"held: {dict(account.holds)}"
    after = reduce(enter, lines, Books())
    if before and (
        (after.charged, after.pack) != (before.charged, before.pack) or after.lines < before.lines
    ):
        yield f"the ledger had {before} and keeps {after}"


def turns_of(stores: Stores, chat: Chat) -> list[RecordedTurn]:
    """The turns on record, as far as the chat counts them."""
    numbers = range(1, chat.turn + 1)
    return [turn for number in numbers if (turn := stores.chats.turn(chat, number))]


def _events(stores: Stores, chat: Chat) -> tuple[list[StoredEvent], list[str]]:
    """All events as stored, and what is wrong with their numbers."""
    items = list(query(stores.chats.client, stores.chats.table, chat.pk, prefix="EV#"))
    events = [event for item in items for event in unpack(item)]
    expected = list(range(1, len(events) + 1))
    wrong = [f"events {[event.id for event in events]}"] if [event.id for event in events] != expected else []
    wrong += [f"batch {item['sk']} miscounts" for item in items if int(item["n"]) != len(unpack(item))]
    return events, wrong


def _ending(chat: Chat, events: Sequence[StoredEvent]) -> Iterator[str]:
    terminal = [event for event in events if event.event in TERMINAL]
    wanted = "error" if chat.status == "failed" else "done"
    if [event.event for event in terminal] != [wanted] or events[-1] is not terminal[0]:
        yield f"{chat.status}, with terminal events {[event.event for event in terminal]}"
    answers = [event for event in events if event.event == "answer"]
    if len(answers) != (1 if chat.status == "done" else 0):
        yield f"{chat.status}, with {len(answers)} answers"
    if wanted == "done" and terminal and terminal[0].data["status"] != chat.status:
        yield f"{chat.status}, but its last event says {terminal[0].data['status']}"


def _turns(
    stores: Stores, chat: Chat, turns: Sequence[RecordedTurn], events: Sequence[StoredEvent]
) -> Iterator[str]:
    if [turn.number for turn in turns] != list(range(1, chat.turn + 1)):
        yield f"turns {[turn.number for turn in turns]} of {chat.turn}"
    beyond = stores.chats.turn(chat, chat.turn + 1)
    if beyond:
        yield f"{turn_key(beyond.number)} is recorded beyond the chat's last"
    shown = _shown(events)
    must_call = stores.chats.wanted(chat)[1].must_call
    for turn in turns:
        written = "".join(block["text"] for block in turn.content if block["type"] == "text")
        asked = {record_id for each in turns[: turn.number] for record_id in each.sending.asked}
        said, notes, _ = read_notes(written, mark_of(chat.chat_id), asked, cut=False)
        said = strip_echoes(said)
        if turn.notes != notes:
            yield f"turn {turn.number} wrote the notes {notes} and recorded {turn.notes}"
        if shown.get(turn.number, "") != _told(chat, turn, said, must_call=must_call):
            yield f"turn {turn.number} showed {shown.get(turn.number, '')!r:.80} and recorded {said!r:.80}"


def _told(chat: Chat, turn: RecordedTurn, said: str, *, must_call: bool) -> str:
    """What of a turn's text is shown as it is written: an answer that has to fit a schema once it does, without its
    code fence; of one that has to call a tool, nothing before the event `answer`."""
    if turn.calls or not (chat.output or chat.fits or chat.misfit or must_call):
        return said
    return written_json(said) if chat.fits and turn.number == chat.turn else ""


def _waits(events: Sequence[StoredEvent]) -> Iterator[str]:
    """A wait for the model is announced once after the call that caused it, and the next call comes after the wait. It
    says how many calls of the turn there were."""
    before, tries = None, Counter[int]()
    for event in events:
        if event.event not in ("turn", "retrying"):
            continue
        turn, at = event.data["turn"], epoch_of(event.data["at"])
        tries[turn] += event.event == "turn"
        if event.event == "retrying" and event.data["try"] != tries[turn]:
            yield f"event {event.id}: try {event.data['try']} of turn {turn}, of which {tries[turn]} had begun"
        if event.event == "retrying" and (
            before is None or (before.event, before.data["turn"]) != ("turn", turn)
        ):
            yield f"event {event.id}: a wait without a call of turn {turn}"
        if event.event == "turn" and before and before.event == "retrying":
            early = epoch_of(before.data["at"]) + before.data["seconds"] - at
            if early > 1 or before.data["turn"] != turn:
                yield f"event {event.id}: turn {turn} begins {early:.1f} s before the wait is over"
        before = event


def _pauses(chat: Chat, turns: Sequence[RecordedTurn], events: Sequence[StoredEvent]) -> Iterator[str]:
    """Pauses and their ends alternate, nothing but the end of the chat or of the pause comes behind `paused`, and each
    is in the receipt; no call stays open but those of a chat that was cancelled."""
    told = [event.event for event in events if event.event in ("paused", "resumed")]
    over = chat.spent.pauses
    if told[::2] != ["paused"] * chat.pauses or told[1::2] != ["resumed"] * (len(told) // 2):
        yield f"{chat.pauses} pauses, told {told}"
    if len(over) != chat.pauses or chat.execution != 1 + len(told) // 2:
        yield f"{chat.pauses} pauses, {len(over)} over, execution {chat.execution}, told {told}"
    for before, after in itertools.pairwise(events):
        if before.event == "paused" and after.event not in ("resumed", "record"):
            yield f"event {after.id} ({after.event}) behind a pause"
    open_calls = [call.id for turn in turns for call in turn.calls if call.is_open]
    if open_calls and chat.status == "done":
        yield f"{open_calls} are still open"


def _shown(events: Sequence[StoredEvent]) -> dict[int, str]:
    """The deltas of each turn after its last `turn` event."""
    shown: dict[int, str] = {}
    for event in events:
        if event.event == "turn":
            shown[event.data["turn"]] = ""
        elif event.event == "delta":
            shown[event.data["turn"]] = (
                shown.get(event.data["turn"], "before its turn: ") + event.data["text"]
            )
    return shown


def _records(
    stores: Stores,
    chat: Chat,
    turns: Sequence[RecordedTurn],
    records: Sequence[Record],
    events: Sequence[StoredEvent],
) -> Iterator[str]:
    track = stores.history.track(chat.user, chat.conversation_id, chat.query)
    if track is None:
        yield "no summarised track"
    summaries = [block.record_id for block in track.blocks if block.ref] if track else []
    stored = Counter([record.record_id for record in records] + summaries)
    announced = Counter(event.data["record_id"] for event in events if event.event == "record")
    if stored != announced:
        yield f"records {sorted(stored)} but events of {sorted(announced.elements())}"
    results = Counter(event.data["id"] for event in events if event.event == "tool_result")
    called = [record.record_id for record in records if record.call]
    if results != Counter(called):
        yield f"results of {sorted(results.elements())}, records of {called}"
    wanted = {call.id for turn in turns for call in turn.calls}
    if chat.status == "done" and set(called) != wanted:
        yield f"calls {sorted(wanted)}, results {sorted(called)}"
    response = next((record for record in records if record.record_id == response_id(chat.query)), None)
    if response is None:
        yield "no response"
    answered = next((event for event in events if event.event == "answer"), None)
    if answered and response and answered.data["response"] != response.content:
        yield "the answer is not what is on record"
    if chat.status == "cancelled" and response:
        yield from _kept(chat, response, events)


def _kept(chat: Chat, response: Record, events: Sequence[StoredEvent]) -> Iterator[str]:
    """A cancelled chat keeps the text that its running turn had streamed."""
    written = _shown(events).get(chat.turn + 1, "")
    if not written.strip():
        kept = (response.content, response.stop) == ("(no answer: cancelled)", "")
    else:
        kept = response.stop == "cancelled" and written.startswith(response.content)
    if not kept:
        yield f"it had written {written!r:.80} and kept {response.content!r:.80} ({response.stop})"
    if events[-1].data.get("response") != (response.content if response.stop else None):
        yield "its last event does not have what it kept"


def _effects(
    turns: Sequence[RecordedTurn], records: Sequence[Record], marks: Mapping[str, bool]
) -> Iterator[str]:
    """Each call that has begun has a record which says what became of it, one that never began none of a run."""
    told = {record.record_id: record.call for record in records if record.call}
    for call in (call for turn in turns for call in turn.runnable):
        record, began = told.get(call.id), marks.get(call.id, not call.is_marked)
        if began and record is None:
            yield f"{call.id} has begun and stands nowhere"
        if record and record.ran and not began:
            yield f"{call.id} has a result ({record.status}), and no record that it began"


def free_of(records: Iterable[Record]) -> frozenset[str]:
    """The calls whose result says that nothing is charged for it."""
    return frozenset(record.record_id for record in records if record.call and not record.call.charged)


def _price(
    chat: Chat,
    turns: Sequence[RecordedTurn],
    events: Sequence[StoredEvent],
    marks: Mapping[str, bool],
    free: Collection[str],
) -> Iterator[str]:
    """5 once a byte of an answer has come, plus the tools that have begun, but for results that say that nothing is
    charged; a failure costs nothing, and what the model's service declined no tool."""
    runnable = [
        call for turn in turns for call in turn.runnable if chat.stop != "refusal" and call.id not in free
    ]
    ran = [call.price_class for call in runnable if marks.get(call.id, not call.is_marked)]
    if any(event.event == "delta" for event in events) and not chat.heard:
        yield "there is text, and no first byte was noted"
    begun = bool(turns) or chat.heard is not None
    wanted = price_chat(ran) if begun and chat.status != "failed" else 0
    if chat.status == "cancelled" and not begun:  # the account decides: `account_faults`
        return
    if chat.credits_used != wanted:
        yield f"{chat.status}, it cost {chat.credits_used} and not {wanted}"


def _receipt(stores: Stores, chat: Chat, events: Sequence[StoredEvent]) -> Iterator[str]:
    """The receipt adds up, and has exactly one line for every announced call of the model."""
    receipt = receipt_of(evidence(stores, chat, stores.ledger), Deployment())
    yield from (f"receipt: {difference}" for difference in receipt["differences"])
    calls = [line["dollars"] for line in receipt["lines"] if line["kind"] in ("model", "summary", "fold")]
    if abs(sum(calls) - receipt["memory"]["dollars"]) > 1e-9 * len(calls):
        yield f"receipt: its calls cost ${sum(calls)}, {receipt['memory']}"
    listed = Counter(line["turn"] for line in receipt["lines"] if line["kind"] == "model")
    of_calls = [event for event in events if event.event in ("turn", "delta", "retrying")]
    announced = Counter(
        event.data["turn"]
        for event, after in itertools.pairwise([*of_calls, None])
        if event and event.event == "turn" and (after is None or after.event != "retrying")
    )
    if _last_call_was_refused(chat, events):
        announced -= Counter([chat.turn + 1])
    waits = Counter(event.data["turn"] for event in events if event.event == "retrying")
    # a call that broke off as overloaded after its first byte is both a call and a wait
    if not announced <= listed <= announced + waits:
        yield f"receipt: calls of turns {dict(listed)}, announced {dict(announced)}, waits {dict(waits)}"
    told = {line["turn"]: line["tries"] for line in receipt["lines"] if line["kind"] == "wait"}
    if waits != told:
        yield f"receipt: waits of turns {told}, announced {dict(waits)}"
    prompt = sum(chat.usage.get(f"{kind}_tokens", 0) for kind in ("input", "cache_read", "cache_write"))
    if chat.heard and chat.heard.turn > chat.turn and chat.heard.usage.tokens and not prompt:
        yield f"a call was cut after its first byte, and its prompt is not counted: {chat.heard}, {chat.spent}"


def _last_call_was_refused(chat: Chat, events: Sequence[StoredEvent]) -> bool:
    """Whether the service has refused the call by which the chat has failed, before a first byte: that has cost
    nothing, and is not in the receipt."""
    tries = sum(event.event == "turn" and event.data["turn"] == chat.turn + 1 for event in events)
    if chat.error is None or (chat.heard and chat.heard.usage_of(chat.turn + 1, tries)):
        return False
    is_told = chat.error.get("operator", "").startswith("The model's service refused the request: ")
    return chat.error["code"] in ("model_busy", CALLERS) or is_told


def _leftovers(stores: Stores, chat: Chat) -> Iterator[str]:
    conversation = stores.conversations.find(chat.user, chat.conversation_id)
    if conversation is None or conversation.lease == chat.chat_id:
        yield "its conversation is not free"
    key: Any = {"pk": {"S": chat.pk}, "sk": {"S": "STATE"}}
    item = stores.chats.client.get_item(TableName=stores.chats.table, Key=key)["Item"]
    if "open" in item:
        yield "it is still in the index of open chats"
    if any(paused.chat_id == chat.chat_id for paused in stores.paused.of(chat.user)):
        yield "it is still in the list of open decisions"
