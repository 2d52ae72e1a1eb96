"""What holds for every chat, whatever went wrong on the way (CONTRACT 5 to 8). Empty lists mean: it holds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dualtrack.credits.audit import audit
from dualtrack.credits.plans import price_chat
from dualtrack.events import TERMINAL
from dualtrack.ids import response_id
from dualtrack.storage.chats import turn_key
from dualtrack.storage.dynamo import query
from dualtrack.storage.event_log import unpack
from dualtrack.text import strip_echoes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    found = [*gaps]
    if chat.status not in ENDED:
        found.append(f"it is still {chat.status}")
    found += _ending(chat, events)
    found += _turns(stores, chat, turns, events)
    found += _records(stores, chat, turns, records, events)
    found += _price(chat, turns, events)
    found += _leftovers(stores, chat)
    return [f"{chat.chat_id}: {one}" for one in found]


def account_faults(stores: Stores, user: str, chats: Sequence[Chat]) -> list[str]:
    """What is wrong with a user's account once all chats have ended."""
    account = stores.ledger.load(user)
    movements = stores.ledger.movements(user)
    found = list(audit(account, movements))
    if account.holds:
        found.append(f"held: {dict(account.holds)}")
    for chat in chats:
        mine = [one for one in movements if one.chat_id == chat.chat_id]
        ends = [one for one in mine if one.kind != "hold"]
        charged = sum(one.amount for one in ends if one.kind == "settle")
        if len(ends) != 1:
            found.append(f"{chat.chat_id} was settled {len(ends)} times: {[one.kind for one in ends]}")
        if charged != chat.credits_used:
            found.append(f"{chat.chat_id} says {chat.credits_used} credits, the ledger {charged}")
        if chat.status == "failed" and charged:
            found.append(f"{chat.chat_id} failed and cost {charged}")
    return found


def what_is_left(stores: Stores, user: str, secret: str) -> list[str]:
    """What is still there of a user whose conversations are all deleted, by id or by a word of the user's texts.

    May be: the counters and keys of requests (`USER#`: no text), and the blank end of a chat that was broken off.
    """
    found = []
    for table in (stores.history.table, stores.chats.table, stores.cache.table):
        for page in stores.dynamodb.get_paginator("scan").paginate(TableName=table):
            for item in page["Items"]:
                key = f"{item['pk']['S']} {item['sk']['S']}"
                if secret in str(item):
                    found.append(f"{key}: a deleted conversation's text is still in a table")
                elif f"#{user}#" in key and item.get("data", {}).get("S") != "[]":
                    found.append(f"{key}: an item of a deleted conversation is still there")
    listed = stores.bodies.s3.get_paginator("list_objects_v2").paginate(Bucket=stores.bodies.bucket)
    keys = [one["Key"] for page in listed for one in page.get("Contents", [])]
    return found + [
        f"{key}: an object of a deleted conversation is still there" for key in keys if user in key
    ]


def turns_of(stores: Stores, chat: Chat) -> list[RecordedTurn]:
    """The turns on record, as far as the chat counts them."""
    numbers = range(1, chat.turn + 1)
    return [turn for number in numbers if (turn := stores.chats.turn(chat, number))]


def _events(stores: Stores, chat: Chat) -> tuple[list[StoredEvent], list[str]]:
    """All events as they lie in the table, and what is wrong with their numbers."""
    items = list(query(stores.dynamodb, stores.chats.table, chat.pk, prefix="EV#"))
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
    for turn in turns:
        said = strip_echoes("".join(block["text"] for block in turn.content if block["type"] == "text"))
        if shown.get(turn.number, "") != said:
            yield f"turn {turn.number} showed {shown.get(turn.number, '')!r:.80} and recorded {said!r:.80}"


def _shown(events: Sequence[StoredEvent]) -> dict[int, str]:
    """The deltas of each turn behind its last `turn` event."""
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
    told = Counter(event.data["record_id"] for event in events if event.event == "record")
    if stored != told:
        yield f"records {sorted(stored)} but events of {sorted(told.elements())}"
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
    """A cancelled chat keeps what its running turn had written when it was closed."""
    written = _shown(events).get(chat.turn + 1, "")
    if not written.strip():
        kept = (response.content, response.stop) == ("(no answer: cancelled)", "")
    else:
        kept = response.stop == "cancelled" and written.startswith(response.content)
    if not kept:
        yield f"it had written {written!r:.80} and kept {response.content!r:.80} ({response.stop})"
    if events[-1].data.get("response") != (response.content if response.stop else None):
        yield "its last event does not have what it kept"


def _price(chat: Chat, turns: Sequence[RecordedTurn], events: Sequence[StoredEvent]) -> Iterator[str]:
    """5 once a model call had begun, and the tools that were to run; a failure costs nothing."""
    ran = [call.price_class for turn in turns for call in turn.calls if not call.refused]
    begun = any(event.event == "turn" for event in events)
    wanted = price_chat(ran) if begun and chat.status != "failed" else 0
    if chat.credits_used != wanted:
        yield f"{chat.status}, it cost {chat.credits_used} and not {wanted}"


def _leftovers(stores: Stores, chat: Chat) -> Iterator[str]:
    conversation = stores.conversations.find(chat.user, chat.conversation_id)
    if conversation is None or conversation.lease == chat.chat_id:
        yield "its conversation is not free"
    key: Any = {"pk": {"S": chat.pk}, "sk": {"S": "STATE"}}
    item = stores.dynamodb.get_item(TableName=stores.chats.table, Key=key)["Item"]
    if "open" in item:
        yield "it is still in the index of open chats"
