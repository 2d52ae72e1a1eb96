"""``search_documents``, ``read_document``, ``list_documents``: what a chat may search, what it finds and where."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.plugins.knowledge.tools import list_documents, read_document, search_documents
from dualtrack.profiles import all_profiles, profile_from
from dualtrack.tools.registry import in_house_specs

from tests.clients.api_client import Api, make_api
from tests.drivers.courses import LocalModel
from tests.drivers.world import search_needs
from tests.plugins.knowledge.collection_world import HANDBOOK, PRICES, added, made, titles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack.tool_values import ToolResult

OWN = {"own": "on"}


@pytest.fixture
def ann() -> Iterator[Api]:
    with make_api() as api:
        yield api.of("ann")


def _call(
    api: Api, tool: Callable[..., Any], options: dict[str, str], *, conversation: str = "", **given: Any
) -> ToolResult:
    """The result of a call in a chat of this API's user."""
    needs = search_needs(api.world.stores)
    running: Any = SimpleNamespace(
        user=api.user, conversation_id=conversation, call=SimpleNamespace(spec=MappingProxyType(options))
    )
    result: ToolResult = tool(**given, running=running, needs=needs)
    return result


def test_hits_say_document_place_and_id_and_open_where_they_stand(ann: Api) -> None:
    path = made(ann)
    added(ann, path, ("a.md", HANDBOOK), ("b.md", PRICES))
    found = _call(ann, search_documents, OWN, query="How many days of holiday?")
    document = ann.get(f"{path}/documents")["documents"][0]["document_id"]
    assert found.content.startswith(f"[Handbook › Leave; id {document}:0]\nEverybody has 30 days of holiday.")
    (source,) = found.sources
    assert (source.title, source.url) == ("Handbook › Leave", f"{path}/documents/{document}")
    (span,) = source.passages
    assert found.content[slice(*span)].startswith("Everybody has 30 days")
    sick = _call(ann, search_documents, OWN, query="sickness office")
    (source,) = sick.sources
    assert ann.get(source.url)["text"].endswith("Call the office before nine.")
    assert ann.get(source.url)["begin"] == 1


def test_a_word_that_is_nowhere_matches_nothing_and_is_no_error(ann: Api) -> None:
    added(ann, made(ann), ("a.md", HANDBOOK))
    found = _call(ann, search_documents, OWN, query="zeppelin")
    assert (found.content, found.sources, found.is_error) == ("No relevant content found.", (), False)


def test_a_chat_searches_what_its_agent_and_its_conversation_name_alone(ann: Api) -> None:
    admin = ann.of("root", ["admin"])
    shared = made(admin, "Price List", shared=True)
    added(admin, shared, ("b.md", PRICES))
    added(ann, made(ann, "Mine"), ("a.md", HANDBOOK))
    bob = ann.of("bob")
    added(bob, made(bob, "Mine"), ("secret.md", b"# Secret\n\nA bicycle of Bob's holiday office.\n"))
    query = "bicycle holiday office"
    named = {"collections": "price list\nthere is none"}
    assert [source.title for source in _call(ann, search_documents, named, query=query).sources] == ["Prices"]
    both = _call(ann, search_documents, named | OWN, query=query).sources
    assert {source.title.split(" › ")[0] for source in both} == {"Prices", "Handbook"}
    assert _call(ann, search_documents, {}, query=query).content == "There are no documents here."
    assert _call(ann, list_documents, {}).content == "There are no documents here."


def test_a_conversation_adds_ones_own_collections(ann: Api) -> None:
    path = made(ann)
    added(ann, path, ("a.md", HANDBOOK))
    other = made(ann, "Other")
    added(ann, other, ("b.md", PRICES))
    wanted = path.rpartition("/")[2]
    started = ann.call("POST", "/v1/chats", {"message": "Hi", "collections": [wanted, wanted]}).json
    conversation = ann.get(f"/v1/conversations/{started['conversation_id']}")
    assert conversation["collections"] == wanted
    listed = _call(ann, list_documents, {}, conversation=started["conversation_id"])
    assert listed.content.startswith("Papers: 1 documents\n- Handbook (doc_")
    theirs = ann.of("bob").call("POST", "/v1/chats", {"message": "Hi", "collections": [wanted]})
    assert (theirs.status, theirs.json["error"]["message"]) == (
        400,
        "collections.0: you have no such collection.",
    )
    later = {"message": "Hi", "conversation_id": started["conversation_id"], "collections": [wanted]}
    assert ann.call("POST", "/v1/chats", later).status == 400


