"""API keys: made, checked, counted, scoped, rotated, revoked; end users of a service's key (CONTRACT 3)."""

from __future__ import annotations

import re
import string
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from dualtrack.api import key_alarm
from dualtrack.api.end_users import end_user_id
from dualtrack.api.key_format import digest_of, new_key, new_key_id, parse_key
from dualtrack.api.keys import change_key, revoke_key
from dualtrack.api.models import CapsBody, KeyChangeBody
from dualtrack.api.openapi import samples
from dualtrack.api.table import ROUTES
from dualtrack.chat.delete_conversation import WRITERS_SECONDS
from dualtrack.chat.spans import spans_of
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.credits.account import MOST_KEYS
from dualtrack.credits.audit import audit
from dualtrack.credits.keys import CAPS
from dualtrack.storage.keys import KEY_REQUESTS
from dualtrack.storage.leases import WAITS

from tests.clients.api_client import BODIES, Api, items
from tests.drivers.key_attacks import HOSTILE_NAMES, IDS, at_once, counted

if TYPE_CHECKING:
    from dualtrack.api.route import Route

BASE62 = string.digits + string.ascii_letters


@pytest.fixture
def api(shared: Api) -> Api:
    """A user of the test's own, in a minute of the test's own."""
    shared.world.clock.now = shared.world.clock.now // 60 * 60 + 120
    return shared.of_new_user()


def refused(api: Api, method: str = "GET", target: str = "/v1/tools", body: Any = None) -> tuple[int, str]:
    answer = api.call(method, target, body)
    return answer.status, answer.code


# ── the text ──────────────────────────────────────────────────────────────────────────────────────


def test_a_key_has_its_id_a_secret_and_a_checksum() -> None:
    key_id = new_key_id()
    one, other = new_key(key_id), new_key(key_id)
    assert one != other
    assert len(one) == 57
    assert one.startswith(f"dt_{key_id.removeprefix('key_')}")
    assert set(one[3:]) <= set(BASE62)
    presented = parse_key(one)
    assert presented is not None
    assert (presented.key_id, presented.digest) == (key_id, digest_of(one))


@pytest.mark.parametrize("place", range(57))
def test_one_wrong_character_is_seen_without_a_read(place: int) -> None:
    key = new_key(new_key_id())
    for other in ("x", "0", "é", " ", "\n", "\0"):
        if other != key[place]:
            assert parse_key(key[:place] + other + key[place + 1 :]) is None


@pytest.mark.parametrize("junk", ["dt_", "dt_x", "dt_" + "a" * 54, "dt_" + "٣" * 54, "dt_" + "a" * 100_000])
def test_junk_makes_no_request_of_the_tables(api: Api, junk: str) -> None:
    for text in (junk, new_key(new_key_id())[:-1], new_key(new_key_id()) + "0"):
        with counted(api) as calls:
            assert refused(api.by_key(text)) == (401, "unauthorized")
        assert calls == {}


# ── making ────────────────────────────────────────────────────────────────────────────────────────


def test_the_key_is_shown_once_and_stored_as_its_hash(api: Api) -> None:
    caps = {"credits_day": 10, "dollars_total": 2.5}
    made = api.make_key("chat", "read", profiles=["assistant"], caps=caps, expires_in=60)
    key = made.pop("key")
    assert made["caps"] == caps
    assert made["used"] == made["held"] == dict.fromkeys(made["used"], 0)
    assert (made["scopes"], made["profiles"], made["acts_for"]) == (["chat", "read"], ["assistant"], None)
    assert made["last_used_at"] is None
    assert api.get("/v1/keys") == {"keys": [made]}
    stored = repr([items(api.world, table) for table in ("chats", "credits", "history", "cache")])
    assert key not in stored
    assert key[3:] not in stored
    assert digest_of(key) in stored


