"""Who may read a chat's receipt, and what it never contains (CONTRACT 4, 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.api_client import Api, make_api

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "a word that nobody else says: xylophone"


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with make_api() as new_api:
        yield new_api.of_new_user()


def test_a_user_reads_their_own_and_an_administrator_anybodys(api: Api) -> None:
    chat = api.ask(f"What is this? {SECRET}")
    target = f"/v1/chats/{chat['chat_id']}/receipt"
    own = api.get(target)
    assert (own["user_id"], own["differences"], own["totals"]["credits"]) == (api.user, [], 5)
    assert "xylophone" not in str(own)
    other = api.of_new_user()
    assert other.call("GET", target).status == 404
    assert other.of(other.user, ["staff"]).call("GET", target).status == 404
    assert other.of(other.user, ["admin"]).get(target) == own


def test_an_unknown_chat_is_not_found(api: Api) -> None:
    for chat_id in (f"ch_{'0' * 26}", "nonsense"):
        for caller in (api, api.of(api.user, ["admin"])):
            assert caller.call("GET", f"/v1/chats/{chat_id}/receipt").code == "not_found"


def test_it_is_deleted_with_its_conversation(api: Api) -> None:
    chat = api.ask("Forget this.")
    assert api.call("DELETE", f"/v1/conversations/{chat['conversation_id']}").status in (200, 202, 204)
    admin = api.of(api.user, ["admin"])
    for caller in (api, admin):
        assert caller.call("GET", f"/v1/chats/{chat['chat_id']}/receipt").status == 404


def test_a_running_chat_has_one_too(api: Api) -> None:
    started = api.start("Not yet.")
    body = api.get(f"/v1/chats/{started['chat_id']}/receipt")
    assert (body["status"], body["ended_at"]) == ("running", None)
    assert sorted(line["kind"] for line in body["lines"]) == ["chat", "ledger"]
