"""A documentation search through the whole stack: Context7 and Voyage on loopback, the model scripted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.script import Script
    from tests.clients.stack_client import Person
    from tests.servers.voyage import FakeVoyage
    from tests.stack_fixtures import Documents

QUESTION = "How do I set up OAuth for the Twitter Ads API, with a callback on my own port?"


def test_a_search_has_sources_and_the_same_search_again_sends_no_request(
    someone: Callable[[], Person], script: Script, documents: Documents, voyage: FakeVoyage
) -> None:
    def ask(person: Person) -> dict[str, object]:
        script.asks(("retrieve_documentation", {"query": QUESTION}))
        script.says("Create an app, then walk through the three legs. " * 10)
        return person.ask(script.question())

    ann, ben = someone(), someone()
    chat = ask(ann)
    assert (chat["status"], chat["stop"], chat["credits_used"]) == ("done", "complete", 15)
    sources = chat["sources"]
    assert isinstance(sources, list)
    assert sources
    assert all(source["record_id"] == "q1-t1" and source["url"].startswith("https://") for source in sources)
    assert documents.requests
    assert voyage.requests

    full = ann.record(str(chat["conversation_id"]), "q1-t1")
    assert not full["is_error"]
    assert all(source["url"] in full["result"] for source in sources)
    short = ann.record(str(chat["conversation_id"]), "q1-t1-sum")
    assert (short["type"], short["ref"]) == ("summary", "q1-t1")
    assert len(short["content"]) < len(full["result"])

    before = (documents.requests, len(voyage.requests))
    again = ask(ben)
    assert again["sources"] == sources
    assert (documents.requests, len(voyage.requests)) == before
