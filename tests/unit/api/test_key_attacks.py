"""Attacks on API keys (short form; the long one is bench.key_attacks), and two days of a script under caps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.clock import epoch_of, iso
from dualtrack_stack.cli.client import RequestRefused
from dualtrack_stack.cli.command import refusal

from tests.drivers.key_attacks import ATTACKS, Attack, new_minute
from tests.long_forms import LONG

if TYPE_CHECKING:
    from tests.clients.api_client import Api

HOUR = 3_600
REACHED = "This API key's cap {} is {} credits: {} are used, 0 are held for chats that run, and this needs 5"
MIDNIGHT = "2026-11-23T00:00:00.000Z"


@pytest.fixture
def api(shared: Api) -> Api:
    new_minute(shared)
    return shared.of_new_user()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what[:40])
def test_an_attack_does_not_succeed(api: Api, attack: Attack) -> None:
    assert attack.play(api, attack.times if LONG else min(attack.times, 3)) >= 1


def nightly(api: Api, key: str) -> list[tuple[str, str]]:
    """A script that asks once an hour, and after a refusal waits for the time that it names: what it was told, and
    when. It ends when it is told that waiting does not help."""
    by_key, told = api.by_key(key), list[tuple[str, str]]()
    while True:
        now = iso(api.world.clock.now)
        answer = by_key.call("POST", "/v1/chats", {"message": "What is new?"})
        if answer.status == 202:
            api.run(answer.json["chat_id"])
            told.append((now, by_key.get(answer.json["url"])["status"]))
            api.world.clock.now += HOUR
            continue
        error: Any = answer.json["error"]
        told.append(
            (now, refusal(RequestRefused(answer.status, error.pop("code"), error.pop("message"), error)))
        )
        if not error["resets_at"]:
            return told
        api.world.clock.now = epoch_of(error["resets_at"])


def test_a_script_of_two_days_is_stopped_by_its_caps_with_their_words(api: Api) -> None:
    api.world.clock.now = epoch_of(MIDNIGHT) - 4.5 * HOUR
    made = api.make_key("chat", caps={"credits_day": 15, "credits_total": 25})
    told = nightly(api, made["key"])
    assert [what for _, what in told] == [
        "done",
        "done",
        "done",
        f"{REACHED.format('credits_day', 15, 15)}; again from 2026-11-23 00:00 UTC (key_cap_reached)",
        "done",
        "done",
        f"{REACHED.format('credits_total', 25, 25)}; the key's owner can raise it (key_cap_reached)",
    ]
    assert told[4][0] == MIDNIGHT
    (listed,) = api.get("/v1/keys")["keys"]
    assert (listed["used"]["credits_day"], listed["used"]["credits_total"]) == (10, 25)
    assert api.call("PATCH", f"/v1/keys/{made['key_id']}", {"caps": {"credits_total": 30}}).status == 200
    assert nightly(api, made["key"])[0][1] == "done", "raised, it counts at once"
