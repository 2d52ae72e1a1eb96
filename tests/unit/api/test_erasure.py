"""DELETE /v1/me and DELETE /v1/admin/users/{id}: permissions, answers, and what a valid token may do afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.clients.api_client import Api


def test_an_erased_user_is_refused_although_the_token_is_valid(api: Api) -> None:
    """At once, on every route; other users are not affected."""
    other = api.of_new_user()
    chat = api.start()
    answer = api.call("DELETE", "/v1/me")
    assert (answer.status, answer.json) == (202, {"status": "erasing"})
    for method, target in [
        ("GET", "/v1/credits"),
        ("GET", f"/v1/chats/{chat['chat_id']}"),
        ("POST", "/v1/conversations"),
        ("PUT", "/v1/connections/github"),
        ("DELETE", "/v1/me"),
    ]:
        refused = api.call(method, target, {})
        assert (refused.status, refused.code) == (401, "unauthorized")
    assert other.call("GET", "/v1/credits").status == 200


def test_what_the_request_does_at_once(api: Api) -> None:
    """The chat is stopped, its conversation hidden, and the user can no longer sign in."""
    chat = api.start()
    api.call("DELETE", "/v1/me")
    stores = api.world.stores
    ended = stores.chats.load(api.user, chat["chat_id"])
    assert ended is not None
    assert ended.status == "cancelled"
    assert [conversation.is_being_deleted for conversation in stores.conversations.newest(api.user)] == [True]
    assert not api.module.user_pool.has(api.user)


def test_tokens_are_refused_until_they_have_expired(api: Api) -> None:
    """The item that refuses them does not contain the user's id."""
    api.call("DELETE", "/v1/me")
    stores = api.world.stores
    api.world.clock.now += 3600 + 299
    assert stores.deletions.is_refused(api.user)
    api.world.clock.now += 2
    assert not stores.deletions.is_refused(api.user)


def test_an_administrator_erases_a_user_and_may_ask_twice(api: Api) -> None:
    """An unknown or an invalid user id is not found."""
    admin = api.of("an-admin", ["admin"])
    target = f"/v1/admin/users/{api.user}"
    assert api.call("DELETE", target).status == 403
    assert [admin.call("DELETE", target).status for _ in range(2)] == [202, 202]
    assert api.call("GET", "/v1/credits").status == 401
    for nobody in ("11111111-2222-3333-4444-555555555555", "x" * 3_000, "a%23b"):
        assert admin.call("DELETE", f"/v1/admin/users/{nobody}").status == 404


def test_an_erasure_begins_even_if_the_pool_is_unavailable(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep removes the user from the pool later."""
    with monkeypatch.context() as patch:
        patch.setattr(api.module.cognito, "list_users", _away, raising=False)
        assert api.call("DELETE", "/v1/me").status == 202
    assert api.module.user_pool.has(api.user)
    assert api.call("GET", "/v1/credits").status == 401


def _away(**_: object) -> None:
    raise ConnectionError
