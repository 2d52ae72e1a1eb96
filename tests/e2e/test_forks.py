"""A tree of forks on the deployed stack: read across conversations, deleted in any order (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.drivers.invariants import what_is_left

if TYPE_CHECKING:
    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root

LONG = "The wombat has 4711 burrows. " * 300
"""A body stored in the bucket; forks that show it keep it."""


def fork(person: Person, conversation_id: str, before: str) -> str:
    response = person.http.post(f"/v1/conversations/{conversation_id}/fork", json={"before": before})
    assert (response.status_code, response.json().get("forked_before")) == (201, before)
    return str(response.json()["conversation_id"])


def shown(person: Person, conversation_id: str) -> dict[str, list[str]]:
    """The record ids of both tracks."""
    tracks = {track: person.records(conversation_id, track) for track in ("full", "summarised")}
    return {track: [record["record_id"] for record in listed] for track, listed in tracks.items()}


def test_a_tree_of_forks_shows_its_past_and_leaves_nothing(root: Root, ann: Person, script: Script) -> None:
    for text in (LONG, "Two.", "Three."):
        script.says(text)
    parent = ann.ask(script.question("one"))["conversation_id"]
    ann.ask(script.question("two"), parent)
    child = fork(ann, parent, "q2")
    ann.ask(script.question("three"), child)
    grandchild = fork(ann, child, "q3")
    script.asks(("retrieve_full_context", {"id": "q1-r"}), ("retrieve_full_context", {"id": "q3"}))
    script.says("Four.")
    chat = ann.ask(script.question("four"), grandchild)
    assert chat["message_id"] == "q3"
    before = shown(ann, grandchild)
    assert [record_id for record_id in before["full"] if "-" not in record_id] == ["q1", "q2", "q3"]
    assert ann.record(grandchild, "q3-t1")["result"] == LONG

    for conversation_id in (child, parent):
        assert ann.http.delete(f"/v1/conversations/{conversation_id}").status_code == 204
    assert shown(ann, grandchild) == before
    assert ann.record(grandchild, "q1-r")["content"] == LONG
    assert ann.record(grandchild, "q2")["content"] == script.question("three")
    assert what_is_left(root.stores(), ann.id, script.marker) != []

    assert ann.http.delete(f"/v1/conversations/{grandchild}").status_code == 204
    root.invoke("Sweep", {})
    assert what_is_left(root.stores(), ann.id, script.marker) == []
