"""Words of any language, told in a conversation over HTTP: its search finds the record, the list the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root

TOLD: Final = {
    "Das Überdruckventil öffnet bei acht Bar.": ("uberdruckventil", "ÜBERDRUCKVENTIL"),
    "Gezimiz İstanbul'da başlıyor.": ("istanbul", "İSTANBUL"),
    "Ο Οδυσσεύς επέστρεψε στην Ιθάκη.": ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
    "เขาไปประเทศไทยเมื่อวาน": ("ประเทศไทย",),
    "यह हिन्दी में लिखा है": ("हिन्दी",),
    "昨日東京タワーに登りました": ("東京タワー", "タワー"),
    "如何备份数据库": ("数据库",),
    "데이터베이스를 옮겼습니다": ("데이터베이스",),
}
"""Messages, and words that find each of them alone."""

HITS: Final = 12
"""What words find is among them, whatever the model of this stack finds by meaning, which is a fake."""

NOWHERE: Final = ("Überlaufrohr", "İzmir", "रेलगाड़ी", "รถไฟฟ้า", "量子力学")


def test_a_conversation_is_searched_and_found_in_any_language(
    root: Root, ann: Person, script: Script
) -> None:
    root.grant(ann.id)
    conversation = ""
    for number, message in enumerate(TOLD, start=1):
        script.says(f"Noted as number {number}.")
        conversation = ann.ask(script.question(message), conversation)["conversation_id"]
    wanted = [(word, number) for number, own in enumerate(TOLD.values(), start=1) for word in own]
    for some in batched(wanted):
        script.asks(*(("search_conversation", {"query": word, "limit": HITS}) for word, _ in some))
    script.says("Found.")
    last = ann.ask(script.question("Look them up."), conversation)
    for place, (word, number) in enumerate(wanted, start=1):
        told = ann.record(conversation, f"q{len(TOLD) + 1}-t{place}")["result"]
        assert f"\nq{number} " in told, (word, told)
    assert last["stop"] == "complete"
    for word, _ in wanted:
        assert conversation in listed(ann, word), word
    for word in NOWHERE:
        assert conversation not in listed(ann, word), word


def batched(wanted: Sequence[tuple[str, int]]) -> Iterator[Sequence[tuple[str, int]]]:
    """A few at a time, as each is a process on the laptop."""
    return (wanted[start : start + 3] for start in range(0, len(wanted), 3))


def listed(person: Person, search: str) -> list[str]:
    """The conversations that a search of the list finds."""
    page = person.get(f"/v1/conversations?q={quote(search)}")
    return [conversation["conversation_id"] for conversation in page["conversations"]]