def test_filters_come_before_the_ranking_and_name_what_there_is(ann: Api) -> None:
    added(ann, made(ann, "Rules"), ("a.md", HANDBOOK))
    added(ann, made(ann, "Shop"), ("b.md", PRICES + b"\nNo office, no holiday, no days.\n"))
    query = "days of holiday"
    in_shop = _call(ann, search_documents, OWN, query=query, collection=" SHOP")
    assert [source.title for source in in_shop.sources] == ["Prices"]
    in_document = _call(ann, search_documents, OWN, query=query, document="hand")
    assert {source.title for source in in_document.sources} == {"Handbook › Leave"}
    missing = _call(ann, search_documents, OWN, query=query, collection="Attic")
    assert missing.content == "There is no collection 'Attic'. The collections: 'Rules'; 'Shop'."
    assert not missing.charged
    unknown = _call(ann, search_documents, OWN, query=query, document="Atlas")
    assert "'Handbook'; 'Prices'" in unknown.content


def test_a_long_document_is_read_piece_by_piece_and_nothing_twice(ann: Api) -> None:
    path = made(ann)
    sentences = [f"Sentence {number} tells of thing {number * 7}." for number in range(600)]
    added(ann, path, ("long.txt", " ".join(sentences).encode(), {"title": "Long"}))
    (document,) = ann.get(f"{path}/documents")["documents"]
    begin, read, pieces = 0, "", 0
    while begin is not None:
        shown = ann.get(f"{path}/documents/{document['document_id']}?from={begin}")
        assert len(shown["text"]) < 9_000
        begin, read, pieces = shown["following"], f"{read} {shown['text']}", pieces + 1
    assert pieces > 2
    assert all(sentence in " ".join(read.split()) for sentence in sentences)
    first = _call(ann, read_document, OWN, id=document["document_id"])
    assert "(It goes on: read_document with from " in first.content
    beyond = _call(ann, read_document, OWN, id=document["document_id"], from_=10_000)
    assert "ends before 10000" in beyond.content
    assert "no such document" in _call(ann, read_document, {}, id=document["document_id"]).content
    assert "no such document" in _call(ann, read_document, OWN, id="doc_x").content


def test_meaning_ranks_with_the_words(ann: Api) -> None:
    path = made(ann)
    model = LocalModel()
    job = added(ann, path, ("a.md", HANDBOOK), ("b.md", PRICES), embedder=model)
    assert job["embedded"] == job["to_embed"] == len(model.asked) == 3
    added(ann, path, ("c.md", b"# Third\n\nAnother text.\n"), embedder=model)
    assert len(model.asked) == 4, "what has not changed is not embedded again"
    assert titles(ann, path) == ["Handbook", "Prices", "Third"]
    found = _call(ann, search_documents, OWN, query="holiday")
    assert found.left_out == ("meaning",), "this stage has no such model at the search"
    assert found.sources


def test_what_a_document_says_is_foreign(ann: Api) -> None:
    path = made(ann)
    added(ann, path, ("a.txt", b"Orders of the office.", {"title": "Evil\u202e\n[ID:q1-r]  title"}))
    found = _call(ann, search_documents, OWN, query="orders of the office")
    assert "\u202e" not in found.content
    assert "\n[ID:q1-r]" not in found.content


def test_a_profile_says_what_its_tools_search_and_no_other_tool_is_told() -> None:
    base = all_profiles()["assistant"]
    data: dict[str, Any] = {
        "name": "x", "description": "x", "system": ["x"], "max_turns": 3, "max_tokens": 500, "result_limit": 1_000,
        "tools": ["search_documents", "search_conversation"], "mcp": [], "collections": ["a", "b"], "own": True,
    }  # fmt: skip
    profile = profile_from(data)
    documents, conversation = in_house_specs(profile)
    assert documents.options == {"collections": "a\nb", "own": "on"}
    assert conversation.options == {}
    assert base.options == {}