def test_no_secret_is_logged_shown_in_an_error_or_in_a_sample(
    api: Api, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    made = api.make_key("chat", "read")
    rotated = api.call("POST", f"/v1/keys/{made['key_id']}/rotate").json["key"]
    shown = []
    for key in (made["key"], rotated):
        by_key = api.by_key(key)
        chat = by_key.start("Hello.")
        api.run(chat["chat_id"])
        shown += [
            by_key.get(chat["url"]),
            receipt := by_key.get(f"{chat['url']}/receipt"),
            spans_of(receipt, "anthropic"),
            by_key.get("/v1/credits/ledger"),
        ]
        shown += [by_key.call("DELETE", "/v1/me").text, api.by_key(key + "x").call("GET", "/v1/tools").text]
    shown += [
        api.get("/v1/keys"),
        samples(),
        [vars(record) for record in caplog.records],
        capsys.readouterr(),
    ]
    assert "POST /v1/chats" in repr(shown)
    for key in (made["key"], rotated):
        assert key[19:51] not in repr(shown)
    assert not re.search("dt_[0-9A-Za-z]{20}", repr(samples()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 10_000},
        {"name": "a\0b"},
        {"name": 5},
        {"scopes": []},
        {"scopes": ["write"]},
        {"scopes": ["chat"] * 8},
        {"scopes": "chat"},
        {"profiles": ["nobody"]},
        {"profiles": ["../x"]},
        {"caps": {"credits_day": -1}},
        {"caps": {"credits_day": 1.5}},
        {"caps": {"credits_total": 10**40}},
        {"caps": {"dollars_day": -0.01}},
        {"caps": {"dollars_day": 1e308}},
        {"caps": {"dollars_total": "1"}},
        {"caps": {"euros": 1}},
        {"expires_in": 0},
        {"expires_in": 10**12},
        {"acts_for": "ann"},
        {"user": "bob"},
        {"scopes": ["admin:read"], "acts_for": "any"},
    ],
)
def test_a_key_of_bad_input_is_refused(api: Api, wrong: dict[str, Any]) -> None:
    admin = api.of(api.user, "admin")
    body = {"name": "server", "scopes": ["chat"], **wrong}
    answer = admin.call("POST", "/v1/keys", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert api.get("/v1/keys") == {"keys": []}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_cap_is_a_number(api: Api, number: str) -> None:
    raw = f'{{"name": "server", "scopes": ["chat"], "caps": {{"dollars_day": {number}}}}}'
    answer = api.call("POST", "/v1/keys", raw=raw)
    assert (answer.status, answer.code) == (400, "invalid_request")


def test_a_user_has_twenty_keys(api: Api) -> None:
    keys = [api.make_key("chat") for _ in range(MOST_KEYS)]
    assert refused(api, "POST", "/v1/keys", {"name": "one more", "scopes": ["chat"]}) == (
        400,
        "invalid_request",
    )
    assert api.call("DELETE", f"/v1/keys/{keys[3]['key_id']}").status == 204
    api.make_key("chat")
    assert len(api.get("/v1/keys")["keys"]) == MOST_KEYS


# ── checking ──────────────────────────────────────────────────────────────────────────────────────


def test_a_call_by_key_makes_as_many_requests_as_one_by_token(api: Api) -> None:
    by_key = api.by_key(api.make_key("read")["key"])
    by_key.get("/v1/credits")  # the first one begins the minute
    with counted(api) as with_token:
        api.get("/v1/credits")
    with counted(api) as with_key:
        by_key.get("/v1/credits")
    assert with_key == with_token == {"GetItem": 2, "UpdateItem": 1}


def test_a_revoked_key_is_refused_with_the_next_request(api: Api) -> None:
    made = api.make_key("read")
    by_key = api.by_key(made["key"])
    by_key.get("/v1/credits")
    assert api.call("DELETE", f"/v1/keys/{made['key_id']}").status == 204
    assert refused(by_key) == (401, "unauthorized")
    assert refused(api, "DELETE", f"/v1/keys/{made['key_id']}") == (404, "not_found")


def test_a_key_expires_on_the_second(api: Api) -> None:
    by_key = api.by_key(api.make_key("read", expires_in=100)["key"])
    api.world.clock.now += 99
    by_key.get("/v1/credits")
    api.world.clock.now += 1
    assert refused(by_key) == (401, "unauthorized")


def test_a_key_has_600_requests_a_minute_and_takes_none_of_its_users(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualtrack.storage.keys.KEY_REQUESTS", 5)
    assert KEY_REQUESTS == 600
    by_key = api.by_key(api.make_key("read")["key"])
    for _ in range(5):
        by_key.get("/v1/credits")
    answer = by_key.call("GET", "/v1/credits")
    assert (answer.status, answer.code) == (429, "rate_limited")
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    api.get("/v1/credits")
    api.world.clock.now += 60
    by_key.get("/v1/credits")


def test_a_key_is_no_token_and_a_token_no_key(api: Api) -> None:
    made = api.make_key("read")
    event = api.by_key(made["key"]).event("GET", "/v1/credits")
    token = api.event("GET", "/v1/credits")["multiValueHeaders"]["Authorization"][0]
    event["multiValueHeaders"]["Authorization"] = [token]  # where no authorizer has verified it
    assert api.module.handler(event, api.context)["statusCode"] == 401
    event["multiValueHeaders"]["Authorization"] = [f"Bearer {made['key']}", token]
    assert api.module.handler(event, api.context)["statusCode"] == 401


# ── scopes ────────────────────────────────────────────────────────────────────────────────────────

GUARDED = [route for route in ROUTES if route.access != "open" and route.serve]


@pytest.fixture(scope="module")
def keys(shared: Api) -> dict[str, Api]:
    """A client with one scope alone, for each scope, of an administrator."""
    user = shared.of_new_user()
    pool = shared.module.settings.user_pool_id
    shared.module.cognito.create_group(UserPoolId=pool, GroupName="admin")
    add_to_admins(user)
    admin = shared.of(user.user, "admin")
    scopes = ("chat", "read", "decide", "hooks", "erase", "admin:read", "admin:grant")
    return {scope: user.by_key(admin.make_key(scope)["key"]) for scope in scopes}


def add_to_admins(api: Api) -> None:
    cognito, pool = api.module.cognito, api.module.settings.user_pool_id
    listed = cognito.list_users(UserPoolId=pool, Filter=f'sub = "{api.user}"')["Users"]
    cognito.admin_add_user_to_group(UserPoolId=pool, Username=listed[0]["Username"], GroupName="admin")


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_needs_its_scope_or_takes_no_key(keys: dict[str, Api], route: Route) -> None:
    target, body = route.path.format(**IDS), BODIES[route.body] if route.body else None
    for scope, by_key in keys.items():
        answer = by_key.call(route.method.upper(), target, body)
        if scope in route.scopes:
            assert answer.status not in (401, 403), answer
        else:
            assert (answer.status, answer.code) == (403, "forbidden")
            named = answer.json["error"].get("scope")
            assert named == (route.scopes[-1] if route.scopes else None)


def test_no_key_makes_keys_connects_or_erases_its_owner() -> None:
    tokens_alone = {(route.method, route.path) for route in GUARDED if not route.scopes}
    assert {
        ("post", "/v1/keys"),
        ("get", "/v1/keys"),
        ("patch", "/v1/keys/{key_id}"),
        ("post", "/v1/keys/{key_id}/rotate"),
        ("delete", "/v1/keys/{key_id}"),
        ("put", "/v1/connections/github"),
        ("delete", "/v1/connections/github"),
        ("delete", "/v1/me"),
        ("delete", "/v1/admin/users/{user_id}"),
    } <= tokens_alone


def test_scopes_of_administrators_are_theirs_alone(api: Api) -> None:
    body = {"name": "billing", "scopes": ["admin:grant"]}
    assert refused(api, "POST", "/v1/keys", body) == (403, "forbidden")


def test_a_key_of_a_former_administrator_administers_no_more(shared: Api, keys: dict[str, Api]) -> None:
    former = shared.of_new_user()
    by_key = former.by_key(shared.of(former.user, "admin").make_key("admin:read")["key"])
    target = f"/v1/admin/users/{former.user}/credits"
    assert refused(by_key, "GET", target) == (403, "forbidden")
    add_to_admins(former)
    by_key.get(target)


def test_a_key_is_for_its_profiles(api: Api) -> None:
    by_key = api.by_key(api.make_key("chat", "read", profiles=["courses"])["key"])
    body = {"message": "Hello."}
    assert refused(by_key, "POST", "/v1/chats", body) == (403, "forbidden")
    assert refused(by_key, "POST", "/v1/conversations", {"profile": "graph"}) == (403, "forbidden")
    other = api.ask()["conversation_id"]
    assert refused(by_key, "POST", "/v1/chats", {**body, "conversation_id": other}) == (403, "forbidden")
    assert by_key.start(profile="courses")["status"] == "running"


def test_a_key_that_may_not_read_sees_what_it_has_started_alone(api: Api) -> None:
    made, other = api.make_key("chat"), api.make_key("chat")
    by_key, by_other = api.by_key(made["key"]), api.by_key(other["key"])
    of_user, own = api.ask("The user's own secret."), by_key.start("Of the key.")
    api.run(own["chat_id"])
    assert by_key.get(own["url"])["status"] == "done"
    assert by_key.get(f"{own['url']}/receipt")["chat_id"] == own["chat_id"]
    foreign = [(by_key, of_user["chat_id"], of_user["conversation_id"])]
    foreign += [(by_other, own["chat_id"], own["conversation_id"])]
    for reader, chat_id, conversation_id in foreign:
        where, conversation = f"/v1/chats/{chat_id}", f"/v1/conversations/{conversation_id}"
        asked = {"message": "What was said?", "conversation_id": conversation_id}
        for method, target, body in (
            ("GET", where, None),
            ("GET", f"{where}/receipt", None),
            ("DELETE", where, None),
            ("POST", "/v1/chats", asked),
            ("POST", f"{conversation}/fork", {"before": "q1"}),
            ("PATCH", conversation, {"title": "Mine"}),
        ):
            answer = reader.call(method, target, body)
            assert (answer.status, answer.json["error"].get("scope")) == (403, "read"), target
    follow_up = by_key.start("And now?", conversation_id=own["conversation_id"])
    assert follow_up["message_id"] == "q2"
    reading = api.by_key(api.make_key("chat", "read")["key"])
    assert reading.get(f"/v1/chats/{of_user['chat_id']}")["response"]


def test_a_repeated_request_shows_a_key_no_chat_of_another(api: Api) -> None:
    body, headers = {"message": "A secret."}, {"Idempotency-Key": "one"}
    assert api.call("POST", "/v1/chats", body, headers).status == 202
    by_key = api.by_key(api.make_key("chat")["key"])
    answer = by_key.call("POST", "/v1/chats", body, headers)
    assert (answer.status, answer.json["error"].get("scope")) == (403, "read")


def test_chats_of_end_users_are_paid_by_the_owner_under_the_key(api: Api) -> None:
    made = api.make_key("chat", "read", acts_for="any", caps={"credits_total": 7})
    ann = api.by_key(made["key"], "ann")
    before = api.get("/v1/credits")["available"]
    ann.start("Hello.")
    assert api.get("/v1/credits")["available"] == ann.get("/v1/credits")["available"] == before - 5
    assert refused(api.by_key(made["key"], "bob"), "POST", "/v1/chats", {"message": "Me too."}) == (
        402,
        "key_cap_reached",
    )
    (listed,) = api.get("/v1/keys")["keys"]
    assert (listed["held"]["credits_total"], listed["caps"]) == (5, {"credits_total": 7})
    entry = api.get("/v1/credits/ledger")["entries"][0]
    assert (entry["kind"], entry["key_id"]) == ("hold", made["key_id"])


def test_operators_are_told_from_the_set_share_of_a_cap_on(
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = api.make_key("chat", caps={"credits_total": 19, "dollars_day": 100})
    by_key = api.by_key(made["key"])

    def told() -> list[Any]:
        """For each line its message, the cap, and what is held of credits; as many metrics are written."""
        lines = [vars(line) for line in caplog.records if hasattr(line, "owner_hash")]
        assert capsys.readouterr().out.count('"KeyCapsNear":') == len(lines)
        assert {line["key_id"] for line in lines} <= {made["key_id"]}
        caplog.clear()
        return [(line["message"], line["cap"], line["held"]) for line in lines]

    by_key.start()
    by_key.start()
    assert told() == [], "without the setting"
    monkeypatch.setattr(api.module, "settings", replace(api.module.settings, alarm_key_percent=78))
    by_key.call("DELETE", by_key.start()["url"])
    ((message, cap, held),) = told()
    assert (message, cap, held["credits_total"]) == (key_alarm.NEAR, "credits_total", 15)
    monkeypatch.setattr(api.module, "settings", replace(api.module.settings, alarm_key_percent=79))
    by_key.start()
    api.start()
    assert told() == []
    assert refused(by_key, "POST", "/v1/chats", {"message": "One more."})[0] == 402
    assert told() == [(key_alarm.REACHED, "credits_total", 15)]


def test_revoking_cancels_running_chats_if_asked(api: Api) -> None:
    made = api.make_key("chat", "read")
    by_key = api.by_key(made["key"])
    chat = by_key.start("Hello.")
    assert api.call("DELETE", f"/v1/keys/{made['key_id']}?cancel=true").status == 204
    assert api.get(chat["url"])["status"] == "cancelled"
    assert refused(by_key) == (401, "unauthorized")


# ── changing ──────────────────────────────────────────────────────────────────────────────────────


def test_a_name_and_caps_can_be_changed_and_taken_away(api: Api) -> None:
    made = api.make_key("chat", caps={"credits_day": 10, "credits_total": 100})
    where = f"/v1/keys/{made['key_id']}"
    changed = api.call(
        "PATCH", where, {"name": "cron", "caps": {"credits_day": None, "dollars_day": 0.5}}
    ).json
    assert (changed["name"], changed["caps"]) == ("cron", {"credits_total": 100, "dollars_day": 0.5})
    assert api.get("/v1/keys")["keys"] == [changed]
    assert api.call("PATCH", where, {}).json == changed
    assert refused(api, "PATCH", where, {"caps": {"credits_total": -1}}) == (400, "invalid_request")
    assert refused(api.of_new_user(), "PATCH", where, {"name": "mine"}) == (404, "not_found")


def test_changes_of_different_caps_at_once_all_stand(api: Api) -> None:
    made, stores = api.make_key("chat"), api.module.stores
    for number in range(1, 6):
        wanted = dict.fromkeys(CAPS, number)
        changes = [
            partial(
                change_key, stores, api.user, made["key_id"], KeyChangeBody(caps=CapsBody(**{name: number}))
            )
            for name in CAPS
        ]
        at_once(changes)
        (listed,) = api.get("/v1/keys")["keys"]
        assert listed["caps"] == wanted


def test_two_revocations_at_once_are_one(api: Api) -> None:
    stores, executions = api.module.stores, api.module.executions
    made = api.make_key("chat", "read", acts_for="any")
    chat = api.by_key(made["key"], "ann").start("Hello.")
    revoked = at_once([partial(revoke_key, stores, executions, api.user, made["key_id"], cancels=True)] * 4)
    assert {getattr(outcome, "status", 204) for outcome in revoked} <= {204, 404}
    assert stores.chats.load(end_user_id(api.user, "ann"), chat["chat_id"]).status == "cancelled"
    lines = stores.ledger.movements(api.user)
    assert [line.reason for line in lines if line.kind == "caps"] == ["none", "revoked"]
    assert audit(stores.ledger.load(api.user), lines) == ()
    for change in ({"caps": {"credits_day": 9}}, {"name": "late"}):
        assert refused(api, "PATCH", f"/v1/keys/{made['key_id']}", change) == (404, "not_found")


def test_a_rotated_key_holds_for_as_long_as_it_says(api: Api) -> None:
    made = api.make_key("read")
    where = f"/v1/keys/{made['key_id']}/rotate"
    second = api.call("POST", where).json["key"]
    for key in (made["key"], second):
        api.by_key(key).get("/v1/credits")
    third = api.call("POST", where, {"overlap": 60}).json["key"]
    assert refused(api.by_key(made["key"])) == (401, "unauthorized")
    api.by_key(second).get("/v1/credits")
    api.world.clock.now += 60
    assert refused(api.by_key(second)) == (401, "unauthorized")
    api.by_key(third).get("/v1/credits")
    last = api.call("POST", where, {"overlap": 0}).json["key"]
    assert refused(api.by_key(third)) == (401, "unauthorized")
    api.by_key(last).get("/v1/credits")
    assert refused(api, "POST", where, {"overlap": 86_401}) == (400, "invalid_request")
    assert refused(api.of_new_user(), "POST", where) == (404, "not_found")


def test_the_old_secret_ends_after_a_day(api: Api) -> None:
    made = api.make_key("read")
    api.call("POST", f"/v1/keys/{made['key_id']}/rotate")
    api.world.clock.now += 86_399
    api.by_key(made["key"]).get("/v1/credits")
    api.world.clock.now += 1
    assert refused(api.by_key(made["key"])) == (401, "unauthorized")


# ── end users ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: name[:12])
def test_a_hostile_name_of_an_end_user_is_refused(api: Api, name: str) -> None:
    key = api.make_key("chat", "erase", acts_for="any")["key"]
    assert refused(api.by_key(key, name)) == (400, "invalid_request")
    if name and len(name) < 1_000 and "/" not in name:
        erased = api.call("DELETE", f"/v1/me/users/{quote(name, safe='')}")
        assert erased.status in (400, 404)


def test_the_same_letters_are_one_user_and_letters_that_look_alike_are_two(api: Api) -> None:
    key = api.make_key("chat", "read", acts_for="any")["key"]
    composed, decomposed, cyrillic = "Ren%C3%A9", "Rene%CC%81", "R%D0%B5n%C3%A9"
    api.by_key(key, composed).start()
    assert len(api.by_key(key, decomposed).get("/v1/conversations")["conversations"]) == 1
    assert len(api.by_key(key, f" {composed} ").get("/v1/conversations")["conversations"]) == 1
    assert api.by_key(key, cyrillic).get("/v1/conversations")["conversations"] == []


def test_an_end_user_is_named_by_a_service_and_by_nobody_else(api: Api) -> None:
    service = api.make_key("chat", acts_for="any")["key"]
    assert refused(api.by_key(service)) == (400, "invalid_request")
    assert refused(api.by_key(api.make_key("chat")["key"], "ann")) == (400, "invalid_request")
    answer = api.call("GET", "/v1/tools", headers={"X-Dualtrack-User": "ann"})
    assert (answer.status, answer.code) == (400, "invalid_request")
    event = api.by_key(service, "ann").event("GET", "/v1/tools")
    event["multiValueHeaders"]["x-dualtrack-user"] = ["bob"]
    assert api.module.handler(event, api.context)["statusCode"] == 400


def test_end_users_see_nothing_of_each_other_nor_of_their_namesakes(api: Api) -> None:
    other = api.of_new_user()
    key, others = (one.make_key("chat", "read", acts_for="any")["key"] for one in (api, other))
    ann, bob, namesake = api.by_key(key, "ann"), api.by_key(key, "bob"), other.by_key(others, "ann")
    chat = ann.start("A secret.")
    for stranger in (bob, namesake, api, other):
        assert stranger.get("/v1/conversations")["conversations"] == []
        assert refused(stranger, "GET", chat["url"]) == (404, "not_found")
    assert ann.get(chat["url"])["status"] == "running"
    assert end_user_id(api.user, "ann") != end_user_id(other.user, "ann")


def test_each_end_user_has_a_limit_beside_that_of_the_key(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualtrack.api.rate_limit.REQUESTS_PER_WINDOW", 3)
    key = api.make_key("chat", acts_for="any")["key"]
    ann, bob = api.by_key(key, "ann"), api.by_key(key, "bob")
    for _ in range(3):
        ann.get("/v1/tools")
    assert refused(ann) == (429, "rate_limited")
    bob.get("/v1/tools")


def test_each_end_user_has_waiting_requests_of_their_own(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    key = api.make_key("chat", acts_for="any", caps={"credits_total": 1_000})["key"]
    users = {name: replace(api, user=end_user_id(api.user, name)) for name in ("ann", "bob")}

    def ask(name: str) -> int:
        def answer(_: float) -> None:
            for chat_id in users[name].chat_ids():
                users[name].run(chat_id)

        monkeypatch.setattr("dualtrack.api.chats.time.sleep", answer)
        return api.by_key(key, name).call("POST", "/v1/chats?wait=25", {"message": "Hello."}).status

    leases = api.world.stores.leases
    held = [leases.take(users["ann"].user, WAITS) for _ in range(WAITS.limit)]
    assert (ask("ann"), ask("bob")) == (202, 200)
    leases.free(held[0])
    assert ask("ann") == 200


def test_the_key_of_a_service_has_a_limit_of_all_together(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualtrack.storage.keys.KEY_REQUESTS", 2)
    key = api.make_key("chat", acts_for="any")["key"]
    monkeypatch.setattr(
        api.module,
        "stores",
        replace(api.module.stores, keys=replace(api.module.stores.keys, service_requests=10)),
    )
    for number in range(10):
        api.by_key(key, f"user {number}").get("/v1/tools")
    assert refused(api.by_key(key, "one more")) == (429, "rate_limited")


def test_an_end_user_is_erased_by_name_and_can_come_again(api: Api) -> None:
    made = api.make_key("chat", "read", "erase", acts_for="any")
    owner, ann, bob = api.by_key(made["key"]), *(api.by_key(made["key"], name) for name in ("ann", "bob"))
    ann.start("One.")
    bob.start("Two.")
    assert refused(owner, "DELETE", "/v1/me/users/carl") == (404, "not_found")
    assert owner.call("DELETE", "/v1/me/users/ann").json == {"status": "erasing"}
    assert refused(ann) == (403, "forbidden")
    assert len(bob.get("/v1/conversations")["conversations"]) == 1
    assert api.call("DELETE", "/v1/me/users/ann").status == 202


def swept(api: Api) -> None:
    """Sweeps until every deletion is done."""
    for _ in range(6):
        api.world.clock.now += WRITERS_SECONDS + 1
        sweep_deletions(api.world.stores, api.module.executions, api.module.user_pool, 60)


def naming(api: Api, *texts: str) -> list[Any]:
    """The items that name one of these."""
    listed = [item for table in ("chats", "history", "credits", "cache") for item in items(api.world, table)]
    return [item for item in listed if any(text in repr(item) for text in texts)]


def test_of_an_erased_end_user_nothing_is_left_and_the_name_is_free_again(api: Api) -> None:
    made = api.make_key("chat", "read", "erase", acts_for="any")
    ann, user = api.by_key(made["key"], "ann"), end_user_id(api.user, "ann")
    ann.start("One.")
    assert naming(api, user)
    assert ann.call("DELETE", "/v1/me/users/ann").status == 202
    swept(api)
    assert naming(api, user) == []
    assert ann.get("/v1/conversations")["conversations"] == []
    assert ann.start("Again.")["message_id"] == "q1"


def test_erasing_the_owner_takes_keys_and_end_users_along(api: Api) -> None:
    other = api.of_new_user()
    kept = other.make_key("chat", "read", acts_for="any")
    other.by_key(kept["key"], "ann").start("Kept.")
    made = api.make_key("chat", "read", acts_for="any")
    users = [end_user_id(api.user, name) for name in ("ann", "bob")]
    for name in ("ann", "bob"):
        api.by_key(made["key"], name).start("One.")
    assert api.call("DELETE", "/v1/me").status == 202
    assert refused(api.by_key(made["key"], "ann")) == (401, "unauthorized")
    assert refused(api, "POST", "/v1/keys", {"name": "late", "scopes": ["chat"]}) == (401, "unauthorized")
    swept(api)
    assert naming(api, api.user, made["key_id"], *users) == []
    assert other.by_key(kept["key"], "ann").get("/v1/conversations")["conversations"]
