"""Open WebUI and LibreChat: the requests that their own code makes, replayed; conversations by ids of the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack.plugins.openai.prompt import foreign_id_of

from tests.drivers.world import call_for_summaries
from tests.plugins.openai.door import Door, answers, said, streamed

if TYPE_CHECKING:
    from collections.abc import Mapping


CHAT = "6f0c6a52-3f2d-4d57-9a52-0d6e8a1e0c11"
OTHER_CHAT = "c1a5a0a4-7a55-49b5-8c5f-6a4f7d1f5e22"


def in_open_webui(door: Door, key: str, user: str, chat: str, *texts: str) -> httpx.Response:
    """Open WebUI 0.12.4 with ENABLE_FORWARD_USER_INFO_HEADERS: it streams, sends the whole history and parameters of
    its own, and says who asks in which chat."""
    headers = {
        "X-OpenWebUI-User-Name": "Ann%20Example",
        "X-OpenWebUI-User-Id": user,
        "X-OpenWebUI-User-Email": "ann@example.org",
        "X-OpenWebUI-User-Role": "user",
        "X-OpenWebUI-Chat-Id": chat,
    }
    more: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}, "temperature": 0.7}
    return door.post(key, said(*texts), headers, **more)


def in_librechat(door: Door, key: str, user: str, chat: str, *texts: str) -> httpx.Response:
    """LibreChat with the headers of docs/clients.md."""
    headers = {"X-LibreChat-User": user, "X-LibreChat-Conversation": chat}
    more: Mapping[str, Any] = {
        "stream": True,
        "user": user,
        "temperature": 1,
        "top_p": 1,
        "presence_penalty": 0,
    }
    return door.post(key, said(*texts), headers, **more)


@pytest.mark.parametrize("ask", [in_open_webui, in_librechat])
def test_each_user_of_a_chat_page_has_conversations_of_their_own(
    door: Door, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_for_summaries(monkeypatch)
    owner = ask.__name__
    key = door.key(owner, for_end_users=True)
    answers(door, "One. " * 500, "Two.", "Ben's.")
    one = streamed(ask(door, key, "ann", CHAT, "First?"))
    assert streamed(ask(door, key, "ann", CHAT, "First?", one, "Second?")) == "Two."
    assert streamed(ask(door, key, "ben", OTHER_CHAT, "First?", one, "Second?")) == "Ben's."
    first, second, of_ben = door.sent()
    assert sum("First?" in block for block in first) == 1
    assert any("ref:q1-r" in block for block in second), "its own record, as a reference"
    assert not any("One. " * 500 in block for block in (*second, *of_ben))
    assert door.conversations(owner) == [], "the owner's list is not the end users'"
    assert door.world.stores.ledger.load(owner).used_day == 15, "the owner pays"


def test_a_chat_page_asks_for_the_models_before_anybody_speaks(door: Door) -> None:
    headers = {"Authorization": f"Bearer {door.key('zoe', for_end_users=True)}"}
    listed = httpx.get(f"{door.url}/openai/v1/models", headers=headers)
    assert "assistant" in [model["id"] for model in listed.json()["data"]]
    nobodys = door.post(headers["Authorization"].removeprefix("Bearer "), said("First?"))
    assert nobodys.status_code == 400, "a chat is somebody's"


def test_a_history_that_a_client_rewrites_is_found_by_its_own_id(door: Door) -> None:
    """A page that removes or replaces parts of past answers: nothing is found by hash."""
    key = door.key("cat", for_end_users=True)
    answers(door, "One.", "Two.", "Other.")
    in_open_webui(door, key, "cat", CHAT, "First?")
    second = in_open_webui(door, key, "cat", CHAT, "First?", "One, translated.", "Second?")
    assert streamed(second) == "Two."
    *_, sent = door.sent()
    assert any("One." in block for block in sent)
    assert not any("translated" in block for block in sent), "the record counts, not what was resent"
    first_id = second.headers["X-Dualtrack-Conversation"]
    other = in_open_webui(door, key, "cat", OTHER_CHAT, "First?", "One, translated.", "Second?")
    assert other.headers["X-Dualtrack-Conversation"] != first_id, "another chat of the page is another one"


def test_regenerating_with_an_id_is_a_fork_and_the_id_then_names_the_fork(door: Door) -> None:
    key = door.key("dan", for_end_users=True)
    answers(door, "One.", "Two.", "Two again.", "Three.")
    in_open_webui(door, key, "dan", CHAT, "First?")
    before = in_open_webui(door, key, "dan", CHAT, "First?", "One.", "Second?")
    again = in_open_webui(door, key, "dan", CHAT, "First?", "One.", "Second?")
    fork = again.headers["X-Dualtrack-Conversation"]
    assert fork != before.headers["X-Dualtrack-Conversation"]
    third = in_open_webui(
        door, key, "dan", CHAT, "First?", "Rewritten.", "Second?", "Rewritten too.", "Third?"
    )
    assert third.headers["X-Dualtrack-Conversation"] == fork


def test_a_pages_title_is_no_message_of_the_chat_whose_id_it_bears(door: Door) -> None:
    """Open WebUI asks for a title behind the first answer, with the same headers."""
    key = door.key("ben", for_end_users=True)
    answers(door, "One.", "Two.")
    first = in_open_webui(door, key, "ben", CHAT, "First?")
    task = "### Task:\nGenerate a concise, 3-5 word title\n### Chat History:\nUSER: First?"
    headers = {"X-OpenWebUI-User-Id": "ben", "X-OpenWebUI-Chat-Id": CHAT}
    assert door.post(key, said(task), headers, stream=False).status_code == 200
    second = in_open_webui(door, key, "ben", CHAT, "First?", "One, rewritten.", "Second?")
    named = "X-Dualtrack-Conversation"
    assert second.headers[named] == first.headers[named], "the id still names the chat"
    assert not any("### Task:" in block for block in door.sent()[-1])
    assert door.world.stores.ledger.load("ben").used_day == 11


def test_ids_are_each_keys_and_each_users_own(door: Door) -> None:
    key, other_key = door.key("eva", for_end_users=True), door.key("eva", for_end_users=True)
    answers(door, *(f"Answer {n}." for n in range(4)))
    mine = in_open_webui(door, key, "eva", CHAT, "First?").headers["X-Dualtrack-Conversation"]
    history = ("First?", "Rewritten.", "Second?")
    for used, user in ((other_key, "eva"), (key, "fay")):
        response = in_open_webui(door, used, user, CHAT, *history)
        assert response.status_code == 200
        assert response.headers["X-Dualtrack-Conversation"] != mine
    assert in_open_webui(door, key, "eva", CHAT, *history).headers["X-Dualtrack-Conversation"] == mine


def test_a_deleted_conversation_leaves_no_id(door: Door) -> None:
    answers(door, "One.")
    headers = {"X-OpenWebUI-Chat-Id": CHAT}
    chat_id = door.post(door.key("gil"), said("First?"), headers).json()["id"].removeprefix("chatcmpl-")
    door.machine.wait()
    table = {"TableName": "chats", "KeyConditionExpression": "pk = :pk"}
    asked = {**table, "ExpressionAttributeValues": {":pk": {"S": "USER#gil"}}}
    client: Any = door.world.stores.chats.client

    def noted() -> set[str]:
        return {item["sk"]["S"].split("#")[0] for item in client.query(**asked)["Items"]} & {"NAMED", "SAID"}

    assert noted() == {"NAMED", "SAID"}
    door.world.stores.chats.delete("gil", chat_id)
    assert noted() == set()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([CHAT], CHAT),
        (["", f" {CHAT} "], CHAT),
        (["new"], ""),
        (["null", "undefined"], ""),
        (["{{CHAT_ID}}"], ""),
        (["${CONVERSATION}"], ""),
        ([], ""),
    ],
)
def test_what_is_no_id_names_nothing(values: list[str], expected: str) -> None:
    assert foreign_id_of(values) == expected
