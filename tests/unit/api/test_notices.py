"""What chats and keys note for listeners, whoever tells it (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dualtrack.api.end_users import end_user_id
from dualtrack.chat.delete_conversation import WRITERS_SECONDS
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.clock import iso

from tests.clients.api_client import items
from tests.drivers.outbox import listen, noted, taken
from tests.drivers.pausing import PAUSES, Pausing, approve

if TYPE_CHECKING:
    from tests.clients.api_client import Api


@pytest.fixture
def api(shared: Api) -> Api:
    """A user who has a listener."""
    shared.world.clock.now = shared.world.clock.now // 60 * 60 + 120
    user = shared.of_new_user()
    listen(user.world.stores, user.user)
    return user


def test_a_chat_that_is_done_is_noted_without_a_text(api: Api) -> None:
    chat = api.ask("The password is swordfish.")
    (notice,) = noted(api.world.stores, api.user)
    assert (notice.type, notice.message_id) == ("chat.done", f"msg_{chat['chat_id'][3:]}_done")
    assert notice.data == {
        "chat_id": chat["chat_id"],
        "conversation_id": chat["conversation_id"],
        "profile": "assistant",
        "status": "done",
        "stop": "complete",
        "error": None,
        "expires_at": None,
        "key_id": None,
        "user_id": api.user,
    }


def test_a_failed_chat_is_noted_and_a_cancelled_one_is_not(api: Api) -> None:
    failed = api.start()["chat_id"]
    api.world.abort(api.chat(failed))
    cancelled = api.start()["chat_id"]
    assert api.call("DELETE", f"/v1/chats/{cancelled}").json["status"] == "cancelled"
    (notice,) = noted(api.world.stores, api.user)
    assert (notice.type, notice.data["chat_id"]) == ("chat.failed", failed)
    assert (notice.data["status"], notice.data["error"]) == ("failed", "internal")


def test_a_chat_that_began_before_there_was_a_listener_is_not_noted(shared: Api) -> None:
    api = shared.of_new_user()
    before = api.start()["chat_id"]
    listen(api.world.stores, api.user)
    api.run(before)
    assert noted(api.world.stores, api.user) == []


def test_the_owner_is_told_of_a_services_end_users(api: Api) -> None:
    service = api.by_key(api.make_key("chat", acts_for="any")["key"], end_user="customer-1")
    started = service.start()
    end_user = end_user_id(api.user, "customer-1")
    chat = api.world.stores.chats.load(end_user, started["chat_id"])
    assert chat is not None
    api.world.run(chat)
    (notice,) = noted(api.world.stores, api.user)
    assert (notice.data["user_id"], notice.data["key_id"]) == (end_user, chat.key_id)


def test_a_cap_that_is_reached_is_noted_once(api: Api) -> None:
    made = api.make_key("chat", caps={"credits_day": 5})
    key = api.by_key(made["key"])
    key.start()
    for _ in range(3):
        assert key.call("POST", "/v1/chats", {"message": "Hello."}).code == "key_cap_reached"
    (notice,) = taken(api.world.stores, api.user)
    assert notice.type == "key.cap_reached"
    assert (notice.data["key_id"], notice.data["cap"]) == (made["key_id"], "credits_day")
    assert key.call("POST", "/v1/chats", {"message": "Hello."}).code == "key_cap_reached"
    assert noted(api.world.stores, api.user) == []


def test_a_pause_is_noted_and_so_is_the_end_behind_it() -> None:
    world = Pausing(PAUSES)
    listen(world.look(), world.user)
    chat = world.pause()
    (notice,) = noted(world.look(), world.user)
    assert (notice.type, notice.message_id) == ("chat.paused", f"msg_{chat.chat_id[3:]}_paused1")
    assert (notice.data["status"], notice.data["expires_at"]) == ("paused", iso(chat.deadline))
    world.decide_on(chat, approve())
    world.finish(chat)
    assert {one.type for one in noted(world.look(), world.user)} == {"chat.done", "chat.paused"}


def test_an_erased_user_leaves_nothing(api: Api) -> None:
    api.ask()
    assert noted(api.world.stores, api.user)
    assert api.call("DELETE", "/v1/me").status == 202
    stores, executions = api.world.stores, api.world.executions
    for _ in range(4):
        sweep_deletions(stores, executions, api.module.user_pool, 60.0)  # type: ignore[arg-type]
        api.world.clock.now += WRITERS_SECONDS
    assert not [item for item in items(api.world, "chats") if f"HOOKS#{api.user}" in item["pk"]["S"]]
